"""Stores: rows come back as they were added, damage is noticed, and nothing is left half-written."""

from __future__ import annotations

import contextlib
import os
import pickle
import random

import numpy as np
import pyarrow as pa
import pytest

from opencse.foundation.cache import CachedStore, Store, StoreWriter, cache_root
from opencse.foundation.errors import OpencseError

COLUMNS = {"text": pa.large_string(), "list": pa.large_list(pa.uint16()), "vector": pa.list_(pa.float16(), 3)}
TEXTS, LISTS = ["a", "", "é 😀 b", "c"], [[1, 2], None, [], [65535]]
VECTORS = np.arange(12, dtype=np.float16).reshape(4, 3)


def write(path, *, rows=4):
    writer = StoreWriter(path.parent, {**COLUMNS, "key": pa.uint64()})
    for start in range(0, rows, 3):
        part = slice(start, min(start + 3, rows))
        keys = np.arange(2**63, 2**63 + 4, dtype=np.uint64)
        writer.add(TEXTS[part], LISTS[part], VECTORS[part], keys[part])
        assert np.array_equal(writer.added("vector"), VECTORS[: part.stop])
    writer.meta["note"] = "é"
    writer.save(path)
    return path


def test_rows_come_back_in_another_process(tmp_path) -> None:
    store = pickle.loads(pickle.dumps(Store(write(tmp_path / "a"))))
    assert (len(store), store.meta) == (4, {"note": "é"})
    assert store.texts("text", np.array([2, 0, 1, 2])) == ["é 😀 b", "a", "", "é 😀 b"]
    values, offsets, valid = store.columns["list"]
    found = [values[a:b].tolist() if ok else None for a, b, ok in zip(offsets, offsets[1:], valid, strict=False)]
    assert found == LISTS
    assert store.columns["text"].valid is None
    assert np.array_equal(store.columns["vector"].values[[3, 1]], VECTORS[[3, 1]])
    assert store.columns["key"].values[[0, 3]].tolist() == [2**63, 2**63 + 3]
    assert not any(column.values.flags.writeable for column in store.columns.values())


def test_a_store_of_no_rows(tmp_path) -> None:
    store = Store(write(tmp_path / "a", rows=0))
    assert len(store) == 0
    assert store.texts("text", np.zeros(0, int)) == []
    assert store.columns["vector"].values.shape == (0, 3)


def test_incomplete_and_foreign_files_are_refused(tmp_path) -> None:
    whole = write(tmp_path / "a").read_bytes()
    for content in (b"", b"x" * 100, *(whole[:size] for size in range(8, len(whole), 97))):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(OpencseError, match="not a complete store"):
            Store(tmp_path / "b")
    with pytest.raises(OpencseError, match="nowhere"):
        Store(tmp_path / "nowhere")
    rng = random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        (tmp_path / "b").write_bytes(damaged)
        with contextlib.suppress(OpencseError):  # opened or refused, but no other error
            Store(tmp_path / "b")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def cached(fill=None):
    entry = CachedStore("tokens", ["key"])
    if entry.missing:
        with entry.writer(COLUMNS) as writer:
            (fill or (lambda writer: writer.add(TEXTS, LISTS, VECTORS)))(writer)
    return entry.open()


def test_a_damaged_entry_is_made_anew(cache) -> None:
    cached()
    cached(lambda writer: pytest.fail("written again"))
    (file,) = (cache_root() / "tokens").glob("*/store.arrow")
    content = bytearray(file.read_bytes())
    content[content.index(b"\xc3\xa9")] ^= 1
    file.write_bytes(content)
    assert cached().texts("text", np.arange(4)) == TEXTS


def test_a_killed_writer_leaves_an_empty_folder(cache) -> None:
    def fill(writer) -> None:
        writer.add(TEXTS, LISTS, VECTORS)
        os._exit(9)

    if not (child := os.fork()):
        cached(fill)
    os.waitpid(child, 0)
    assert [list(folder.iterdir()) for folder in (cache_root() / "tokens").iterdir()] == [[]]
    assert len(cached()) == 4


def test_an_entry_that_two_processes_make_at_once_is_whole(cache) -> None:
    def fill_slowly(writer) -> None:
        writer.add(TEXTS, LISTS, VECTORS)
        cached()  # another process is faster

    assert cached(fill_slowly).texts("text", np.arange(4)) == TEXTS
    assert len(list((cache_root() / "tokens").iterdir())) == 1
