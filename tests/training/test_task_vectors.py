"""What another recipe's training changes is added to a run's own change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder
from opencse.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.runs.loop import TrainingLoop
from opencse.training.task_vectors import weighted_sum
from tests.tiny import tiny_bert
from tests.training.helpers import metrics, run, weights, write_corpus

OTHER = ("training.max_steps=4", "training.batch_size=8", "training.precision=fp32", "optimizer.lr=2e-3")
"""Settings of the other recipe."""


def vector(weight: float, *settings: str) -> str:
    return f"task_vectors.other={{recipe='simcse', weight={weight}, set={[*OTHER, *settings]}}}"


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def test_the_changes_add_up(tmp_path, backbone, corpus) -> None:
    own = run(corpus, backbone, tmp_path / "own")
    added = run(corpus, backbone, tmp_path / "added", vector(0.5))
    other = added.folder / "task_vectors" / "other"
    assert metrics(added.folder) == metrics(own.folder), "the run itself goes as without"
    assert metrics(other)[-1]["step"] == 4
    start = run(corpus, backbone, tmp_path / "start", "optimizer.lr=1e-12").folder
    before, alone, sums, else_ = (weights(f) for f in (start, own.folder, added.folder, other))
    for name in before:
        if "pooler" not in name:
            expected = alone[name] + 0.5 * (else_[name] - before[name])
            np.testing.assert_allclose(sums[name], expected, rtol=1e-5, atol=1e-6)
    assert any(np.abs(sums[name] - alone[name]).max() > 1e-4 for name in sums)
    card = (added.model / "README.md").read_text(encoding="utf-8")
    assert "0.5 times what `simcse` changes, added to those of the last step" in card


def test_without_weight_the_other_recipe_does_not_run(tmp_path, backbone, corpus) -> None:
    made = run(corpus, backbone, tmp_path / "out", vector(0.0))
    assert not (made.folder / "task_vectors").exists()


def test_the_sum_is_what_the_tolerance_is_about(tmp_path, backbone, corpus) -> None:
    keep = ("selection.keep=last", "selection.tolerance=1")
    own = iter((80.0, 90.0, 78.0, 79.9, 79.7, 79.4, 79.0, 78.5))
    scores = {"other": iter((80.0, 80.0)), "out": own}
    names = iter(("other", "out"))

    def dev(_: object):
        left = scores[next(names)]
        return lambda: next(left)

    made = run(corpus, backbone, tmp_path / "out", vector(1.0), "training.max_steps=4", *keep, dev=dev)
    assert next(own, None) is None, "before, at the end, the sum, and 10, 15, 17, 18, 19 twentieths of it"
    assert (made.outcome.best_score, made.outcome.share) == (79.0, 0.9)


def first_position(encoder: SentenceTransformer) -> Callable[[], float]:
    return lambda: float(encoder[0].auto_model.embeddings.position_embeddings.weight[0].detach().sum())


def test_the_best_step_is_chosen_before_the_sum(tmp_path, backbone, corpus) -> None:
    own = run(corpus, backbone, tmp_path / "own", "selection.every=2", dev=first_position)
    made = run(corpus, backbone, tmp_path / "out", vector(1.0), "selection.every=2", dev=first_position)
    assert made.outcome.best_step == own.outcome.best_step
    assert made.outcome.best_score != own.outcome.best_score


@pytest.mark.parametrize("where", ["task_vectors/other", "."])
def test_a_killed_run_goes_on(tmp_path, backbone, corpus, monkeypatch, where) -> None:
    whole = run(corpus, backbone, tmp_path / "whole", vector(1.0))
    out, original = tmp_path / "out", TrainingLoop.run

    def killed(self: TrainingLoop, resume: bool = False):
        if self.folder == out / where:
            raise KeyboardInterrupt
        return original(self, resume)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TrainingLoop, "run", killed)
        run(corpus, backbone, out, vector(1.0))
    other = out / "task_vectors" / "other" / "model" / "model.safetensors"
    written = other.stat().st_mtime_ns if where == "." else 0
    made = run(corpus, backbone, out, vector(1.0), resume=True)
    assert (other.stat().st_mtime_ns == written) == (where == ".")
    for name, tensor in weights(whole.folder).items():
        np.testing.assert_array_equal(weights(made.folder)[name], tensor)
    again = other.stat().st_mtime_ns
    run(corpus, backbone, out, vector(1.0), overwrite=True)
    assert other.stat().st_mtime_ns > again


def test_a_model_of_other_weights_is_refused(tmp_path, backbone) -> None:
    recipe = load_recipe("simcse", overrides=[vector(1.0)])
    wide = load_encoder(tiny_bert(tmp_path, width=48), pooling="cls")
    wide.save(str(tmp_path / "wide"))
    with pytest.raises(OpencseError, match=r"task_vectors.other: the model of simcse has other weights"):
        weighted_sum(recipe, load_encoder(backbone, pooling="cls"), {"other": tmp_path / "wide"})


def test_a_recipe_that_does_not_exist(tmp_path, backbone, corpus) -> None:
    with pytest.raises(OpencseError, match="simsce"):
        run(corpus, backbone, tmp_path / "out", "task_vectors.other={recipe='simsce'}")
