"""What a report contains about models: headline numbers, tables side by side, and whether the second is better, on what.

User text in it is made safe to display.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from opencse.debias.strength import StrengthCurve
from opencse.evaluation import STS_TASKS
from opencse.evaluation.bootstrap import (
    Difference,
    PairScores,
    correlation_difference,
    interval,
    mean_difference,
)
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.probe_suite import TripletResult
from opencse.evaluation.probes.probes import (
    WEIGHTED_SUPERVISED,
    WEIGHTED_UNSUPERVISED,
)
from opencse.foundation.numbers import LEAST_PAIRS, LEAST_ROWS
from opencse.foundation.page_text import shown
from opencse.foundation.result_table import Cell, Number, Table

TableRow = tuple[Cell, ...]
_SIDES = ("consistent", "opposed")


def headline_rows(models: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the headline numbers for which there is data, with a cell for each model."""
    columns = [dict(_headlines(scores)) for scores in models.values()]
    return [[title, *(column[title] for column in columns)] for title in columns[0]]


def _headlines(scores: ProbeScores) -> Iterator[tuple[str, Number]]:
    if scores.transformations is not None:
        yield (
            "Paraphrase above negation",
            scores.transformations.paraphrase_above_negation.percent(),
        )
    if scores.splits:
        yield "Agreement where wording misleads", scores.splits[-1].opposed.number()
        yield "Agreement where wording helps", scores.splits[-1].consistent.number()


def tables(models: Mapping[str, ProbeScores]) -> list[Table]:
    """Return the tables for which there is data."""
    filled = []
    scored = {shown(label, 40): each for label, each in models.items() if each.sts}
    if scored:
        correlations = [each.sts for each in scored.values()]
        filled.append(_sts([*scored], correlations, [each.pairs for each in scored.values()]))
    for name, make in _MAKERS.items():
        parts = {
            shown(label, 40): part
            for label, scores in models.items()
            if (part := getattr(scores, name))
        }
        if parts and (table := make([*parts], [*parts.values()])).rows:
            filled.append(table)
    return filled


def triplet_rows(
    parts: Sequence[Sequence[TripletResult]], columns: Sequence[str] | None = None
) -> list[TableRow]:
    """Return the accuracy on each set of triplets and its groups: a label, the count, and a cell for each model.

    Args:
        parts: The results of each model, on the same sets.
        columns: Grouping columns with their own rows; None for all.
    """
    rows: list[TableRow] = []
    for sets in zip(*parts, strict=True):
        name = sets[0].name
        rows.append(
            (
                shown(name, 40),
                sets[0].accuracy.rows,
                *(result.accuracy.percent() for result in sets),
            )
        )
        for group in sets[0].groups:
            if columns is None or group.partition(":")[0] in columns:
                rates = [result.groups[group] for result in sets]
                rows.append(
                    (
                        shown(f"{name}, {group}", 60),
                        rates[0].rows,
                        *(rate.percent() for rate in rates),
                    )
                )
    return rows


def _sts(labels: list[str], parts: list[Any], pairs: Sequence[Mapping[str, PairScores]]) -> Table:
    rows: list[TableRow] = []
    for tasks in zip(*parts, strict=True):
        cells = []
        for task, known in zip(tasks, pairs, strict=True):
            cells.append(_correlation(task.score, known.get(task.task)))
        rows.append((shown(tasks[0].task, 40), tasks[0].rows, *cells))
    scores = [[task.score for task in part if task.task in STS_TASKS] for part in parts]
    averaged = len(scores[0]) > 1
    if averaged:
        rows.append(
            (
                "average of the STS tasks",
                "",
                *(Number(None if None in s else fmean(s)) for s in scores),
            )
        )
    note = (
        "Spearman × 100 over all pairs of a set, as opencse evaluate prints it, with its 95 % "
        "bootstrap interval over pairs."
    )
    return Table(
        ("set", "pairs", *labels),
        rows,
        "Agreement with people, complete sets",
        [note],
        int(averaged),
    )


def _correlation(score: float | None, pairs: PairScores | None) -> Number:
    """Return a correlation times 100, with its interval if the scores of its pairs are known."""
    if score is None or pairs is None:
        return Number(score)
    low, high = interval(pairs.draws)
    return Number(score, aside=f"{Number(100 * low, 1)} to {Number(100 * high, 1)}")


