"""The tables of a probe report: every number of the figures, with the models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opencse.commands.reports.summary import interval, number, percent
from opencse.commands.reports.text import shown
from opencse.evaluation.probes import Estimate, ProbeScores
from opencse.evaluation.probes.published import SPLITS, WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED

Models = Mapping[str, ProbeScores]


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """A table whose first column names the rows.

    Attributes:
        title: Heading.
        caption: Text below the heading.
        head: Column headings.
        rows: Cells by row.
        strong: Number of final rows with totals.
    """

    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: int = 0


def tables(models: Models) -> list[ReportTable]:
    """Return the tables for which there is data."""
    first = (
        _sts(models),
        _splits(models, "splits"),
        _splits(models, "own_splits"),
        _kinds(models),
        _search(models),
        _triplets(models),
    )
    return [table for table in (*first, _suppression(models), _length(models), _training(models)) if table is not None]


def _having(models: Models, part: str) -> dict[str, Any]:
    """Return one part of the scores for the models that have it."""
    return {name: value for name, found in models.items() if (value := getattr(found, part))}


def _sts(models: Models) -> ReportTable | None:
    parts = _having(models, "sts")
    if not parts:
        return None
    first: Sequence[Any] = next(iter(parts.values()))
    rows = [
        (shown(task.task, 40), f"{task.rows:,}", *(number(part[i].score, 2) for part in parts.values()))
        for i, task in enumerate(first)
    ]
    return ReportTable(
        title="Agreement with people, whole sets",
        caption="Spearman × 100 over all pairs of a set: the figures of opencse evaluate.",
        head=("set", "pairs", *_labels(parts)),
        rows=tuple(rows),
    )


def _splits(models: Models, part: str) -> ReportTable | None:
    parts = _having(models, part)
    if not parts:
        return None
    own = part == "own_splits"
    first = next(iter(parts.values()))
    head = ["set", "pairs", "median score", "median MER"]
    head += [f"{label} {side}" for side in ("Cont.", "Oppn.") for label in _labels(parts)]
    rows = []
    for i, each in enumerate(first.sets):
        cells = [shown(each.name, 40) + ("" if each.balanced else " *")]
        cells += [f"{each.consistent.rows} + {each.opposed.rows}"]
        cells += [number(each.median_score, 2), number(each.median_error_rate, 3)]
        cells += [number(result.sets[i].consistent) for result in parts.values()]
        cells += [number(result.sets[i].opposed) for result in parts.values()]
        if not own:
            row = SPLITS.get(each.name)
            cells += [number(value) for value in row.unsupervised] if row else ["", ""]
        rows.append(tuple(cells))
    if not own:
        head += ["SimCSE Cont.", "SimCSE Oppn."]
    for i, average in enumerate(first.averages):
        cells = [f"average: {average.name}", f"{average.consistent.rows} + {average.opposed.rows}", "", ""]
        cells += [number(result.averages[i].consistent) for result in parts.values()]
        cells += [number(result.averages[i].opposed) for result in parts.values()]
        if not own:
            cells += [number(value) for value in WEIGHTED_UNSUPERVISED] if i == 0 else ["", ""]
        rows.append(tuple(cells))
    return ReportTable(
        title="Where wording agrees with meaning, and where it misleads" + (": your pairs" if own else ""),
        caption="Spearman with human scores. Cont.: score above the set's median and match error rate below, or the "
        "reverse; Oppn.: all other pairs. Averages are weighted by pairs."
        + ("" if all(each.balanced for each in first.sets) else " *: median score outside 2 to 3.5, OssCSE's range.")
        + (
            ""
            if own
            else " SimCSE: unsupervised BERT-base as published (OssCSE Tables 3 and 6; supervised SimCSE averages "
            f"{WEIGHTED_SUPERVISED[0]:.3f} and {WEIGHTED_SUPERVISED[1]:.3f}), over all sixteen sets."
        ),
        head=tuple(head),
        rows=tuple(rows),
        strong=len(first.averages),
    )


def _kinds(models: Models) -> ReportTable | None:
    parts = _having(models, "transformations")
    if not parts:
        return None
    first = next(iter(parts.values()))
    rows = [
        (
            kind.kind,
            str(kind.cosine.rows),
            number(kind.error_rate, 2),
            *(_with_interval(part.kinds[i].cosine) for part in parts.values()),
        )
        for i, kind in enumerate(first.kinds)
    ]
    rates = [part.paraphrase_above_negation for part in parts.values()]
    rows.append(
        (
            "paraphrase above negation",
            str(rates[0].rows),
            "",
            *(
                f"{percent(r)} ({interval(r, 0, 100)})" if r.value is not None else f"undefined: {r.undefined}"
                for r in rates
            ),
        )
    )
    return ReportTable(
        title="Six transformations of a sentence",
        caption="Mean cosine with the sentence, 95 % bootstrap interval over sentences. MER: match error rate, the "
        "share of words that changed. Only the negation and the random sentence have another meaning.",
        head=("transformation", "sentences", "MER", *_labels(parts)),
        rows=tuple(rows),
        strong=1,
    )


def _search(models: Models) -> ReportTable | None:
    parts = _having(models, "retrieval")
    if not parts:
        return None
    first = next(iter(parts.values()))
    measures: tuple[tuple[str, Callable[[Any], Estimate]], ...] = (
        ("first hit is the paraphrase", lambda part: part.paraphrase_first),
        ("first hit is the negation", lambda part: part.negation_first),
        ("paraphrase among the first three", lambda part: part.recall),
    )
    rows = [(name, *(_rate(get(part)) for part in parts.values())) for name, get in measures]
    return ReportTable(
        title="Search among near-identical negations",
        caption=f"{len(first.queries)} queries; {first.corpus} texts: the sentences, their paraphrases and negations.",
        head=("", *_labels(parts)),
        rows=tuple(rows),
    )


def _triplets(models: Models) -> ReportTable | None:
    rows = triplet_rows(models)
    if not rows:
        return None
    return ReportTable(
        title="Paraphrase or contradiction: written triplets",
        caption="How often the paraphrase (or the passage that answers a query) is nearer than the contradiction "
        "in nearly the same words; a tie does not count. The grade is the distance of the paraphrase in wording. A "
        "negated antonym (“isn't cold” for “is hot”) must be nearer than the negation and the antonym.",
        head=("set", "triplets", *_labels(_having(models, "triplets"))),
        rows=tuple(rows),
    )


def triplet_rows(models: Models, columns: Sequence[str] | None = None) -> list[tuple[str, ...]]:
    """Return the accuracy on each set of triplets and its groups: a label, the count, and a cell for each model.

    Args:
        models: Scores by label.
        columns: Grouping columns with rows of their own; None for all.
    """
    parts = _having(models, "triplets")
    rows: list[tuple[str, ...]] = []
    for i, each in enumerate(next(iter(parts.values()), ())):
        same = [part[i] for part in parts.values()]
        rows.append((shown(each.name, 40), str(each.accuracy.rows), *(_rate(result.accuracy) for result in same)))
        for j, group in enumerate(each.groups):
            if columns is None or group.column in columns:
                label = shown(f"{each.name}, {group.column}: {group.value}", 60)
                cells = (_rate(result.groups[j].accuracy) for result in same)
                rows.append((label, str(group.accuracy.rows), *cells))
    return rows


def _suppression(models: Models) -> ReportTable | None:
    parts = _having(models, "suppression")
    if not parts:
        return None
    rows: list[tuple[str, ...]] = [("pairs", *(str(p.cosine.rows) for p in parts.values()))]
    rows.append(("mean cosine", *(_with_interval(p.cosine) for p in parts.values())))
    rows.append(("standard deviation", *(number(p.deviation) for p in parts.values())))
    rows.append(
        ("25 %, 50 %, 75 %", *(", ".join(number(q, 2) for q in p.quartiles) or "undefined" for p in parts.values()))
    )
    left = next(iter(parts.values())).left_out
    return ReportTable(
        title="Feature suppression: same meaning, different words",
        caption="Cosines of pairs with a human score of at least 4 (of 5) and a lexical overlap below 0.6 (SAN, Figure "
        "4); each distinct pair once. High and steady is good."
        + (f" Left out, not on a 0 to 5 scale: {', '.join(shown(name, 40) for name in left)}." if left else ""),
        head=("", *_labels(parts)),
        rows=tuple(rows),
    )


def _length(models: Models) -> ReportTable | None:
    parts = _having(models, "length")
    if not parts:
        return None
    first = next(iter(parts.values()))
    head = [f"{label} {what}" for what in ("length", "wording") for label in _labels(parts)]
    rows = [
        (shown(name, 40), *(number(part.by_set[name][side]) for side in (0, 1) for part in parts.values()))
        for name in first.by_set
    ]
    rows.append(
        (
            "weighted average",
            *(number(part.length) for part in parts.values()),
            *(number(part.wording) for part in parts.values()),
        )
    )
    return ReportTable(
        title="Bias that human scores do not explain",
        caption="Partial rank correlation of cosine with the relative difference of length (in words), and with the "
        "match error rate, given the human score. 0 means no bias; below 0 the model scores pairs that differ in "
        "length or in words lower than people do.",
        head=("set", *head),
        rows=tuple(rows),
        strong=1,
    )


def _training(models: Models) -> ReportTable | None:
    parts = _having(models, "training_pairs")
    if not parts:
        return None
    first = next(iter(parts.values()))
    rows = [
        (
            shown(kind.column, 40),
            kind.role,
            f"{kind.cosine.rows:,}",
            number(kind.overlap, 2),
            *(number(p[i].cosine, 2) for p in parts.values()),
        )
        for i, kind in enumerate(first)
    ]
    return ReportTable(
        title="Training pairs",
        caption="Mean lexical overlap (shared words over the longer length) and mean cosine. Published overlap of "
        "positives and negatives: supervised NLI 0.38 and 0.28, SimCSE 1.0 and 0.09, DebCSE 0.56 and 0.21 (DebCSE "
        "Tables 1 and 4).",
        head=("column", "role", "pairs", "overlap", *(f"{label} cosine" for label in _labels(parts))),
        rows=tuple(rows),
    )


def _labels(parts: Mapping[str, Any]) -> list[str]:
    return [shown(name, 40) for name in parts]


def _with_interval(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined: {estimate.undefined}"
    return f"{number(estimate)} ({interval(estimate)})"


def _rate(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined: {estimate.undefined}"
    return f"{percent(estimate)} ({interval(estimate, 0, 100)})"
