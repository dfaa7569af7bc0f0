"""Every recipe trains on both tokenizer families, resumes to the bit, exports and reloads."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from opencse.errors import Interrupted, OpencseError
from opencse.recipes import load_recipe, recipe_names
from opencse.runs.batch_sampler import BatchSampler
from opencse.training.network import Network
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import metrics, run, weights, write_corpus

FAMILIES = {"bert": tiny_bert, "roberta": tiny_roberta}
STEPS = ("training.max_steps=3", "training.log_every=1", "training.checkpoint_every=0")


@pytest.fixture(scope="session", params=FAMILIES)
def backbone(request, tmp_path_factory):
    return FAMILIES[request.param](tmp_path_factory.mktemp(request.param) / "model", layers=1)


@pytest.mark.parametrize("name", recipe_names())
def test_it_trains_resumes_exports_and_reloads(tmp_path, backbone, monkeypatch, name: str) -> None:
    columns, pooling = list(load_recipe(name).columns), load_recipe(name).encoder.pooling
    steps = (*STEPS, *(["encoder.pooling=mean"] if pooling == "backbone" else []))  # a plain encoder has none
    corpus = write_corpus(tmp_path, 24, ("text", *(c for c in columns if c != "text")))
    straight = run(corpus, backbone, tmp_path / "straight", *steps, recipe=name)
    assert straight.outcome.steps == 3

    original = BatchSampler.batch

    def stop_after_the_second_step(self: BatchSampler, at: int) -> np.ndarray:
        if at == 1 and self._epoch >= 0:
            signal.raise_signal(signal.SIGTERM)
        return original(self, at)

    with monkeypatch.context() as patch:
        patch.setattr(BatchSampler, "batch", stop_after_the_second_step)
        with pytest.raises(Interrupted):
            run(corpus, backbone, tmp_path / "resumed", *steps, recipe=name)
    run(corpus, backbone, tmp_path / "resumed", *steps, recipe=name, resume=True)

    assert metrics(tmp_path / "resumed") == metrics(tmp_path / "straight")
    expected = weights(tmp_path / "straight")
    for key, tensor in weights(tmp_path / "resumed").items():
        np.testing.assert_array_equal(tensor, expected[key], err_msg=key)
    terms = {term.name for term in straight.recipe.terms}
    assert all(
        terms <= line.keys() and np.isfinite(list(line.values())).all() for line in metrics(tmp_path / "resumed")
    )
    reloaded = SentenceTransformer(str(straight.model), device="cpu")
    assert np.isfinite(reloaded.encode(["the cat", ""])).all()


@pytest.mark.parametrize("name", recipe_names())
def test_it_trains_as_published(tmp_path, backbone, monkeypatch, name: str) -> None:
    """As on a GPU: without what only CPUs get, and any tensor that is made on the default device is not the model's."""
    monkeypatch.setattr("opencse.training.train.prepare_for_training", lambda encoder: False)
    forward = Network.forward

    def elsewhere(self: Network, *args: Any) -> Any:
        with torch.device("meta"):
            return forward(self, *args)

    monkeypatch.setattr(Network, "forward", elsewhere)
    recipe = load_recipe(name, variant="faithful")
    steps = (
        *STEPS,
        "training.precision=fp32",
        *(["encoder.pooling=mean"] if recipe.encoder.pooling == "backbone" else []),
    )
    corpus = write_corpus(tmp_path, 24, ("text", *(c for c in recipe.columns if c != "text")))
    trained = run(corpus, backbone, tmp_path / "run", *steps, recipe=name, variant="faithful")
    assert (trained.outcome.steps, trained.recipe.variant) == (3, "faithful")
    assert all(np.isfinite(list(line.values())).all() for line in metrics(tmp_path / "run"))


@pytest.mark.parametrize(("name", "column"), [("debcse", "positive_1"), ("sncse", "negation"), ("arccse", "masked_20")])
def test_a_column_that_the_data_lacks_is_named_before_training(tmp_path, name: str, column: str) -> None:
    backbone = tiny_bert(tmp_path / "bert", layers=1)
    with pytest.raises(OpencseError, match=f"needs the column '{column}'.*It has: text.*opencse build"):
        run(write_corpus(tmp_path, 24), backbone, tmp_path / "out", recipe=name)
    assert not (tmp_path / "out").exists()
