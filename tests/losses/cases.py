"""Every loss that is a function of vectors, with its transcription."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    ListMLELoss,
    ListNetLoss,
    Loss,
    MarginInfoNCELoss,
    RankingConsistencyLoss,
    TwoWayMarginLoss,
)
from tests.losses.checks import Arrays, draw
from tests.reference.alternating_normalization import alternating_normalization
from tests.reference.contrastive import contrastive
from tests.reference.debiased import debiased
from tests.reference.ranking import list_mle, list_net, lists, ranking_consistency
from tests.reference.two_way_margin import two_way_margin

ROWS = 6
TEACHERS = {
    "a": draw(("anchor", "twin"), ROWS, 3, seed=7),
    "b": draw(("anchor", "twin"), ROWS, 5, seed=8),
    "near": draw(("anchor", "twin"), ROWS, 3, seed=1, spread=0.2),
}


@dataclass(frozen=True)
class Case:
    """A loss and its transcription, from vectors and masks by view to the loss."""

    name: str
    loss: Loss
    slow: Callable[[Arrays, Arrays], float]
    always: tuple[str, ...] = ()  # views that the transcription expects in every row

    def masks(self, absent: bool) -> Arrays:
        """Which rows have which view: all of them, or all but one or two, different ones for each view."""
        missing = [(4,), (1,), (0, 3), (2, 3), (0, 1)]
        lacking = [
            () if not absent or view in self.always else rows
            for view, rows in zip(self.loss.views, missing)
        ]
        return {
            v: ~np.isin(np.arange(ROWS), list(rows))
            for v, rows in zip(self.loss.views, lacking, strict=True)
        }


def info_nce(name: str, loss: InfoNCELoss, **reference: Any) -> Case:
    def slow(x: Arrays, has: Arrays) -> float:
        there = {
            "has_anchor": has["anchor"],
            "has_positive": has["twin"],
            "has_negative": [has[v] for v in loss.negatives],
        }
        return contrastive(
            x["anchor"], x["twin"], [x[v] for v in loss.negatives], **there, **reference
        )

    return Case(name, loss, slow)


def margins() -> Iterator[Case]:
    for signs in ("p+n-", "p-n+", "p+", "p-", "n+", "n-", "p-n-"):
        for m in (0.04, "dynamic"):
            loss = MarginInfoNCELoss(signs=signs, size=m, detach=False)
            yield info_nce(f"byop {signs} {m}", loss, signs=signs, m=m)


def dclr(center: bool) -> Case:
    settings: Any = {"threshold": 0.3, "center": center}
    pair = (TEACHERS["near"]["anchor"], TEACHERS["near"]["twin"])
    return Case(
        f"dclr{' centred' if center else ''}",
        DCLRLoss(false_negatives=FalseNegatives(teacher="near", **settings)),
        lambda x, has: debiased(*x.values(), teacher=pair, has_positive=has["twin"], **settings),
        ("anchor",),
    )


def angular(degrees: float) -> Case:
    loss = AngularInfoNCELoss(degrees=degrees)
    slow = lambda x, has: debiased(*x.values(), degrees=degrees, has_positive=has["twin"])  # noqa: E731
    return Case(f"angle of {degrees}", loss, slow, ("anchor",))


def alternating(name: str, reference: dict[str, Any], **settings: Any) -> Case:
    views = {
        "positives": ("positive_1", "positive_2"),
        "negatives": ("negative_1", "negative_2"),
        "min_rows": 2,
    }
    loss = AlternatingNormalizationLoss(**{**views, **settings})

    def slow(x: Arrays, has: Arrays) -> float:
        return alternating_normalization(
            x["anchor"],
            [x[v] for v in loss.positives],
            [x[v] for v in loss.negatives],
            has_anchor=has["anchor"],
            has_positive=[has[v] for v in loss.positives],
            has_negative=[has[v] for v in loss.negatives],
            **reference,
        )

    return Case(name, loss, slow)


def ranked(
    name: str, loss: ListNetLoss | ListMLELoss, of_lists: dict[str, Any], **of_loss: Any
) -> Case:
    options = {"weights": (1,), "t": 0.05, "exclude_self": loss.exclude_self, **of_lists}
    options = {"t_teacher": options["t"]} | options
    known = [(TEACHERS[teacher]["anchor"], TEACHERS[teacher]["twin"]) for teacher in loss.teachers]

    def slow(x: Arrays, has: Arrays) -> float:
        pairs = lists((x["anchor"], x["twin"]), known, has=(has["anchor"], has["twin"]), **options)
        return list_net(pairs) if isinstance(loss, ListNetLoss) else list_mle(pairs, **of_loss)

    return Case(name, loss, slow)


def two_way(*margin: float) -> Case:
    loss = TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=margin)
    return Case(
        f"two-way margin {margin}",
        loss,
        lambda x, has: two_way_margin(
            *x.values(), *margin, np.logical_and.reduce(list(has.values()))
        ),
    )


def consistency(form: Any, temperature: float) -> Case:
    return Case(
        f"consistency {form} {temperature}",
        RankingConsistencyLoss(form=form, temperature=temperature),
        lambda x, has: ranking_consistency(
            *x.values(), has["anchor"] & has["twin"], temperature, form == "entropy"
        ),
    )


TWO, HARD = ("a", "b"), ("negative",)
CASES = [
    info_nce("infonce", InfoNCELoss()),
    info_nce("temperature", InfoNCELoss(temperature=0.2), t=0.2),
    info_nce("hard", InfoNCELoss(negatives=HARD)),
    info_nce("both sides", InfoNCELoss(negatives=HARD, both_sides=True), both_sides=True),
    info_nce("two blocks", InfoNCELoss(negatives=("negative", "second"))),
    info_nce("hince", InfoNCELoss(negatives=HARD, negative_temperature=0.08), t2=0.08),
    *margins(),
    info_nce(
        "margin and hard",
        MarginInfoNCELoss(signs="p+n-", size=0.05, negatives=HARD, negative_temperature=0.1),
        signs="p+n-",
        m=0.05,
        t2=0.1,
    ),
    *(angular(degrees) for degrees in (0.0, 10.0, 45.0)),
    *(dclr(center) for center in (False, True)),
    alternating("debcse", {}),
    alternating("decoupled", {"decoupled": True}, decoupled=True),
    alternating("plain vectors", {"normalize": False}, normalize=False),
    alternating("no negatives", {}, negatives=()),
    alternating(
        "one of each",
        {"t": 0.2},
        positives=("positive_1",),
        negatives=("negative_1",),
        temperature=0.2,
    ),
    ranked("net", ListNetLoss(), {}),
    ranked("net, sharper teacher", ListNetLoss(teacher_temperature=0.025), {"t_teacher": 0.025}),
    ranked(
        "net, two teachers",
        ListNetLoss(teachers=TWO, teacher_weights=(1.0, 2.0)),
        {"weights": (1, 2)},
    ),
    ranked("mle", ListMLELoss(), {}),
    ranked("mle per position", ListMLELoss(reduction="position"), {}, per_position=True),
    ranked("mle as coded", ListMLELoss(epsilon=1e-7), {}, epsilon=1e-7),
    ranked(
        "mle, two teachers",
        ListMLELoss(teachers=TWO, temperature=0.2),
        {"weights": (1, 1), "t": 0.2},
    ),
    *(two_way(*bounds) for bounds in ((0.05, 0.2), (0.1, 0.3), (0.0, math.inf), (0.2, 0.2))),
    *(consistency(form, t) for form in ("jensen_shannon", "entropy") for t in (0.05, 0.3)),
]
