"""The cache, and its stores: rows come back, damage is noticed, and the least recently used go first."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from opencse.foundation.cache import (
    KINDS,
    Store,
    StoreWriter,
    cache_place,
    cache_root,
    cache_sizes,
    clear_cache,
    is_whole,
    new_store,
    store_folder,
    trim_cache,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import LOCK, locked, make_folder, replaced, write_json
from opencse.foundation.workers import launched_processes

DAY = 24 * 3600
A, B = 32 * "a", 32 * "b"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def store(kind, name, size, days):
    path = cache_root() / kind / name
    path.mkdir(parents=True)
    (path / "data").write_bytes(bytes(size))
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    return path


def test_the_longest_unused_go_until_the_rest_fits_but_none_of_today(monkeypatch) -> None:
    new, old, oldest = (store("tokens", f"{days:032}", 100, days) for days in (2, 3, 4))
    file = cache_root() / "inputs" / f"texts-{A}.parquet"
    file.parent.mkdir()
    file.write_bytes(bytes(100))
    os.utime(file, (0, 0))
    monkeypatch.setattr("opencse.foundation.cache.LARGEST", 250)
    trim_cache()
    assert [path.exists() for path in (new, old, oldest, file)] == [True, True, False, False]
    path = store("tokens", A, 100, 0.5)
    monkeypatch.setattr("opencse.foundation.cache.LARGEST", 0)
    trim_cache()
    assert path.exists()


def test_asking_for_a_store_counts_as_use_and_for_a_new_one_makes_room(monkeypatch) -> None:
    asked, other = store("tokens", A, 100, 3), store("tokens", B, 100, 2)
    monkeypatch.setattr("opencse.foundation.cache.LARGEST", 107)
    assert cache_place("tokens", A) == asked
    assert other.exists(), "nothing new, so nothing goes"
    assert not cache_place("teachers", "c").exists()
    assert asked.exists()
    assert not other.exists()


@pytest.mark.parametrize(
    ("kind", "name"), [("tokens", f".{A}.tmp"), ("pip", A), ("tokens", "mine")]
)
def test_what_is_being_written_and_what_others_keep_there_is_left_alone(
    kind, name, monkeypatch
) -> None:
    path = store(kind, name, 100, 5)
    monkeypatch.setattr("opencse.foundation.cache.LARGEST", 0)
    trim_cache()
    assert path.exists()


def test_the_folder_is_that_of_the_system(monkeypatch) -> None:
    monkeypatch.delenv("OPENCSE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_root() == Path("/caches/opencse")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "opencse"


def test_sizes_and_clearing_leave_files_of_others_and_the_targets_of_links_alone(
    monkeypatch, tmp_path
) -> None:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path))
    for folder in ("vectors", "mine", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / A).write_bytes(b"x" * 100)
    (tmp_path / "vectors" / "my-data.csv").write_text("x")
    (tmp_path / "tokens").symlink_to(tmp_path / "elsewhere")
    assert cache_sizes() == {kind: 100 * (kind == "vectors") for kind in KINDS}
    assert clear_cache() == 100
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {f"mine/{A}", f"elsewhere/{A}", "vectors/my-data.csv"}


COLUMNS = {"text": np.uint8, "list": np.uint16, "vector": np.float16}
TEXTS, LISTS = ["a", "", "é 😀 b", "c"], [[1, 2], None, [], [65535]]
CODED = [text.encode() for text in TEXTS]
VECTORS = np.arange(12, dtype=np.float16).reshape(4, 3)


def write(folder, *, rows=4):
    folder.mkdir(parents=True)
    writer = StoreWriter(folder, {**COLUMNS, "key": np.uint64})
    for start in range(0, max(rows, 1), 3):
        part = slice(start, min(start + 3, rows))
        keys = np.arange(2**63, 2**63 + 4, dtype=np.uint64)
        writer.add(CODED[part], LISTS[part], VECTORS[part], keys[part])
    writer.meta["note"] = "é"
    writer.save()
    return folder


def test_rows_come_back_in_another_process_also_none(tmp_path) -> None:
    store = pickle.loads(pickle.dumps(Store(write(tmp_path / "a"))))
    assert (len(store), store.meta["note"]) == (4, "é")
    assert store.texts("text", np.array([2, 0, 1, 2])) == ["é 😀 b", "a", "", "é 😀 b"]
    values, offsets, valid = store.columns["list"]
    found = [
        values[a:b].tolist() if ok else None
        for a, b, ok in zip(offsets, offsets[1:], valid, strict=False)
    ]
    assert found == LISTS
    assert store.columns["text"].valid is None
    assert np.array_equal(store.columns["vector"].values[[3, 1]], VECTORS[[3, 1]])
    assert store.columns["key"].values[[0, 3]].tolist() == [2**63, 2**63 + 3]
    assert not any(column.values.flags.writeable for column in store.columns.values())
    store = Store(write(tmp_path / "b", rows=0))
    assert len(store) == 0
    assert store.texts("text", np.zeros(0, int)) == []
    assert store.columns["vector"].values.shape == (0, 3)


def test_incomplete_stores_are_refused(tmp_path) -> None:
    file = write(tmp_path / "a") / "text.npy"
    whole = file.read_bytes()
    for size in range(0, len(whole), 31):
        file.write_bytes(whole[:size])
        with pytest.raises(OpencseError, match="not a complete store"):
            Store(tmp_path / "a")
    with pytest.raises(OpencseError, match="nowhere"):
        Store(tmp_path / "nowhere")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def cached(fill=lambda writer: writer.add(CODED, LISTS, VECTORS)):
    folder = store_folder("tokens", ["key"])
    if not is_whole(folder):
        with new_store(folder, COLUMNS) as writer:
            fill(writer)
    return Store(folder)


def test_a_damaged_entry_is_made_anew(cache) -> None:
    cached()
    cached(lambda writer: pytest.fail("written again"))
    (file,) = (cache_root() / "tokens").glob("*/text.npy")
    content = bytearray(file.read_bytes())
    content[content.index(b"\xc3\xa9")] ^= 1
    file.write_bytes(content)
    assert cached().texts("text", np.arange(4)) == TEXTS


def test_a_killed_writer_leaves_an_empty_folder(cache) -> None:
    def fill(writer) -> None:
        writer.add(CODED, LISTS, VECTORS)
        os._exit(9)

    if not (child := os.fork()):
        cached(fill)
    os.waitpid(child, 0)
    assert [list(folder.iterdir()) for folder in (cache_root() / "tokens").iterdir()] == [[]]
    assert len(cached()) == 4


def test_an_entry_that_two_processes_make_at_once_is_whole(cache) -> None:
    def fill_slowly(writer) -> None:
        writer.add(CODED, LISTS, VECTORS)
        cached()  # another process is faster

    assert cached(fill_slowly).texts("text", np.arange(4)) == TEXTS
    assert len(list((cache_root() / "tokens").iterdir())) == 1


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replaced(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), replaced(tmp_path / "b", folder=True) as folder:
        (folder / "part").write_text("half")
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_files_are_as_readable_as_the_user_has_it(tmp_path) -> None:
    """A writer that makes files which only their owner can read, as safetensors does, has no say."""
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    with replaced(tmp_path / "folder", folder=True) as folder:
        (folder / "weights").write_text("")
        (folder / "weights").chmod(0o600)
    assert (tmp_path / "folder" / "weights").stat().st_mode == usual
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["weights"]
    with replaced(tmp_path / "file") as temporary:
        temporary.unlink()
        temporary.write_text("")
        temporary.chmod(0o600)
    assert (tmp_path / "file").stat().st_mode == usual


def test_a_full_disk_and_a_file_beyond_a_limit_are_named(tmp_path) -> None:
    with pytest.raises(OpencseError, match="disk is full"), replaced(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OpencseError, match="ulimit"), replaced(tmp_path / "a"):
        raise RuntimeError("Error while serializing: I/O error: File too large (os error 27)")
    assert not list(tmp_path.iterdir())


def test_a_place_or_a_number_that_cannot_be_written_is_named(tmp_path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"score": float("nan")})
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(OpencseError, match="cannot be written"):
        write_json(tmp_path / "file" / "below.json", {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(OpencseError, match="cannot be written"):
        write_json(tmp_path / "folder", {})


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
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_refused_whatever_a_launcher_says(
    tmp_path, holder, monkeypatch
) -> None:
    with pytest.raises(OpencseError, match="in use by another process"), locked(tmp_path / "out"):
        pass
    launched = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}
    launched |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    assert launched_processes() == 2
    with pytest.raises(OpencseError, match="in use by another process"), locked(tmp_path / "out"):
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
def test_a_launcher_s_variables_that_make_no_sense_are_refused(
    monkeypatch, variables, message
) -> None:
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


def test_one_process_may_lock_a_folder_again_and_an_empty_one_is_left_away(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "out"):
        _ = 1 / 0
    assert not (tmp_path / "out").exists()
    with locked(tmp_path / "out"):
        with locked(tmp_path / "out"):
            pass
        assert (tmp_path / "out" / LOCK).is_file()
        (tmp_path / "out" / "kept").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kept"]


@pytest.mark.parametrize("out", ["file/out", "loop", "o\0ut", "o" * 300, "/proc/out", "o\udcffut"])
def test_where_nothing_can_be_written_is_one_clear_line(tmp_path, out) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OpencseError), locked(tmp_path / out):
        pass
    with pytest.raises(OpencseError):
        make_folder(tmp_path / out)
