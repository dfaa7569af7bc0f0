from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.stats import zscore

from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import Local
from opencse.recipes import load_recipe
from opencse.text.surface import lexical_overlap, match_error_rate
from opencse.text.views import builder
from opencse.text.views.registry import DebiasedNegatives, build_views
from tests.text.mined.helpers import key, vectors, word_similarity
from tests.text.views.test_builder import hashes


def mine(corpus: Path, out: Path, model: str, processes: int = 1, **options) -> list[dict]:
    window = options.pop("window", (0.25, 0.999))
    spec = DebiasedNegatives(model=model, precision="fp32", window=window, **options)
    build_views(corpus, {"negative": spec}, out, engine=Local(processes=processes))
    return pq.read_table(out).to_pylist()


def test_columns_and_scores(corpus, lines, encoder, tmp_path):
    rows = mine(corpus, tmp_path / "views", encoder, count=3, pool=50)
    assert list(rows[0]) == ["id", "text"] + [
        f"negative_{k}{end}" for k in (1, 2, 3) for end in ("", ".rule", ".cosine", ".mer", ".overlap", ".candidates")
    ]
    matrix = vectors(encoder, lines)
    np.testing.assert_allclose(matrix, load_encoder(encoder).encode(lines, normalize_embeddings=True), atol=1e-3)
    assert [row["text"] for row in rows] == lines
    for row in rows:
        drawn = [row[f"negative_{k}"] for k in (1, 2, 3) if row[f"negative_{k}"] is not None]
        assert len({key(text) for text in [row["text"], *drawn]}) == len(drawn) + 1
        for k in (1, 2, 3):
            if row[f"negative_{k}"] is None:
                assert row[f"negative_{k}.rule"] == ("pool exhausted" if row["negative_1.candidates"] else "empty pool")
                continue
            other = int(row[f"negative_{k}.rule"].removeprefix("row "))
            assert row[f"negative_{k}"] == lines[other]
            assert row[f"negative_{k}.cosine"] == pytest.approx(matrix[row["id"]] @ matrix[other], abs=1e-5)
            assert 0.249 <= row[f"negative_{k}.cosine"] <= 1
    pairs = [(row["text"], row["negative_1"], row) for row in rows if row["negative_1"]]
    texts, others = [p[0] for p in pairs], [p[1] for p in pairs]
    np.testing.assert_allclose([p[2]["negative_1.mer"] for p in pairs], match_error_rate(texts, others), atol=1e-6)
    np.testing.assert_allclose([p[2]["negative_1.overlap"] for p in pairs], lexical_overlap(texts, others), atol=1e-6)


def test_best_of_the_whole_corpus(corpus, lines, encoder, tmp_path):
    """With all pairs scored, every candidate in the pool and temperature 0, the draw is the literal arg-max."""
    rows = mine(corpus, tmp_path / "v", encoder, count=1, pool=700, block=700, temperature=0.0, window=(0.3, 0.8))
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
    spec = DebiasedNegatives(model=encoder, window=(0.2, 0.99), temperature=1.0)
    for seed in (0, 1):
        build_views(corpus, {"negative": spec}, tmp_path / str(seed), seed=seed)
    a, b = (pq.read_table(tmp_path / str(seed))["negative_1"].to_pylist() for seed in (0, 1))
    assert np.mean([x == y for x, y in zip(a, b, strict=True)]) < 0.3


@pytest.mark.parametrize("text", ["The cat sits.\n", "The cat sits.\nThe cat  SITS.\n", "The cat sits.\nA dog runs.\n"])
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


def test_impossible_values(tmp_path):
    def refused(line: str, match: str) -> None:
        path = tmp_path / "r.toml"
        path.write_text(f'extends = "simcse"\n[build.negative]\nkind = "debiased_negatives"\nmodel = "m"\n{line}\n')
        with pytest.raises(OpencseError, match=match):
            load_recipe(path)

    refused("window = [0.8, 0.2]", "window must be a range")
    refused("count = 0", "count must be at least 1")
    refused("weight = 1.5", "weight must lie in")
    refused("temperature = -1.0", "temperature must be at least 0")
    refused("pool = 0", "pool must be at least 1")
    refused('mode = "literal"', "'sound' or 'faithful'")
