"""The strength of a trained meaning block: the largest that harms no guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from opencse.debias.meaning_block import MeaningBlock, rescale
from opencse.foundation.evaluator import Evaluator, digest_of
from opencse.foundation.progress import timed
from opencse.foundation.result_table import Cell, Number, Table

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

STRENGTHS = (*(step / 20 for step in range(17)), *(step / 10 for step in range(9, 16)))
"""0 to 0.8 in steps of 0.05, then to 1.5 in steps of 0.1."""

StrengthScores = Mapping[str, tuple[float, ...]]
Axes = Callable[[float], np.ndarray]
"""From a strength to the axes to which vectors are projected, (2 d, d) (`same_width`)."""


class _VectorEvaluator(Evaluator, Protocol):
    """Scores that depend only on the vectors of some texts, which may be changed first."""

    def vectors(self) -> np.ndarray:
        """Return the vectors of the texts with the encoder's current weights, (n, d)."""

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the scores of vectors of the same texts by name."""


@dataclass(frozen=True, kw_only=True)
class BlockEvaluators:
    """What is measured at each strength.

    Attributes:
        guards: Scores that must not fall, which limit the strength; None for no limit.
        meaning: Scores of what the block is for, shown next to the guards.
    """

    guards: _VectorEvaluator | None = None
    meaning: _VectorEvaluator | None = None

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare for an encoder, such as by tokenising texts."""
        for evaluator in (self.guards, self.meaning):
            if evaluator is not None:
                evaluator.start(encoder)

    def digests(self) -> dict[str, str]:
        """Return the hashes of the sets; a run is resumed with the same ones."""
        return {
            "guards": digest_of(self.guards),
            "measures of meaning": digest_of(self.meaning),
        }


@dataclass(frozen=True, kw_only=True)
class StrengthCurve:
    """Scores of a model by the strength of its meaning block.

    Attributes:
        chosen: The strength of the model.
        tolerance: Points that a guard may lose.
        strengths: The strengths that were measured, ascending; the first is 0, the model without
            the block.
        guards: Scores of each guard at these strengths.
        meaning: Scores of what the block is for.
    """

    chosen: float
    tolerance: float
    strengths: tuple[float, ...]
    guards: dict[str, tuple[float, ...]]
    meaning: dict[str, tuple[float, ...]]

    def before_and_after(self, scores: StrengthScores) -> dict[str, tuple[float, float]]:
        """Return each of some scores without the block and at the chosen strength."""
        place = self.strengths.index(self.chosen)
        return {name: (values[0], values[place]) for name, values in scores.items()}

    def next_steps(self, count: int = 2) -> str:
        """Return in one sentence what the next larger strengths gain and cost; empty if there are none."""
        larger = [strength for strength in self.strengths if strength > self.chosen][:count]
        if not larger or not (self.meaning or self.guards):
            return ""
        steps = []
        for strength in larger:
            gains = _largest(self._changes(self.meaning, strength), sign=1)
            losses = _largest(self._changes(self.guards, strength), sign=-1)
            steps.append(f"at {strength:g} you gain up to {gains} and lose up to {losses}")
        return f"A larger strength (--strength): {'; '.join(steps)}."

    def _changes(self, scores: StrengthScores, strength: float) -> dict[str, float]:
        """Return the points by which each of some scores changes from the chosen strength to another."""
        now = self.strengths.index(self.chosen)
        then = self.strengths.index(strength)
        return {name: values[then] - values[now] for name, values in scores.items()}

    def table(self) -> Table:
        """Return every score at every strength."""
        measured = {**self.meaning, **self.guards}
        rows: list[list[Cell]] = []
        for place, strength in enumerate(self.strengths):
            mark = " (chosen)" if strength == self.chosen else ""
            rows.append(
                [f"{strength:g}{mark}", *(Number(values[place], 1) for values in measured.values())]
            )
        names = (name.removeprefix("dev-").replace("guard-", "guard: ") for name in measured)
        note = f"A guard may lose {self.tolerance:g} points, in the mean of three strengths, too; 0: no block."
        return Table(("strength", *names), rows, "Scores by strength of the meaning block", [note])


def _largest(changes: Mapping[str, float], *, sign: int) -> str:
    """Return the largest gain (sign 1) or loss (−1) with the name of the score, for a sentence."""
    if not changes:
        return "nothing that was measured"
    name = max(changes, key=lambda name: sign * changes[name])
    points = max(0.0, sign * changes[name])
    plain = name.removeprefix("dev-").removeprefix("guard-")
    return f"{points:.1f} points ({plain})"


def find_strength(
    block: MeaningBlock,
    evaluators: BlockEvaluators,
    tolerance: float,
    axes: Axes | None = None,
    *,
    fixed: float | None = None,
) -> StrengthCurve:
    """Give a block the largest strength at which no guard loses more than it may.

    Without guards, the strength stays. The limit also applies to the average of a strength and its
    two neighbours, because a score fluctuates by about 0.2 points between them. Every text is
    encoded once, whatever the number of strengths.

    Args:
        block: The block of the model that the evaluators were started with.
        evaluators: Guards and measures of meaning.
        tolerance: Points that a guard may lose.
        axes: Axes to which the vectors are projected; None for full ones.
        fixed: The strength to give it, whatever the guards lose.
    """
    kept = block.strength if fixed is None else fixed
    strengths = STRENGTHS
    if evaluators.guards is None or fixed is not None:
        strengths = tuple(sorted({*STRENGTHS, kept}))

    # The vectors are those of strength 1; every other strength is computed from them.
    block.strength = 1.0
    with timed("strength"):
        guards = _by_strength(evaluators.guards, block, strengths, axes)
        meaning = _by_strength(evaluators.meaning, block, strengths, axes)

    if evaluators.guards is None or fixed is not None:
        block.strength = kept
    else:
        harmless = _harmless(guards, len(strengths), tolerance)
        block.strength = strengths[max(harmless)]
    return StrengthCurve(
        chosen=block.strength,
        tolerance=tolerance,
        strengths=strengths,
        guards=guards,
        meaning=meaning,
    )


def _by_strength(
    evaluator: _VectorEvaluator | None,
    block: MeaningBlock,
    strengths: tuple[float, ...],
    axes: Axes | None,
) -> dict[str, tuple[float, ...]]:
    """Return each score of an evaluator at each strength."""
    if evaluator is None:
        return {}
    width = int(block.config["width"])
    vectors = evaluator.vectors()
    found = []
    for strength in strengths:
        scaled = rescale(vectors, 1.0, strength, width)
        if axes is not None:
            scaled = scaled @ axes(strength)
        found.append(evaluator.scored(scaled))
    return {name: tuple(scores[name] for scores in found) for name in found[0]}


def _harmless(guards: StrengthScores, count: int, tolerance: float) -> list[int]:
    """Return the places of the strengths at which no guard loses more than it may; the first is 0.

    Points are compared with one decimal, as they are shown.
    """
    harmless = [0]
    for place in range(1, count):
        neighbours = slice(place - 1, place + 2)
        lost = []
        for scores in guards.values():
            lost.append(scores[0] - scores[place])
            lost.append(scores[0] - float(np.mean(scores[neighbours])))
        if all(round(points, 1) <= tolerance for points in lost):
            harmless.append(place)
    return harmless
