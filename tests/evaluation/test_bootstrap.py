from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation.bootstrap import (
    RESAMPLES,
    PairScores,
    correlation_difference,
    interval,
    mean_difference,
    resampled_counts,
)
from opencse.evaluation.sts import spearman

RNG = np.random.default_rng(3)
GOLD = RNG.integers(0, 6, 200).astype(float)  # with ties, as people give them


def model(noise: float, seed: int, rows: int = 200) -> PairScores:
    noisy = np.random.default_rng(seed).normal(0, noise, rows)
    return PairScores(gold=GOLD[:rows], predicted=np.round(GOLD[:rows] + noisy, 1))


def test_every_draw_is_the_correlation_of_the_drawn_pairs() -> None:
    scores = model(2.0, 0)
    counts = np.concatenate(list(resampled_counts(200)))
    assert counts.shape == (RESAMPLES, 200)
    assert (counts.sum(axis=1) == 200).all()
    draws = scores.draws
    for draw in (0, 1, 499, 999):
        rows = np.repeat(np.arange(200), counts[draw].astype(int))
        expected = spearman(scores.gold[rows], scores.predicted[rows])
        assert draws[draw] == pytest.approx(expected, abs=1e-12)


def test_the_interval_contains_the_correlation_and_narrows_with_pairs() -> None:
    wide = interval(model(2.0, 0, rows=40).draws)
    narrow = interval(model(2.0, 0).draws)
    value = spearman(model(2.0, 0).gold, model(2.0, 0).predicted)
    assert narrow[0] < value < narrow[1]
    assert narrow[1] - narrow[0] < 0.7 * (wide[1] - wide[0])
    # Near the interval of Fisher's transformation, which Spearman's follows roughly.
    half = 1.96 * (1 - value**2) / np.sqrt(200)
    assert narrow[1] - narrow[0] == pytest.approx(2 * half, rel=0.3)


def test_a_clear_gain_and_its_reverse_are_beyond_chance_and_a_slight_one_is_not() -> None:
    poor, good = model(3.0, 1), model(1.0, 2)
    gain = correlation_difference(poor, good)
    loss = correlation_difference(good, poor)
    assert gain.beyond_chance
    assert loss.beyond_chance
    assert (loss.value, loss.low, loss.high) == pytest.approx((-gain.value, -gain.high, -gain.low))
    slight = correlation_difference(model(1.0, 2), model(1.0, 7))
    assert abs(slight.value) > 0.001  # a tenth of a point, which used to count
    assert not slight.beyond_chance


def test_models_that_err_alike_are_told_apart_by_less() -> None:
    """Both are scored on the same draws: what moves both does not widen the interval."""
    first = model(2.0, 1)
    nearly = PairScores(gold=first.gold, predicted=first.predicted + 0.3 * first.gold)
    paired = correlation_difference(first, nearly)
    alone = interval(first.draws)
    assert paired.beyond_chance
    assert paired.high - paired.low < 0.5 * (alone[1] - alone[0])


def test_accuracies() -> None:
    before = np.arange(100) < 50
    assert mean_difference(before, np.arange(100) < 70).beyond_chance
    assert not mean_difference(before, np.arange(100) < 52).beyond_chance
    same = mean_difference(before, before)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert not same.beyond_chance


def test_an_undefined_correlation_has_no_difference() -> None:
    flat = PairScores(gold=GOLD, predicted=np.ones(200))
    assert correlation_difference(flat, model(1.0, 1)) is None
