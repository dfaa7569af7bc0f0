"""The data that models are probed on, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opencse.evaluation import DEVELOPMENT_SETS, ScoredPairs, TripletSet, development_set, read_pairs
from opencse.evaluation.probes.sentences import ProbeSentences, packaged_sentences, read_sentences
from opencse.evaluation.probes.sets import load_probe_sts
from opencse.evaluation.sts_sources import TextVariant


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """The data of the probes; a probe without data is skipped.

    Args:
        sts: STS tasks, scored as `evaluate` does.
        split_sets: STS sets that are split into consistent and opposed pairs.
        pairs: The user's scored pairs; split too, but not averaged with the others.
        sentences: Sentences with transformations.
        views: Training views; the same as `sentences` or others.
        triplets: Sets of triplets: a text, its paraphrase and its contradiction.
        negated_antonyms: Whether the written negated antonyms are measured (`NegatedAntonymProbe`).
        notes: Remarks on the data for the reader of a report.
    """

    sts: Sequence[ScoredPairs] = ()
    split_sets: Sequence[ScoredPairs] = ()
    pairs: Sequence[ScoredPairs] = ()
    sentences: ProbeSentences | None = None
    views: ProbeSentences | None = None
    triplets: Sequence[TripletSet] = ()
    negated_antonyms: bool = False
    notes: tuple[str, ...] = ()


def load_probe_data(
    *,
    data: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    sentences: str | Path | None = None,
    text: TextVariant = "senteval",
    limit: int = 2000,
) -> ProbeData:
    """Read the data of the probes.

    Args:
        data: Source of the STS tasks, as for `opencse.evaluation.load_sts`; None for none.
        pairs: Files of scored pairs.
        sentences: Sentences with transformations or built views (`opencse.evaluation.probes.read_sentences`); None
            for those that come with the package.
        text: Text variant of the STS tasks.
        limit: Maximum number of sentences.

    Raises:
        OpencseError: A file cannot be read; the message names file and line.
    """
    notes = []
    own = read_sentences(packaged_sentences() if sentences is None else sentences, limit=limit)
    notes.append(
        f"Sentences: {'those that come with opencse' if sentences is None else own.name}, {len(own)}"
        + (f" of {own.total}, drawn at random." if own.total > len(own) else ".")
    )
    sets = None if data is None else load_probe_sts(data, text=text)
    if sets is None:
        notes.append("No STS data was given (--data), so agreement with people was not measured on them.")
    else:
        notes.append(f"STS text: {sets.tasks[0].text}. Published figures are for senteval, tokenised and lower-cased.")
        notes += [f"Not among the STS sets: {name} ({reason})." for name, reason in sets.missing.items()]
    return ProbeData(
        sts=() if sets is None else sets.tasks,
        split_sets=() if sets is None else sets.split_sets,
        pairs=[read_pairs(path) for path in pairs],
        sentences=own,
        views=None if sentences is None else own,
        triplets=[development_set(name) for name in DEVELOPMENT_SETS] if sentences is None else (),
        negated_antonyms=sentences is None,
        notes=tuple(notes),
    )
