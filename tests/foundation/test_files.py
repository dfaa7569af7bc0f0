"""Files and folders appear whole, and one process at a time writes into a folder."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import LOCK, locked, make_folder, replaced_file, replaced_folder, write_json
from opencse.foundation.workers import launched_processes


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replaced_file(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), replaced_folder(tmp_path / "b") as folder:
        (folder / "part").write_text("half")
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_files_are_as_readable_as_the_user_has_it(tmp_path) -> None:
    """A writer that makes files which only their owner can read, as safetensors does, has no say."""
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    with replaced_folder(tmp_path / "folder") as folder:
        (folder / "weights").write_text("")
        (folder / "weights").chmod(0o600)
    assert (tmp_path / "folder" / "weights").stat().st_mode == usual
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["weights"]
    with replaced_file(tmp_path / "file") as temporary:
        temporary.unlink()
        temporary.write_text("")
        temporary.chmod(0o600)
    assert (tmp_path / "file").stat().st_mode == usual


def test_a_full_disk_is_named(tmp_path) -> None:
    with pytest.raises(OpencseError, match="disk is full"), replaced_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_beyond_a_limit_is_named(tmp_path) -> None:
    with pytest.raises(OpencseError, match="ulimit"), replaced_file(tmp_path / "a"):
        raise RuntimeError("Error while serializing: I/O error: File too large (os error 27)")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OpencseError, match="cannot be written"):
        write_json(tmp_path / "file" / "below.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(OpencseError, match="cannot be written"):
        write_json(tmp_path / "folder", {})


def test_a_number_that_is_none_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"score": float("nan")})
    assert not list(tmp_path.iterdir())


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
