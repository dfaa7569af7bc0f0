"""The optimisers that PyTorch does not have."""

from __future__ import annotations

import math

import pytest
import torch

from opencse.recipes import load_recipe, recipe_names
from opencse.training.optimizers import TransformersAdamW
from tests.tiny import tiny_bert
from tests.training.helpers import crash_at, metrics, run, write_corpus

RATE, BETA1, BETA2, EPS = 0.01, 0.9, 0.999, 1e-8


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_epsilon_is_added_before_the_bias_correction(decay: float) -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = TransformersAdamW(
        [weight], lr=RATE, betas=(BETA1, BETA2), eps=EPS, weight_decay=decay
    )
    expected, mean, square = weight.tolist(), [0.0, 0.0], [0.0, 0.0]
    for step, gradient in enumerate([[1e-8, 3.0], [-2e-8, 1.0], [5e-9, -2.0]], start=1):
        weight.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        for i, g in enumerate(gradient):
            mean[i] = BETA1 * mean[i] + (1 - BETA1) * g
            square[i] = BETA2 * square[i] + (1 - BETA2) * g * g
            size = RATE * math.sqrt(1 - BETA2**step) / (1 - BETA1**step)
            expected[i] -= size * mean[i] / (math.sqrt(square[i]) + EPS)
            expected[i] -= RATE * decay * expected[i]
        assert weight.tolist() == pytest.approx(expected, rel=1e-14)


def test_large_gradients_move_as_with_the_optimiser_of_pytorch() -> None:
    weights = [torch.nn.Parameter(torch.ones(3, dtype=torch.float64)) for _ in range(2)]
    ours = TransformersAdamW([weights[0]], lr=RATE)
    theirs = torch.optim.AdamW([weights[1]], lr=RATE, weight_decay=0.0)
    for _ in range(5):
        for weight in weights:
            weight.grad = torch.tensor([1.0, -4.0, 9.0], dtype=torch.float64)
        ours.step()
        theirs.step()
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-7, atol=0)
    assert not torch.equal(weights[0], weights[1])


def test_a_parameter_without_a_gradient_stays_and_a_closure_is_called() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = TransformersAdamW([weight], lr=RATE)
    assert optimizer.step(lambda: 7.0) == 7.0
    assert weight.item() == 1.0


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_use_it_as_published_only(name: str) -> None:
    assert load_recipe(name).optimizer.name == "adamw"
    # Two recipes are opencse's own, and four keep PyTorch's AdamW.
    if name not in ("debias", "transformations", "consert", "ct", "declutr", "is-bert"):
        recipe = load_recipe(name, variant="faithful")
        assert recipe.optimizer.name == "adamw_transformers"


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path) -> None:
    backbone, corpus = tiny_bert(tmp_path / "backbone", layers=1), write_corpus(tmp_path)
    settings = ("optimizer.name=adamw_transformers", "training.max_steps=5")
    run(corpus, backbone, tmp_path / "whole", *settings)
    with pytest.MonkeyPatch.context() as patch:
        crash_at(4, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "parts", *settings)
    run(corpus, backbone, tmp_path / "parts", *settings, resume=True)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
