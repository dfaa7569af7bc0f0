from __future__ import annotations

import subprocess
import sys

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import LOCK, locked, make_folder
from opencse.foundation.workers import launched_processes

HOLD = """
import sys, time
from pathlib import Path
from opencse.foundation.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_and_told_who_holds_the_lock(tmp_path, holder) -> None:
    with pytest.raises(OpencseError, match=f"in use by process {holder.pid} on"), locked(tmp_path / "out"):
        pass


def test_no_variable_of_a_launcher_opens_it(tmp_path, holder, monkeypatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert launched_processes() == 2
    with pytest.raises(OpencseError, match="in use by process"), locked(tmp_path / "out"):
        pass


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "first"}, "RANK=first"),
        ({"RANK": "1"}, "no WORLD_SIZE, RANK=1, no LOCAL_RANK"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "no LOCAL_RANK"),
        ({"WORLD_SIZE": "2", "RANK": "2", "LOCAL_RANK": "0"}, "RANK=2"),
        ({"WORLD_SIZE": "-2", "RANK": "0", "LOCAL_RANK": "0"}, "WORLD_SIZE=-2"),
    ],
)
def test_a_launcher_s_variables_that_make_no_sense_are_refused(monkeypatch, variables, message) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, variables.get(name, ""))
    with pytest.raises(OpencseError, match=message):
        launched_processes()


def test_the_lock_of_a_dead_process_is_none(tmp_path, holder) -> None:
    holder.kill()
    holder.wait()
    assert (tmp_path / "out" / LOCK).is_file()
    with locked(tmp_path / "out"):
        pass
    assert not (tmp_path / "out" / LOCK).exists()


def test_one_process_may_lock_a_folder_again(tmp_path) -> None:
    with locked(tmp_path / "out"):
        with locked(tmp_path / "out"):
            pass
        assert (tmp_path / "out" / LOCK).is_file()
        (tmp_path / "out" / "kept").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kept"]


def test_a_folder_that_stays_empty_is_left_away(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "out"):
        _ = 1 / 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["file/out", "loop", "o\0ut", "o" * 300, "/proc/out", "o\udcffut"])
def test_where_nothing_can_be_written_is_one_clear_line(tmp_path, out) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OpencseError), locked(tmp_path / out):
        pass
    with pytest.raises(OpencseError):
        make_folder(tmp_path / out)
