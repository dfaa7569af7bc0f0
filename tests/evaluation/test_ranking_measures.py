from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.evaluation.retrieval import measures, relevant_ranks


@given(st.integers(1, 30), st.integers(0, 2**31), st.booleans())
@settings(max_examples=60, deadline=None)
def test_equal_to_trec_eval_on_random_runs(count, seed, graded):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4 if graded else 2, count)
    grades[rng.integers(count)] = 1
    scores = rng.permutation(count) + rng.random()  # all distinct: trec_eval's rule for ties is another
    names = [f"d{i}" for i in range(count)]
    wanted = {"map", "map_cut.10", "recip_rank", "ndcg_cut.10", "recall.1,5,10"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict(zip(names, grades.tolist(), strict=True))}, wanted)
    theirs = evaluator.evaluate({"q": dict(zip(names, scores.tolist(), strict=True))})["q"]
    ours = measures(scores, grades)
    assert ours["map"] == pytest.approx(theirs["map"], abs=1e-9)
    assert ours["map@10"] == pytest.approx(theirs["map_cut_10"], abs=1e-9)
    assert ours["mrr@10"] == pytest.approx(theirs["recip_rank"] * (theirs["recip_rank"] >= 0.1 - 1e-9), abs=1e-9)
    assert ours["mrr"] == pytest.approx(theirs["recip_rank"], abs=1e-9)
    assert ours["ndcg@10"] == pytest.approx(theirs["ndcg_cut_10"], abs=1e-9)
    for k in (1, 5, 10):
        assert ours[f"recall@{k}"] == pytest.approx(theirs[f"recall_{k}"], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2)), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_ranks_against_sorting_with_ties_against_the_model(items):
    scores, grades = (np.array(column) for column in zip(*items, strict=True))
    order = sorted(range(len(items)), key=lambda i: (-scores[i], max(grades[i], 0)))
    expected = [(place, grades[i]) for place, i in enumerate(order, 1) if grades[i] > 0]
    ranks, found = relevant_ranks(scores, grades)
    assert list(zip(ranks.tolist(), found.tolist(), strict=True)) == expected
