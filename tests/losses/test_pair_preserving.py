from __future__ import annotations

import numpy as np
import pytest

from opencse.losses import PairPreserving
from tests.losses.checks import check, draw, run
from tests.reference.preservation import pair_preserving

VIEWS = ("anchor", "negation", "related")
PAIRS = (("anchor", "related"), ("negation", "related"))
ROWS = 6


@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(seed) -> None:
    arrays, teacher = draw(VIEWS, ROWS, seed=seed), draw(VIEWS, ROWS, seed=seed + 50, width=7)
    has = {"anchor": np.ones(ROWS, bool), "negation": np.arange(ROWS) % 2 == 0, "related": np.arange(ROWS) != 4}
    for view in VIEWS:
        arrays[view][~has[view]] = 0
    check(
        PairPreserving(pairs=PAIRS),
        lambda x: pair_preserving(x, teacher, has, PAIRS),
        arrays,
        has,
        teachers={"teacher": teacher},
    )


def test_a_copy_of_the_teacher_loses_nothing() -> None:
    arrays = draw(VIEWS, ROWS)
    assert run(PairPreserving(pairs=PAIRS), arrays, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)


def test_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        PairPreserving(pairs=())
