from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from opencse.text.views.pair_statistics import pair_statistics
from opencse.text.views.registry import HardNegatives, build_views
from tests.text.mined.helpers import key, vectors


def mine(corpus: Path, out: Path, model: str, **options) -> list[dict]:
    specs = {"negative": HardNegatives(model=model, precision="fp32", **options)}
    return pq.read_table(build_views(corpus, specs, out)).to_pylist()


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


def test_the_recorded_cosines_are_described(corpus, encoder, tmp_path) -> None:
    rows = mine(corpus, tmp_path / "v", encoder, window=(0.5, 1.0))
    values = [row["negative_1.cosine"] for row in rows if row["negative_1"]]
    described = next(pair_statistics(tmp_path / "v"))
    assert (described.column, described.nulls) == ("negative_1", len(rows) - len(values))
    assert described.cosine.mean == pytest.approx(sum(values) / len(values), abs=1e-5)


@pytest.mark.parametrize("options", [{"search": "exact"}, {"search": "block", "block": 10_000}])
def test_top(corpus, lines, encoder, tmp_path, options):
    rows, matrix = mine(corpus, tmp_path / "v", encoder, count=3, **options), vectors(encoder, lines)
    for i in range(0, 700, 9):
        cosine = matrix @ matrix[i]
        expected = cosine[ranked(matrix, lines, i)[:3]]
        np.testing.assert_allclose(cosine[drawn(rows[i], 3)], expected, atol=1e-6)
        assert key(rows[i]["negative_1"]) != key(lines[i])


def test_ranks_window_and_chance(corpus, lines, encoder, tmp_path):
    matrix = vectors(encoder, lines)
    options = {"search": "exact", "ranks": (5, 20), "window": (0.3, 0.7)}
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


def test_impossible_values():
    with pytest.raises(ValueError, match="range that holds at least"):
        HardNegatives(model="m", ranks=(3, 4))
    with pytest.raises(ValueError, match="block must be at least 1"):
        HardNegatives(model="m", block=0)
