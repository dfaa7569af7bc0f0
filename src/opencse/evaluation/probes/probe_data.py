"""The data that models are probed on: scored pairs, and sentences with transformed versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opencse.evaluation import (
    DEVELOPMENT_SETS,
    ScoredPairs,
    TripletSet,
    development_set,
    load_sts,
    read_pairs,
)
from opencse.evaluation.probes.scored_pairs import SPLITS
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.text.corpus import Corpus

KINDS = ("paraphrase", "negation", "deletion", "insertion", "substitution", "random")
"""OssCSE's six transformations. Of these, only the negation says the opposite in nearly the same words."""

_ANCHORS = ("sentence", "text")


@dataclass(frozen=True, kw_only=True)
class ProbeSentences:
    """n sentences and their versions.

    Attributes:
        name: Name of the source.
        anchors: The sentences.
        versions: Transformed sentences by column; None if a row has none.
        total: Rows of the file, of which n were drawn.
    """

    name: str
    anchors: Sequence[str]
    versions: Mapping[str, Sequence[str | None]]
    total: int

    def __len__(self) -> int:
        return len(self.anchors)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The transformations among the versions, in the order of `KINDS`."""
        return tuple(kind for kind in KINDS if kind in self.versions)

    def pairs(self, column: str) -> tuple[np.ndarray, list[str], list[str]]:
        """Return the row numbers that have this version, their sentences, and the versions."""
        cells = self.versions[column]
        rows = [row for row, cell in enumerate(cells) if cell is not None]
        return np.array(rows, dtype=np.int64), [self.anchors[r] for r in rows], [str(cells[r]) for r in rows]


def packaged_sentences() -> Path:
    """Return the path of the sentences that come with the package."""
    return ASSETS / "probe" / "transformations.tsv"


def read_sentences(path: str | Path, *, limit: int = 2000, seed: int = 0) -> ProbeSentences:
    """Read sentences and their versions.

    Args:
        path: Any format of `opencse.text.corpus` that has columns, or a folder of built views. The column `sentence` or
            `text` holds the sentences, and columns named as in `KINDS` their transformations. Without a column
            `random`, another sentence of the file takes its place.
        limit: Maximum number of rows; more are sampled at random.
        seed: Seed of the sampling.

    Raises:
        OpencseError: There is no such file, it has no column of sentences, no version of them, or no usable row.
    """
    path = Path(path)
    corpus = Corpus(path)
    names = corpus.columns
    anchor = next((name for name in _ANCHORS if name in names), None)
    if anchor is None:
        raise OpencseError(f"{path}: no column 'sentence' or 'text' among {', '.join(names) or 'none'}", "Name it so.")
    columns = [name for name in names if name in KINDS]
    if {"substitution.overlap", "substitution.tokens_in"} & {*names}:  # SAN's hard negative, not OssCSE's
        columns.remove("substitution")
    if not columns:
        raise OpencseError(
            f"{path}: no transformed version of the sentences", f"Add at least one of the columns {', '.join(KINDS)}."
        )
    rows = [row for row in corpus.rows((anchor, *columns)) if row[0] is not None]
    if not rows:
        raise OpencseError(f"{path}: holds no sentence", "Give at least one row.")
    total = len(rows)
    if total > limit:
        rows = [rows[i] for i in np.sort(np.random.default_rng(seed).choice(total, limit, replace=False))]
    anchors, *cells = zip(*rows, strict=True)
    versions: dict[str, Sequence[str | None]] = dict(zip(columns, cells, strict=True))
    if "random" not in versions and len(anchors) > 1:
        versions["random"] = _another_row(anchors, seed)
    found = {column: cells for column, cells in versions.items() if any(cell is not None for cell in cells)}
    if not {*columns} & {*found}:
        raise OpencseError(f"{path}: the columns {', '.join(columns)} are empty", "Fill at least one of them.")
    return ProbeSentences(name=path.name, anchors=anchors, versions=found, total=total)


def _another_row(anchors: Sequence[str], seed: int) -> list[str | None]:
    """Return another sentence for each row, like an in-batch negative; None if all others are copies of it."""
    count, words = len(anchors), [anchor.lower().split() for anchor in anchors]
    shifts = np.random.default_rng(seed).integers(1, count, count).tolist()

    def other(row: int, shift: int) -> str | None:
        places = ((row + shift + k) % count for k in range(count))
        return next((anchors[place] for place in places if words[place] != words[row]), None)

    return [other(row, shift) for row, shift in enumerate(shifts)]


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """The data of the probes; a probe without data is skipped.

    Args:
        sts: STS tasks, scored as `evaluate` does.
        split_sets: STS sets that are split into consistent and opposed pairs.
        pairs: The user's scored pairs; split too, but not averaged with the others.
        sentences: Sentences with transformations.
        triplets: Sets of triplets: a text, its paraphrase and its contradiction.
        negated_antonyms: Whether the written negated antonyms are measured (`NegatedAntonymProbe`).
        notes: Remarks on the data for the reader of a report.
    """

    sts: Sequence[ScoredPairs] = ()
    split_sets: Sequence[ScoredPairs] = ()
    pairs: Sequence[ScoredPairs] = ()
    sentences: ProbeSentences | None = None
    triplets: Sequence[TripletSet] = ()
    negated_antonyms: bool = False
    notes: tuple[str, ...] = ()


def load_probe_data(
    *,
    data: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    sentences: str | Path | None = None,
    limit: int = 2000,
) -> ProbeData:
    """Read the data of the probes.

    Args:
        data: Source of the STS tasks, as for `opencse.evaluation.load_sts`; None for none.
        pairs: Files of scored pairs.
        sentences: Sentences with transformations or built views (`opencse.evaluation.probes.read_sentences`); None
            for those that come with the package.
        limit: Maximum number of sentences.

    Raises:
        OpencseError: A file cannot be read; the message names file and line.
    """
    own = read_sentences(packaged_sentences() if sentences is None else sentences, limit=limit)
    drawn = f" of {own.total}, drawn at random." if own.total > len(own) else "."
    notes = [f"Sentences: {'those that come with opencse' if sentences is None else own.name}, {len(own)}{drawn}"]
    sets = ProbeSets(tasks=(), split_sets=(), missing={}) if data is None else load_probe_sts(data)
    if data is None:
        notes.append("No STS data was given (--data), so agreement with people was not measured on them.")
    else:
        notes.append(f"STS text: {sets.tasks[0].text}. Published figures are for senteval, tokenised and lower-cased.")
    notes += [f"Not among the STS sets: {name} ({reason})." for name, reason in sets.missing.items()]
    return ProbeData(
        sts=sets.tasks,
        split_sets=sets.split_sets,
        pairs=[read_pairs(path) for path in pairs],
        sentences=own,
        triplets=[development_set(name) for name in DEVELOPMENT_SETS] if sentences is None else (),
        negated_antonyms=sentences is None,
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True)
class ProbeSets:
    """Sets of scored pairs to probe on: those of OssCSE Table 2, as subsets of the STS tasks.

    Attributes:
        tasks: The seven STS tasks.
        split_sets: The sets of OssCSE Table 2 that the source has: subsets of the tasks, and two parts of STS-B.
        missing: Sets of Table 2 that the source lacks, with the reason.
    """

    tasks: tuple[ScoredPairs, ...]
    split_sets: tuple[ScoredPairs, ...]
    missing: dict[str, str]


def load_probe_sts(source: str | Path) -> ProbeSets:
    """Load the seven STS tasks and the subsets on which surface bias is measured.

    Args:
        source: As for `opencse.evaluation.load_sts`.

    The training part of STS-B, which evaluation does not need, may be absent.

    Raises:
        OpencseError: As `load_sts`.
    """
    tasks = load_sts(source)
    parts = [part for task in tasks for part in by_subset(task)]
    missing = {}
    try:
        train = load_sts(source, tasks=["STS-B"], split="train")[0]
        parts.append(replace(train, name="STS-B train"))
    except OpencseError as error:
        missing["STS-B train"] = error.problem
    parts = [replace(part, name="STS-B test") if part.name == "STS-B" else part for part in parts]
    parts = [part for part in parts if part.name in SPLITS]
    found = {part.name for part in parts}
    missing |= {name: "the source has no such subset" for name in SPLITS if name not in found | missing.keys()}
    return ProbeSets(tasks=tuple(tasks), split_sets=tuple(parts), missing=missing)


def by_subset(pairs: ScoredPairs) -> list[ScoredPairs]:
    """Return one set per subset, in order of first occurrence, or the set itself if it has no subsets."""
    if pairs.subsets is None:
        return [pairs]
    members: dict[str, list[int]] = {}
    for row, subset in enumerate(pairs.subsets):
        members.setdefault(subset, []).append(row)
    return [pairs.subset(f"{pairs.name} {subset}", rows) for subset, rows in members.items()]
