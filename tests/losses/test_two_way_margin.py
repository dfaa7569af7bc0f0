from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import TwoWayMarginLoss
from tests.losses.checks import run


def term(alpha: float = 0.05, beta: float = 0.2) -> TwoWayMarginLoss:
    return TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=(alpha, beta))


def turned(degrees: float) -> np.ndarray:
    return np.array([[math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]])


@given(near=st.floats(0, 90), far=st.floats(0, 90), alpha=st.floats(0, 0.3), width=st.floats(0, 0.5))
@settings(deadline=None, max_examples=60)
def test_zero_inside_the_band_and_a_slope_of_one_outside(near, far, alpha, width) -> None:
    arrays = {"anchor": turned(0), "paraphrase": turned(near), "negation": turned(far)}
    gap = math.cos(math.radians(near)) - math.cos(math.radians(far))
    loss = run(term(alpha, alpha + width), arrays)[0]
    assert loss == pytest.approx(max(alpha - gap, 0) + max(gap - alpha - width, 0), abs=1e-9)
