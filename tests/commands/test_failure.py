from __future__ import annotations

import errno

import pytest

from opencse.commands.main import shortage


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (RuntimeError("std::bad_alloc"), "memory"),
        (RuntimeError("can't start new thread"), "memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk"),
        (OSError(errno.EFBIG, "File too large"), "limit"),
        (RuntimeError("Error while serializing: I/O error: File too large (os error 27)"), "limit"),
        (OSError(errno.EMFILE, "Too many open files"), "files"),
    ],
)
def test_shortages_are_known(error, words) -> None:
    found = shortage(error)
    assert found is not None
    assert words in found.problem


def test_a_lost_process_is_known_where_there_are_several(monkeypatch) -> None:
    error = RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1234")
    assert shortage(error) is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    found = shortage(error)
    assert found is not None
    assert "--resume" in found.remedy
