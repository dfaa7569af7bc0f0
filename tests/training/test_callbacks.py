"""Callbacks around the training steps: the user's own, early stopping, trackers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.tracking import GeneralTracker

from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import TRACKERS
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.tracking import Tracking
from tests.training.helpers import FakeDev, metrics, run, weights, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 64)  # 8 steps an epoch


class Recorder(TrainingCallback):
    """Writes down every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.losses: list[float] = []

    def prepare_encoder(self, encoder: Any, backbone: Any) -> None:
        self.calls.append(("prepare_encoder", -1))

    def on_train_begin(self, run: ActiveRun) -> None:
        self.calls.append(("on_train_begin", run.step))

    def on_step_end(self, run: ActiveRun, values: dict[str, torch.Tensor]) -> None:
        self.losses.append(float(values["loss"].detach()))

    def on_log(self, run: ActiveRun, values: dict[str, float]) -> None:
        self.calls.append(("on_log", run.step))

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        self.calls.append(("on_evaluate", run.step))

    def on_save(self, run: ActiveRun, checkpoint: Path) -> None:
        assert (checkpoint / "state.json").is_file()
        self.calls.append(("on_save", run.step))

    def on_train_end(self, run: ActiveRun) -> None:
        self.calls.append(("on_train_end", run.step))


def test_a_callback_of_the_user_sees_the_whole_run(tmp_path, backbone, corpus) -> None:
    recorder = Recorder()
    settings = ("training.max_steps=4", "selection.every=4")
    run(corpus, backbone, tmp_path, *settings, dev=FakeDev(), callbacks=[recorder])
    assert recorder.calls == [
        ("prepare_encoder", -1),
        ("on_evaluate", 0),
        ("on_train_begin", 0),
        ("on_log", 2),
        ("on_save", 3),
        ("on_log", 4),
        ("on_evaluate", 4),
        ("on_train_end", 4),
    ]
    logged = [line["loss"] for line in metrics(tmp_path) if "loss" in line]
    assert logged[0] == pytest.approx(sum(recorder.losses[:2]) / 2)


def test_a_learning_rate_of_zero_of_a_callback_leaves_its_parameters(
    tmp_path, backbone, corpus
) -> None:
    class FreezeEmbeddings(TrainingCallback):
        def parameter_groups(self, network: Any) -> list[dict[str, Any]]:
            embeddings = network.encoder[0].auto_model.embeddings
            return [{"params": list(embeddings.parameters()), "lr": 0.0}]

    run(corpus, backbone, tmp_path / "none", "training.max_steps=1", "optimizer.lr=1e-9")
    run(
        corpus,
        backbone,
        tmp_path / "out",
        "training.max_steps=3",
        callbacks=[FreezeEmbeddings()],
    )
    before = weights(tmp_path / "none")
    after = weights(tmp_path / "out")
    words = "embeddings.word_embeddings.weight"
    layer = "encoder.layer.0.attention.self.query.weight"
    assert abs(after[words] - before[words]).max() < 1e-6
    assert abs(after[layer] - before[layer]).max() > 1e-4


class Falling:
    """A development score that is best at the first evaluation of trained weights."""

    def start(self, encoder: Any) -> None:
        self.score = 50.0

    def scores(self) -> dict[str, float]:
        self.score -= 1
        return {"falling": self.score}


def test_training_stops_after_evaluations_without_a_better_score(
    tmp_path, backbone, corpus
) -> None:
    notes: list[str] = []
    settings = ("training.epochs=4", "selection.every=2", "selection.patience=3")
    result = run(corpus, backbone, tmp_path / "out", *settings, dev=Falling(), notify=notes.append)
    assert (result.outcome.steps, result.outcome.best_step) == (8, 2)
    assert any("training ends after step 8: no better development score" in line for line in notes)


