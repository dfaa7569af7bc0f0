"""Draws by meaning and surface: the formulas, and both kinds."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, zscore

from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import Local
from opencse.recipes import dump_recipe, load_recipe
from opencse.text.corpus import Corpus
from opencse.text.mined import debiased
from opencse.text.mined.candidate_pools import draw, gumbel_noise
from opencse.text.mined.debiased import _softmax, selection_scores
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views import builder
from opencse.text.views.registry import (
    CandidateTable,
    DebiasedNegatives,
    DebiasedPositives,
    SourceRow,
    build_views,
    row_seed,
)
from tests.reference import mining as reference
from tests.text.mined.conftest import key, vectors, word_similarity
from tests.text.views.test_builder import hashes

POOL = {
    "edits": [3, 9, 12, 12, 20, 31],
    "cosines": [0.3, 0.74, 0.25, 0.5, 0.41, 0.6],
    "longer": [8, 12, 15, 30, 21, 40],
}


def pool(mode: str, role: str = "negative", weight: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    valid = np.ones((1, len(POOL["edits"])), dtype=bool)
    arrays = [np.array([POOL[name]]) for name in ("cosines", "edits", "longer")]
    return selection_scores(*arrays, valid, weight=weight, role=role, mode=mode), valid


def probabilities(scores: np.ndarray, valid: np.ndarray, temperature: float) -> np.ndarray:
    """The probability that each candidate is drawn first: softmax(score / temperature), DebCSE, Eq. 4 and 6."""
    if temperature == 0:
        best = valid & (scores == np.where(valid, scores, -np.inf).max(axis=1, keepdims=True))
        return best / np.maximum(best.sum(axis=1, keepdims=True), 1)
    return _softmax(scores / temperature, valid)


def draws(
    scores: np.ndarray, valid: np.ndarray, count: int, temperature: float, times: int
) -> np.ndarray:
    seeds = np.array(
        [row_seed(0, "test", SourceRow(id=i, text="")) for i in range(times)], dtype=np.uint64
    )
    ids = np.tile(np.arange(scores.shape[1]) * 7919, (times, 1))
    repeated = (np.repeat(part, times, axis=0) for part in (scores, valid))
    return draw(*repeated, gumbel_noise(seeds, ids), count=count, temperature=temperature)


@given(
    st.lists(st.tuples(st.integers(0, 100_000), st.floats(-1, 1)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.sampled_from(["negative", "positive"]),
)
def test_faithful_is_the_papers_equations(pairs, weight, role):
    edits, cosines = [edit for edit, _ in pairs], [cosine for _, cosine in pairs]
    valid = np.ones((1, len(pairs)), dtype=bool)
    scores = selection_scores(
        np.array([cosines]),
        np.array([edits]),
        np.ones((1, len(pairs))),
        valid,
        weight=weight,
        role=role,
        mode="faithful",
    )
    np.testing.assert_allclose(
        scores[0], [float(s) for s in reference.selection(edits, cosines, weight, role)], atol=1e-12
    )
    expected = [float(p) for p in reference.probability(edits, cosines, weight, role)]
    np.testing.assert_allclose(probabilities(scores, valid, 1.0)[0], expected, atol=1e-12)


@pytest.mark.parametrize("role", ["negative", "positive"])
def test_sound_mixes_z_scores(role):
    scores, _ = pool("sound", role, 0.8)
    surface = zscore(1 - np.array(POOL["edits"]) / np.array(POOL["longer"]))
    meaning = zscore(POOL["cosines"])
    sign = 1 if role == "negative" else -1
    np.testing.assert_allclose(scores[0], sign * (0.2 * surface - 0.8 * meaning))


@pytest.mark.parametrize(
    ("mode", "temperature"), [("faithful", 1.0), ("sound", 0.5), ("sound", 1.0), ("faithful", 0.05)]
)
@pytest.mark.parametrize("role", ["negative", "positive"])
def test_drawn_as_often_as_the_formula_says(mode, temperature, role):
    scores, valid = pool(mode, role)
    drawn = draws(scores, valid, 2, temperature, 40_000)
    first = probabilities(scores, valid, temperature)[0]
    assert chisquare(np.bincount(drawn[:, 0], minlength=6), 40_000 * first).pvalue > 0.001
    pairs = list(
        itertools.permutations(range(6), 2)
    )  # without replacement: the second among those that are left
    expected = [first[a] * first[b] / (1 - first[a]) for a, b in pairs]
    seen = [np.sum((drawn[:, 0] == a) & (drawn[:, 1] == b)) for a, b in pairs]
    kept = [i for i, e in enumerate(expected) if 40_000 * e >= 5]
    seen, expected = [seen[i] for i in kept], [expected[i] for i in kept]
    scale = sum(seen) / sum(expected)
    assert chisquare(seen, [e * scale for e in expected]).pvalue > 0.001


def test_temperature_zero_takes_the_best():
    for mode in ("sound", "faithful"):
        scores, valid = pool(mode)
        best = np.argsort(-scores[0], kind="stable")
        assert (draws(scores, valid, 3, 0.0, 20) == best[:3]).all()
        assert (draws(scores, valid, 1, 1e-6, 20)[:, 0] == best[0]).all()
        assert probabilities(scores, valid, 0.0)[0, best[0]] == 1


def test_small_and_empty_pools():
    valid = np.array([[True, False, True], [False, False, False], [True, True, True]])
    cosine, edits = np.full((3, 3), 0.5), np.full((3, 3), 4)
    for mode in ("sound", "faithful"):
        scores = selection_scores(
            cosine, edits, edits, valid, weight=0.8, role="negative", mode=mode
        )
        assert np.isfinite(scores).all()
        drawn = draw(scores, valid, np.zeros((3, 3)), count=5, temperature=1.0)
        assert [sorted(row[row >= 0].tolist()) for row in drawn] == [[0, 2], [], [0, 1, 2]]
        assert drawn.shape == (3, 5)
        assert probabilities(scores, valid, 1.0)[1].tolist() == [0, 0, 0]
        np.testing.assert_allclose(probabilities(scores, valid, 1.0)[2], 1 / 3)


def test_noise_belongs_to_row_and_candidate():
    seeds = np.array([5, 6], dtype=np.uint64)
    ids = np.array([[0, 1, 2], [2, 1, 0]])
    noise = gumbel_noise(seeds, ids)
    np.testing.assert_array_equal(gumbel_noise(seeds[:1], ids[:1, ::-1]), noise[:1, ::-1])
    assert len(np.unique(noise)) == 6
    many = gumbel_noise(
        np.arange(100, dtype=np.uint64) * np.uint64(0x632BE59BD9B4E019),
        np.tile(np.arange(1000), (100, 1)),
    )
    assert many.mean() == pytest.approx(np.euler_gamma, abs=0.02)
    assert many.var() == pytest.approx(np.pi**2 / 6, rel=0.03)


def mine(corpus: Path, out: Path, model: str, processes: int = 1, **options) -> list[dict]:
    window = options.pop("window", (0.25, 0.999))
    spec = DebiasedNegatives(model=model, precision="fp32", window=window, **options)
    build_views(Corpus(corpus), {"negative": spec}, out, engine=Local(processes=processes))
    return pq.read_table(out).to_pylist()


def test_columns_and_scores(corpus, lines, encoder, tmp_path):
    rows = mine(corpus, tmp_path / "views", encoder, count=3, pool=50)
    assert list(rows[0]) == ["id", "text"] + [
        f"negative_{k}{end}"
        for k in (1, 2, 3)
        for end in ("", ".rule", ".cosine", ".mer", ".overlap", ".candidates")
    ]
    matrix = vectors(encoder, lines)
    np.testing.assert_allclose(
        matrix, load_encoder(encoder).encode(lines, normalize_embeddings=True), atol=1e-3
    )
    assert [row["text"] for row in rows] == lines
    for row in rows:
        drawn = [row[f"negative_{k}"] for k in (1, 2, 3) if row[f"negative_{k}"] is not None]
        assert len({key(text) for text in [row["text"], *drawn]}) == len(drawn) + 1
        for k in (1, 2, 3):
            if row[f"negative_{k}"] is None:
                assert row[f"negative_{k}.rule"] == (
                    "pool exhausted" if row["negative_1.candidates"] else "empty pool"
                )
                continue
            other = int(row[f"negative_{k}.rule"].removeprefix("row "))
            assert row[f"negative_{k}"] == lines[other]
            assert row[f"negative_{k}.cosine"] == pytest.approx(
                matrix[row["id"]] @ matrix[other], abs=1e-5
            )
            assert 0.249 <= row[f"negative_{k}.cosine"] <= 1
    pairs = [(row["text"], row["negative_1"], row) for row in rows if row["negative_1"]]
    texts, others = [p[0] for p in pairs], [p[1] for p in pairs]
    np.testing.assert_allclose(
        [p[2]["negative_1.mer"] for p in pairs], match_error_rate(texts, others), atol=1e-6
    )
    np.testing.assert_allclose(
        [p[2]["negative_1.overlap"] for p in pairs], lexical_overlap(texts, others), atol=1e-6
    )


def test_best_of_the_whole_corpus(corpus, lines, encoder, tmp_path, monkeypatch):
    """With all pairs scored, every candidate in the pool and temperature 0, the draw is the literal arg-max."""
    monkeypatch.setitem(debiased._TEMPERATURE, "sound", 0.0)
    rows = mine(corpus, tmp_path / "v", encoder, count=1, pool=700, block=700, window=(0.3, 0.8))
    matrix = vectors(encoder, lines)
    for i in range(0, 700, 7):
        cosine = matrix @ matrix[i]
        seen = {key(lines[i])}
        pool = []
        for j in range(700):
            if 0.3 <= cosine[j] <= 0.8 and key(lines[j]) not in seen:
                seen.add(key(lines[j]))
                pool.append(j)
        assert rows[i]["negative_1.candidates"] == len(pool)
        if len(pool) < 2:
            continue
        surface = word_similarity(lines[i], [lines[j] for j in pool])
        score = 0.2 * np.nan_to_num(zscore(surface)) - 0.8 * zscore(cosine[pool])
        assert key(rows[i]["negative_1"]) == key(lines[pool[int(score.argmax())]])


def test_two_processes(corpus, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "PART_ROWS", 1)
    big = tmp_path / "corpus.txt"
    big.write_text(corpus.read_text() * 7)
    mine(big, tmp_path / "one", encoder, pool=20)
    mine(big, tmp_path / "two", encoder, processes=2, pool=20)
    assert len(hashes(tmp_path / "one")) == 2
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_seed_changes_the_draw(corpus, encoder, tmp_path):
    spec = DebiasedNegatives(model=encoder, window=(0.2, 0.99))
    for seed in (0, 1):
        build_views(Corpus(corpus), {"negative": spec}, tmp_path / str(seed), seed=seed)
    a, b = (pq.read_table(tmp_path / str(seed))["negative_1"].to_pylist() for seed in (0, 1))
    assert np.mean([x == y for x, y in zip(a, b, strict=True)]) < 0.3


@pytest.mark.parametrize(
    "text", ["The cat sits.\n", "The cat sits.\nThe cat  SITS.\n", "The cat sits.\nA dog runs.\n"]
)
def test_tiny_corpora(text, encoder, tmp_path):
    (tmp_path / "c.txt").write_text(text)
    rows = mine(tmp_path / "c.txt", tmp_path / "v", encoder, window=(-1.0, 1.0))
    for row in rows:
        other = "dog" in text
        assert row["negative_1.candidates"] == other
        assert (row["negative_1"] is not None) == other
        assert row["negative_2"] is None
        assert row["negative_2.rule"] == ("pool exhausted" if other else "empty pool")


def _mine(corpus: Path, out: Path, encoder: str, started) -> None:
    torch.set_num_threads(1)  # a pool of threads doesn't survive the fork
    started.set()
    mine(corpus, out, encoder, pool=20)


def test_killed_while_embedding(corpus, encoder, tmp_path, monkeypatch):
    from opencse.text.mined import vectors as module

    mine(corpus, tmp_path / "expected", encoder, pool=20)
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(module, "CHUNK", 64)
    for _ in range(3):
        started = context.Event()
        process = context.Process(target=_mine, args=(corpus, tmp_path / "views", encoder, started))
        process.start()
        started.wait()
        time.sleep(0.3)
        process.kill()
        process.join()
    mine(corpus, tmp_path / "views", encoder, pool=20)
    a, b = (
        pq.read_table(tmp_path / name).drop(["negative_1.cosine", "negative_2.cosine"])
        for name in ("expected", "views")
    )
    assert a.equals(b)


def test_impossible_options(tmp_path):
    def refused(line: str, match: str) -> None:
        path = tmp_path / "r.toml"
        path.write_text(
            f'extends = "simcse"\n[build.negative]\nkind = "debiased_negatives"\nmodel = "m"\n{line}\n'
        )
        with pytest.raises(OpencseError, match=match):
            load_recipe(path)

    refused("window = [0.8, 0.2]", "window must be a range")
    refused("count = 0", "count must be at least 1")
    refused("weight = 1.5", "weight must lie in")
    refused("pool = 0", "pool must be at least 1")
    refused('mode = "literal"', "'sound' or 'faithful'")


TABLE = {
    "the cat sits in the garden": [
        "a cat is in the garden",
        "in the garden sits the cat",
        "The cat  sits in the garden",
    ],
    "the dog runs": [
        "the dog runs",
        "quickly runs the dog",
        "a dog is in the street",
        "a big dog runs",
        "the dog reads",
    ],
    "she sings": [],
}


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "table.jsonl"
    path.write_text(
        "".join(json.dumps({"text": text, "candidate": few}) + "\n" for text, few in TABLE.items())
    )
    return path


@pytest.fixture
def texts(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TABLE) + "\n")
    return path


def drawn(texts, table, encoder, out, **options) -> list[dict]:
    spec = DebiasedPositives(
        model=encoder, source=CandidateTable(path=str(table)), precision="fp32", **options
    )
    return pq.read_table(build_views(Corpus(texts), {"positive": spec}, out).path).to_pylist()


def test_drawn_from_the_rows_own_candidates(texts, table, encoder, tmp_path):
    rows = drawn(texts, table, encoder, tmp_path / "v", count=3)
    assert [row["positive_1.candidates"] for row in rows] == [2, 4, 0]  # copies are none
    for row in rows:
        found = [row[f"positive_{k}"] for k in (1, 2, 3) if row[f"positive_{k}"]]
        assert len(set(found)) == len(found) == min(3, row["positive_1.candidates"])
        assert set(found) <= set(TABLE[row["text"]])
        a, b = (
            vectors(encoder, [row["text"], *(["x"] * 9)])[0],
            vectors(encoder, [*found, *(["x"] * 11)]),
        )
        for k, _ in enumerate(found):
            assert row[f"positive_{k + 1}.cosine"] == pytest.approx(a @ b[k], abs=2e-3)
    assert rows[0]["positive_3.rule"] == "pool exhausted"
    assert rows[2]["positive_1.rule"] == "no candidate"


def test_probabilities(texts, table, encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(debiased._TEMPERATURE, "sound", 0.7)
    text, pool = "the dog runs", TABLE["the dog runs"][1:]
    matrix = vectors(encoder, [text, *pool, *(["x"] * 6)])
    cosine = matrix[1 : 1 + len(pool)] @ matrix[0]
    surface = word_similarity(text, pool)
    score = -0.2 * zscore(surface) + 0.8 * zscore(cosine)
    expected = np.exp(score / 0.7) / np.exp(score / 0.7).sum()
    many = tmp_path / "many.txt"
    many.write_text("the dog runs\n" * 300)
    rows = drawn(many, table, encoder, tmp_path / "v", count=1)
    found = [row["positive_1"] for row in rows]
    assert chisquare([found.count(one) for one in pool], 300 * expected).pvalue > 0.001


def test_in_a_recipe(table, tmp_path):
    path = tmp_path / "r.toml"
    head = 'extends = "simcse"\n[build.positive]\nkind = "debiased_positives"\nmodel = "minilm"\n'
    path.write_text(f'{head}source = {{ kind = "candidate_table", path = "{table}" }}\n')
    recipe = load_recipe(path)
    assert recipe.build["positive"].source == CandidateTable(path=str(table))
    path.write_text(dump_recipe(recipe))
    assert load_recipe(path).build == recipe.build
    for line, match in (
        ("", "the key 'source' is missing"),
        ('source = { kind = "deletion" }', "source must be a back_translation"),
        (
            'source = { kind = "candidate_table", wrong = 1 }',
            "build.positive.source: unknown key 'wrong'",
        ),
    ):
        path.write_text(f"{head}{line}\n")
        with pytest.raises(OpencseError, match=match):
            load_recipe(path)
