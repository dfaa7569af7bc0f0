"""Three answers about a trained model: is it better, on what, and what got worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.commands.reports.tables import shown
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.estimates import mean_estimate
from opencse.foundation.numbers import LEAST_PAIRS, LEAST_ROWS
from opencse.foundation.result_table import Number, Table
from opencse.training.strength import StrengthCurve

_LEAST = 0.1
"""Points from which a score without an interval counts as changed."""
_HIT = 0.9
"""Share of the paraphrases that are to pass a semantic cache's threshold."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One measure before and after training, in points (x 100); more is better.

    Attributes:
        measure: Name of the measure.
        before: Score of the untouched model.
        after: Score of the trained model.
        spread: 95 % interval of the difference as text; empty if the score has none.
        changed: Whether the interval excludes 0; without one, whether the scores differ by 0.1 points or more, and a
            guard lost more than the strength may cost.
        few: Number of rows, if they are too few for a claim (`opencse.foundation.numbers`).
        allowed: Points that a guard may lose; what it loses within them is shown, but does not count as changed.
    """

    measure: str
    before: float
    after: float
    spread: str
    changed: bool
    few: int | None = None
    allowed: float = 0.0

    def line(self) -> str:
        """Return the change in words."""
        points = Number(abs(self.after - self.before), 1)
        word = "more" if self.after > self.before else "less"
        return f"{self.short()}, {points} points {word}{f' ({self.spread})' if self.spread else ''}"

    def short(self) -> str:
        """Return the measure and both scores."""
        return f"{self.measure}: {Number(self.before, 1)} → {Number(self.after, 1)}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The differences between the model before and after training.

    Attributes:
        before: Name of the untouched model.
        after: Name of the trained model.
        changes: All measures on enough rows.
        remarks: What was not measured, and what else a user must know before using the model.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    remarks: tuple[str, ...] = ()

    def answers(self, most: int | None = None) -> list[tuple[str, list[str]]]:
        """Return three questions, each with the lines of its answer, the largest changes first.

        Args:
            most: Number of changes in an answer, each without its interval; None for all in full.
        """
        gains, losses = self._changed(1), self._changed(-1)
        spent = [c for c in self.changes if not c.changed and c.allowed and c.before - c.after >= _LEAST]
        unharmed = "Nothing that was measured."
        if spent:
            shown_losses = "; ".join(each.short() for each in spent)
            unharmed = f"No guard by more than {spent[0].allowed:g} points: {shown_losses}"
        lines = []
        for changes, nothing in ((gains, "Nothing that was measured."), (losses, unharmed)):
            shown_changes = [each.short() if most else each.line() for each in changes[:most]]
            rest = [f"{len(changes) - most} more"] if most and len(changes) > most else []
            lines.append([*shown_changes, *rest] or [nothing])
        verdict = self._verdict(len(gains), len(losses))
        return [("Is it better?", [verdict]), ("On what?", lines[0]), ("What got worse?", lines[1])]

    def table(self, most: int = 3) -> Table:
        """Return the questions with short answers, and the remarks below."""
        return Table(("", ""), [(asked, "; ".join(lines)) for asked, lines in self.answers(most)], notes=self.remarks)

    def _changed(self, sign: int) -> list[Change]:
        found = [each for each in self.changes if each.changed and sign * (each.after - each.before) > 0]
        return sorted(found, key=lambda each: sign * (each.before - each.after))

    def _verdict(self, gains: int, losses: int) -> str:
        count = len(self.changes)
        if not count:
            return "Can't say: nothing was measured on enough rows."
        if not gains:
            worse = f"worse on {losses} of {count} measures, better on none"
            return f"No: {worse if losses else f'none of {count} measures changed beyond chance'}."
        if losses:
            return f"On some measures: better on {gains} of {count}, worse on {losses}."
        return f"Yes: better on {gains} of {count} measures, worse on none."


def compare_outcome(
    models: Mapping[str, ProbeScores],
    curve: StrengthCurve | None = None,
    remarks: Sequence[str] = (),
) -> Outcome:
    """Compare the scores before and after training.

    A rate counts as changed if the 95 % bootstrap interval of the paired difference excludes 0; a correlation or a
    guard, for which there is no interval, if it differs by 0.1 points. A guard may lose what the strength may cost.

    Args:
        models: Scores of the untouched and of the trained model, by name.
        curve: Scores by the strength of the trained model's meaning block.
        remarks: What was not measured, and what else a user must know.
    """
    (before, first), (after, second) = models.items()
    changes = [*_rates(first, second)]
    changes += [
        _scored(f"agreement with people, {shown(a.task, 40)}", a.score, b.score, a.rows)
        for a, b in zip(first.sts, second.sts, strict=True)
        if a.score is not None and b.score is not None
    ]
    if curve is not None:
        changes += [
            _scored(f"guard {shown(name.removeprefix('guard-'), 40)}", *values, may_lose=curve.tolerance)
            for name, values in curve.before_and_after(curve.guards).items()
        ]
    if curve is not None and not first.triplets:  # which are the same sets
        changes += [
            _scored(shown(name.removeprefix("dev-"), 40), *values)
            for name, values in curve.before_and_after(curve.meaning).items()
        ]
    few = "; ".join(f"{each.short()} ({each.few} rows)" for each in changes if each.few is not None)
    too_few = [f"Measured on too few rows to say: {few}."] if few else []
    return Outcome(
        before=shown(before, 60),
        after=shown(after, 60),
        changes=tuple(each for each in changes if each.few is None),
        remarks=(*too_few, *(shown(each, 400) for each in remarks)),
    )


def cache_line(models: Mapping[str, ProbeScores]) -> Iterator[str]:
    """Yield what a semantic cache with each model would mistake, if the transformations were measured."""
    found = []
    for name, scores in models.items():
        kinds = {} if scores.transformations is None else {kind.kind: kind for kind in scores.transformations.kinds}
        if "paraphrase" in kinds and "negation" in kinds:
            threshold = float(np.quantile(kinds["paraphrase"].cosines, 1 - _HIT))
            false = 100 * float((np.array(kinds["negation"].cosines) >= threshold).mean())
            found.append(f"{shown(name, 40)} {false:.0f} % at cosine {threshold:.2f}")
    if found:
        yield (
            f"False hits of a semantic cache, whose threshold {_HIT:.0%} of the paraphrases reach, among negations: "
            f"{', '.join(found)}."
        )


def _rates(first: ProbeScores, second: ProbeScores) -> Iterator[Change]:
    """Yield the rates that are measured row by row."""
    both = first, second
    above = [each.transformations.rows_above for each in both if each.transformations is not None]
    retrieved = [each.retrieval.hits for each in both if each.retrieval is not None]
    right = [[not hits or hits[0].relation != "negation" for hits in found] for found in retrieved]
    measured: list[tuple[str, Sequence[Sequence[bool]]]] = [
        ("paraphrase nearer than negation, %", above),
        ("first hit is not the negation, %", right),
    ]
    for a, b in zip(first.triplets, second.triplets, strict=True):
        measured.append((f"{shown(a.name, 40)}: paraphrase nearer, %", [a.rows_right, b.rows_right]))
    for measure, rows in measured:
        if len(rows) < 2 or not rows[0] or len(rows[0]) != len(rows[1]):
            continue
        before, after = (np.array(each, dtype=float) for each in rows)
        difference = mean_estimate(100 * (after - before))
        yield Change(
            measure=measure,
            before=100 * float(before.mean()),
            after=100 * float(after.mean()),
            spread=f"95 % interval {difference.interval(1)}",
            changed=(difference.low or 0.0) > 0 or (difference.high or 0.0) < 0,
            few=len(before) if len(before) < LEAST_ROWS else None,
        )


def _scored(measure: str, before: float, after: float, rows: int = LEAST_PAIRS, *, may_lose: float = 0.0) -> Change:
    few, lost = rows if rows < LEAST_PAIRS else None, before - after
    changed = round(abs(lost), 6) >= _LEAST and not 0 < round(lost, 1) <= may_lose
    return Change(measure=measure, before=before, after=after, spread="", changed=changed, few=few, allowed=may_lose)
