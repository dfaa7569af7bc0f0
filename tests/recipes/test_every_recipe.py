"""Every recipe trains in both variants and on both tokenizer families, resumes to the bit, exports and reloads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.losses import InfoNCELoss
from opencse.recipes import Recipe, load_recipe, recipe_names
from opencse.training.callbacks import ActiveRun
from opencse.training.checkpoint import Checkpoints
from opencse.training.loop import TrainingLoop
from opencse.training.network import Network
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import metrics, prepare, run, train_on_meta, weights, write_corpus

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
        shutil.copytree(
            tmp_path / "straight", tmp_path / "resumed", ignore=shutil.ignore_patterns(".lock")
        )
        return saved

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", copy_after)
        straight = run(corpus, backbone, tmp_path / "straight", *steps, recipe=name)
    assert straight.outcome.steps == 3
    assert [path.name for path in (tmp_path / "resumed" / "checkpoints").iterdir()] == [
        "step-00000002"
    ]
    run(corpus, backbone, tmp_path / "resumed", *steps, recipe=name, resume=True)

    assert metrics(tmp_path / "resumed") == metrics(tmp_path / "straight")
    expected = weights(tmp_path / "straight")
    for key, tensor in weights(tmp_path / "resumed").items():
        np.testing.assert_array_equal(tensor, expected[key], err_msg=key)
    losses = {loss.name for loss in straight.recipe.losses}
    assert all(
        losses <= line.keys() and np.isfinite(list(line.values())).all()
        for line in metrics(tmp_path / "resumed")
    )
    reloaded = load_encoder(straight.model, device="cpu")
    assert np.isfinite(reloaded.encode(["the cat", ""])).all()


@pytest.mark.parametrize("name", RECIPES)
def test_it_trains_as_published(tmp_path, backbones, monkeypatch, name: str) -> None:
    """As on a GPU: without what only CPUs get, and any tensor that is made on the default device is not the model's."""
    monkeypatch.setattr(
        "opencse.training.trained_model.prepare_for_training", lambda encoder, packed: False
    )
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
    columns = ("text", *(column for column in recipe.columns if column != "text"))
    return (*STEPS, *_small(recipe)), write_corpus(folder, 24, columns)


def _small(recipe: Recipe) -> list[str]:
    """The settings that a recipe needs with the tiny backbones."""
    settings = []
    if recipe.encoder.pooling == "backbone":  # a plain encoder has none
        settings.append("encoder.pooling=mean")
    if recipe.encoder.max_length > 64:
        settings.append("encoder.max_length=64")
    if recipe.name == "cot-bert":  # its templates alone have up to 48 of 64 tokens
        settings.append("encoder.max_length=16")
    if recipe.name == "infocse":
        settings.append("losses.information_aggregation.lower_layers=1")
    return settings


@pytest.mark.parametrize(
    ("name", "column"), [("debcse", "positive_1"), ("sncse", "negation"), ("arccse", "masked_20")]
)
def test_a_column_that_the_data_lacks_is_named_before_training(
    tmp_path, name: str, column: str
) -> None:
    backbone = tiny_bert(tmp_path / "bert", layers=1)
    with pytest.raises(
        OpencseError, match=f"needs the column '{column}'.*It has: text.*opencse build"
    ):
        run(write_corpus(tmp_path, 24), backbone, tmp_path / "out", recipe=name)
    assert not (tmp_path / "out").exists()


SCRIPT = """
import hashlib, sys
from pathlib import Path
from opencse.recipes import load_recipe
from tests.tiny import tiny_bert
from tests.training.helpers import run, write_corpus

folder = Path(sys.argv[1])
backbone = tiny_bert(folder / "model", layers=1)
for name in ("debias", "rankcse-listmle"):
    recipe = load_recipe(name)
    (folder / name).mkdir()
    corpus = write_corpus(folder / name, 24, ("text", *(c for c in recipe.columns if c != "text")))
    steps = ["training.max_steps=3", *(["encoder.pooling=mean"] if recipe.encoder.pooling == "backbone" else [])]
    model = run(corpus, backbone, folder / name / "out", *steps, recipe=name).model
    print(name, hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest(), flush=True)
"""


@pytest.mark.slow
def test_recipes_train_to_the_same_bits_whatever_the_hash_seed(tmp_path: Path) -> None:
    processes = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        surroundings = os.environ | {
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": "1",
            "OPENCSE_CACHE": str(tmp_path / seed / "cache"),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
        }
        call = [sys.executable, "-c", SCRIPT, str(tmp_path / seed)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(call, env=surroundings, **streams))
    first, second = (process.communicate() for process in processes)
    assert processes[0].returncode == processes[1].returncode == 0, (
        first[1][-2000:] + second[1][-2000:]
    )
    assert first[0].splitlines() == second[0].splitlines()
    assert "debias " in first[0]


BY_LENGTH = sorted(
    (load_recipe(name) for name in recipe_names()), key=lambda each: len(each.losses)
)
BY_LOSS = {loss.kind: each.name for each in BY_LENGTH if each.block is None for loss in each.losses}
PACKED = sorted(set(BY_LOSS.values()))
"""Recipes of many losses, in which each kind of loss stands. The layers of a meaning block take padded states, so its
texts are not packed, and their masks are read."""


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def prepared_run(
    folder, backbone, name: str, *settings: str, variant: str = "sound"
) -> TrainingLoop:
    recipe = load_recipe(name, variant=variant)
    settings = (*settings, *_small(recipe))
    corpus = write_corpus(folder, 24, ("text", *(c for c in recipe.columns if c != "text")))
    return prepare(
        lambda: run(corpus, backbone, folder / "run", *settings, recipe=name, variant=variant)
    )


@pytest.mark.parametrize("name", PACKED)
def test_no_step_waits_for_the_device(tmp_path, backbone, name: str) -> None:
    prepared = prepared_run(tmp_path, backbone, name)
    assert all(packing for *_, packing in prepared.collator([0, 1, 2]).passes[0].groups)
    train_on_meta(prepared)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", PACKED)
def test_no_step_waits_for_a_gpu(tmp_path, backbone, monkeypatch, name: str) -> None:
    """Where there is one, PyTorch itself tells of each wait, also of copies that `meta` lets pass."""
    recipe, step = load_recipe(name), TrainingLoop.step

    def watched(self: TrainingLoop, active: ActiveRun) -> Any:
        torch.cuda.set_sync_debug_mode("error" if active.step else "default")
        try:
            return step(self, active)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(TrainingLoop, "step", watched)
    corpus = write_corpus(tmp_path, 24, ("text", *(c for c in recipe.columns if c != "text")))
    trained = run(
        corpus, backbone, tmp_path / "run", "training.max_steps=3", *_small(recipe), recipe=name
    )
    assert trained.outcome.steps == 3


def test_a_step_that_waits_is_found(tmp_path, backbone, monkeypatch) -> None:
    prepared = prepared_run(tmp_path, backbone, "simcse")
    report = InfoNCELoss.reports

    def reads(self: InfoNCELoss, cosines: torch.Tensor, *args: Any) -> Any:
        return report(self, cosines * float(cosines.sum()), *args)

    monkeypatch.setattr(InfoNCELoss, "reports", reads)
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        train_on_meta(prepared)
