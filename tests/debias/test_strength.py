"""The curve of a meaning block's strength, and the largest one that harms no guard."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from opencse.debias.strength import BlockEvaluators, find_strength


class Given:
    """Scores that fall or rise with the share of z in the vectors of one text."""

    def __init__(self, block, scores) -> None:
        self.block, self.score, self.asked = block, scores, 0

    def start(self, encoder) -> None:
        pass

    def vectors(self) -> np.ndarray:
        self.asked += 1
        assert self.block.strength == 1
        return np.array([[1.0, 0.0, 1.0, 0.0]]) / np.sqrt(2)

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        strength = round(float(vectors[0, 2] / vectors[0, 0]), 2)
        return {name: score(strength) for name, score in self.score.items()}


@pytest.mark.parametrize(
    ("tolerance", "chosen"), [(0.0, 0.1), (0.3, 0.25), (0.5, 0.35), (9.0, 1.5)]
)
def test_the_largest_strength_at_which_no_guard_loses_more(tolerance: float, chosen: float) -> None:
    block = SimpleNamespace(strength=0.4, config={"width": 2})
    guards = Given(
        block,
        {"a": lambda s: 50 - max(0.0, s - 0.1) * 2, "b": lambda s: 80 - (1 if s > 0.5 else 0)},
    )
    meaning = Given(block, {"m": lambda s: 100 * s})
    curve = find_strength(block, BlockEvaluators(guards=guards, meaning=meaning), tolerance)
    assert (guards.asked, meaning.asked) == (1, 1), "every text is encoded once"
    assert block.strength == curve.chosen == chosen
    assert curve.meaning["m"] == pytest.approx([100 * s for s in curve.strengths])
    after = curve.before_and_after(curve.guards)
    assert after["b"] == (80, 80 - (chosen > 0.5))


def test_one_lucky_strength_is_not_chosen() -> None:
    block = SimpleNamespace(strength=0.4, config={"width": 2})
    guards = Given(block, {"a": lambda s: 50.0 if s in (0.0, 0.1, 0.15, 0.2, 0.5) else 49.4})
    assert find_strength(block, BlockEvaluators(guards=guards), 0.3).chosen == 0.2, (
        "0.5 is kept, but not the mean beside it"
    )


def test_without_guards_the_strength_stays() -> None:
    block = SimpleNamespace(strength=0.43, config={"width": 2})
    curve = find_strength(block, BlockEvaluators(meaning=Given(block, {"m": lambda s: s})), 0.3)
    assert (block.strength, curve.chosen) == (0.43, 0.43)
    assert curve.guards == {}
    assert curve.before_and_after(curve.meaning) == {"m": (0, 0.43)}


def test_a_given_strength_is_kept_whatever_the_guards_lose() -> None:
    block = SimpleNamespace(strength=0.4, config={"width": 2})
    guards = Given(block, {"guard-a": lambda s: 50 - 10 * s})
    meaning = Given(block, {"dev-m": lambda s: 100 * s, "dev-n": lambda s: 50.0})
    evaluators = BlockEvaluators(guards=guards, meaning=meaning)
    curve = find_strength(block, evaluators, 0.3, fixed=0.72)
    assert block.strength == curve.chosen == 0.72
    assert curve.strengths[-1] == 1.5
    assert curve.guards["guard-a"][curve.strengths.index(0.72)] == pytest.approx(42.8)


def test_the_next_two_steps_up_are_told() -> None:
    block = SimpleNamespace(strength=0.4, config={"width": 2})
    guards = Given(block, {"guard-a": lambda s: 50 - 10 * s, "guard-b": lambda s: 50 - 2 * s})
    meaning = Given(block, {"dev-m": lambda s: 100 * s, "dev-n": lambda s: 50.0})
    evaluators = BlockEvaluators(guards=guards, meaning=meaning)
    curve = find_strength(block, evaluators, 0.3, fixed=0.75)
    assert curve.next_steps() == (
        "A larger strength (--strength): at 0.8 you gain up to 5.0 points (m) and lose up to 0.5 "
        "points (a); at 0.9 you gain up to 15.0 points (m) and lose up to 1.5 points (a)."
    )
    assert find_strength(block, evaluators, 0.3, fixed=1.5).next_steps() == ""
