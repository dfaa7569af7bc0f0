from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chisquare

from opencse import build
from opencse.encoder import load_encoder
from opencse.foundation.numbers import unit_rows
from opencse.text.corpus import Corpus
from opencse.text.mined import candidate_pools as pools
from opencse.text.mined.candidate_pools import in_window, nearest, random_block, without_copies
from opencse.text.views.registry import CandidateTable, HardNegatives, build_views
from tests.text.mined.conftest import key, vectors


def mine(corpus: Path, out: Path, model: str, **options) -> list[dict]:
    specs = {"negative": HardNegatives(model=model, precision="fp32", **options)}
    return pq.read_table(build_views(Corpus(corpus), specs, out).path).to_pylist()


def ranked(matrix: np.ndarray, lines: list[str], row: int) -> list[int]:
    """All other sentences, nearest first; of copies the one that comes first in the corpus."""
    seen, out = {key(lines[row])}, []
    for j, text in enumerate(lines):
        if key(text) not in seen:
            seen.add(key(text))
            out.append(j)
    cosine = matrix[out] @ matrix[row]
    return [out[k] for k in np.argsort(-cosine, kind="stable")]


def drawn(row: dict, count: int) -> list[int]:
    rules = [row[f"negative_{k + 1}.rule"] for k in range(count)]
    return [int(rule.removeprefix("row ")) for rule in rules if rule.startswith("row ")]


def test_top(corpus, lines, encoder, tmp_path):
    rows, matrix = mine(corpus, tmp_path / "v", encoder, count=3), vectors(encoder, lines)
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        expected = cosine[ranked(matrix, lines, i)[:3]]
        np.testing.assert_allclose(cosine[drawn(rows[i], 3)], expected, atol=1e-6)
        assert key(rows[i]["negative_1"]) != key(lines[i])


def test_ranks_window_and_chance(corpus, lines, encoder, tmp_path):
    matrix = vectors(encoder, lines)
    options = {"ranks": (5, 20), "window": (0.3, 0.7)}
    top = mine(corpus, tmp_path / "top", encoder, **options)
    random_pick = mine(corpus, tmp_path / "random", encoder, pick="random", **options)
    used = set()
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        window = [j for j in ranked(matrix, lines, i) if 0.3 <= cosine[j] <= 0.7][5:20]
        assert top[i]["negative_1.candidates"] == len(window)
        np.testing.assert_allclose(cosine[drawn(top[i], 2)], cosine[window[:2]], atol=1e-6)
        assert set(drawn(random_pick[i], 2)) <= set(window)
        used |= {window.index(j) for j in drawn(random_pick[i], 2)}
    assert len(used) >= 10


@pytest.fixture
def positives(lines, tmp_path) -> dict[int, str]:
    """A positive of every other sentence, in a table: the same words but one."""
    found = {i: " ".join(lines[i].split()[:-1]) for i in range(0, 700, 2) if i not in (3, 10)}
    rows = (f"{lines[i]}\t{text}" for i, text in found.items())
    (tmp_path / "positives.tsv").write_text("\n".join(["text\tcandidate", *rows]))
    return found


def mine_below(corpus, lines, encoder, tmp_path, **options) -> list[dict]:
    specs = {
        "positive": CandidateTable(path=str(tmp_path / "positives.tsv"), window=(0.0, 1.0)),
        "negative": HardNegatives(model=encoder, precision="fp32", positive="positive", **options),
    }
    out = tmp_path / f"views-{options.get('search', 'exact')}"
    return pq.read_table(build_views(Corpus(corpus), specs, out).path).to_pylist()


