from __future__ import annotations

import math

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import check_minutes, check_seed


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused(seed) -> None:
    check_seed(0), check_seed(2**32 - 1)
    with pytest.raises(OpencseError, match="out of range"):
        check_seed(seed)


@pytest.mark.parametrize("minutes", [0, -1, math.nan, math.inf])
def test_minutes_that_are_no_limit_are_refused(minutes) -> None:
    check_minutes(0.5)
    with pytest.raises(OpencseError, match="not a time limit"):
        check_minutes(minutes)
