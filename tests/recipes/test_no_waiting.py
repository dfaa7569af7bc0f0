"""No training step waits for the device: on a GPU, the host would then stop launching work."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from opencse.losses import InfoNCELoss
from opencse.recipes import load_recipe, recipe_names
from opencse.training.loop import TrainingLoop
from tests.tiny import tiny_bert
from tests.training.dry_run import prepare, train_on_meta
from tests.training.helpers import run, write_corpus

RECIPES = sorted((load_recipe(name) for name in recipe_names()), key=lambda each: len(each.terms))
BY_TERM = {term.kind: each.name for each in RECIPES if each.block is None for term in each.terms}
PACKED = sorted(set(BY_TERM.values()))
"""Recipes of many terms, in which each kind of term stands. The layers of a meaning block take padded states, so its
texts are not packed, and their masks are read."""


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def prepared_run(folder, backbone, name: str, *settings: str, variant: str = "sound") -> TrainingLoop:
    recipe = load_recipe(name, variant=variant)
    if recipe.encoder.pooling == "backbone":  # a plain encoder has none
        settings = (*settings, "encoder.pooling=mean")
    corpus = write_corpus(folder, 24, ("text", *(c for c in recipe.columns if c != "text")))
    return prepare(lambda: run(corpus, backbone, folder / "run", *settings, recipe=name, variant=variant))


@pytest.mark.parametrize("name", PACKED)
def test_no_step_waits_for_the_device(tmp_path, backbone, name: str) -> None:
    prepared = prepared_run(tmp_path, backbone, name)
    assert all(packing for *_, packing in prepared.assembler([0, 1, 2]).passes[0].groups)
    train_on_meta(prepared)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", PACKED)
def test_no_step_waits_for_a_gpu(tmp_path, backbone, monkeypatch, name: str) -> None:
    """Where there is one, PyTorch itself tells of each wait, also of copies that `meta` lets pass."""
    recipe, step = load_recipe(name), TrainingLoop._step

    def watched(self: TrainingLoop) -> None:
        torch.cuda.set_sync_debug_mode("error" if self.state.step else "default")
        try:
            step(self)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(TrainingLoop, "_step", watched)
    settings = ["encoder.pooling=mean"] if recipe.encoder.pooling == "backbone" else []
    corpus = write_corpus(tmp_path, 24, ("text", *(c for c in recipe.columns if c != "text")))
    trained = run(corpus, backbone, tmp_path / "run", "training.max_steps=3", *settings, recipe=name)
    assert trained.outcome.steps == 3


def test_a_step_that_waits_is_found(tmp_path, backbone, monkeypatch) -> None:
    prepared = prepared_run(tmp_path, backbone, "simcse")
    report = InfoNCELoss.reports

    def reads(self: InfoNCELoss, cosines: torch.Tensor, *args: Any) -> Any:
        return report(self, cosines * float(cosines.sum()), *args)

    monkeypatch.setattr(InfoNCELoss, "reports", reads)
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        train_on_meta(prepared)
