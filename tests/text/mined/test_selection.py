from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, zscore

from opencse.text.mined.debiased import _softmax, draw, gumbel_noise, selection_scores
from opencse.text.views.constructor import SourceRow, row_seed
from tests.reference import mining as reference

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


def draws(scores: np.ndarray, valid: np.ndarray, count: int, temperature: float, times: int) -> np.ndarray:
    seeds = np.array([row_seed(0, "test", SourceRow(id=i, text="")) for i in range(times)], dtype=np.uint64)
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
    pairs = list(itertools.permutations(range(6), 2))  # without replacement: the second among those that are left
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
        scores = selection_scores(cosine, edits, edits, valid, weight=0.8, role="negative", mode=mode)
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
        np.arange(100, dtype=np.uint64) * np.uint64(0x632BE59BD9B4E019), np.tile(np.arange(1000), (100, 1))
    )
    assert many.mean() == pytest.approx(np.euler_gamma, abs=0.02)
    assert many.var() == pytest.approx(np.pi**2 / 6, rel=0.03)
