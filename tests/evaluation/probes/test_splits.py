from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import load_sts
from opencse.evaluation.probes import load_probe_sts
from opencse.evaluation.probes.scored_pairs import SPLITS, WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED, SplitProbe
from opencse.evaluation.sts import PUBLISHED_ROWS
from tests.evaluation.probes.helpers import bag_of_words, embedded, pairs


@pytest.mark.parametrize(
    ("published", "model"), [(WEIGHTED_UNSUPERVISED, "unsupervised"), (WEIGHTED_SUPERVISED, "supervised")]
)
@pytest.mark.parametrize("side", [0, 1])
def test_table_6_weighted_by_the_pairs_of_table_2_gives_table_3(published, model, side):
    rows = list(SPLITS.values())
    weights = [row.pairs[side] for row in rows]
    average = np.average([getattr(row, model)[side] for row in rows], weights=weights)
    assert average == pytest.approx(published[side], abs=6e-4)


def test_wording_alone_serves_consistent_pairs_and_fails_opposed_ones():
    rows = [("a b c d e", "a b c d e", 5), ("a b c d e", "a b c d f", 4.5), ("k l m n", "k l m o", 4)]
    rows += [("a b c", "x y z", 0), ("k l m", "k q r", 0.5), ("k l m n", "k l p q", 1)]
    rows += [("a b c d", "a b c not", 1), ("a b c d", "t u v w", 4.4), ("f g h i", "f g h j", 0.2), ("m n", "q r", 4.8)]
    results = SplitProbe([pairs(rows)]).measure(embedded(SplitProbe([pairs(rows)]))).average
    assert results.consistent.value > 0.6
    assert results.opposed.value < -0.4
    assert results.consistent.rows + results.opposed.rows == len(rows)


def test_constant_scores_make_the_average_undefined_and_say_so():
    fine = pairs([("a b", "a b", 5), ("a", "c", 0), ("a b c", "a b d", 2), ("q r", "a q", 1), ("x", "y", 4)], "fine")
    flat = pairs([("a b", "a b", 3), ("a", "c", 3), ("d", "e", 3)], "flat")
    probe = SplitProbe([fine, flat])
    results = probe.measure(embedded(probe))
    assert results.sets[1].opposed.undefined == "all gold scores are equal"
    assert results.average.opposed.value is None
    assert "1 of 2" in results.average.opposed.undefined


def test_sets_of_the_table_on_real_data(data_folder, monkeypatch):
    monkeypatch.setitem(PUBLISHED_ROWS, ("STS-B", "train"), 5749)
    _, sets, missing = load_probe_sts(data_folder)
    assert missing == {}
    assert {each.name for each in sets} == set(SPLITS)
    probe = SplitProbe(sets)
    results = probe.measure(embedded(probe, bag_of_words))
    for each in results.sets:
        if not each.name.startswith("STS-B"):  # the authors' text of STS-B is not known
            row = SPLITS[each.name]
            # For two pairs of one set the MER depends on which text is the reference (tests/text/test_surface.py).
            assert each.consistent.rows == row.pairs[0] - (each.name == "STS15 answers-students")
            assert (each.median_score, each.median_error_rate) == pytest.approx(row.medians, abs=1e-3)


def test_without_the_training_part_its_absence_is_named(data_folder, monkeypatch):
    monkeypatch.delitem(PUBLISHED_ROWS, ("STS-B", "train"), raising=False)
    tasks, sets, missing = load_probe_sts(data_folder)
    assert list(missing) == ["STS-B train"]
    assert len(sets) == len(SPLITS) - 1
    assert [task.sha256 for task in tasks] == [task.sha256 for task in load_sts(data_folder)]
