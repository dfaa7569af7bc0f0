"""The strength of a meaning block: what measures score at several values, and the largest that harms no guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opencse.encoder.meaning_block import MeaningBlock, rescale
from opencse.foundation.measure import Measures
from opencse.foundation.progress import timed
from opencse.foundation.result_table import Cell, Number, Table

STRENGTHS = tuple(step / 20 for step in range(17))
"""0 to 0.8, in steps of 0.05."""

Scores = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class StrengthCurve:
    """Scores of a model by the strength of its meaning block.

    Attributes:
        chosen: The strength of the model.
        tolerance: Points that a guard may lose.
        strengths: The strengths that were measured, ascending; the first is 0, the model without the block.
        guards: Scores of each guard at these strengths.
        meaning: Scores of what the block is for.
    """

    chosen: float
    tolerance: float
    strengths: tuple[float, ...]
    guards: dict[str, tuple[float, ...]]
    meaning: dict[str, tuple[float, ...]]

    def before_and_after(self, scores: Scores) -> dict[str, tuple[float, float]]:
        """Return each of some scores without the block and at the chosen strength."""
        place = self.strengths.index(self.chosen)
        return {name: (values[0], values[place]) for name, values in scores.items()}

    def table(self) -> Table:
        """Return the score of every measure at every strength."""
        measured = {**self.meaning, **self.guards}
        rows: list[list[Cell]] = []
        for place, strength in enumerate(self.strengths):
            mark = " (chosen)" if strength == self.chosen else ""
            rows.append([f"{strength:g}{mark}", *(Number(values[place], 1) for values in measured.values())])
        names = (name.removeprefix("dev-").replace("guard-", "guard: ") for name in measured)
        note = f"A guard may lose {self.tolerance:g} points; 0 is the model without the block."
        return Table(("strength", *names), rows, "Scores by strength of the meaning block", [note])


def find_strength(
    block: MeaningBlock, measures: Measures, tolerance: float, strengths: Sequence[float] = STRENGTHS
) -> StrengthCurve:
    """Give a block the largest strength at which no guard loses more than it may; without guards, it stays.

    Every text is encoded once, whatever the number of strengths.

    Args:
        block: The block of the model that the measures were started with.
        measures: Guards and measures of meaning.
        tolerance: Points that a guard may lose.
        strengths: The strengths to try, ascending from 0.
    """
    before, block.strength = block.strength, 1.0
    if measures.guards is None and before not in strengths:
        strengths = sorted([*strengths, before])
    found: list[dict[str, tuple[float, ...]]] = []
    with timed("strength"):
        for measure in (measures.guards, measures.meaning):
            scores: list[dict[str, float]] = []
            if measure is not None:
                vectors = measure.vectors()
                scores = [measure.scored(rescale(vectors, 1.0, strength)) for strength in strengths]
            names = scores[0] if scores else {}
            found.append({name: tuple(each[name] for each in scores) for name in names})
    guards, meaning = found
    block.strength = before if measures.guards is None else _harmless(guards, tolerance, strengths)
    return StrengthCurve(
        chosen=block.strength, tolerance=tolerance, strengths=tuple(strengths), guards=guards, meaning=meaning
    )


def _harmless(guards: Scores, tolerance: float, strengths: Sequence[float]) -> float:
    """Return the largest strength at which no guard has lost too much, in points with one decimal as they are shown."""

    def kept(place: int) -> bool:
        return all(round(values[0] - values[place], 1) <= tolerance for values in guards.values())

    return max(strength for place, strength in enumerate(strengths) if kept(place))
