"""Weights divided among two processes: the same model as with complete weights, and exact resumption."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType

from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.training.session import RunControl, TrainingSession
from opencse.training.sharding import check_shardable
from opencse.training.trained_model import TrainedModel
from tests.tiny import tiny_bert
from tests.training.helpers import metrics, weights, write_corpus
from tests.training.test_accumulation import SAME_MASKS
from tests.training.test_distributed import FALLING
from tests.trials.processes import free_port, of_two

DYING_WHILE_IT_SAVES = """
import os
from opencse.commands.main import main
from opencse.training import checkpoint
write = checkpoint.write_shards
def write_shards(tensors, folder):
    if "DIE" in os.environ and "step-00000006" in str(folder) and os.environ["RANK"] == "1":
        os._exit(1)
    write(tensors, folder)
checkpoint.write_shards = write_shards
main()
"""


def launch(
    folder: Path,
    out: str,
    *more: str,
    count: int = 2,
    places: Sequence[Path] = (),
    **environment: str,
) -> list[int]:
    """Run all processes, and return their exit codes.

    Args:
        folder: Holds the script, the corpus and the model.
        out: Output folder.
        more: More options.
        count: Number of processes.
        places: The folder that has the output of each process, if they share none.
        environment: More variables.
    """
    command = [sys.executable, str(folder / "script.py"), "train", "simcse"]
    command += [str(folder / "corpus.jsonl"), "--backbone", str(folder / "bert")]
    command += ["-o", out]
    settings = (
        "training.batch_size=8",
        "training.precision=fp32",
        "training.checkpoint_every=3",
        "training.log_every=1",
        # Adam divides by the size of the gradient, and so makes rounding errors as large as a step.
        "optimizer.name=sgd",
        "optimizer.lr=0.05",
    )
    for setting in settings:
        command += ["--set", setting]
    command += more
    port = free_port()
    processes = []
    with (folder / "log.txt").open("a") as log:
        for rank in range(count):
            variables = os.environ | environment | of_two(rank, port, count)
            place = places[rank] if places else folder
            processes.append(subprocess.Popen(command, env=variables, stderr=log, cwd=place))
        return [process.wait() for process in processes]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sharded_weights_train_the_same_model_and_resume_exactly(tmp_path) -> None:
    write_corpus(tmp_path, 64)
    tiny_bert(tmp_path / "bert")
    (tmp_path / "script.py").write_text(FALLING)
    sharded = ("--set", "training.shard_weights=true")

    assert launch(tmp_path, "complete") == [0, 0]
    assert launch(tmp_path, "sharded", *sharded) == [0, 0]
    expected = weights(tmp_path / "complete")
    found = weights(tmp_path / "sharded")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
    for line, other in zip(
        metrics(tmp_path / "sharded"), metrics(tmp_path / "complete"), strict=True
    ):
        assert line == pytest.approx(other, rel=1e-4)

    assert 0 not in launch(tmp_path, "again", *sharded, CRASH="1")
    (checkpoint,) = (tmp_path / "again" / "checkpoints").iterdir()
    assert len(list((checkpoint / "shards").iterdir())) == 2
    assert not list(checkpoint.glob("network*"))
    assert json.loads((checkpoint / "state.json").read_text())["progress"]["step"] == 3
    assert launch(tmp_path, "again", *sharded, "--resume") == [0, 0]
    resumed = weights(tmp_path / "again")
    for name, value in found.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_save_that_died_costs_nothing_and_other_numbers_of_processes_continue(tmp_path) -> None:
    # A fifth of the rows lacks the positive: 64 are left, 8 steps.
    write_corpus(tmp_path, 80, ("text", "positive"))
    tiny_bert(tmp_path / "bert")
    (tmp_path / "script.py").write_text(DYING_WHILE_IT_SAVES)
    still: list[str] = []
    for setting in ("training.shard_weights=true", *SAME_MASKS):
        still += ["--set", setting]

    assert launch(tmp_path, "straight", *still) == [0, 0]
    assert 0 not in launch(tmp_path, "two", *still, DIE="1")
    finished = [path.name for path in (tmp_path / "two" / "checkpoints").glob("step-*")]
    assert finished == ["step-00000003"]

    expected = weights(tmp_path / "straight")
    for count in (1, 2, 4):
        out = f"resumed-{count}"
        shutil.copytree(tmp_path / "two", tmp_path / out)
        assert launch(tmp_path, out, *still, "--resume", count=count) == [0] * count
        found = weights(tmp_path / out)
        for name, value in expected.items():
            if count == 2:
                np.testing.assert_array_equal(found[name], value, err_msg=name)
            np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
    assert "was begun with 2 processes, and continues with 4" in (tmp_path / "log.txt").read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_machines_without_a_shared_folder_train_the_same_model_and_resume_exactly(tmp_path) -> None:
    write_corpus(tmp_path, 64)
    tiny_bert(tmp_path / "bert")
    (tmp_path / "script.py").write_text(FALLING)
    first = tmp_path / "first"
    second = tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    sharded = ("--set", "training.shard_weights=true")

    assert launch(tmp_path, "shared", *sharded) == [0, 0]
    assert launch(tmp_path, "out", *sharded, places=(first, second)) == [0, 0]
    assert not (second / "out").exists()
    expected = weights(tmp_path / "shared")
    assert_equal_weights(first / "out", expected)

    assert 0 not in launch(tmp_path, "fell", *sharded, places=(first, second), CRASH="1")
    (checkpoint,) = (first / "fell" / "checkpoints").iterdir()
    assert checkpoint.name == "step-00000003"
    # The second process sent its part to the first one, which wrote complete files.
    assert (checkpoint / "network.safetensors").is_file()
    assert not (checkpoint / "shards").exists()

    resume = (*sharded, "--resume")
    assert 0 not in launch(tmp_path, "fell", *resume, places=(first, second))
    shutil.copytree(first / "fell", second / "fell")
    assert launch(tmp_path, "fell", *resume, places=(first, second)) == [0, 0]
    assert_equal_weights(first / "fell", expected)


def assert_equal_weights(out: Path, expected: dict[str, np.ndarray]) -> None:
    found = weights(out)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("recipe", "settings", "reason"),
    [
        ("diffcse", (), "network or memory of its own"),
        ("promptbert", (), "template denoising"),
        ("simcse", ("training.precision=fp16",), "fp16"),
    ],
)
def test_what_cannot_be_sharded_is_refused(tmp_path, recipe, settings, reason) -> None:
    backbone = Backbone(tiny_bert(tmp_path / "bert"))
    resolved = load_recipe(recipe, family=backbone.family, overrides=settings)
    network = TrainedModel(resolved, backbone, torch.device("cpu")).network
    with pytest.raises(OpencseError, match=reason):
        check_shardable(network, resolved)


def test_fsdp_of_accelerate_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        Accelerator, "distributed_type", property(lambda self: DistributedType.FSDP)
    )
    with pytest.raises(OpencseError, match="accelerate") as error:
        TrainingSession(RunControl(folder=tmp_path / "out"))
    assert "training.shard_weights" in error.value.remedy
