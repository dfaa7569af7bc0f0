"""Every recipe trains in both variants and on both tokenizer families, resumes to the bit, exports and reloads."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe, load_recipe, recipe_names
from opencse.training.checkpoint import Checkpoints
from opencse.training.network import Network
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import metrics, run, weights, write_corpus

FAMILIES = {"bert": tiny_bert, "roberta": tiny_roberta}
STEPS = ("training.max_steps=3", "training.log_every=1", "training.checkpoint_every=2")
RECIPES = recipe_names()
"""Every second one trains on the first family, and as published on the other."""


@pytest.fixture(scope="session")
def backbones(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backbones")
    return [make(folder / family, layers=1) for family, make in FAMILIES.items()]


@pytest.mark.parametrize("name", RECIPES)
def test_it_trains_resumes_exports_and_reloads(tmp_path, backbones, monkeypatch, name: str) -> None:
    recipe, backbone = load_recipe(name), backbones[RECIPES.index(name) % 2]
    steps, corpus = _prepare(recipe, tmp_path)
    save = Checkpoints.save

    def copy_after(store: Checkpoints, *args: Any) -> Path:
        """Leave what a kill right after the second step's checkpoint leaves."""
        saved = save(store, *args)
        shutil.copytree(tmp_path / "straight", tmp_path / "resumed", ignore=shutil.ignore_patterns(".lock"))
        return saved

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", copy_after)
        straight = run(corpus, backbone, tmp_path / "straight", *steps, recipe=name)
    assert straight.outcome.steps == 3
    assert [path.name for path in (tmp_path / "resumed" / "checkpoints").iterdir()] == ["step-00000002"]
    run(corpus, backbone, tmp_path / "resumed", *steps, recipe=name, resume=True)

    assert metrics(tmp_path / "resumed") == metrics(tmp_path / "straight")
    expected = weights(tmp_path / "straight")
    for key, tensor in weights(tmp_path / "resumed").items():
        np.testing.assert_array_equal(tensor, expected[key], err_msg=key)
    terms = {term.name for term in straight.recipe.terms}
    assert all(
        terms <= line.keys() and np.isfinite(list(line.values())).all() for line in metrics(tmp_path / "resumed")
    )
    reloaded = load_encoder(straight.model, device="cpu")
    assert np.isfinite(reloaded.encode(["the cat", ""])).all()


@pytest.mark.parametrize("name", RECIPES)
def test_it_trains_as_published(tmp_path, backbones, monkeypatch, name: str) -> None:
    """As on a GPU: without what only CPUs get, and any tensor that is made on the default device is not the model's."""
    monkeypatch.setattr("opencse.training.train.prepare_for_training", lambda encoder: False)
    forward = Network.forward

    def elsewhere(self: Network, *args: Any) -> Any:
        with torch.device("meta"):
            return forward(self, *args)

    monkeypatch.setattr(Network, "forward", elsewhere)
    recipe, backbone = load_recipe(name, variant="faithful"), backbones[1 - RECIPES.index(name) % 2]
    steps, corpus = _prepare(recipe, tmp_path)
    trained = run(corpus, backbone, tmp_path / "run", *steps, recipe=name, variant="faithful")
    assert (trained.outcome.steps, trained.recipe.variant) == (3, "faithful")
    assert all(np.isfinite(list(line.values())).all() for line in metrics(tmp_path / "run"))


def _prepare(recipe: Recipe, folder: Path) -> tuple[tuple[str, ...], Path]:
    """The settings of three steps, and a corpus with the columns that the recipe reads."""
    pooling = ["encoder.pooling=mean"] if recipe.encoder.pooling == "backbone" else []  # a plain encoder has none
    fit = [] if recipe.block is None else ["block.fit_steps=2"]
    return (*STEPS, *pooling, *fit), write_corpus(folder, 24, ("text", *(c for c in recipe.columns if c != "text")))


@pytest.mark.parametrize(("name", "column"), [("debcse", "positive_1"), ("sncse", "negation"), ("arccse", "masked_20")])
def test_a_column_that_the_data_lacks_is_named_before_training(tmp_path, name: str, column: str) -> None:
    backbone = tiny_bert(tmp_path / "bert", layers=1)
    with pytest.raises(OpencseError, match=f"needs the column '{column}'.*It has: text.*opencse build"):
        run(write_corpus(tmp_path, 24), backbone, tmp_path / "out", recipe=name)
    assert not (tmp_path / "out").exists()
