from __future__ import annotations

import pytest

from opencse.text.views.pair_statistics import pair_statistics
from opencse.text.views.registry import Deletion, WordRepetition, build_views


@pytest.fixture
def views(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(f"one two three four five s{k}" for k in range(50)) + "\nlast\n")
    return build_views(tmp_path / "corpus.txt", {"shorter": Deletion(), "longer": WordRepetition()}, tmp_path / "v")


def test_distributions(views):
    shorter, longer, other = pair_statistics(views)
    assert (shorter.column, shorter.rows, shorter.nulls) == ("shorter", 51, 1)
    assert shorter.rules == {"deleted": 50, "too short": 1}
    assert shorter.overlap.mean == pytest.approx(5 / 6)
    assert sum(shorter.overlap.counts) == 50
    assert shorter.error_rate.mean == pytest.approx(1 / 6)
    assert longer.nulls == 0
    assert other.column == "another row"
    assert other.overlap.mean < 1
    assert shorter.cosine is None
    assert len(shorter.overlap.bar_chart()) == 10


def test_a_sample_is_enough(views):
    assert next(pair_statistics(views, limit=20)).rows == 20