def test_max_steps_overrides_epochs_and_most_steps_only_caps(tmp_path, backbone, corpus) -> None:
    """An epoch has 8 steps."""
    longer = run(corpus, backbone, tmp_path / "longer", "training.max_steps=11")
    assert longer.outcome.steps == 11
    capped = run(corpus, backbone, tmp_path / "capped", "training.most_steps=11")
    assert capped.outcome.steps == 8


def test_tensorboard_has_losses_rates_and_scores(tmp_path, backbone, corpus) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = ("training.max_steps=4", "selection.every=4")
    run(
        corpus,
        backbone,
        tmp_path,
        *settings,
        dev=FakeDev(),
        callbacks=[Tracking(["tensorboard"])],
    )
    events = EventAccumulator(str(tmp_path / "tracking" / "opencse"))
    events.Reload()
    assert {"train/loss", "train/lr", "train/grad_norm", "eval/dev"} <= {*events.Tags()["scalars"]}
    scored = [event.step for event in events.Scalars("eval/dev")]
    assert scored == [0, 4], "the untouched model is scored, too"
    logged = {line["step"]: line for line in metrics(tmp_path) if "loss" in line}
    seen = {event.step: event.value for event in events.Scalars("train/loss")}
    assert seen == pytest.approx({step: line["loss"] for step, line in logged.items()})


@pytest.mark.parametrize(
    ("name", "match"), [("nothing", "there is no tracker"), ("wandb", "pip install wandb")]
)
def test_a_tracker_that_cannot_be_used_is_refused(name: str, match: str, monkeypatch) -> None:
    monkeypatch.setattr("opencse.training.tracking.get_available_trackers", lambda: ["aim"])
    with pytest.raises(OpencseError, match=match):
        Tracking([name])


class Collected(GeneralTracker):
    """A tracker that keeps what it is told."""

    name = "collected"
    requires_logging_directory = False
    tracker = None

    def __init__(self, project: str = "") -> None:
        super().__init__()
        self.calls: list[tuple[str, Any]] = []

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.calls.append(("begin", values["seed"]))

    def log(self, values: dict[str, float], step: int | None = None, **_: Any) -> None:
        self.calls.append((min(values), step))

    def finish(self) -> None:
        self.calls.append(("finish", None))


def test_a_tracker_object_of_the_user_gets_losses_and_scores(tmp_path, backbone, corpus) -> None:
    tracker = Collected()
    settings = ("training.max_steps=2", "selection.every=2")
    tracking = Tracking([tracker])
    run(corpus, backbone, tmp_path, *settings, dev=FakeDev(), callbacks=[tracking])
    assert tracker.calls[0] == ("begin", 42)
    assert tracker.calls[-1] == ("finish", None)
    assert ("eval/dev", 2) in tracker.calls
    assert ("train/grad_norm", 2) in tracker.calls


def test_a_class_that_is_no_tracker_of_accelerate_is_refused(
    tmp_path, backbone, corpus, monkeypatch
) -> None:
    monkeypatch.setattr(TRACKERS, "data", {"plain": Recorder, "collected": Collected})
    with pytest.raises(OpencseError, match=r"Derive its class from accelerate"):
        Tracking([Recorder()])
    with pytest.raises(OpencseError, match=r"the tracker plain cannot be made"):
        run(corpus, backbone, tmp_path, callbacks=[Tracking("collected,plain")])


def test_only_so_many_checkpoints_are_kept(tmp_path, backbone, corpus) -> None:
    class Look(TrainingCallback):
        def on_save(self, run: ActiveRun, checkpoint: Path) -> None:
            names.append(sorted(path.name for path in checkpoint.parent.iterdir()))

    names: list[list[str]] = []
    settings = (
        "training.max_steps=5",
        "training.checkpoint_every=1",
        "training.keep_checkpoints=3",
    )
    run(corpus, backbone, tmp_path, *settings, callbacks=[Look()])
    assert [len(kept) for kept in names] == [1, 2, 3, 3]
    assert json.loads((tmp_path / "run.json").read_text())["outcome"]["steps"] == 5
