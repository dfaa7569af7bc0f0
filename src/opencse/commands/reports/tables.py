"""Headline figures and tables of a probe report, the models side by side, and user text made safe to display."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from opencse.evaluation import STS_TASKS
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.probe_suite import TripletResult
from opencse.evaluation.probes.scored_pairs import WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED
from opencse.foundation.result_table import Cell, Number, Table

Row = tuple[Cell, ...]
_SIDES = ("consistent", "opposed")


def headline_rows(models: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the headline figures for which there is data, with a cell for each model."""
    columns = [dict(_headlines(each)) for each in models.values()]
    return [[title, *(column[title] for column in columns)] for title in columns[0]]


def _headlines(found: ProbeScores) -> Iterator[tuple[str, Number]]:
    if found.transformations is not None:
        yield "Paraphrase above negation", found.transformations.paraphrase_above_negation.percent()
    if found.retrieval is not None:
        yield "Search finds the negation first", found.retrieval.negation_first.percent()
    if found.splits is not None:
        yield "Agreement where wording misleads", found.splits.average.opposed.number()
        yield "Agreement where wording helps", found.splits.average.consistent.number()


def tables(models: Mapping[str, ProbeScores]) -> list[Table]:
    """Return the tables for which there is data."""
    found = []
    for name, make in _MAKERS.items():
        parts = {shown(label, 40): part for label, scores in models.items() if (part := getattr(scores, name))}
        if parts and (table := make([*parts], [*parts.values()])).rows:
            found.append(table)
    return found


def triplet_rows(parts: Sequence[Sequence[TripletResult]], columns: Sequence[str] | None = None) -> list[Row]:
    """Return the accuracy on each set of triplets and its groups: a label, the count, and a cell for each model.

    Args:
        parts: The results of each model, on the same sets.
        columns: Grouping columns with rows of their own; None for all.
    """
    rows: list[Row] = []
    for sets in zip(*parts, strict=True):
        name = sets[0].name
        rows.append((shown(name, 40), sets[0].accuracy.rows, *(each.accuracy.percent() for each in sets)))
        for group in sets[0].groups:
            if columns is None or group.partition(":")[0] in columns:
                found = [each.groups[group] for each in sets]
                rows.append((shown(f"{name}, {group}", 60), found[0].rows, *(each.percent() for each in found)))
    return rows


def _sts(labels: list[str], parts: list[Any]) -> Table:
    rows: list[Row] = [
        (shown(tasks[0].task, 40), tasks[0].rows, *(Number(task.score) for task in tasks))
        for tasks in zip(*parts, strict=True)
    ]
    known = [[task.score for task in part if task.task in STS_TASKS] for part in parts]
    averaged = len(known[0]) > 1
    if averaged:
        rows.append(("average of the STS tasks", "", *(Number(None if None in s else fmean(s)) for s in known)))
    note = "Spearman × 100 over all pairs of a set: the figures of opencse evaluate."
    return Table(("set", "pairs", *labels), rows, "Agreement with people, whole sets", [note], int(averaged))


def _splits(labels: list[str], parts: list[Any]) -> Table:
    rows: list[Row] = []
    for same in zip(*((*part.sets, part.average) for part in parts), strict=True):
        first, pairs = same[0], f"{same[0].consistent.rows:,} + {same[0].opposed.rows:,}"
        medians: Row = (Number(first.median_score), Number(first.median_error_rate, 3))
        if first.median_score is None:
            medians = ("", "")
        sides = (Number(getattr(each, side).value, 3) for side in _SIDES for each in same)
        rows.append((shown(first.name, 40), pairs, *medians, *sides))
    note = (
        "Spearman with human scores. Cont.: score above the set's median and match error rate below, or the reverse; "
        "Oppn.: all other pairs. The average is weighted by pairs. SimCSE on BERT-base, as published for sixteen sets: "
        f"{_of_simcse(WEIGHTED_UNSUPERVISED)}; supervised {_of_simcse(WEIGHTED_SUPERVISED)} (OssCSE Table 3)."
    )
    heads = (f"{label} {side}" for side in ("Cont.", "Oppn.") for label in labels)
    title = "Where wording agrees with meaning, and where it misleads"
    return Table(("set", "pairs", "median score", "median MER", *heads), rows, title, [note], 1)


def _of_simcse(averages: tuple[float, float]) -> str:
    return "Cont. {:.3f}, Oppn. {:.3f}".format(*averages)


def _transformations(labels: list[str], parts: list[Any]) -> Table:
    rows: list[Row] = [
        (same[0].kind, same[0].cosine.rows, Number(same[0].error_rate), *(kind.cosine.number() for kind in same))
        for same in zip(*(part.kinds for part in parts), strict=True)
    ]
    rates = [part.paraphrase_above_negation for part in parts]
    rows.append(("paraphrase above negation", rates[0].rows, "", *(rate.percent() for rate in rates)))
    note = (
        "Mean cosine with the sentence, 95 % bootstrap interval over sentences. MER: match error rate, the share of "
        "words that changed. Only the negation and the random sentence have another meaning."
    )
    heads = ("transformation", "sentences", "MER", *labels)
    return Table(heads, rows, "Six transformations of a sentence", [note], 1)


def _retrieval(labels: list[str], parts: list[Any]) -> Table:
    rows = [
        ("first hit is the paraphrase", *(part.paraphrase_first.percent() for part in parts)),
        ("first hit is the negation", *(part.negation_first.percent() for part in parts)),
        ("paraphrase among the first three", *(part.recall.percent() for part in parts)),
    ]
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
        ("set", "triplets", *labels), triplet_rows(parts), "Paraphrase or contradiction: written triplets", [note]
    )


_MAKERS: Mapping[str, Callable[[list[str], list[Any]], Table]] = {
    "sts": _sts,
    "splits": _splits,
    "transformations": _transformations,
    "retrieval": _retrieval,
    "triplets": _triplets,
}
"""What makes the table of each part of the scores."""


_JOINERS = "\u200c\u200d"  # some scripts and emoji need these


def shown(text: object, limit: int = 240) -> str:
    """Return a text as a page can show it; the template escapes it.

    Longer texts are cut at `limit` characters, with their length noted. Line breaks and tabs become spaces. Control
    characters, overrides of the reading direction, lone surrogates and the like are spelled out, as ⟨U+202E⟩.

    Args:
        text: Any value.
        limit: Maximum number of characters.
    """
    whole = str(text)
    kept = "".join(map(_visible, whole[:limit]))
    return kept if len(whole) <= limit else f"{kept}… ({len(whole):,} characters)"


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    if character not in _JOINERS and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return f"⟨U+{ord(character):04X}⟩"
    return character
