"""InfoNCE and margins, beside what `test_every_term` checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import AngularInfoNCELoss, Context, InfoNCELoss, MarginInfoNCELoss, Objective, TwoWayMarginLoss
from opencse.losses.info_nce import add_angle
from tests.losses.checks import draw, run

N, VIEWS = 5, ("anchor", "twin", "negative", "second")


def margin(signs: str, size: float | str, **more) -> MarginInfoNCELoss:
    return MarginInfoNCELoss(signs=signs, size=size, **more)


# --- Of a margin, only the difference of the signs matters ------------------------------------------


@pytest.mark.parametrize("size", [0.04, "dynamic"])
@pytest.mark.parametrize(
    ("one", "other"), [("p-n-", None), ("p+n+", None), ("p+", "n-"), ("p-", "n+")], ids=lambda signs: str(signs)
)
def test_equivalent_margins_have_equal_losses_and_gradients(one, other, size) -> None:
    arrays = draw(VIEWS[:2], seed=2)
    left, right = run(margin(one, size), arrays), run(margin(other, size) if other else InfoNCELoss(), arrays)
    assert left[0] == pytest.approx(right[0], abs=1e-12)
    for view in arrays:
        np.testing.assert_allclose(left[1][view], right[1][view], atol=1e-10)


def test_a_detached_margin_passes_no_gradient() -> None:
    arrays = draw(VIEWS[:2], seed=6)
    detached, flowing = (run(margin("p+", "dynamic", detach=detach), arrays) for detach in (True, False))
    assert detached[0] == pytest.approx(flowing[0])
    assert np.abs(detached[1]["anchor"] - flowing[1]["anchor"]).max() > 1e-6


@pytest.mark.parametrize(("signs", "effective"), [("p+n-", 2), ("p-n+", -2), ("p+", 1), ("n-", 1), ("p-n-", 0)])
def test_effective_margin(signs: str, effective: int) -> None:
    assert margin(signs, 0.1).effective == effective
    assert bool(margin(signs, 0.1).warnings()) == (effective == 0)
    assert margin(signs, 0.0).warnings()


def test_an_angular_margin_makes_the_task_harder() -> None:
    losses = [run(AngularInfoNCELoss(degrees=m), draw(VIEWS[:2]))[0] for m in (0, 5, 10, 20, 40)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("degrees", [10.0, 80.0])
def test_the_turned_cosine_falls_all_the_way_and_its_gradient_is_bounded(degrees: float) -> None:
    cosines = torch.linspace(-1, 1, 4001, dtype=torch.float64, requires_grad=True)
    turned = add_angle(cosines, degrees)
    assert (turned.diff() >= 0).all()
    assert (turned <= cosines).all()
    turned.sum().backward()
    assert cosines.grad.isfinite().all()
    assert cosines.grad.abs().max() < 1e3


def test_each_kind_of_negative_may_have_a_temperature_of_its_own() -> None:
    """SAN Table 5: SAN's negatives beside others."""
    arrays, both = draw(VIEWS), ("negative", "second")
    loss = run(InfoNCELoss(negatives=both, negative_temperature=(0.05, 0.1)), arrays)[0]
    unit = {view: a / np.linalg.norm(a, axis=1, keepdims=True) for view, a in arrays.items()}
    blocks = [unit["anchor"] @ unit[view].T / t for view, t in (("twin", 0.05), ("negative", 0.05), ("second", 0.1))]
    logits = np.concatenate(blocks, axis=1)
    assert loss == pytest.approx(np.mean(np.log(np.exp(logits).sum(axis=1)) - blocks[0].diagonal()))


# --- Reports and the objective ----------------------------------------------------------------------------------------


def test_it_reports_what_it_saw() -> None:
    arrays = draw(VIEWS[:3], seed=13)
    same = arrays | {"twin": arrays["anchor"]}
    reports = run(InfoNCELoss(negatives=("negative",)), same)[2].reports
    unit = {v: a / np.linalg.norm(a, axis=1, keepdims=True) for v, a in same.items()}
    cosines = unit["anchor"] @ unit["anchor"].T
    expected = {
        "accuracy": 1,
        "cos_positive": 1,
        "cos_other": cosines[~np.eye(N, dtype=bool)].mean(),
        "cos_negative": (unit["anchor"] * unit["negative"]).sum(axis=1).mean(),
    }
    assert {name: value.item() for name, value in reports.items()} == pytest.approx(expected)


def test_the_objective_is_the_weighted_sum() -> None:
    one, two = InfoNCELoss(), InfoNCELoss(name="hard", negatives=("negative",), weight=0.5)
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in draw(VIEWS[:3], seed=14).items()}
    present = {v: torch.ones(N, dtype=torch.bool) for v in tensors}
    objective = Objective([one, two])
    total, values, reports = objective(tensors, present, Context())
    assert total.item() == pytest.approx(values["info_nce"].item() + 0.5 * values["hard"].item())
    assert "info_nce/accuracy" in reports


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
