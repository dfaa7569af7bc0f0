"""The tables of a probe report: every number of the figures, with the models side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from opencse.commands.reports.text import shown
from opencse.evaluation import STS_TASKS
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.published import SPLITS, WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED
from opencse.foundation.result_table import Cell, Number, Table

Models = Mapping[str, ProbeScores]
Row = tuple[Cell, ...]


def tables(models: Models) -> list[Table]:
    """Return the tables for which there is data."""
    made = {
        "sts": (_sts, _subsets),
        "splits": (_published_splits,),
        "own_splits": (_own_splits,),
        "transformations": (_kinds,),
        "retrieval": (_search,),
        "triplets": (_triplets,),
        "suppression": (_suppression,),
        "length": (_length,),
        "training_pairs": (_training,),
    }
    having = {part: {name: found for name, each in models.items() if (found := getattr(each, part))} for part in made}
    found = [make(parts) for part, parts in having.items() if parts for make in made[part]]
    return [table for table in found if table.rows]


def _sts(parts: Mapping[str, Any]) -> Table:
    rows: list[Row] = [
        (shown(tasks[0].task, 40), tasks[0].rows, *(Number(task.score) for task in tasks))
        for tasks in zip(*parts.values(), strict=True)
    ]
    known = [[task.score for task in part if task.task in STS_TASKS] for part in parts.values()]
    averaged = len(known[0]) > 1
    if averaged:
        rows.append(("average of the STS tasks", "", *(Number(None if None in s else fmean(s)) for s in known)))
    return Table(
        ("set", "pairs", *_labels(parts)),
        rows,
        "Agreement with people, whole sets",
        ["Spearman × 100 over all pairs of a set: the figures of opencse evaluate."],
        totals=int(averaged),
    )


def _subsets(parts: Mapping[str, Any]) -> Table:
    first: Sequence[Any] = next(iter(parts.values()))
    rows: list[Row] = []
    for i, task in enumerate(first):
        kinds = task.details.get("subsets", {})
        for kind, values in sorted(kinds.items(), key=lambda item: -item[1]["gold_mean"]):
            cosines = (Number(part[i].details["subsets"][kind]["cosine_mean"]) for part in parts.values())
            row = (shown(task.task, 40), shown(kind, 40), values["rows"], Number(values["gold_mean"], 1), *cosines)
            rows.append(row)
    return Table(
        ("set", "kind of pair", "pairs", "human score", *_labels(parts)),
        rows,
        "Kinds of scored pairs",
        ["Mean human score, and mean cosine of each model."],
    )


def _published_splits(parts: Mapping[str, Any]) -> Table:
    published = [SPLITS[each.name].unsupervised if each.name in SPLITS else () for each in _first(parts).sets]
    return _splits(
        parts,
        "",
        " SimCSE: unsupervised BERT-base as published (OssCSE Tables 3 and 6; supervised SimCSE averages "
        f"{WEIGHTED_SUPERVISED[0]:.3f} and {WEIGHTED_SUPERVISED[1]:.3f}), over all sixteen sets.",
        [*published, WEIGHTED_UNSUPERVISED],
    )


def _own_splits(parts: Mapping[str, Any]) -> Table:
    return _splits(parts, ": your pairs", "", [])


def _splits(parts: Mapping[str, Any], title: str, note: str, published: Sequence[Sequence[float]]) -> Table:
    first = _first(parts)
    rows: list[Row] = []
    each_part = [(*part.sets, *part.averages) for part in parts.values()]
    for i, each in enumerate((*first.sets, *first.averages)):
        pairs = f"{each.consistent.rows:,} + {each.opposed.rows:,}"
        head: Row = (f"average: {each.name}", pairs, "", "")
        if i < len(first.sets):
            name = shown(each.name, 40) + ("" if each.balanced else " *")
            head = (name, pairs, Number(each.median_score), Number(each.median_error_rate, 3))
        scores = [Number(getattr(p[i], side).value, 3) for side in ("consistent", "opposed") for p in each_part]
        simcse = published[i] if i < len(published) else ()
        beside = [Number(value, 3) for value in simcse] or ["", ""]
        rows.append((*head, *scores, *(beside if published else ())))
    sides = [f"{label} {side}" for side in ("Cont.", "Oppn.") for label in _labels(parts)]
    simcse_heads = ["SimCSE Cont.", "SimCSE Oppn."] if published else []
    starred = not all(each.balanced for each in first.sets)
    return Table(
        ("set", "pairs", "median score", "median MER", *sides, *simcse_heads),
        rows,
        f"Where wording agrees with meaning, and where it misleads{title}",
        [
            "Spearman with human scores. Cont.: score above the set's median and match error rate below, or the "
            "reverse; Oppn.: all other pairs. Averages are weighted by pairs."
            + (" *: median score outside 2 to 3.5, OssCSE's range." if starred else "")
            + note
        ],
        totals=len(first.averages),
    )


def _kinds(parts: Mapping[str, Any]) -> Table:
    rows: list[Row] = [
        (
            kind.kind,
            kind.cosine.rows,
            Number(kind.error_rate),
            *(part.kinds[i].cosine.number() for part in parts.values()),
        )
        for i, kind in enumerate(_first(parts).kinds)
    ]
    rates = [part.paraphrase_above_negation for part in parts.values()]
    rows.append(("paraphrase above negation", rates[0].rows, "", *(rate.percent() for rate in rates)))
    return Table(
        ("transformation", "sentences", "MER", *_labels(parts)),
        rows,
        "Six transformations of a sentence",
        [
            "Mean cosine with the sentence, 95 % bootstrap interval over sentences. MER: match error rate, the share "
            "of words that changed. Only the negation and the random sentence have another meaning."
        ],
        totals=1,
    )


def _search(parts: Mapping[str, Any]) -> Table:
    first = _first(parts)
    measures = {
        "first hit is the paraphrase": "paraphrase_first",
        "first hit is the negation": "negation_first",
        "paraphrase among the first three": "recall",
    }
    texts = f"{first.corpus:,} texts: the sentences, their paraphrases and negations."
    return Table(
        ("", *_labels(parts)),
        [(name, *(getattr(part, each).percent() for part in parts.values())) for name, each in measures.items()],
        "Search among near-identical negations",
        [f"{len(first.queries):,} queries; {texts}"],
    )


def _triplets(parts: Mapping[str, Any]) -> Table:
    return Table(
        ("set", "triplets", *_labels(parts)),
        list(_triplet_rows(parts)),
        "Paraphrase or contradiction: written triplets",
        [
            "How often the paraphrase (or the passage that answers a query) is nearer than the contradiction in "
            "nearly the same words; a tie does not count. The grade is the distance of the paraphrase in wording. A "
            "negated antonym (“isn't cold” for “is hot”) must be nearer than the negation and the antonym."
        ],
    )


def triplet_rows(models: Models, columns: Sequence[str] | None = None) -> list[Row]:
    """Return the accuracy on each set of triplets and its groups: a label, the count, and a cell for each model.

    Args:
        models: Scores by label.
        columns: Grouping columns with rows of their own; None for all.
    """
    return list(_triplet_rows({name: each.triplets for name, each in models.items() if each.triplets}, columns))


def _triplet_rows(parts: Mapping[str, Any], columns: Sequence[str] | None = None) -> Iterator[Row]:
    for results in zip(*parts.values(), strict=True):
        name = results[0].name
        yield shown(name, 40), results[0].accuracy.rows, *(result.accuracy.percent() for result in results)
        for groups in zip(*(result.groups for result in results), strict=True):
            if columns is None or groups[0].column in columns:
                label = shown(f"{name}, {groups[0].column}: {groups[0].value}", 60)
                yield label, groups[0].accuracy.rows, *(group.accuracy.percent() for group in groups)


def _suppression(parts: Mapping[str, Any]) -> Table:
    found = list(parts.values())
    quartiles = (", ".join(str(Number(q)) for q in part.quartiles) or "undefined" for part in found)
    left = ", ".join(shown(name, 40) for name in found[0].left_out)
    return Table(
        ("", *_labels(parts)),
        [
            ("pairs", *(part.cosine.rows for part in found)),
            ("mean cosine", *(part.cosine.number() for part in found)),
            ("standard deviation", *(Number(part.deviation, 3) for part in found)),
            ("25 %, 50 %, 75 %", *quartiles),
        ],
        "Feature suppression: same meaning, different words",
        [
            "Cosines of pairs with a human score of at least 4 (of 5) and a lexical overlap below 0.6 (SAN, Figure 4); "
            "each distinct pair once. High and steady is good."
            + (f" Left out, not on a 0 to 5 scale: {left}." if left else "")
        ],
    )


def _length(parts: Mapping[str, Any]) -> Table:
    found = list(parts.values())
    rows: list[Row] = [
        (shown(name, 40), *(Number(part.by_set[name][side].value, 3) for side in (0, 1) for part in found))
        for name in found[0].by_set
    ]
    average = [Number(getattr(part, bias).value, 3) for bias in ("length", "wording") for part in found]
    return Table(
        ("set", *(f"{label} {bias}" for bias in ("length", "wording") for label in _labels(parts))),
        [*rows, ("weighted average", *average)],
        "Bias that human scores do not explain",
        [
            "Partial rank correlation of cosine with the relative difference of length (in words), and with the match "
            "error rate, given the human score. 0 means no bias; below 0 the model scores pairs that differ in length "
            "or in words lower than people do."
        ],
        totals=1,
    )


def _training(parts: Mapping[str, Any]) -> Table:
    return Table(
        ("column", "role", "pairs", "overlap", *(f"{label} cosine" for label in _labels(parts))),
        [
            (
                shown(kinds[0].column, 40),
                kinds[0].role,
                kinds[0].cosine.rows,
                Number(kinds[0].overlap.value),
                *(Number(kind.cosine.value) for kind in kinds),
            )
            for kinds in zip(*parts.values(), strict=True)
        ],
        "Training pairs",
        [
            "Mean lexical overlap (shared words over the longer length) and mean cosine. Published overlap of "
            "positives and negatives: supervised NLI 0.38 and 0.28, SimCSE 1.0 and 0.09, DebCSE 0.56 and 0.21 (DebCSE "
            "Tables 1 and 4)."
        ],
    )


def _first(parts: Mapping[str, Any]) -> Any:
    return next(iter(parts.values()))


def _labels(parts: Mapping[str, Any]) -> list[str]:
    return [shown(name, 40) for name in parts]
