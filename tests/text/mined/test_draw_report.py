from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from opencse.text.mined import draw_report
from opencse.text.views.registry import Deletion, HardNegatives, build_views


def test_counts_known_near_duplicates(corpus, encoder, tmp_path):
    specs = {"shorter": Deletion(), "negative": HardNegatives(model=encoder, precision="fp32", window=(0.5, 1.0))}
    views = build_views(corpus, specs, tmp_path / "v", workers=1)
    rows = pq.read_table(views).to_pylist()
    known = [row for row in rows if row["negative_1"]]
    pairs = [(row["negative_1"].upper(), row["text"], 5.0) for row in known[:4]]  # the other way round
    pairs += [(row["text"], row["negative_1"], 1.0) for row in known[50:60]] + [("nothing", "of this", 5.0)]
    first, second = draw_report(views, pairs=pairs, near=4.0)
    assert (first.column, second.column) == ("negative_1", "negative_2")
    assert first.rows == len(rows)
    assert first.drawn == len(known)
    mutual = sum(row["negative_1"] in {p[1] for p in pairs} for row in known)
    assert 14 <= first.known <= 14 + mutual
    assert 4 <= first.near_duplicates <= 8
    values = [row["negative_1.cosine"] for row in known]
    assert first.mean["cosine"] == pytest.approx(sum(values) / len(values), abs=1e-5)
    assert min(values) <= first.quantiles["cosine"][0] <= first.quantiles["cosine"][2] <= max(values)
    assert [one.known for one in draw_report(views)] == [0, 0]


def test_nothing_drawn(corpus, encoder, tmp_path):
    views = build_views(corpus, {"n": HardNegatives(model=encoder, window=(-1.0, -0.999))}, tmp_path / "v", workers=1)
    assert [(one.drawn, one.mean) for one in draw_report(views)] == [(0, {}), (0, {})]
