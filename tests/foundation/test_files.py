from __future__ import annotations

import errno

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file, replaced_folder, write_json


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
