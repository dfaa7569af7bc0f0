from __future__ import annotations

import pytest

from opencse.runs.schedule import rate_factor
from opencse.settings import Schedule


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


def test_stable_then_linear() -> None:
    schedule = Schedule(kind="stable", warmup=2, decay=4)
    assert [rate_factor(schedule, s, 12) for s in (0, 1, 2, 8, 9, 11, 12)] == [0, 0.5, 1, 1, 0.75, 0.25, 0]
    share = Schedule(kind="stable", warmup=2, decay=0.25)
    assert [rate_factor(share, s, 16) for s in (11, 12, 14)] == [1, 1, 0.5]


def test_the_stable_part_does_not_depend_on_the_length() -> None:
    schedule = Schedule(kind="stable", warmup=3, decay=5)
    assert all(rate_factor(schedule, s, 20) == rate_factor(schedule, s, 1000) for s in range(16))


def test_no_decay_at_all() -> None:
    assert rate_factor(Schedule(kind="stable", decay=0), 9, 10) == 1
    with pytest.raises(ValueError, match="decay"):
        Schedule(decay=-1)
