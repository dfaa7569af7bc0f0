"""What holds for every loss: value, gradient, absent rows, degenerate batches, impossible settings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from opencse.debias.meaning_loss import MeaningLoss
from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    Context,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    ListMLELoss,
    Loss,
    MarginInfoNCELoss,
    MaskedLanguageModelLoss,
    MomentumContrastiveLoss,
    NoiseNegatives,
    RankingConsistencyLoss,
    RecallLoss,
    ReplacedTokenDetectionLoss,
    TwoWayMarginLoss,
)
from tests.losses.cases import CASES, ROWS, TEACHERS, Case
from tests.losses.checks import check, check_degenerate, draw, run

ALTERNATING = AlternatingNormalizationLoss(
    positives=("positive",), negatives=("negative",), min_rows=2, stop_gradient=True
)
LOSSES: list[Loss] = [
    *(case.loss for case in CASES),
    MarginInfoNCELoss(negatives=("negative",), signs="n-", size="dynamic"),
    ALTERNATING,
    MeaningLoss(
        same=("anchor", "denied"),
        opposed=(("negation", "antonym"),),
        exchanged=("swapped",),
        related=("near",),
    ),
]
NOISE = DCLRLoss(noise=NoiseNegatives(), false_negatives=FalseNegatives(teacher="a", threshold=0.3))


@pytest.mark.parametrize("absent", [False, True], ids=["all rows", "absent rows"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value_and_gradient_equal_the_transcription(case: Case, absent: bool) -> None:
    has = case.masks(absent)
    arrays = {view: a * has[view][:, None] for view, a in draw(case.loss.views, ROWS).items()}
    filled = {
        view: ~mask[:, None] * 1.0 for view, mask in has.items()
    }  # the transcriptions divide by lengths
    check(
        case.loss,
        lambda x: case.slow({v: a + filled[v] for v, a in x.items()}, has),
        arrays,
        has,
        TEACHERS,
    )


@pytest.mark.parametrize("loss", [*LOSSES, NOISE])
def test_degenerate_batches(loss: Loss) -> None:
    check_degenerate(loss, loss.teachers)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_rows_changes_nothing(loss: Loss) -> None:
    arrays, order = draw(loss.views), np.array([3, 0, 4, 1, 2])
    known = {name: draw(loss.views, seed=9) for name in loss.teachers}
    ordered, *rest = (
        {view: a[order] for view, a in each.items()} for each in (arrays, *known.values())
    )
    value = run(loss, arrays, teachers=known)[0]
    assert run(loss, ordered, teachers=dict(zip(known, rest)))[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_tensors_by_position(loss: Loss) -> None:
    arrays, known = draw(loss.views), {name: draw(loss.views, seed=9) for name in loss.teachers}
    vectors = {view: torch.tensor(a) for view, a in arrays.items()}
    context = Context(
        teachers={t: {v: torch.tensor(a) for v, a in known[t].items()} for t in known}
    )
    value = loss(*vectors.values(), context=context).value
    assert value.item() == run(loss, arrays, teachers=known)[0]
    assert torch.equal(loss(vectors, context=context).value, value)
    half = [a.bfloat16() for a in vectors.values()]
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(*half, context=context).value
    assert torch.equal(value, loss(*(a.float() for a in half), context=context).value)
    with pytest.raises(ValueError, match="1 tensors, but the views are anchor"):
        loss(vectors["anchor"], context=context)


def test_rows_that_lack_a_view_in_a_call_by_position() -> None:
    arrays, rows = draw(("anchor", "twin")), np.arange(5) != 2
    anchor, twin = (torch.tensor(a) for a in arrays.values())
    value = InfoNCELoss()(anchor, twin, present={"twin": torch.tensor(rows)}).value
    assert value.item() == pytest.approx(
        run(InfoNCELoss(), {v: a[rows] for v, a in arrays.items()})[0]
    )


IMPOSSIBLE: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (InfoNCELoss, {"temperature": 0.0}, ""),
    (InfoNCELoss, {"negative_temperature": 0.1}, ""),
    (
        InfoNCELoss,
        {"negatives": ("n",), "negative_temperature": (0.05, 0.1)},
        "2 values of negative_temperature, but 1",
    ),
    (MarginInfoNCELoss, {"signs": "p+", "size": -0.1}, "direction"),
    *(
        (MarginInfoNCELoss, {"signs": signs, "size": 0.1}, "signs")
        for signs in ("", "p", "n+p-", "p+n-x", "+")
    ),
    (AngularInfoNCELoss, {"degrees": 90.0}, ""),
    (FalseNegatives, {"teacher": "c", "threshold": -1.5}, ""),
    (NoiseNegatives, {"times": 0}, ""),
    (NoiseNegatives, {"steps": -1}, ""),
    (AlternatingNormalizationLoss, {"positives": ("p",), "temperature": 0.0}, ""),
    (AlternatingNormalizationLoss, {"positives": ()}, ""),
    (ListMLELoss, {"temperature": 0}, "temperature"),
    (ListMLELoss, {"teacher_temperature": -1}, "temperature"),
    (ListMLELoss, {"teachers": ()}, "at least one teacher"),
    (ListMLELoss, {"teacher_weights": (0.5, 0.5)}, "1 teachers, but 2"),
    (ListMLELoss, {"teacher_weights": (0.0,)}, "all zero"),
    (ListMLELoss, {"epsilon": -1}, "epsilon"),
    (ListMLELoss, {"weighting": "rlrd"}, "several teachers"),
    (
        ListMLELoss,
        {"teachers": ("a", "b"), "weighting": "rlrd", "teacher_weights": (1.0, 2.0)},
        "several teachers",
    ),
    (
        ListMLELoss,
        {"teachers": ("a", "b"), "weights_from": "first", "weighting": "rlrd"},
        "weights_from",
    ),
    (ListMLELoss, {"policy_horizon": 1}, "policy_horizon"),
    (
        ListMLELoss,
        {"weighting": "rlrd", "policy": "code", "teachers": ("a", "b", "c")},
        "policy 'code'",
    ),
    (MaskedLanguageModelLoss, {"sentences": ()}, "sentences"),
    (MaskedLanguageModelLoss, {"sentences": ("a", "a")}, "sentences"),
    *((MaskedLanguageModelLoss, {"ratio": ratio}, "ratio") for ratio in (0.0, 1.0)),
    (MomentumContrastiveLoss, {"queue_size": 0}, ""),
    (MomentumContrastiveLoss, {"momentum": 1.5}, ""),
    (MeaningLoss, {"same": (), "opposed": ()}, "name the view of the sentence"),
    (MeaningLoss, {"same": ("a",), "opposed": (("b",), ("b",))}, "in two groups"),
    (RankingConsistencyLoss, {"temperature": 0}, "temperature"),
    (RecallLoss, {"gamma": 0.0}, "gamma"),
    *((ReplacedTokenDetectionLoss, {"sentences": views}, "") for views in ((), ("a", "a"))),
    *((ReplacedTokenDetectionLoss, {"ratio": ratio}, "") for ratio in (0.0, 1.0)),
    (ReplacedTokenDetectionLoss, {"sentences": ("a", "b"), "texts": ("c",)}, ""),
    (ReplacedTokenDetectionLoss, {"temperature": -1.0}, ""),
    (ReplacedTokenDetectionLoss, {"task": "masked_lm", "counted": "all"}, ""),
    *(
        (TwoWayMarginLoss, {"closer": "a", "farther": "b", "margin": m}, "lower <= upper")
        for m in ((-0.1, 0.2), (0.3, 0.2))
    ),
]


@pytest.mark.parametrize(("make", "settings", "message"), IMPOSSIBLE)
def test_impossible_settings_are_refused(
    make: Callable[..., object], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**settings)
