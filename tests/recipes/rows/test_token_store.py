from __future__ import annotations

import json
import resource

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencse.encoder import load_encoder
from opencse.encoder.prompts import Frame
from opencse.foundation.cache import cache_root
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
