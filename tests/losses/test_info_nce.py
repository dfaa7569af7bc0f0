"""InfoNCE and margins, beside what `test_every_loss` checks."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    Context,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    MarginInfoNCELoss,
    NoiseNegatives,
    Objective,
    TwoWayMarginLoss,
)
from opencse.losses.info_nce import add_angle
from tests.losses.cases import TEACHERS
from tests.losses.checks import draw, numeric_gradient, run
from tests.reference.debiased import crowding, debiased

N, VIEWS = 5, ("anchor", "twin", "negative", "second")


def margin(signs: str, size: float | str, **more) -> MarginInfoNCELoss:
    return MarginInfoNCELoss(signs=signs, size=size, **more)


# --- Of a margin, only the difference of the signs matters
# ------------------------------------------


@pytest.mark.parametrize("size", [0.04, "dynamic"])
@pytest.mark.parametrize(
    ("one", "other"),
    [("p-n-", None), ("p+n+", None), ("p+", "n-"), ("p-", "n+")],
    ids=lambda signs: str(signs),
)
def test_equivalent_margins_have_equal_losses_and_gradients(one, other, size) -> None:
    arrays = draw(VIEWS[:2], seed=2)
    left, right = (
        run(margin(one, size), arrays),
        run(margin(other, size) if other else InfoNCELoss(), arrays),
    )
    assert left[0] == pytest.approx(right[0], abs=1e-12)
    for view in arrays:
        np.testing.assert_allclose(left[1][view], right[1][view], atol=1e-10)


def test_a_detached_margin_passes_no_gradient() -> None:
    arrays = draw(VIEWS[:2], seed=6)
    detached, flowing = (
        run(margin("p+", "dynamic", detach=detach), arrays) for detach in (True, False)
    )
    assert detached[0] == pytest.approx(flowing[0])
    assert np.abs(detached[1]["anchor"] - flowing[1]["anchor"]).max() > 1e-6


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
    value = run(InfoNCELoss(negatives=both, negative_temperature=(0.05, 0.1)), arrays)[0]
    unit = {view: a / np.linalg.norm(a, axis=1, keepdims=True) for view, a in arrays.items()}
    blocks = [
        unit["anchor"] @ unit[view].T / t
        for view, t in (("twin", 0.05), ("negative", 0.05), ("second", 0.1))
    ]
    logits = np.concatenate(blocks, axis=1)
    assert value == pytest.approx(
        np.mean(np.log(np.exp(logits).sum(axis=1)) - blocks[0].diagonal())
    )


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


def loss(alpha: float = 0.05, beta: float = 0.2) -> TwoWayMarginLoss:
    return TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=(alpha, beta))


def turned(degrees: float) -> np.ndarray:
    return np.array([[math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]])


@given(
    near=st.floats(0, 90), far=st.floats(0, 90), alpha=st.floats(0, 0.3), width=st.floats(0, 0.5)
)
@settings(deadline=None, max_examples=60)
def test_zero_inside_the_band_and_a_slope_of_one_outside(near, far, alpha, width) -> None:
    arrays = {"anchor": turned(0), "paraphrase": turned(near), "negation": turned(far)}
    gap = math.cos(math.radians(near)) - math.cos(math.radians(far))
    value = run(loss(alpha, alpha + width), arrays)[0]
    assert value == pytest.approx(max(alpha - gap, 0) + max(gap - alpha - width, 0), abs=1e-9)


PAIR = (TEACHERS["near"]["anchor"], TEACHERS["near"]["twin"])


def weighted(**settings) -> DCLRLoss:
    return DCLRLoss(false_negatives=FalseNegatives(teacher="near", **settings))


def unit(rows: np.ndarray) -> torch.Tensor:
    return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_it_asks_for_its_teacher_and_reports_how_many_there_were() -> None:
    loss = weighted(threshold=0.3)
    assert loss.teachers == ("near",)
    assert DCLRLoss().teachers == ()
    share = run(loss, draw(VIEWS[:2], 6), teachers=TEACHERS)[2].reports["false_negatives"].item()
    alike = [
        unit(PAIR[0])[i] @ unit(PAIR[1])[j] >= 0.3 for i in range(6) for j in range(6) if i != j
    ]
    assert share == pytest.approx(np.mean(alike))
    assert 0 < share < 1


def test_an_untrained_model_finds_all_alike_until_its_vectors_are_centred() -> None:
    vectors = {"near": {v: a + 50 for v, a in TEACHERS["near"].items()}}
    share = {
        center: run(weighted(center=center), draw(VIEWS[:2], 6), teachers=vectors)[2]
        .reports["false_negatives"]
        .item()
        for center in (False, True)
    }
    assert share[False] == 1
    assert share[True] < 0.3


@pytest.mark.parametrize("times", [0.5, 1.0, 2.5])
def test_noise_equals_the_transcription(times: float) -> None:
    arrays = draw(VIEWS[:2], 6)
    settings = NoiseNegatives(times=times, steps=3)
    noise = settings.draw(unit(arrays["anchor"]), step=5).numpy()
    assert len(noise) == round(times * 6)
    value, gradients, _ = run(DCLRLoss(noise=settings), arrays, step=5)
    assert value == pytest.approx(debiased(arrays["anchor"], arrays["twin"], noise=noise))
    expected = numeric_gradient(
        lambda x: debiased(x, arrays["twin"], noise=noise), arrays["anchor"]
    )
    np.testing.assert_allclose(
        gradients["anchor"], expected, atol=1e-5
    )  # the noise itself carries no gradient


def test_noise_climbs_its_objective_by_the_analytic_gradient() -> None:
    anchors = draw(("anchor",), 6)["anchor"]
    settings = NoiseNegatives(times=2.0, steps=0, step_size=0.05, temperature=0.2)
    start = settings.draw(unit(anchors), 0)
    numeric = numeric_gradient(lambda v: crowding(v, anchors, 0.2), start.numpy())
    np.testing.assert_allclose(
        settings._gradient(unit(anchors), start).numpy() / 0.2, numeric, atol=1e-6
    )
    further = [
        dataclasses.replace(settings, steps=steps).draw(unit(anchors), 0) for steps in (0, 2, 4, 8)
    ]
    values = [crowding(noise.numpy(), anchors, 0.2) for noise in further]
    assert values == sorted(values)


def test_noise_depends_on_the_step_alone() -> None:
    anchors, settings = unit(draw(("anchor",), 6)["anchor"]), NoiseNegatives()
    state = torch.get_rng_state()
    assert torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 3))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 4))
    assert torch.allclose(settings.draw(anchors, 3).norm(dim=1), torch.ones(6, dtype=torch.float64))


POSITIVES, NEGATIVES = ("positive_1", "positive_2"), ("negative_1", "negative_2")
FIVE_VIEWS = ("anchor", *POSITIVES, *NEGATIVES)


def alternating(**settings) -> AlternatingNormalizationLoss:
    return AlternatingNormalizationLoss(
        **{"positives": POSITIVES, "negatives": NEGATIVES, "min_rows": 2} | settings
    )


def test_the_standard_form_is_softplus_of_the_decoupled_one() -> None:
    """-log(e^p / (e^p + Σ)) = log(1 + e^(L_dec)), for each row and direction; here for one row that has a positive."""
    arrays = draw(("anchor", "positive_1", "negative_1"), 4, seed=3)
    settings = {"positives": ("positive_1",), "negatives": ("negative_1",), "normalize": False}
    one = {
        "anchor": np.arange(4) < 2,
        "positive_1": np.arange(4) < 2,
        "negative_1": np.arange(4) < 2,
    }
    standard = run(alternating(**settings), arrays, one)[0]

    def directions() -> list[float]:
        unit = {v: a / np.linalg.norm(a, axis=1, keepdims=True) for v, a in arrays.items()}
        found = []
        for i, j in ((0, 1), (1, 0)):
            for a, b in (("anchor", "positive_1"), ("positive_1", "anchor")):
                below = [unit[a][i] @ unit["negative_1"][i] / 0.05, unit[a][i] @ unit[b][j] / 0.05]
                found.append(math.log(sum(map(math.exp, below))) - unit[a][i] @ unit[b][i] / 0.05)
        return found

    assert run(alternating(**settings, decoupled=True), arrays, one)[0] == pytest.approx(
        sum(directions()) / 2
    )
    assert standard == pytest.approx(sum(math.log1p(math.exp(d)) for d in directions()) / 2)


def test_a_stopped_gradient_keeps_the_value() -> None:
    arrays = draw(FIVE_VIEWS, seed=5)
    flowing, stopped = run(alternating(), arrays), run(alternating(stop_gradient=True), arrays)
    assert flowing[0] == pytest.approx(stopped[0])
    assert not stopped[1]["negative_1"].any()
    assert stopped[1]["anchor"].any()


def test_few_rows_are_normalised_by_the_statistics_of_all_views() -> None:
    """Over two rows of its own, every feature of a batch-normalised vector is +1 or -1."""
    x = {view: torch.tensor(a) for view, a in draw(FIVE_VIEWS, rows=6).items()}
    two = torch.tensor([0, 1])  # row numbers
    every = torch.cat([x[v] if v != "positive_1" else x[v][two] for v in FIVE_VIEWS])
    own = alternating(min_rows=2)._target(x["positive_1"], two, every)[two]
    torch.testing.assert_close(own.abs(), torch.full_like(own, 4**-0.5), rtol=0, atol=0.02)
    pooled = alternating(min_rows=3)._target(x["positive_1"], two, every)[two]
    expected = (x["positive_1"][two] - every.mean(0)) / (every.var(0, correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(pooled, torch.nn.functional.normalize(expected, dim=-1))


def test_a_single_row_counts_with_pooled_statistics_and_not_with_its_own() -> None:
    arrays = draw(FIVE_VIEWS, rows=4)
    has = {"positive_1": np.arange(4) == 0, "positive_2": np.zeros(4, bool)}
    assert run(alternating(min_rows=2), arrays, has)[0] == 0
    assert run(alternating(min_rows=3), arrays, has)[0] > 0
