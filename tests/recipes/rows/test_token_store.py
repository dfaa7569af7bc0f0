from __future__ import annotations

import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencse.encoder import load_encoder
from opencse.encoder.prompts import Frame
from opencse.foundation import cache
from opencse.foundation.cache import Together, cache_root
from opencse.recipes.rows import token_store
from opencse.recipes.rows.token_store import TokenSource, open_token_store
from opencse.text.corpus import Corpus
from opencse.training.batches import BatchSampler, Collator, ViewTokens, shares_of
from tests.tiny import tiny_bert

TEXTS = ["the cat sits", None, "a dog", "", "word " * 5000, "no"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return load_encoder(tiny_bert(tmp_path_factory.mktemp("bert")), pooling="cls").tokenizer


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"text": t, "other": o}) for t, o in zip(TEXTS, reversed(TEXTS), strict=True)
        )
    )
    return path


def test_the_store_holds_the_tokenizers_ids_and_nulls(corpus, tokenizer) -> None:
    store = open_token_store(
        Corpus(corpus),
        [TokenSource("text"), TokenSource("other", optional=True)],
        tokenizer,
        12,
        progress=False,
    )
    kept = [(t, o) for t, o in zip(TEXTS, reversed(TEXTS), strict=True) if t]
    assert (store.rows, store.skipped) == (len(kept), 2)
    for row, (text, other) in enumerate(kept):
        expected = tokenizer(text, add_special_tokens=False, truncation=True, max_length=12)[
            "input_ids"
        ]
        assert store.ids(0, row).tolist() == expected
        assert (store.ids(1, row) is None) == (not other)
    assert store.present(1) == sum(bool(o) for _, o in kept)


def test_counts_are_those_of_all_rows(corpus, tokenizer, monkeypatch) -> None:
    monkeypatch.setattr(token_store, "_ROWS_AT_ONCE", 2)
    store = open_token_store(Corpus(corpus), [TokenSource("text")], tokenizer, 12, progress=False)
    lengths = []
    for row in range(store.rows):
        ids = store.ids(0, row)
        assert ids is not None
        lengths.append(len(ids))
    assert store.tokens(0) == sum(lengths)
    for limit in (1, 4, 12, 13):
        assert store.count_long(0, limit) == sum(length >= limit for length in lengths)


def test_a_prompt_is_tokenised_with_the_text(corpus, tokenizer) -> None:
    store = open_token_store(
        Corpus(corpus), [TokenSource("text", prompt="no {}")], tokenizer, 12, progress=False
    )
    assert (
        store.ids(0, 0).tolist()
        == tokenizer("no the cat sits", add_special_tokens=False)["input_ids"]
    )


def test_the_store_is_built_once_and_again_when_anything_changes(corpus, tokenizer) -> None:
    def count() -> int:
        return len(list((cache_root() / "tokens").glob("[!.]*")))

    def opened(length: int):
        return open_token_store(
            Corpus(corpus), [TokenSource("text")], tokenizer, length, progress=False
        )

    opened(9)
    before = count()
    opened(9)
    assert count() == before
    opened(10)
    corpus.write_text(corpus.read_text() + '\n{"text": "a new cat", "other": null}')
    assert opened(9).rows == 5
    assert count() == before + 2


def stored_bytes() -> dict[str, bytes]:
    folders = [path for path in (cache_root() / "tokens").iterdir() if path.name[0] != "."]
    (folder,) = folders  # the shards are gone
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.npy"))}


def built_by(count: int, path, tokenizer, monkeypatch, folder) -> dict[str, bytes]:
    """Return the files of a store that some processes, here threads, build together."""
    monkeypatch.setenv("OPENCSE_CACHE", str(folder))
    barrier = threading.Barrier(count)
    sources = [TokenSource("text"), TokenSource("other", optional=True)]

    def build(rank: int) -> int:
        together = Together(rank, count, barrier.wait)
        store = open_token_store(
            Corpus(path), sources, tokenizer, 12, progress=False, together=together
        )
        return store.rows

    with ThreadPoolExecutor(count) as pool:
        rows = list(pool.map(build, range(count)))
    assert len(set(rows)) == 1
    return stored_bytes()


@pytest.fixture
def many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(token_store, "_CHUNK", 3)
    monkeypatch.setattr(token_store, "_SHARD", 2)
    path = tmp_path / "many.jsonl"
    lines = []
    for i in range(40):
        text = None if i % 7 == 3 else "the cat sits in a garden"[: 3 + i % 20]
        other = None if i % 3 == 1 else "a dog"
        lines.append(json.dumps({"text": text, "other": other}))
    path.write_text("\n".join(lines))
    return path


def test_several_processes_write_the_bytes_of_one(
    many_rows, tokenizer, tmp_path, monkeypatch
) -> None:
    expected = built_by(1, many_rows, tokenizer, monkeypatch, tmp_path / "one")
    assert set(expected) == {"0.npy", "0.offsets.npy", "1.npy", "1.offsets.npy", "1.valid.npy"}
    for count in (2, 3):
        found = built_by(count, many_rows, tokenizer, monkeypatch, tmp_path / f"of {count}")
        assert found == expected


