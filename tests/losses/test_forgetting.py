from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from opencse.losses import Context, RecallLoss
from tests.losses.checks import build_context, numeric_gradient, toy_build_context
from tests.reference.recall import recall
from tests.tiny import tiny_bert


class Toy(nn.Module):
    """A small encoder with the names that matter."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(5, 3)
        self.layer = nn.Linear(3, 3)
        self.pooler = nn.Linear(3, 3)


@pytest.fixture
def toy() -> Toy:
    torch.manual_seed(0)
    return Toy().double()


def build(toy: nn.Module, **settings):
    facts = toy_build_context(toy)
    loss = RecallLoss(**settings)
    return loss, Context(modules={"recall": loss.module(facts)})


def move(toy: nn.Module) -> dict[str, np.ndarray]:
    """Change every weight; what they were before."""
    before = {n: p.detach().numpy().copy() for n, p in toy.named_parameters()}
    with torch.no_grad():
        for parameter in toy.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return before


def test_value_and_gradient_equal_the_transcription(toy) -> None:
    loss, context = build(toy, gamma=0.3)
    before = move(toy)
    now = {n: p.detach().numpy().copy() for n, p in toy.named_parameters() if "pooler" not in n}
    value = loss.compute({}, {}, context).value
    value.backward()
    assert value.item() == pytest.approx(recall(now, before, 0.3), rel=1e-12)
    for name, parameter in toy.named_parameters():
        if "pooler" in name:
            assert parameter.grad is None
        else:
            expected = numeric_gradient(
                lambda x, name=name: recall(now | {name: x}, before, 0.3), now[name]
            )
            np.testing.assert_allclose(parameter.grad.numpy(), expected, atol=1e-8)
            np.testing.assert_allclose(
                parameter.grad.numpy(), 0.3 * (now[name] - before[name]), atol=1e-14
            )


def test_frozen_weights_are_left_alone(toy) -> None:
    loss, context = build(toy)
    toy.layer.requires_grad_(False)
    before = move(toy)
    value = loss.compute({}, {}, context).value
    value.backward()
    assert toy.layer.weight.grad is None
    assert value.item() == pytest.approx(
        recall(
            {"e": toy.embeddings.weight.detach().numpy()}, {"e": before["embeddings.weight"]}, 2e-3
        )
    )


def test_the_graph_and_the_checkpoint_hold_no_copy(toy) -> None:
    loss, context = build(toy)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.append(t.numel()) or t, lambda t: t
    ):
        loss.compute({}, {}, context)
    assert sum(saved) <= 2
    assert context.modules["recall"].state_dict() == {}
    assert list(context.modules["recall"].parameters()) == []


def test_of_a_real_encoder_all_but_the_pooler(tmp_path) -> None:
    facts = build_context(tiny_bert(tmp_path), nn.Linear(32, 32))
    names = RecallLoss().module(facts).names
    assert len(names) == sum("pooler" not in n for n, _ in facts.encoder.named_parameters())
    assert any("embeddings" in n for n in names)
    assert any("LayerNorm" in n for n in names)