def test_what_is_nearly_as_near_as_the_positive_is_skipped(
    corpus, lines, encoder, positives, tmp_path
) -> None:
    rows = mine_below(
        corpus, lines, encoder, tmp_path, max_ratio=0.95, count=3, window=(-1.0, 0.99)
    )
    matrix = vectors(encoder, lines)
    model, skipped = load_encoder(encoder), 0
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        allowed = [j for j in ranked(matrix, lines, i) if cosine[j] <= 0.99]
        if i in positives:
            assert rows[i]["positive"] == positives[i]
            limit = 0.95 * float(unit_rows(model.encode([positives[i]]))[0] @ matrix[i])
            below = [j for j in allowed if cosine[j] <= limit]
            assert rows[i]["negative_1.skipped"] == len(allowed) - len(below)
            skipped += len(allowed) - len(below)
            allowed = below
        else:  # no positive, no limit
            assert rows[i]["negative_1.skipped"] == 0
        np.testing.assert_allclose(cosine[drawn(rows[i], 3)], cosine[allowed[:3]], atol=1e-6)
    assert skipped > 20


def test_the_run_says_how_many_were_skipped(corpus, lines, encoder, positives, tmp_path) -> None:
    (tmp_path / "mined.toml").write_text(f"""
extends = "simcse"
[build.positive]
kind = "candidate_table"
path = "{tmp_path / "positives.tsv"}"
window = [0.0, 1.0]
[build.negative]
kind = "hard_negatives"
model = "{encoder}"
count = 1
positive = "positive"
max_ratio = 0.95
""")
    notes: list[str] = []
    built = build(
        str(tmp_path / "mined.toml"),
        str(corpus),
        backbone=encoder,
        out=tmp_path / "out",
        notify=notes.append,
    )
    counts = pq.read_table(built)["negative_1.skipped"].to_numpy()
    assert counts.sum() > 100
    said = f"negative: {counts.sum():,} candidates of {(counts > 0).sum():,} sentences skipped as likely false negatives"
    assert any(said in note for note in notes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_ratio": 0.9}, "go together"),
        ({"positive": "p"}, "go together"),
        ({"positive": "p", "max_ratio": 1.5}, "up to 1"),
        ({"ranks": (3, 4)}, "range that holds at least"),
        ({"block": 0}, "block must be at least 1"),
    ],
)
def test_impossible_values(options, match) -> None:
    with pytest.raises(ValueError, match=match):
        HardNegatives(model="m", **options)


N, D = 500, 8


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(pools, "CHUNK", 37)


@pytest.fixture(scope="module")
def unit_vectors() -> np.ndarray:
    matrix = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
    matrix[7] = matrix[3]  # a copy
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def keys() -> np.ndarray:
    keys = np.arange(N, dtype=np.uint64) + np.uint64(10)
    keys[7] = keys[3]
    return keys


def test_first_in_window_in_the_order_given(unit_vectors, keys):
    order = without_copies(random_block(N, N, seed=1), keys)
    rows = np.array([3, 7, 400, 9])
    found = in_window(rows, order, keys, unit_vectors.__getitem__, size=20, window=(0.2, 0.6))
    for k, row in enumerate(rows):
        cosine = unit_vectors[order] @ unit_vectors[row]
        expected = [
            i
            for i, c in zip(order, cosine, strict=True)
            if 0.2 <= c <= 0.6 and keys[i] != keys[row]
        ][:20]
        assert found.ids[k, : found.sizes[k]].tolist() == expected
        np.testing.assert_allclose(
            found.cosine[k, : found.sizes[k]], unit_vectors[expected] @ unit_vectors[row], atol=1e-6
        )
        assert (found.ids[k, found.sizes[k] :] == -1).all()


def test_pools_are_unbiased(unit_vectors, keys):
    row, size = np.array([0]), 10
    inside = np.flatnonzero(
        (np.abs(unit_vectors @ unit_vectors[0] - 0.4) <= 0.2) & (np.arange(N) != 0)
    )
    counts = np.zeros(N)
    for seed in range(1500):
        block = random_block(N, 200, seed)
        found = in_window(row, block, keys, unit_vectors.__getitem__, size=size, window=(0.2, 0.6))
        counts[found.ids[0, : found.sizes[0]]] += 1
    assert counts.sum() == counts[inside].sum()
    assert chisquare(counts[inside]).pvalue > 0.001


