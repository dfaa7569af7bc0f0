"""DCLR's weights and noise, beside what `test_every_term` checks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from opencse.losses import DCLRLoss, FalseNegatives, NoiseNegatives
from tests.losses.cases import TEACHERS
from tests.losses.checks import draw, run
from tests.reference.contrastive import numeric_gradient
from tests.reference.debiased import crowding, debiased

VIEWS = ("anchor", "twin")
PAIR = (TEACHERS["near"]["anchor"], TEACHERS["near"]["twin"])


def weighted(**settings) -> DCLRLoss:
    return DCLRLoss(false_negatives=FalseNegatives(teacher="near", **settings))


def unit(rows: np.ndarray) -> torch.Tensor:
    return torch.tensor(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_it_asks_for_its_teacher_and_reports_how_many_there_were() -> None:
    term = weighted(threshold=0.3)
    assert term.teachers == ("near",)
    assert DCLRLoss().teachers == ()
    share = run(term, draw(VIEWS, 6), teachers=TEACHERS)[2].reports["false_negatives"].item()
    alike = [unit(PAIR[0])[i] @ unit(PAIR[1])[j] >= 0.3 for i in range(6) for j in range(6) if i != j]
    assert share == pytest.approx(np.mean(alike))
    assert 0 < share < 1


def test_an_untrained_model_finds_all_alike_until_its_vectors_are_centred() -> None:
    vectors = {"near": {v: a + 50 for v, a in TEACHERS["near"].items()}}
    share = {
        center: run(weighted(center=center), draw(VIEWS, 6), teachers=vectors)[2].reports["false_negatives"].item()
        for center in (False, True)
    }
    assert share[False] == 1
    assert share[True] < 0.3


@pytest.mark.parametrize("times", [0.5, 1.0, 2.5])
def test_noise_equals_the_transcription(times: float) -> None:
    arrays = draw(VIEWS, 6)
    settings = NoiseNegatives(times=times, steps=3)
    noise = settings.draw(unit(arrays["anchor"]), step=5).numpy()
    assert len(noise) == round(times * 6)
    loss, gradients, _ = run(DCLRLoss(noise=settings), arrays, step=5)
    assert loss == pytest.approx(debiased(arrays["anchor"], arrays["twin"], noise=noise))
    expected = numeric_gradient(lambda x: debiased(x, arrays["twin"], noise=noise), arrays["anchor"])
    np.testing.assert_allclose(gradients["anchor"], expected, atol=1e-5)  # the noise itself carries no gradient


def test_noise_climbs_its_objective_by_the_analytic_gradient() -> None:
    anchors = draw(("anchor",), 6)["anchor"]
    settings = NoiseNegatives(times=2.0, steps=0, step_size=0.05, temperature=0.2)
    start = settings.draw(unit(anchors), 0)
    numeric = numeric_gradient(lambda v: crowding(v, anchors, 0.2), start.numpy())
    np.testing.assert_allclose(settings._gradient(unit(anchors), start).numpy() / 0.2, numeric, atol=1e-6)
    further = [dataclasses.replace(settings, steps=steps).draw(unit(anchors), 0) for steps in (0, 2, 4, 8)]
    values = [crowding(noise.numpy(), anchors, 0.2) for noise in further]
    assert values == sorted(values)


def test_noise_depends_on_the_step_alone() -> None:
    anchors, settings = unit(draw(("anchor",), 6)["anchor"]), NoiseNegatives()
    state = torch.get_rng_state()
    assert torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 3))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(settings.draw(anchors, 3), settings.draw(anchors, 4))
    assert torch.allclose(settings.draw(anchors, 3).norm(dim=1), torch.ones(6, dtype=torch.float64))
