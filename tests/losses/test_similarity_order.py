from __future__ import annotations

import numpy as np
import pytest

from opencse.losses import SimilarityOrder, TwoWayMarginLoss
from tests.losses.checks import check, draw, run
from tests.reference.preservation import similarity_order

CLOSER = (("anchor", "denied"), ("negation", "antonym"))
FARTHER = (("anchor", "negation"), ("anchor", "antonym"), ("denied", "antonym"))
VIEWS = ("anchor", "denied", "negation", "antonym")


@pytest.mark.parametrize("margin", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(margin, seed) -> None:
    arrays = draw(VIEWS, 9, seed=seed)
    has = {v: np.arange(9) % n != 1 for v, n in zip(VIEWS, (10, 3, 4, 5), strict=True)}
    for view, mask in has.items():
        arrays[view][~mask] = 0
    check(
        SimilarityOrder(closer=CLOSER, farther=FARTHER, margin=margin),
        lambda x: similarity_order(x, has, list(CLOSER), list(FARTHER), margin),
        arrays,
        has,
    )


def test_one_pair_each_is_the_lower_half_of_the_two_way_margin() -> None:
    arrays = draw(("anchor", "paraphrase", "negation"), 8)
    order = SimilarityOrder(closer=(("anchor", "paraphrase"),), farther=(("anchor", "negation"),), margin=0.3)
    band = TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=(0.3, float("inf")))
    (loss, gradients, _), (expected, wanted, _) = run(order, arrays), run(band, arrays)
    assert loss == pytest.approx(expected)
    for view, gradient in gradients.items():
        np.testing.assert_allclose(gradient, wanted[view], atol=1e-12)


def test_pairs_in_order_are_left_alone() -> None:
    anchor = np.eye(4)
    arrays = {"anchor": anchor, "denied": anchor + 0.1, "negation": -anchor, "antonym": -anchor + 0.1}
    loss, gradients, output = run(SimilarityOrder(closer=CLOSER, farther=FARTHER, margin=0.1), arrays)
    assert loss == 0
    assert not any(g.any() for g in gradients.values())
    assert output.reports["right"] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"closer": ()}, "at least one pair"), ({"farther": ()}, "at least one pair"), ({"margin": -0.1}, "between 0")],
)
def test_bad_settings(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        SimilarityOrder(**({"closer": CLOSER, "farther": FARTHER, "margin": 0.1} | settings))
