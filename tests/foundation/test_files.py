"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced, write_text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_or_device_is_not_replaced(tmp_path) -> None:
    """Renaming a file to `/dev/null` would replace the device, for a user who may do that."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OpencseError, match="pipe: is a device, a pipe or a socket"):
        write_text(path, "scores")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path) -> None:
    path = tmp_path / "scores.json"
    write_text(path, "before")
    with pytest.raises(KeyboardInterrupt), replaced(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["scores.json"]
