from __future__ import annotations

import numpy as np
import pytest

from opencse.losses import SimilarityBound
from tests.losses.checks import check, draw, run
from tests.reference.preservation import similarity_bound

PAIRS = (("anchor", "negation"), ("anchor", "antonym"))
VIEWS = ("anchor", "negation", "antonym")


@pytest.mark.parametrize("bound", [{"at_least": 0.9}, {"at_most": 0.3}, {"at_most": -1.0}])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(bound, seed) -> None:
    arrays = draw(VIEWS, 8, seed=seed)
    has = {v: np.arange(8) % n != 1 for v, n in zip(VIEWS, (9, 3, 4), strict=True)}
    for view, mask in has.items():
        arrays[view][~mask] = 0
    floor, ceiling = bound.get("at_least"), bound.get("at_most")
    check(
        SimilarityBound(pairs=PAIRS, **bound),
        lambda x: similarity_bound(x, has, list(PAIRS), floor, ceiling),
        arrays,
        has,
    )


def test_pairs_inside_the_bound_are_left_alone() -> None:
    arrays = draw(VIEWS, 6)
    for bound in ({"at_least": -1.0}, {"at_most": 1.0}):
        loss, gradients, output = run(SimilarityBound(pairs=PAIRS, **bound), arrays)
        assert loss == 0
        assert not any(g.any() for g in gradients.values())
        assert output.reports["inside"] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": ()}, "at least one pair"),
        ({}, "either"),
        ({"at_least": 0.2, "at_most": 0.4}, "either"),
        ({"at_least": 1.2}, "between -1 and 1"),
    ],
)
def test_bad_settings(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        SimilarityBound(**({"pairs": PAIRS} | settings))
