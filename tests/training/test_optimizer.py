from __future__ import annotations

import pytest

from opencse.recipes.settings import Schedule
from opencse.training.loop import rate_factor


def test_linear_with_warmup() -> None:
    schedule = Schedule(kind="linear", warmup=4)
    assert [rate_factor(schedule, s, 12) for s in (0, 2, 4, 8, 12)] == [0, 0.5, 1, 0.5, 0]


def test_without_warmup_the_first_step_has_the_peak_rate() -> None:
    assert rate_factor(Schedule(), 0, 10) == 1
    assert rate_factor(Schedule(kind="constant"), 9, 10) == 1


def test_a_share_of_the_steps_and_cosine() -> None:
    schedule = Schedule(kind="cosine", warmup=0.5)
    assert rate_factor(schedule, 5, 20) == 0.5
    assert rate_factor(schedule, 15, 20) == pytest.approx(0.5)
    assert rate_factor(schedule, 20, 20) == pytest.approx(0)
