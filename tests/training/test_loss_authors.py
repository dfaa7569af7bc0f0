"""Mistakes in a custom loss, through the trainer: each message names the loss and the fix."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from opencse.commands.integrations.trainer_loss import sentence_transformers_loss
from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.losses import LOSSES, Loss, LossOutput, Objective
from tests.training.helpers import run, write_corpus


@dataclass(frozen=True, kw_only=True)
class Distance(Loss):
    """The base of the losses below, which is right."""

    kind = "mine"
    view_fields = ("anchor", "positive")
    anchor: str = "anchor"
    positive: str = "twin"

    def compute(self, embeddings, present, context):
        return LossOutput((embeddings["anchor"] - embeddings["twin"]).square().mean())


class ReturnsATensor(Distance):
    def compute(self, embeddings, present, context):
        return super().compute(embeddings, present, context).value


class ReportsAFloat(Distance):
    def compute(self, embeddings, present, context):
        value = super().compute(embeddings, present, context).value
        return LossOutput(value, {"distance": value.item()})


class PlainModule(torch.nn.Module):
    def forward(self, anchor, positive):
        return (anchor - positive).square().mean()


class NoDataclass(Loss):
    kind = "mine"
    view_fields = ("anchor",)
    anchor: str = "anchor"


class UnequalBatches(Distance):
    def compute(self, embeddings, present, context):
        return LossOutput((embeddings["anchor"] - embeddings["twin"][1:]).square().mean())


class UnknownView(Distance):
    def compute(self, embeddings, present, context):
        return LossOutput(embeddings["anchr"].mean())


class NoGradient(Distance):
    def compute(self, embeddings, present, context):
        return LossOutput(embeddings["anchor"].detach().mean())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), 16)


def train(tmp_path, corpus, backbone, monkeypatch, loss):
    monkeypatch.setattr(LOSSES, "data", {**LOSSES.data, "mine": loss})
    recipe = tmp_path / "mine.toml"
    recipe.write_text('extends = "simcse"\n[[losses]]\nkind = "mine"\n')
    return run(corpus, backbone, tmp_path / "out", "training.max_steps=1", recipe=recipe)


def test_the_right_loss_trains(tmp_path, corpus, backbone, monkeypatch) -> None:
    assert train(tmp_path, corpus, backbone, monkeypatch, Distance).outcome.steps == 1


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (ReturnsATensor, r"loss 'mine': compute returned a tensor.* Return LossOutput\(value\)"),
        (ReportsAFloat, r"loss 'mine': the report 'distance' is of the type float.*detach\(\)"),
        (PlainModule, r"the loss 'mine' \(PlainModule\).* Derive its class from Loss.*`module`"),
        (NoDataclass, r"the loss NoDataclass has the setting 'anchor'.* Write @dataclass"),
        (UnequalBatches, r"loss 'mine': .*test_loss_authors\.py, line \d+.*twin .*context\.rows"),
        (UnknownView, r"loss 'mine': .*KeyError: 'anchr'\)\. It got anchor \(2, 32\), twin"),
        (NoGradient, r"the value of 'mine' has no gradient.* without detach"),
        (print, r"the loss 'mine' \(print\) is no opencse\.losses\.Loss"),
    ],
)
def test_a_mistake_names_the_loss_and_the_fix(
    tmp_path, corpus, backbone, monkeypatch, loss, message
) -> None:
    with pytest.raises(OpencseError, match=message):
        train(tmp_path, corpus, backbone, monkeypatch, loss)


def test_a_plain_module_is_refused_outside_recipes_too(backbone) -> None:
    with pytest.raises(OpencseError, match="the loss PlainModule is no"):
        Objective([PlainModule()])
    model = load_encoder(backbone, pooling="mean")
    with pytest.raises(OpencseError, match="the loss PlainModule is no"):
        sentence_transformers_loss(model=model, losses=[PlainModule()])