def test_an_interrupted_build_continues_with_the_missing_shards(
    many_rows, tokenizer, tmp_path, monkeypatch
) -> None:
    expected = built_by(1, many_rows, tokenizer, monkeypatch, tmp_path / "one")
    calls = []
    original = token_store._tokenise

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(token_store, "_tokenise", counted)
    with pytest.raises(KeyboardInterrupt):
        built_by(1, many_rows, tokenizer, monkeypatch, tmp_path / "again")
    assert built_by(1, many_rows, tokenizer, monkeypatch, tmp_path / "again") == expected
    # 14 chunks of two columns in all; the first shard of two chunks and the second were complete.
    assert len(calls) - 9 == 2 * 14 - 2 * 4


def test_an_intact_store_is_not_hashed_again(corpus, tokenizer, monkeypatch) -> None:
    def opened():
        return open_token_store(
            Corpus(corpus), [TokenSource("text")], tokenizer, 11, progress=False
        )

    opened()
    opened()
    monkeypatch.setattr(cache, "find_damage", lambda folder: pytest.fail("hashed again"))
    opened()


@pytest.mark.slow
def test_a_large_corpus_is_not_read_into_memory(tmp_path, tokenizer) -> None:
    path = tmp_path / "big.txt"
    with path.open("w") as file:
        for i in range(1_000_000):
            file.write(
                f"the cat number {i} sits quietly in the garden under a tree and reads a small red book again\n"
            )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = open_token_store(Corpus(path), [TokenSource("text")], tokenizer, 32, progress=False)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert store.rows == 1_000_000
    assert grown < 150, f"{grown:.0f} MiB more, for a file of {path.stat().st_size / 1e6:.0f} MB"


@given(
    rows=st.integers(2, 60),
    batch=st.integers(1, 20),
    seed=st.integers(0, 9),
    parts=st.integers(1, 4),
)
def test_an_epoch_meets_every_row_once_that_has_a_negative(
    rows: int, batch: int, seed: int, parts: int
) -> None:
    sampler = BatchSampler(rows, min(batch, rows), seed, parts)
    steps = sampler.batches_per_epoch
    batches = [sampler.batch(step) for step in range(steps)]
    first = np.concatenate(batches)
    assert len(set(first.tolist())) == len(first)
    assert {len(each) for each in batches[:-1]} <= {sampler.batch_size}
    assert rows - len(first) < max(2, parts)
    last = len(batches[-1])
    assert last == sampler.batch_size or last >= max(2, parts)
    shares = shares_of(last, parts)
    assert sum(shares) == last
    assert max(shares) - min(shares) <= 1
    later = sampler.batch(steps + steps // 2).tolist()
    assert (
        BatchSampler(rows, sampler.batch_size, seed, parts).batch(steps + steps // 2).tolist()
        == later
    )


@pytest.mark.parametrize("budget", [None, 1, 64])
def test_batches_hold_every_view_of_every_row_once(corpus, tokenizer, budget) -> None:
    store = open_token_store(
        Corpus(corpus),
        [TokenSource("text"), TokenSource("other", optional=True)],
        tokenizer,
        12,
        progress=False,
    )
    frame = Frame((2,), (3,))
    views = {
        "anchor": ViewTokens(0, frame, 10, None),
        "twin": ViewTokens(0, frame, 10, None),
        "negative": ViewTokens(1, frame, 4, 0.2),
    }
    batch = Collator(store, views, 0, budget)([3, 0, 2])
    assert [p.dropout for p in batch.passes] == [None, 0.2]
    found: dict[int, list[int]] = {}
    for part in batch.passes:
        rows = [line[m.bool()].tolist() for i, k, _ in part.groups for line, m in zip(i, k)]
        found |= dict(zip(part.slots.tolist(), rows, strict=True))
    for v, view in enumerate(views.values()):
        for r, row in enumerate([3, 0, 2]):
            content = store.ids(view.source, row)
            assert bool(batch.present[v, r]) == (content is not None)
            if content is not None:
                assert found.pop(v * 3 + r) == [2, *content[: view.budget].tolist(), 3]
    assert not found


def test_a_text_outside_the_window_of_match_error_rates_counts_as_missing(
    tmp_path, tokenizer
) -> None:
    path = tmp_path / "c.jsonl"
    versions = ["the cat sits here", "the dog sits here", "a dog ran away", None]
    path.write_text(
        "\n".join(json.dumps({"text": "the cat sits here", "other": other}) for other in versions)
    )
    sources = [TokenSource("other", optional=True, window=(0.15, 0.6)), TokenSource("text")]
    store = open_token_store(Corpus(path), sources, tokenizer, 12, progress=False)
    assert [store.ids(0, row) is not None for row in range(4)] == [False, True, False, False]
    assert store.present(1) == 4
    free = [TokenSource("other", optional=True), TokenSource("text")]
    assert open_token_store(Corpus(path), free, tokenizer, 12, progress=False).present(0) == 3
