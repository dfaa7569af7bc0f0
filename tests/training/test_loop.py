"""The loop: resumed bit for bit, stopped, limited by the clock, and its rates by step."""

from __future__ import annotations

import errno
import json
import math
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

from opencse.foundation.errors import Interrupted, OpencseError
from opencse.recipes.settings import Schedule
from opencse.training import loop
from opencse.training.callbacks import ActiveRun
from opencse.training.folder import read_record
from opencse.training.schedules import rate_factor
from opencse.training.session import TrainingSession
from tests.training.helpers import FakeDev, crash_at, metrics, run, weights, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 64)  # 8 steps an epoch


@pytest.fixture(scope="module")
def straight(tmp_path_factory, backbone, corpus):
    """A run that nothing interrupted: 12 steps over one and a half epochs."""
    out = tmp_path_factory.mktemp("straight") / "out"
    run(corpus, backbone, out, *LONG, dev=FakeDev())
    return out


LONG = ("training.epochs=2", "training.max_steps=12", "selection.every=4")


@pytest.mark.parametrize("step", [1, 3, 4, 7, 8, 9, 11])
def test_a_resumed_run_is_the_uninterrupted_one(
    tmp_path, backbone, corpus, straight, monkeypatch, step
) -> None:
    with monkeypatch.context() as patch:
        crash_at(step, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "out", *LONG, dev=FakeDev())
    torch.manual_seed(99)  # whatever went on in between
    result = run(corpus, backbone, tmp_path / "out", *LONG, dev=FakeDev(), resume=True)
    expected = weights(straight)
    for name, tensor in weights(tmp_path / "out").items():
        np.testing.assert_array_equal(tensor, expected[name], err_msg=name)
    assert metrics(tmp_path / "out") == metrics(straight)
    assert (
        result.outcome.best_step
        == json.loads((straight / "run.json").read_text())["outcome"]["best_step"]
    )