def _tasks(labels: list[str], parts: list[Any]) -> Table:
    rows: list[TableRow] = []
    for same in zip(*parts, strict=True):
        for metric in same[0].metrics:
            values = [Number(result.metrics[metric]) for result in same]
            rows.append((shown(f"{same[0].task}, {metric}", 60), same[0].rows, *values))
    return Table(("task", "rows", *labels), rows, "Your own tasks")


def _splits(labels: list[str], parts: list[Any]) -> Table:
    rows: list[TableRow] = []
    for same in zip(*parts, strict=True):
        first, pairs = same[0], f"{same[0].consistent.rows:,} + {same[0].opposed.rows:,}"
        medians: TableRow = (Number(first.median_score), Number(first.median_error_rate, 3))
        if first.median_score is None:
            medians = ("", "")
        sides = (Number(getattr(split, side).value, 3) for side in _SIDES for split in same)
        rows.append((shown(first.name, 40), pairs, *medians, *sides))
    note = (
        "Spearman with human scores. Cont.: score above the set's median and match error rate below, or the reverse; "
        "Oppn.: all other pairs. The average is weighted by pairs. SimCSE on BERT-base, as published for sixteen sets: "
        "Cont. {:.3f}, Oppn. {:.3f}; supervised Cont. {:.3f}, Oppn. {:.3f} (OssCSE Table 3)."
    ).format(*WEIGHTED_UNSUPERVISED, *WEIGHTED_SUPERVISED)
    heads = (f"{label} {side}" for side in ("Cont.", "Oppn.") for label in labels)
    title = "Where wording agrees with meaning, and where it misleads"
    return Table(("set", "pairs", "median score", "median MER", *heads), rows, title, [note], 1)


def _transformations(labels: list[str], parts: list[Any]) -> Table:
    rows: list[TableRow] = []
    for same in zip(*(part.kinds for part in parts), strict=True):
        cosines = (kind.cosine.number() for kind in same)
        rows.append(
            (same[0].kind, same[0].cosine.rows, Number(fmean(same[0].error_rates)), *cosines)
        )
    rates = [part.paraphrase_above_negation for part in parts]
    rows.append(
        ("paraphrase above negation", rates[0].rows, "", *(rate.percent() for rate in rates))
    )
    note = (
        "Mean cosine with the sentence, 95 % bootstrap interval over sentences. MER: match error rate, the share of "
        "words that changed. Only the negation and the random sentence have another meaning."
    )
    heads = ("transformation", "sentences", "MER", *labels)
    return Table(heads, rows, "Six transformations of a sentence", [note], 1)


def _retrieval(labels: list[str], parts: list[Any]) -> Table:
    # That the negation comes first is the headline number again, so it is not repeated here.
    rows = [("paraphrase among the first three hits", *(part.recall.percent() for part in parts))]
    texts = f"{parts[0].corpus:,} texts: the sentences, their paraphrases and negations."
    note = f"{len(parts[0].queries):,} queries; {texts}"
    return Table(("", *labels), rows, "Search among near-identical negations", [note])


def _triplets(labels: list[str], parts: list[Any]) -> Table:
    note = (
        "How often the paraphrase (or the passage that answers a query) is nearer than the contradiction in nearly the "
        "same words; a tie does not count. The grade is the distance of the paraphrase in wording. A negated antonym "
        "(“isn't cold” for “is hot”) must be nearer than the negation and the antonym."
    )
    return Table(
        ("set", "triplets", *labels),
        triplet_rows(parts),
        "Paraphrase or contradiction: written triplets",
        [note],
    )


# What makes the table of each part of the scores, after those of `sts`.
_MAKERS: Mapping[str, Callable[[list[str], list[Any]], Table]] = {
    "tasks": _tasks,
    "splits": _splits,
    "transformations": _transformations,
    "retrieval": _retrieval,
    "triplets": _triplets,
}


# Points below which a guard has not moved at all.
_LEAST = 0.1
# Points from which an accuracy counts as changed if its rows are not at hand: of 200 rows, on which
# two models differ in one of eight, chance moves the difference by as much in one case of 20.
_WITHOUT_ROWS = 5.0
# Share of the paraphrases that are to pass a semantic cache's threshold.
_HIT = 0.9


