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
from opencse.evaluation.estimate import Estimate
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


def headline_rows(models: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the headline numbers for which there is data, with a cell for each model."""
    columns = [_headlines(scores) for scores in models.values()]
    rows: list[list[Cell]] = []
    for title in columns[0]:
        row: list[Cell] = [title]
        for column in columns:
            row.append(column[title])
        rows.append(row)
    return rows


def _headlines(scores: ProbeScores) -> dict[str, Number]:
    """Return the headline numbers of a model by title."""
    numbers = {}
    if scores.transformations is not None:
        above = scores.transformations.paraphrase_above_negation
        numbers["Paraphrase above negation"] = above.percent()
    if scores.splits:
        # The last split is that of all sets together.
        total = scores.splits[-1]
        numbers["Agreement where wording misleads"] = total.opposed.number()
        numbers["Agreement where wording helps"] = total.consistent.number()
    return numbers


def tables(models: Mapping[str, ProbeScores]) -> list[Table]:
    """Return the tables for which there is data."""
    filled = []
    scored = {shown(label, 40): scores for label, scores in models.items() if scores.sts}
    if scored:
        correlations = [scores.sts for scores in scored.values()]
        pairs = [scores.pairs for scores in scored.values()]
        filled.append(_sts(list(scored), correlations, pairs))
    for name, make in _MAKERS.items():
        parts = {}
        for label, scores in models.items():
            part = getattr(scores, name)
            if part:
                parts[shown(label, 40)] = part
        if not parts:
            continue
        table = make(list(parts), list(parts.values()))
        if table.rows:
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
    for results in zip(*parts, strict=True):
        name = results[0].name
        accuracies = [result.accuracy for result in results]
        rows.append(_rates_row(shown(name, 40), accuracies))
        for group in results[0].groups:
            # A group is named `column: value`.
            column = group.partition(":")[0]
            if columns is None or column in columns:
                rates = [result.groups[group] for result in results]
                rows.append(_rates_row(shown(f"{name}, {group}", 60), rates))
    return rows


def _rates_row(label: str, rates: Sequence[Estimate]) -> TableRow:
    """Return a label, the number of rows, and the rate of each model in percent."""
    cells = [rate.percent() for rate in rates]
    return (label, rates[0].rows, *cells)


def _sts(labels: list[str], parts: list[Any], pairs: Sequence[Mapping[str, PairScores]]) -> Table:
    rows: list[TableRow] = []
    for tasks in zip(*parts, strict=True):
        cells = []
        for task, known in zip(tasks, pairs, strict=True):
            cells.append(_correlation(task.score, known.get(task.task)))
        rows.append((shown(tasks[0].task, 40), tasks[0].rows, *cells))

    averages = []
    for part in parts:
        scores = [task.score for task in part if task.task in STS_TASKS]
        averages.append(_average(scores))
    # The average of a single task would repeat its row.
    averaged = sum(task.task in STS_TASKS for task in parts[0]) > 1
    if averaged:
        rows.append(("average of the STS tasks", "", *averages))
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


def _average(scores: Sequence[float | None]) -> Number:
    """Return the mean of some scores, undefined if one of them is or there are none."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Number(None)
    return Number(fmean(defined))


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
        first = same[0]
        pairs = f"{first.consistent.rows:,} + {first.opposed.rows:,}"
        # The average over sets has no median.
        medians: TableRow = ("", "")
        if first.median_score is not None:
            medians = (Number(first.median_score), Number(first.median_error_rate, 3))
        consistent = [Number(split.consistent.value, 3) for split in same]
        opposed = [Number(split.opposed.value, 3) for split in same]
        rows.append((shown(first.name, 40), pairs, *medians, *consistent, *opposed))
    note = (
        "Spearman with human scores. Cont.: score above the set's median and match error rate below, or the reverse; "
        "Oppn.: all other pairs. The average is weighted by pairs. SimCSE on BERT-base, as published for sixteen sets: "
        "Cont. {:.3f}, Oppn. {:.3f}; supervised Cont. {:.3f}, Oppn. {:.3f} (OssCSE Table 3)."
    ).format(*WEIGHTED_UNSUPERVISED, *WEIGHTED_SUPERVISED)
    heads = ["set", "pairs", "median score", "median MER"]
    for side in ("Cont.", "Oppn."):
        for label in labels:
            heads.append(f"{label} {side}")
    title = "Where wording agrees with meaning, and where it misleads"
    return Table(heads, rows, title, [note], 1)


def _transformations(labels: list[str], parts: list[Any]) -> Table:
    rows: list[TableRow] = []
    kinds_of_models = [part.kinds for part in parts]
    for same in zip(*kinds_of_models, strict=True):
        first = same[0]
        cosines = [kind.cosine.number() for kind in same]
        error_rate = Number(fmean(first.error_rates))
        rows.append((first.kind, first.cosine.rows, error_rate, *cosines))

    above = [part.paraphrase_above_negation for part in parts]
    rates = [rate.percent() for rate in above]
    rows.append(("paraphrase above negation", above[0].rows, "", *rates))
    note = (
        "Mean cosine with the sentence, 95 % bootstrap interval over sentences. MER: match error rate, the share of "
        "words that changed. Only the negation and the random sentence have another meaning."
    )
    heads = ("transformation", "sentences", "MER", *labels)
    return Table(heads, rows, "Six transformations of a sentence", [note], 1)


def _retrieval(labels: list[str], parts: list[Any]) -> Table:
    # That the negation comes first is the headline number again, so it is not repeated here.
    found = [part.recall.percent() for part in parts]
    rows = [("paraphrase among the first three hits", *found)]
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
        text = f"{self.short()}, {points} points {word}"
        if self.spread:
            text += f" ({self.spread})"
        return text

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
        gains = _lines(self._changed(1), most)
        losses = _lines(self._changed(-1), most)
        if not gains:
            gains = ["Nothing that was measured."]
        if not losses:
            losses = [self._spent()]
        return [
            ("Is it better?", [self.verdict()]),
            ("On what?", gains),
            ("What got worse?", losses),
        ]

    def verdict(self) -> str:
        """Return in a sentence whether the model after training is better."""
        count = len(self.changes)
        gains = len(self._changed(1))
        losses = len(self._changed(-1))
        if not count:
            return "Can't say: nothing was measured on enough rows."
        if gains and losses:
            return f"On some measures: better on {gains} of {count}, worse on {losses}."
        if gains:
            return f"Yes: better on {gains} of {count} measures, worse on none."
        if losses:
            return f"No: worse on {losses} of {count} measures, better on none."
        return f"No: none of {count} measures changed beyond chance."

    def table(self, most: int = 3) -> Table:
        """Return the questions with short answers, and the remarks below."""
        rows = [(title, "; ".join(lines)) for title, lines in self.answers(most)]
        return Table(("", ""), rows, notes=self.remarks)

    def _spent(self) -> str:
        """Return what guards lost within what they may lose, if no measure got worse."""
        spent = []
        for change in self.changes:
            if not change.changed and change.allowed and change.before - change.after >= _LEAST:
                spent.append(change)
        if not spent:
            return "Nothing that was measured."
        scores = "; ".join(change.short() for change in spent)
        return f"No guard by more than {spent[0].allowed:g} points: {scores}"

    def _changed(self, sign: int) -> list[Change]:
        """Return the gains (1) or the losses (-1), the largest first."""
        changes = []
        for change in self.changes:
            if change.changed and sign * (change.after - change.before) > 0:
                changes.append(change)
        return sorted(changes, key=lambda change: -abs(change.after - change.before))


def _lines(changes: Sequence[Change], most: int | None) -> list[str]:
    """Return a line for each change: the first few without intervals, or all of them in full."""
    if most is None:
        return [change.line() for change in changes]
    lines = [change.short() for change in changes[:most]]
    if len(changes) > most:
        lines.append(f"{len(changes) - most} more")
    return lines


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
    measured = [*_rates(first, second), *_correlations(first, second)]
    if curve is not None:
        measured += _guard_changes(curve)
        # The probe's triplets are the sets of the curve again, with their rows.
        if not first.triplets:
            measured += _meaning_changes(curve)
    changes = []
    too_few = []
    for change in measured:
        if change.few is None:
            changes.append(change)
        else:
            too_few.append(f"{change.short()} ({change.few} rows)")

    said = []
    if too_few:
        said.append(f"Measured on too few rows to say: {'; '.join(too_few)}.")
    for remark in remarks:
        said.append(shown(remark, 400))
    if curve is not None and curve.next_steps():
        said.append(shown(curve.next_steps(), 400))
    return Comparison(
        before=shown(before, 60),
        after=shown(after, 60),
        changes=tuple(changes),
        remarks=tuple(said),
    )


def _guard_changes(curve: StrengthCurve) -> Iterator[Change]:
    """Yield what the guards gain and lose at the chosen strength."""
    for name, scores in curve.before_and_after(curve.guards).items():
        measure = f"guard {_plain_name(name)}"
        yield _without_rows(measure, *scores, may_lose=curve.tolerance)


def _meaning_changes(curve: StrengthCurve) -> Iterator[Change]:
    """Yield what the measures of meaning gain and lose at the chosen strength."""
    for name, scores in curve.before_and_after(curve.meaning).items():
        yield _without_rows(_plain_name(name), *scores)


def _plain_name(name: str) -> str:
    """Return the name of a set of a curve without its kind."""
    return shown(name.removeprefix("guard-").removeprefix("dev-"), 40)


def cache_line(models: Mapping[str, ProbeScores]) -> Iterator[str]:
    """Yield what a semantic cache with each model would mistake, if the transformations were measured."""
    lines = []
    for name, scores in models.items():
        if scores.transformations is None:
            continue
        cosines = {kind.kind: np.array(kind.cosines) for kind in scores.transformations.kinds}
        if "paraphrase" not in cosines or "negation" not in cosines:
            continue
        threshold = float(np.quantile(cosines["paraphrase"], 1 - _HIT))
        false = 100 * float((cosines["negation"] >= threshold).mean())
        lines.append(f"{shown(name, 40)} {false:.0f} % from {threshold:.2f} on")
    if lines:
        yield (
            f"False hits of a semantic cache, whose threshold {100 * _HIT:.0f} % of the paraphrases reach, among "
            f"negations: {', '.join(lines)}."
        )


def _rates(first: ProbeScores, second: ProbeScores) -> Iterator[Change]:
    """Yield the rates that are measured row by row."""
    if first.transformations is not None and second.transformations is not None:
        yield from _rate(
            "paraphrase nearer than negation, %",
            first.transformations.rows_above,
            second.transformations.rows_above,
        )
    for old, new in zip(first.triplets, second.triplets, strict=True):
        measure = f"{shown(old.name, 40)}: paraphrase nearer, %"
        yield from _rate(measure, old.rows_right, new.rows_right)


def _rate(measure: str, old: Sequence[bool], new: Sequence[bool]) -> Iterator[Change]:
    """Yield the change of a rate, if it was measured on the same number of rows."""
    if not old or len(old) != len(new):
        return
    before = np.array(old, dtype=float)
    after = np.array(new, dtype=float)
    difference = mean_difference(before, after)
    yield Change(
        measure=measure,
        before=100 * float(before.mean()),
        after=100 * float(after.mean()),
        spread=_interval_text(difference),
        changed=difference.beyond_chance,
        few=_if_fewer(len(before), LEAST_ROWS),
    )


def _if_fewer(rows: int, least: int) -> int | None:
    """Return a number of rows if it is too small for a claim, or None."""
    return rows if rows < least else None


def _correlations(first: ProbeScores, second: ProbeScores) -> Iterator[Change]:
    """Yield the correlations of the sets whose pairs both models scored."""
    for old, new in zip(first.sts, second.sts, strict=True):
        if old.score is None or new.score is None:
            continue
        if old.task not in first.pairs or new.task not in second.pairs:
            continue
        difference = correlation_difference(first.pairs[old.task], second.pairs[new.task])
        if difference is None:
            continue
        yield Change(
            measure=f"agreement with people, {shown(old.task, 40)}",
            before=old.score,
            after=new.score,
            spread=_interval_text(difference),
            changed=difference.beyond_chance,
            few=_if_fewer(old.rows, LEAST_PAIRS),
        )


def _interval_text(difference: Difference) -> str:
    low = Number(100 * difference.low, 1)
    high = Number(100 * difference.high, 1)
    return f"95 % interval {low} to {high}"


def _without_rows(measure: str, before: float, after: float, *, may_lose: float = 0.0) -> Change:
    """Return the change of a score of which only the sum is known, such as that of a guard."""
    least = _WITHOUT_ROWS
    if may_lose:
        # One rule for better and for worse: what a guard may lose is no gain either. Half of the
        # last digit more, because scores are shown with one.
        least = may_lose + 0.05
    # Without rounding, 0.35 - 0.30 would be less than 0.05.
    moved = round(abs(after - before), 6)
    return Change(
        measure=measure,
        before=before,
        after=after,
        spread="",
        changed=moved >= least,
        allowed=may_lose,
    )
