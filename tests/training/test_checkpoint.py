from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint import HuggingFaceStorageWriter

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_checksums
from opencse.training.checkpoint import (
    Checkpoints,
    TrainingState,
    load_weights,
    moments_of,
    save_weights,
)


def saved(folder, *steps: int) -> tuple[Checkpoints, list[str]]:
    """Checkpoints of a linear layer whose weights are the step, and the list that their notes go to."""
    told: list[str] = []
    checkpoints = Checkpoints(folder, {"recipe": "a"}, told.append)
    network = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    for step in steps:
        torch.nn.init.constant_(network.weight, step)
        checkpoints.save(
            network, moments_of(optimizer), [torch.get_rng_state()], TrainingState(step=step)
        )
    return checkpoints, told


def resumed(checkpoints: Checkpoints) -> int:
    network = torch.nn.Linear(3, 2)
    latest = checkpoints.latest()
    assert latest is not None
    state = checkpoints.load(latest, network, torch.optim.AdamW(network.parameters()))
    assert torch.all(network.weight == state.step)
    return state.step


def test_only_so_many_are_kept(tmp_path) -> None:
    saved(tmp_path, 1, 2, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000002", "step-00000003"]


@pytest.mark.parametrize(
    "file", ["network.safetensors", "optimizer.safetensors", "state.json", "checksums.json"]
)
def test_a_damaged_checkpoint_is_passed_over_with_a_line_that_says_so(tmp_path, file) -> None:
    checkpoints, told = saved(tmp_path, 1, 2)
    path = tmp_path / "step-00000002" / file
    path.write_bytes(path.read_bytes()[:-5])
    assert resumed(checkpoints) == 1
    assert len(told) == 1
    assert "step-00000002 is damaged" in told[0]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_change_of_a_byte_goes_unnoticed(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("checkpoints")
    checkpoints, _ = saved(folder, 1, 2)
    path = data.draw(st.sampled_from(sorted((folder / "step-00000002").iterdir())))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    before = content[at]
    content[at] ^= data.draw(st.integers(1, 255))
    assume(
        not (path.name == "checksums.json" and bytes([before, content[at]]).isspace())
    )  # the same JSON
    path.write_bytes(content)
    assert resumed(checkpoints) == 1


def test_if_every_checkpoint_is_damaged_the_run_is_refused(tmp_path) -> None:
    checkpoints, _ = saved(tmp_path, 1, 2)
    for folder in tmp_path.iterdir():
        (folder / "state.json").unlink()
    with pytest.raises(OpencseError, match="every checkpoint is damaged"):
        checkpoints.latest()


def test_changed_weights_are_refused(tmp_path) -> None:
    network = torch.nn.Linear(3, 2)
    save_weights(network, tmp_path / "best.safetensors")
    load_weights(network, tmp_path / "best.safetensors")
    content = (tmp_path / "best.safetensors").read_bytes()
    for changed in (content[:-1] + bytes([content[-1] ^ 1]), content[:-4], b"", b"\xff" * 9):
        (tmp_path / "best.safetensors").write_bytes(changed)
        with pytest.raises(OpencseError, match=r"best\.safetensors: "):
            load_weights(network, tmp_path / "best.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(fingerprint={"recipe": "b"}),
        lambda state: state.pop("progress"),
        lambda state: state["progress"].update(step="2"),
        lambda state: state["progress"].update(step=-2),
        lambda state: state["progress"].update(steps=2),
        lambda state: state["progress"].update(sums={"loss": 1.0}),
    ],
)
def test_a_checkpoint_of_others_is_checked_although_its_checksums_hold(tmp_path, change) -> None:
    checkpoints, _ = saved(tmp_path, 1, 2)
    path = tmp_path / "step-00000002"
    state = json.loads((path / "state.json").read_text())
    change(state)
    (path / "state.json").write_text(json.dumps(state))
    sealed_anew(path)
    with pytest.raises(OpencseError, match=r"state\.json"):
        resumed(checkpoints)


def trained(width: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    network = torch.nn.Linear(width, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.ones(1, width)).square().sum().backward()
    optimizer.step()
    return network, optimizer


@pytest.mark.parametrize("file", ["network", "optimizer", "random"])
def test_tensors_of_another_shape_do_not_fit(tmp_path, file) -> None:
    checkpoints, _ = saved(tmp_path / "a", 2)
    other = Checkpoints(tmp_path / "b", {"recipe": "a"})
    network, optimizer = trained(5)
    states = [torch.zeros(7, dtype=torch.uint8)]
    path = other.save(network, moments_of(optimizer), states, TrainingState(step=2))
    shutil.copy(path / f"{file}.safetensors", tmp_path / "a" / "step-00000002")
    sealed_anew(tmp_path / "a" / "step-00000002")
    with pytest.raises(OpencseError, match=file):
        resumed(checkpoints)


def test_moments_and_generators_go_on(tmp_path) -> None:
    network, optimizer = trained(3)
    checkpoints = Checkpoints(tmp_path, {"recipe": "a"})
    with torch.random.fork_rng(devices=[]):
        path = checkpoints.save(
            network, moments_of(optimizer), [torch.get_rng_state()], TrainingState(step=2)
        )
        drawn, fresh = torch.rand(5), torch.optim.AdamW(network.parameters())
        checkpoints.load(path, network, fresh)
        assert torch.equal(torch.rand(5), drawn)
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            assert torch.equal(fresh.state_dict()["state"][index][name], value)
    moments = load_file(path / "optimizer.safetensors")
    save_file(
        {key: value for key, value in moments.items() if key != "0.step"},
        path / "optimizer.safetensors",
    )
    sealed_anew(path)
    with pytest.raises(OpencseError, match=r"optimizer\.safetensors: does not fit"):
        resumed(checkpoints)


def sealed_anew(folder) -> None:
    (folder / "checksums.json").unlink()
    write_checksums(folder)


def in_shards(checkpoints: Checkpoints, step: int, network: torch.nn.Module, optimizer) -> Path:
    """Write a checkpoint as a run with divided weights does; here one process has all of them."""
    return checkpoints.save_shards(
        network, optimizer, [torch.get_rng_state()], TrainingState(step=step), main=True
    )


def test_a_checkpoint_in_shards_gives_back_weights_and_moments(tmp_path) -> None:
    network, optimizer = trained(3)
    checkpoints = Checkpoints(tmp_path, {"recipe": "a"})
    path = in_shards(checkpoints, 2, network, optimizer)
    assert {file.suffix for file in path.rglob("*") if file.is_file()} == {".safetensors", ".json"}

    other = torch.nn.Linear(3, 2)
    fresh = torch.optim.AdamW(other.parameters())
    assert checkpoints.load(path, other, fresh).step == 2
    assert torch.equal(other.weight, network.weight)
    for name, value in moments_of(optimizer).items():
        assert torch.equal(moments_of(fresh)[name], value), name

    wider = torch.nn.Linear(5, 2)
    with pytest.raises(OpencseError, match="does not fit the network"):
        checkpoints.load(path, wider, torch.optim.AdamW(wider.parameters()))


def test_a_save_in_shards_that_fails_leaves_the_last_checkpoint(tmp_path, monkeypatch) -> None:
    network, optimizer = trained(3)
    checkpoints = Checkpoints(tmp_path, {"recipe": "a"})
    good = in_shards(checkpoints, 2, network, optimizer)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(HuggingFaceStorageWriter, "write_data", full)
    with pytest.raises(OpencseError, match="the disk is full"):
        in_shards(checkpoints, 4, network, optimizer)
    assert list(tmp_path.iterdir()) == [good]
    assert checkpoints.latest() == good