@dataclass(frozen=True, kw_only=True)
class Change:
    """One measure before and after training, in points (x 100); more is better.

    Attributes:
        measure: Name of the measure.
        before: Score of the untouched model.
        after: Score of the trained model.
        spread: 95 % interval of the difference as text; empty if the score has none.
        changed: Whether the interval excludes 0. Without one, whether a guard differs by more than
            the strength may cost it, and another score by 5 points.
        few: Number of rows, if they are too few for a claim (`opencse.foundation.numbers`).
        allowed: Points that a guard may lose; what it loses within them is shown, but neither such
            a loss nor such a gain counts as changed.
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
class Comparison:
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
        spent = [
            c for c in self.changes if not c.changed and c.allowed and c.before - c.after >= _LEAST
        ]
        unharmed = "Nothing that was measured."
        if spent:
            shown_losses = "; ".join(change.short() for change in spent)
            unharmed = f"No guard by more than {spent[0].allowed:g} points: {shown_losses}"
        lines = []
        for changes, nothing in ((gains, "Nothing that was measured."), (losses, unharmed)):
            shown_changes = [change.short() if most else change.line() for change in changes[:most]]
            rest = [f"{len(changes) - most} more"] if most and len(changes) > most else []
            lines.append([*shown_changes, *rest] or [nothing])
        verdict = self._verdict(len(gains), len(losses))
        return [("Is it better?", [verdict]), ("On what?", lines[0]), ("What got worse?", lines[1])]

    def table(self, most: int = 3) -> Table:
        """Return the questions with short answers, and the remarks below."""
        return Table(
            ("", ""),
            [(title, "; ".join(lines)) for title, lines in self.answers(most)],
            notes=self.remarks,
        )

    def _changed(self, sign: int) -> list[Change]:
        changes = [
            change
            for change in self.changes
            if change.changed and sign * (change.after - change.before) > 0
        ]
        return sorted(changes, key=lambda change: sign * (change.before - change.after))

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


# What each measure means, by the beginning of its name in a report.
_DEFINITIONS = {
    "paraphrase nearer than negation": "Share of sentences whose paraphrase has a higher cosine than "
    "their negation in nearly the same words.",
    "dev-meaning": "Share of sentences whose paraphrase is nearer than a contradiction in nearly the "
    "same words.",
    "meaning": "Share of 300 sentences whose paraphrase is nearer than a contradiction in nearly the "
    "same words.",
    "search": "Share of 200 queries for which a passage that affirms what they look for ranks above "
    "one that denies it in nearly the same words.",
    "roles": "Share of 200 sentences for which a reordering that says the same is nearer than the same "
    "words with the roles exchanged (who did what to whom).",
    "negated antonyms": "Share of sentences for which “isn't cold” is nearer to “is hot” than “isn't "
    "hot” and “is cold”.",
    "guard questions": "Search that must not get worse: a question finds its other wordings (MRR).",
    "guard answers": "Search that must not get worse: a question finds the passage that answers it "
    "(MRR).",
    "guard topics": "Classification that must not get worse: share of the ten nearest texts on the "
    "same topic.",
    "guard long": "Search that must not get worse: a summary or a sentence finds its text of about "
    "120 words (MRR).",
    "agreement with people": "Spearman correlation with the scores that people gave to pairs of "
    "sentences, times 100.",
}


def definition(measure: str) -> str:
    """Return what a measure means, in a line; empty if it is not defined."""
    for beginning, meaning in _DEFINITIONS.items():
        if measure.startswith(beginning):
            return meaning
    return ""


def compare_models(
    models: Mapping[str, ProbeScores],
    curve: StrengthCurve | None = None,
    remarks: Sequence[str] = (),
) -> Comparison:
    """Compare the scores before and after training.

    A rate or a correlation counts as changed if the 95 % interval of a paired bootstrap excludes 0:
    the same rows are drawn for both models. A guard counts if it differs by more than the strength
    may cost, and a score whose rows are not at hand if it differs by 5 points. All of it holds up
    and down.

    Args:
        models: Scores of the untouched and of the trained model, by name.
        curve: Scores by the strength of the trained model's meaning block.
        remarks: What was not measured, and what else a user must know.
    """
    (before, first), (after, second), *_ = models.items()
    changes = [*_rates(first, second), *_correlations(first, second)]
    if curve is not None:
        meaning = {} if first.triplets else curve.meaning  # the same sets
        for scores, prefix, tolerance in (
            (curve.guards, "guard ", curve.tolerance),
            (meaning, "", 0.0),
        ):
            for name, values in curve.before_and_after(scores).items():
                plain = shown(name.removeprefix("guard-").removeprefix("dev-"), 40)
                changes.append(_without_rows(f"{prefix}{plain}", *values, may_lose=tolerance))
    steps = "" if curve is None else curve.next_steps()
    if steps:
        remarks = [*remarks, steps]
    few = "; ".join(
        f"{change.short()} ({change.few} rows)" for change in changes if change.few is not None
    )
    too_few = [f"Measured on too few rows to say: {few}."] if few else []
    return Comparison(
        before=shown(before, 60),
        after=shown(after, 60),
        changes=tuple(change for change in changes if change.few is None),
        remarks=(*too_few, *(shown(remark, 400) for remark in remarks)),
    )


def cache_line(models: Mapping[str, ProbeScores]) -> Iterator[str]:
    """Yield what a semantic cache with each model would mistake, if the transformations were measured."""
    lines = []
    for name, scores in models.items():
        kinds = (
            {}
            if scores.transformations is None
            else {kind.kind: kind for kind in scores.transformations.kinds}
        )
        if "paraphrase" in kinds and "negation" in kinds:
            threshold = float(np.quantile(kinds["paraphrase"].cosines, 1 - _HIT))
            false = 100 * float((np.array(kinds["negation"].cosines) >= threshold).mean())
            lines.append(f"{shown(name, 40)} {false:.0f} % from {threshold:.2f} on")
    if lines:
        yield (
            f"False hits of a semantic cache, whose threshold {100 * _HIT:.0f} % of the paraphrases reach, among "
            f"negations: {', '.join(lines)}."
        )


def _rates(first: ProbeScores, second: ProbeScores) -> Iterator[Change]:
    """Yield the rates that are measured row by row."""
    both = first, second
    above = [
        scores.transformations.rows_above for scores in both if scores.transformations is not None
    ]
    measured: list[tuple[str, Sequence[Sequence[bool]]]] = [
        ("paraphrase nearer than negation, %", above),
    ]
    for a, b in zip(first.triplets, second.triplets, strict=True):
        measured.append(
            (f"{shown(a.name, 40)}: paraphrase nearer, %", [a.rows_right, b.rows_right])
        )
    for measure, rows in measured:
        if len(rows) < 2 or not rows[0] or len(rows[0]) != len(rows[1]):
            continue
        before, after = (np.array(values, dtype=float) for values in rows)
        difference = mean_difference(before, after)
        yield Change(
            measure=measure,
            before=100 * float(before.mean()),
            after=100 * float(after.mean()),
            spread=_interval_text(difference),
            changed=difference.beyond_chance,
            few=len(before) if len(before) < LEAST_ROWS else None,
        )


def _correlations(first: ProbeScores, second: ProbeScores) -> Iterator[Change]:
    """Yield the correlations of the sets whose pairs both models scored."""
    for a, b in zip(first.sts, second.sts, strict=True):
        if a.score is None or b.score is None:
            continue
        if a.task not in first.pairs or b.task not in second.pairs:
            continue
        difference = correlation_difference(first.pairs[a.task], second.pairs[b.task])
        if difference is None:
            continue
        yield Change(
            measure=f"agreement with people, {shown(a.task, 40)}",
            before=a.score,
            after=b.score,
            spread=_interval_text(difference),
            changed=difference.beyond_chance,
            few=a.rows if a.rows < LEAST_PAIRS else None,
        )


def _interval_text(difference: Difference) -> str:
    low = Number(100 * difference.low, 1)
    high = Number(100 * difference.high, 1)
    return f"95 % interval {low} to {high}"


def _without_rows(measure: str, before: float, after: float, *, may_lose: float = 0.0) -> Change:
    """Return the change of a score of which only the sum is known, such as that of a guard."""
    # One rule for better and for worse: what a guard may lose is no gain either.
    least = may_lose + 0.05 if may_lose else _WITHOUT_ROWS
    return Change(
        measure=measure,
        before=before,
        after=after,
        spread="",
        changed=round(abs(after - before), 6) >= least,
        allowed=may_lose,
    )