@pytest.mark.parametrize("size", [1, 5, 60])
def test_nearest_is_the_sorted_answer(unit_vectors, keys, size):
    candidates = without_copies(np.arange(N), keys)
    rows = np.arange(40)
    found, _ = nearest(
        rows, candidates, keys, unit_vectors.__getitem__, size=size, window=(0.3, 0.7)
    )
    for k, row in enumerate(rows):
        cosine = unit_vectors[candidates] @ unit_vectors[row]
        fits = (cosine >= 0.3) & (cosine <= 0.7) & (keys[candidates] != keys[row])
        expected = candidates[fits][np.argsort(-cosine[fits], kind="stable")][:size]
        assert found.ids[k, : found.sizes[k]].tolist() == expected.tolist()


def test_copies_are_left_out_and_blocks_are_drawn_by_the_seed():
    keys = np.array([0, 0, 7, 0, 7, 1, 0, 0, 0, 1], dtype=np.uint64)
    assert without_copies(np.array([5, 2, 9, 4]), keys).tolist() == [5, 2]
    assert without_copies(np.array([], dtype=np.int64), keys).tolist() == []
    assert sorted(random_block(50, 1000, 3).tolist()) == list(range(50))
    block = random_block(10**9, 1000, 3)
    assert len(np.unique(block)) == 1000
    assert (block != random_block(10**9, 1000, 4)).any()
    assert random_block(1, 10, 0).tolist() == [0]


def test_window_ends_belong_to_it():
    unit_vectors = np.array([[1, 0], [0.25, 0.5], [0.75, 0.5], [0.2499, 1]], dtype=np.float32)
    ids = np.arange(4)
    keys = ids.astype(np.uint64)
    found = in_window(ids[:1], ids, keys, unit_vectors.__getitem__, size=4, window=(0.25, 0.75))
    assert found.ids.tolist() == [[1, 2, -1, -1]]


def test_approximate_search_finds_nearly_all_of_the_nearest_of_the_corpus(
    corpus, lines, encoder, tmp_path
) -> None:
    matrix = vectors(encoder, lines)
    options = {"count": 3, "search": "approximate", "block": 5}
    rows = mine(corpus, tmp_path / "v", encoder, **options)
    again = mine(corpus, tmp_path / "again", encoder, **options)
    assert rows == again

    hits = 0
    for i in range(700):
        cosine = matrix @ matrix[i]
        numbers = drawn(rows[i], 3)
        # No copy is drawn.
        columns = [rows[i][f"negative_{k + 1}.cosine"] for k in range(3)]
        np.testing.assert_allclose(columns, cosine[numbers], atol=1e-4)
        assert {key(lines[number]) for number in numbers}.isdisjoint({key(lines[i])})
        assert len(set(numbers)) == 3
        hits += len(set(numbers) & set(ranked(matrix, lines, i)[:3]))
    assert hits / 2100 > 0.98


def test_approximate_search_looks_deeper_if_the_nearest_are_outside_the_window(
    corpus, lines, encoder, tmp_path
) -> None:
    options = {"count": 2, "window": (0.0, 0.6)}
    found = mine(corpus, tmp_path / "near", encoder, search="approximate", **options)
    exact = mine(corpus, tmp_path / "exact", encoder, **options)
    counts = [row["negative_1.candidates"] for row in exact]
    assert [row["negative_1.candidates"] for row in found] == counts
    same = [drawn(a, 2) == drawn(b, 2) for a, b in zip(found, exact, strict=True)]
    assert np.mean(same) > 0.95


def test_approximate_search_skips_what_is_nearly_as_near_as_the_positive(
    corpus, lines, encoder, positives, tmp_path
) -> None:
    options = {"max_ratio": 0.95, "count": 3, "window": (-1.0, 0.99)}
    exact = mine_below(corpus, lines, encoder, tmp_path, **options)
    found = mine_below(corpus, lines, encoder, tmp_path, search="approximate", **options)
    column = "negative_1.skipped"
    # A cosine at the limit may be rounded to the other side of it.
    counts = zip([row[column] for row in found], [row[column] for row in exact], strict=True)
    assert max(abs(one - other) for one, other in counts) <= 2
    assert sum(row[column] for row in exact) > 100
