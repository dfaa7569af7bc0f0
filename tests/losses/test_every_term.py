"""What holds for every term: no NaN in degenerate batches, no order of rows, clear words about impossible settings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from opencse.losses import (
    AlternatingNormalization,
    Context,
    Contrastive,
    FalseNegatives,
    ListMLE,
    ListNet,
    Margin,
    MaskedLanguageModel,
    MomentumContrastive,
    NoiseNegatives,
    PairPreserving,
    RankingConsistency,
    Recall,
    ReplacedTokenDetection,
    SimilarityBound,
    SimilarityOrder,
    Term,
    TwoWayMargin,
)
from opencse.losses.teacher_weights import Policy
from tests.losses.checks import check_degenerate, draw, run

ALTERNATING = {"positives": ("positive",), "negatives": ("negative",), "min_rows": 2}
CLOSER, FARTHER = (("anchor", "denied"), ("negation", "antonym")), (("anchor", "negation"), ("denied", "antonym"))
LESS = FalseNegatives(teacher="teacher", threshold=0.3)
DYNAMIC = Margin(signs="n-", size="dynamic")
TERMS: list[tuple[Term, tuple[str, ...]]] = [
    (Contrastive(negatives=("negative",), margin=DYNAMIC), ()),
    (Contrastive(false_negatives=LESS), ("teacher",)),
    (Contrastive(angular_margin=10.0), ()),
    (AlternatingNormalization(**ALTERNATING), ()),
    (AlternatingNormalization(**ALTERNATING, decoupled=True), ()),
    (AlternatingNormalization(**ALTERNATING, negative_scope="all"), ()),
    (AlternatingNormalization(**ALTERNATING, stop_gradient=True), ()),
    (ListNet(), ("a",)),
    (ListMLE(), ("a",)),
    (ListMLE(exclude_self=True), ("a",)),
    (ListMLE(epsilon=1e-7), ("a",)),
    (PairPreserving(pairs=FARTHER), ("teacher",)),
    (RankingConsistency(form="jensen_shannon"), ()),
    (RankingConsistency(form="entropy"), ()),
    (SimilarityBound(pairs=FARTHER, at_most=0.5), ()),
    (SimilarityBound(pairs=FARTHER, at_least=0.5), ()),
    (SimilarityOrder(closer=CLOSER, farther=FARTHER, margin=0.1), ()),
    (TwoWayMargin(closer="paraphrase", farther="negation", margin=(0.05, 0.2)), ()),
]
NOISE = Contrastive(noise=NoiseNegatives())
EVERYTHING = Contrastive(symmetric=True, noise=NoiseNegatives(), false_negatives=LESS, angular_margin=10.0)


@pytest.mark.parametrize(("term", "teachers"), [*TERMS, (NOISE, ()), (EVERYTHING, ("teacher",))])
def test_degenerate_batches(term: Term, teachers: tuple[str, ...]) -> None:
    check_degenerate(term, teachers)


@pytest.mark.parametrize(("term", "teachers"), TERMS)
def test_the_order_of_rows_changes_nothing(term: Term, teachers: tuple[str, ...]) -> None:
    arrays, order = draw(term.views), np.array([3, 0, 4, 1, 2])
    known = {name: draw(term.views, seed=9) for name in teachers}
    ordered, *rest = ({view: a[order] for view, a in each.items()} for each in (arrays, *known.values()))
    loss = run(term, arrays, teachers=known)[0]
    assert run(term, ordered, teachers=dict(zip(known, rest)))[0] == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize(("term", "teachers"), TERMS)
def test_tensors_by_position(term: Term, teachers: tuple[str, ...]) -> None:
    arrays, known = draw(term.views), {name: draw(term.views, seed=9) for name in teachers}
    vectors = {view: torch.tensor(a) for view, a in arrays.items()}
    context = Context(teachers={t: {v: torch.tensor(a) for v, a in known[t].items()} for t in known})
    loss = term(*vectors.values(), context=context).value
    assert loss.item() == run(term, arrays, teachers=known)[0]
    assert torch.equal(term(vectors, context=context).value, loss)
    with pytest.raises(ValueError, match="1 tensors, but the views are anchor"):
        term(vectors["anchor"], context=context)


def test_rows_that_lack_a_view_in_a_call_by_position() -> None:
    arrays, rows = draw(("anchor", "twin")), np.arange(5) != 2
    anchor, twin = (torch.tensor(a) for a in arrays.values())
    loss = Contrastive()(anchor, twin, present={"twin": torch.tensor(rows)}).value
    assert loss.item() == pytest.approx(run(Contrastive(), {v: a[rows] for v, a in arrays.items()})[0])


IMPOSSIBLE: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (Contrastive, {"temperature": 0.0}, ""),
    (Contrastive, {"negative_temperature": 0.1}, ""),
    (Contrastive, {"own_negative_weight": 0.0}, ""),
    (Contrastive, {"negatives": ("n",), "margin": Margin(signs="p+", size=0.1, axis="candidate")}, ""),
    (Contrastive, {"angular_margin": 90.0}, ""),
    *((Margin, {"signs": signs, "size": 0.1}, "signs") for signs in ("", "p", "n+p-", "p+n-x", "+")),
    (FalseNegatives, {"teacher": "c", "threshold": -1.5}, ""),
    (FalseNegatives, {"teacher": "c", "weight": 2.0}, ""),
    (NoiseNegatives, {"times": 0}, ""),
    (NoiseNegatives, {"steps": -1}, ""),
    (AlternatingNormalization, {**ALTERNATING, "temperature": 0.0}, ""),
    (AlternatingNormalization, {**ALTERNATING, "positives": ()}, ""),
    (ListMLE, {"temperature": 0}, "temperatures"),
    (ListMLE, {"teacher_temperature": -1}, "temperatures"),
    (ListMLE, {"teachers": ()}, "at least one teacher"),
    (ListMLE, {"teacher_weights": (0.5, 0.5)}, "1 teachers, but 2"),
    (ListMLE, {"teacher_weights": (0.0,)}, "all zero"),
    (ListMLE, {"epsilon": -1}, "epsilon"),
    (ListMLE, {"weighting": "rlrd"}, "several teachers"),
    (ListMLE, {"teachers": ("a", "b"), "weighting": "learned", "teacher_weights": (1.0, 2.0)}, "several teachers"),
    (ListMLE, {"teachers": ("a", "b"), "weights_from": "first", "weighting": "rlrd"}, "weights_from"),
    *((Policy, {name: 0}, "") for name in ("updates", "clip", "concentration")),
    (Policy, {"horizon": 1}, ""),
    (Policy, {"discount": 2.0}, ""),
    (MaskedLanguageModel, {"sentences": ()}, "sentences"),
    (MaskedLanguageModel, {"sentences": ("a", "a")}, "sentences"),
    *((MaskedLanguageModel, {"ratio": ratio}, "ratio") for ratio in (0.0, 1.0)),
    (MomentumContrastive, {"queue_size": 0}, ""),
    (MomentumContrastive, {"momentum": 1.5}, ""),
    (PairPreserving, {"pairs": ()}, "at least one pair"),
    (RankingConsistency, {"temperature": 0}, "temperature"),
    (Recall, {"gamma": 0.0}, "gamma"),
    *((ReplacedTokenDetection, {"sentences": views}, "") for views in ((), ("a", "a"))),
    *((ReplacedTokenDetection, {"ratio": ratio}, "") for ratio in (0.0, 1.0)),
    (ReplacedTokenDetection, {"sentences": ("a", "b"), "texts": ("c",)}, ""),
    (ReplacedTokenDetection, {"temperature": -1.0}, ""),
    (ReplacedTokenDetection, {"task": "masked_lm", "counted": "all"}, ""),
    *(
        (TwoWayMargin, {"closer": "a", "farther": "b", "margin": m}, "lower <= upper")
        for m in ((-0.1, 0.2), (0.3, 0.2))
    ),
]


@pytest.mark.parametrize(("make", "settings", "message"), IMPOSSIBLE)
def test_impossible_settings_are_refused(
    make: Callable[..., object], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**settings)
