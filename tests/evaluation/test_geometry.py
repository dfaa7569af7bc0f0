from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from opencse.evaluation import GeometryTask, PairsTask, ScoredPairs, evaluate_tasks

PAIRS = ScoredPairs(name="p", sentence1=list("abca"), sentence2=list("dbef"), scores=[5, 4, 4.5, 0.2])
VECTORS = {text: np.random.default_rng(place).normal(size=3) for place, text in enumerate("abcdef")}


def encode(texts):
    return np.stack([VECTORS[text] for text in texts])


def test_the_published_definitions_written_out():
    unit = {text: vector / np.linalg.norm(vector) for text, vector in VECTORS.items()}
    distances = [float(((unit[x] - unit[y]) ** 2).sum()) for x, y in combinations("abcdef", 2)]
    positive = [float(((unit[x] - unit[y]) ** 2).sum()) for x, y in ("ad", "ce")]  # scores above 4
    result = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0]
    assert result.metrics["alignment"] == pytest.approx(np.mean(positive))
    assert result.metrics["uniformity"] == pytest.approx(math.log(np.mean([math.exp(-2 * d) for d in distances])))
    assert result.metrics["anisotropy"] == pytest.approx(np.mean([unit[x] @ unit[y] for x, y in combinations(unit, 2)]))


def test_it_enters_no_average():
    results = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS), PairsTask(pairs=PAIRS)])
    assert results["geometry of p"].score is None
    assert results.average == results["p"].score
    assert results["geometry of p"].metrics["spearman"] == results["p"].score, "the correlation is that of STS"


def test_without_positive_pairs_alignment_is_undefined():
    pairs = ScoredPairs(name="p", sentence1=["a", "b"], sentence2=["c", "d"], scores=[1, 4])
    result = evaluate_tasks(encode, [GeometryTask(pairs=pairs)]).results[0]
    assert result.metrics["alignment"] is None
    assert result.undefined == {"alignment": "no pair has a score above 4"}
    assert result.metrics["uniformity"] is not None
    alone = ScoredPairs(name="p", sentence1=["a"], sentence2=["a"], scores=[5])
    result = evaluate_tasks(encode, [GeometryTask(pairs=alone)]).results[0]
    assert set(result.undefined) == {"uniformity", "anisotropy", "spearman"}


def test_a_block_more_or_less_is_the_same(monkeypatch):
    before = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0].metrics
    monkeypatch.setattr("opencse.evaluation.measures._BLOCK", 4)
    assert evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0].metrics == pytest.approx(before)