def test_a_kill_during_a_checkpoint_loses_nothing(tmp_path, backbone, corpus, straight) -> None:
    script = f"""
import os, signal, sys
sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
import safetensors.torch, opencse.training.checkpoint as checkpoint
from pathlib import Path
from tests.training.helpers import FakeDev, run
original = checkpoint.save_file
def half(tensors, path, **more):
    original(tensors, path, **more)
    if Path(path).name == "optimizer.safetensors" and "00000006" in str(path):
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save_file = half
run(Path({str(corpus)!r}), Path({str(backbone)!r}), Path({str(tmp_path / "out")!r}), *{LONG!r}, dev=FakeDev())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    complete = [p.name for p in (tmp_path / "out" / "checkpoints").glob("step-*")]
    assert complete == ["step-00000003"]
    run(corpus, backbone, tmp_path / "out", *LONG, dev=FakeDev(), resume=True)
    expected = weights(straight)
    for name, tensor in weights(tmp_path / "out").items():
        np.testing.assert_array_equal(tensor, expected[name], err_msg=name)


def test_a_full_disk_names_itself_and_keeps_the_last_checkpoint(
    tmp_path, backbone, corpus, monkeypatch
) -> None:
    import opencse.training.checkpoint as checkpoint

    original = checkpoint.save_file

    def full(tensors, path, **more):
        if "00000006" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        original(tensors, path, **more)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OpencseError, match="disk is full"):
        run(corpus, backbone, tmp_path / "out", *LONG)
    assert [p.name for p in (tmp_path / "out" / "checkpoints").iterdir()] == ["step-00000003"]


def test_a_signal_writes_a_checkpoint_first(
    tmp_path, backbone, corpus, straight, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        crash_at(4, patch, lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(Interrupted, match="--resume"):
            run(corpus, backbone, tmp_path / "out", *LONG, dev=FakeDev())
    assert (tmp_path / "out" / "checkpoints" / "step-00000005").is_dir()
    run(corpus, backbone, tmp_path / "out", *LONG, dev=FakeDev(), resume=True)
    assert metrics(tmp_path / "out") == metrics(straight)


def test_a_step_that_fp16_skips_leaves_numbers_and_a_checkpoint_that_is_read(
    tmp_path, backbone, corpus, monkeypatch
) -> None:
    monkeypatch.setattr(
        TrainingSession, "settle", lambda self, training, backbone: training
    )  # fp16 on a CPU, too
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=2.0**60))
    settings = ("training.precision=fp16", "training.log_every=8", "training.max_steps=8")
    with monkeypatch.context() as patch:
        crash_at(1, patch, lambda: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(Interrupted):
            run(corpus, backbone, tmp_path / "out", *settings)
    run(corpus, backbone, tmp_path / "out", *settings, resume=True)
    assert all(
        math.isfinite(value) for line in metrics(tmp_path / "out") for value in line.values()
    )


@pytest.fixture
def one_second_steps(monkeypatch) -> None:
    """A clock on which a step takes a second, and nothing else takes any time."""
    now = [0.0]
    step = loop.TrainingLoop.step

    def timed_step(self: loop.TrainingLoop, active: ActiveRun) -> dict[str, torch.Tensor]:
        values = step(self, active)
        now[0] += 1
        return values

    monkeypatch.setattr(ActiveRun, "clock", lambda self: now[0])
    monkeypatch.setattr(loop.TrainingLoop, "step", timed_step)


@pytest.mark.usefixtures("one_second_steps")
def test_the_steps_that_fit_end_the_schedule_and_are_those_of_a_resumed_run(
    tmp_path, backbone, corpus, monkeypatch
) -> None:
    notes: list[str] = []
    settings = ("training.epochs=10", "training.log_every=1")
    whole = run(
        corpus, backbone, tmp_path / "straight", *settings, deadline=28.5, notify=notes.append
    )
    assert whole.outcome.steps == read_record(tmp_path / "straight")["step_limit"] == 28
    assert "training takes about 30 s: 28 steps" in notes
    rates = {line["step"]: line["lr"] for line in metrics(tmp_path / "straight")}
    assert rates[28] == pytest.approx(1e-3 / 28), "linear to 0 by the steps that fit"
    assert rates[20] == pytest.approx(1e-3 * 61 / 80), "before, by all steps"
    with monkeypatch.context() as patch:
        crash_at(23, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "out", *settings, deadline=28 + 28.5)
    assert run(corpus, backbone, tmp_path / "out", *settings, resume=True).outcome.steps == 28
    assert metrics(tmp_path / "out") == metrics(tmp_path / "straight")


@pytest.mark.usefixtures("one_second_steps")
def test_a_few_steps_are_taken_though_the_time_is_over(tmp_path, backbone, corpus) -> None:
    notes: list[str] = []
    result = run(
        corpus, backbone, tmp_path / "out", "training.epochs=10", deadline=-1.0, notify=notes.append
    )
    assert result.outcome.steps == 20
    assert "the time is over before training: it ends after its first 20 steps" in notes


def test_the_kept_weights_are_those_of_the_best_step(straight) -> None:
    scores = {line["step"]: line["dev"] for line in metrics(straight) if "dev" in line}
    outcome = json.loads((straight / "run.json").read_text())["outcome"]
    assert sorted(scores) == [0, 4, 8, 12]
    assert (
        outcome["best_score"] == max(scores[s] for s in (4, 8, 12)) == scores[outcome["best_step"]]
    )
    dev = FakeDev()
    dev.start(SentenceTransformer(str(straight / "model"), device="cpu"))
    assert dev.scores()["fake"] == pytest.approx(outcome["best_score"])


def test_a_loss_that_is_no_number_stops_the_run(tmp_path, backbone, corpus) -> None:
    with pytest.raises(OpencseError, match=r"loss is not finite.*step.*Lower the learning rate"):
        run(
            corpus,
            backbone,
            tmp_path / "out",
            "training.epochs=2",
            "optimizer.lr=1e30",
            "optimizer.max_grad_norm=0",
        )
    kept = list((tmp_path / "out" / "checkpoints").glob("step-*"))
    from safetensors.torch import load_file

    assert all(
        t.isfinite().all() for p in kept for t in load_file(p / "network.safetensors").values()
    )


def test_weight_decay_is_for_matrices_alone(tmp_path, backbone, corpus) -> None:
    """With a learning rate that moves nothing by itself, only what is decayed shrinks."""
    settings = ("training.max_steps=2", "optimizer.lr=1e-7", "optimizer.weight_decay=1e5")
    run(corpus, backbone, tmp_path / "out", *settings)
    before = {
        k.removeprefix("bert."): v for k, v in load_file(backbone / "model.safetensors").items()
    }
    after = {k.removeprefix("bert."): v for k, v in weights(tmp_path / "out").items()}
    ratios = {
        k: np.linalg.norm(after[k]) / np.linalg.norm(v)
        for k, v in before.items()
        if k in after and v.any()
    }
    trained = {k: r for k, r in ratios.items() if "pooler" not in k}
    assert all((r < 0.99) == (before[k].ndim > 1) for k, r in trained.items()), trained


def test_rates_follow_the_schedule() -> None:
    schedule = Schedule(kind="linear", warmup=4)
    assert [rate_factor(schedule, s, 12) for s in (0, 2, 4, 8, 12)] == [0, 0.5, 1, 0.5, 0]
    assert rate_factor(Schedule(), 0, 10) == 1
    assert rate_factor(Schedule(kind="constant"), 9, 10) == 1
    assert rate_factor(Schedule(warmup=0.5), 5, 20) == 0.5


@pytest.mark.parametrize(("rows", "left_out"), [(25, True), (26, False)])
def test_rows_that_no_batch_takes_are_reported(tmp_path, backbone, rows, left_out) -> None:
    notes: list[str] = []
    corpus = write_corpus(tmp_path, rows)
    run(corpus, backbone, tmp_path / "out", "training.max_steps=1", notify=notes.append)
    found = [note for note in notes if "left out of each epoch" in note]
    assert [note.split(" are ")[0] for note in found] == ["1 of 25 rows"] * left_out
