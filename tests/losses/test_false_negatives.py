from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from opencse.losses import Contrastive, FalseNegatives, NoiseNegatives
from tests.losses.checks import check, draw, run
from tests.reference.contrastive import numeric_gradient
from tests.reference.debiased import crowding, debiased

VIEWS = ("anchor", "twin")
TEACHER = {"c": draw(VIEWS, 6, 3, seed=1, spread=0.2)}
PAIR = (TEACHER["c"]["anchor"], TEACHER["c"]["twin"])
LESS = FalseNegatives(teacher="c", threshold=0.3)


def unit(rows: np.ndarray) -> torch.Tensor:
    return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rows", [[1] * 6, [1, 0, 1, 1, 0, 1]])
def test_weights_equal_the_transcription(weight: float, rows: list[int], center: bool) -> None:
    arrays, has = draw(VIEWS, 6), {"twin": np.array(rows, bool)}
    arrays["twin"][~has["twin"]] = 0
    settings = {"threshold": 0.3, "weight": weight, "center": center}
    term = Contrastive(false_negatives=FalseNegatives(teacher="c", **settings))
    check(
        term, lambda x: debiased(*x.values(), teacher=PAIR, has_positive=has["twin"], **settings), arrays, has, TEACHER
    )


def test_it_asks_for_its_teacher_and_reports_how_many_there_were() -> None:
    term = Contrastive(false_negatives=LESS)
    assert term.teachers == ("c",)
    assert Contrastive().teachers == ()
    share = run(term, draw(VIEWS, 6), teachers=TEACHER)[2].reports["false_negatives"].item()
    found = [unit(PAIR[0])[i] @ unit(PAIR[1])[j] >= 0.3 for i in range(6) for j in range(6) if i != j]
    assert share == pytest.approx(np.mean(found))
    assert 0 < share < 1


def test_a_threshold_of_one_leaves_the_plain_loss() -> None:
    arrays = draw(VIEWS, 6)
    high = Contrastive(false_negatives=FalseNegatives(teacher="c", threshold=1.0))
    assert run(high, arrays, teachers=TEACHER)[0] == run(Contrastive(), arrays)[0]


def test_an_untrained_model_finds_all_alike_until_its_vectors_are_centred() -> None:
    vectors = {"c": {v: a + 50 for v, a in TEACHER["c"].items()}}
    share = {}
    for center in (False, True):
        term = Contrastive(false_negatives=FalseNegatives(teacher="c", threshold=0.9, center=center))
        share[center] = run(term, draw(VIEWS, 6), teachers=vectors)[2].reports["false_negatives"].item()
    assert share[False] == 1
    assert share[True] < 0.3


def test_the_other_direction_has_the_same_weights_the_other_way_round() -> None:
    arrays = draw(VIEWS, 6)
    both = run(Contrastive(false_negatives=LESS, symmetric=True), arrays, teachers=TEACHER)[0]
    swapped = Contrastive(anchor="twin", positive="anchor", false_negatives=LESS)
    # the teacher's similarities are those of the forward direction, transposed
    crossed = {"c": {"anchor": PAIR[0], "twin": PAIR[1]}}
    one = run(Contrastive(false_negatives=LESS), arrays, teachers=crossed)[0]
    other = run(swapped, arrays, teachers=crossed)[0]
    assert both == pytest.approx((one + other) / 2)


@pytest.mark.parametrize("times", [0.5, 1.0, 2.5])
def test_noise_equals_the_transcription(times: float) -> None:
    arrays = draw(VIEWS, 6)
    settings = NoiseNegatives(times=times, steps=3)
    noise = settings.draw(unit(arrays["anchor"]), step=5).numpy()
    assert len(noise) == round(times * 6)
    loss, gradients, _ = run(Contrastive(noise=settings), arrays, step=5)
    assert loss == pytest.approx(debiased(arrays["anchor"], arrays["twin"], noise=noise))
    expected = numeric_gradient(lambda x: debiased(x, arrays["twin"], noise=noise), arrays["anchor"])
    np.testing.assert_allclose(gradients["anchor"], expected, atol=1e-5)  # the noise itself carries no gradient


def test_noise_climbs_its_objective_by_the_analytic_gradient() -> None:
    anchors = draw(("anchor",), 6)["anchor"]
    settings = NoiseNegatives(times=2.0, steps=0, temperature=0.2)
    start = settings.draw(unit(anchors), 0)
    numeric = numeric_gradient(lambda v: crowding(v, anchors, 0.2), start.numpy())
    np.testing.assert_allclose(settings._gradient(unit(anchors), start).numpy() / 0.2, numeric, atol=1e-6)
    values = [
        crowding(
            dataclasses.replace(settings, steps=steps, step_size=0.05).draw(unit(anchors), 0).numpy(), anchors, 0.2
        )
        for steps in (0, 2, 4, 8)
    ]
    assert values == sorted(values)


def test_noise_depends_on_step_and_seed_alone() -> None:
    anchors, settings = unit(draw(("anchor",), 6)["anchor"]), NoiseNegatives()
    state = torch.get_rng_state()
    assert torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 3))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 4))
    assert not torch.equal(settings.draw(anchors, 3), dataclasses.replace(settings, seed=1).draw(anchors, 3))
    assert torch.allclose(settings.draw(anchors, 3).norm(dim=1), torch.ones(6, dtype=torch.float64))


@pytest.mark.parametrize("degrees", [0.0, 10.0, 45.0])
def test_the_angular_margin_equals_the_transcription(degrees: float) -> None:
    check(Contrastive(angular_margin=degrees), lambda x: debiased(*x.values(), degrees=degrees), draw(VIEWS, 6))


def test_an_angular_margin_makes_the_task_harder() -> None:
    arrays = draw(VIEWS, 6)
    losses = [run(Contrastive(angular_margin=m), arrays)[0] for m in (0, 5, 10, 20, 40)]
    assert losses == sorted(losses)


@pytest.mark.parametrize("degrees", [10.0, 80.0])
def test_the_turned_cosine_falls_all_the_way_and_its_gradient_is_bounded(degrees: float) -> None:
    from opencse.losses.margin import add_angle

    cosines = torch.linspace(-1, 1, 4001, dtype=torch.float64, requires_grad=True)
    turned = add_angle(cosines, degrees)
    assert (turned.diff() >= 0).all()
    assert (turned <= cosines).all()
    turned.sum().backward()
    assert cosines.grad.isfinite().all()
    assert cosines.grad.abs().max() < 1e3
