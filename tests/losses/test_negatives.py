from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from opencse.losses import Context, MomentumContrastiveLoss
from tests.losses.checks import numeric_gradient, toy_build_context
from tests.reference.contrastive import cosine

N, D, T = 4, 3, 0.05


def literal(anchors: np.ndarray, positives: np.ndarray, queue: np.ndarray) -> float:
    """ESimCSE eq. 5, sum by sum."""
    losses = []
    for i in range(N):
        top = np.exp(cosine(anchors[i], positives[i]) / T)
        below = sum(np.exp(cosine(anchors[i], p) / T) for p in positives)
        below += sum(np.exp(cosine(anchors[i], q) / T) for q in queue)
        losses.append(-np.log(top / below))
    return float(np.mean(losses))


class Part(nn.Module):
    """Stands for a sentence encoder: the mean of the embedded ids."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, D)
        self.drop = nn.Dropout(0.5)

    def forward(self, features):
        mask = features["attention_mask"][:, :, None]
        mean = (self.table(features["input_ids"]) * mask).sum(1) / mask.sum(1)
        return features | {"sentence_embedding": self.drop(mean)}


@pytest.fixture
def world():
    """The loss, its context and an encoder with a projector, all in fp64."""
    torch.manual_seed(0)
    encoder, projector = nn.Sequential(Part()).double(), nn.Linear(D, D).double()
    loss = MomentumContrastiveLoss(queue_size=6, momentum=0.9)
    module = loss.module(replace(toy_build_context(encoder, D), projector=projector)).double()
    return loss, Context(modules={loss.name: module}), encoder, projector


def feed(loss, context, seed: int, step: int, has: np.ndarray | None = None):
    """One call on random vectors and tokens; the vectors, their loss and the tokens."""
    random = np.random.default_rng(seed)
    arrays = {v: random.normal(size=(N, D)) for v in ("anchor", "twin")}
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in arrays.items()}
    ids = torch.tensor(random.integers(0, 20, (N, 5)))
    mask = torch.ones_like(ids)
    present = {v: torch.ones(N, dtype=torch.bool) for v in arrays}
    if has is not None:
        present["anchor"] = torch.tensor(has)
        mask[~present["anchor"]] = 0
    context = replace(context, tokens={"anchor": (ids, mask)}, step=step)
    value = loss.compute(tensors, present, context).value
    value.backward()
    return arrays, tensors, value.item(), ids


def test_value_and_gradient_equal_the_transcription(world) -> None:
    loss, context, _, _ = world
    for step in range(3):
        queue = context.modules[loss.name].vectors.numpy().copy()
        assert len(queue) == min(6, 4 * step)
        arrays, tensors, value, _ = feed(loss, context, step, step)
        assert value == pytest.approx(literal(arrays["anchor"], arrays["twin"], queue), rel=1e-10)
        expected = numeric_gradient(
            lambda a, p=arrays["twin"], q=queue: literal(a, p, q), arrays["anchor"]
        )
        np.testing.assert_allclose(
            tensors["anchor"].grad.numpy(), expected, atol=1e-6 * (1 + np.abs(expected).max())
        )


def test_what_enters_the_queue_is_the_slow_encoders_without_dropout(world) -> None:
    loss, context, encoder, projector = world
    module = context.modules[loss.name].train()
    slow = encoder[0].table.weight.detach().clone()
    for step in range(3):
        with torch.no_grad():
            encoder[0].table.weight.add_(torch.randn(20, D))
            projector.weight.add_(0.3)
        if step:  # the weights before the first step are the slow ones
            slow = 0.9 * slow + 0.1 * encoder[0].table.weight.detach()
        *_, ids = feed(loss, context, step, step)
        feed(loss, context, step, step)  # another part of the same step does not move it again
        expected = projector(slow[ids].mean(1)).detach()  # the projector as it is now
        torch.testing.assert_close(module.vectors[-N:], expected)
    assert all(p.grad is None for p in module.parameters())


def test_it_is_saved_whole_stays_in_evaluation_mode_and_takes_no_absent_rows(world) -> None:
    loss, context, *_ = world
    module = context.modules[loss.name]
    assert set(module.state_dict()) == {"queue", "_extra_state", "encoder.0.table.weight"}
    assert not any(part.training for part in module.train().modules())
    assert not any(p.requires_grad for p in module.parameters())
    feed(loss, context, 0, 0, np.array([True, False, True, False]))
    assert len(module.vectors) == 2
