"""All probes in one pass: their data, and models that encode every distinct text once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from opencse.evaluation import (
    Encode,
    ScoredPairs,
    TaskResult,
    TextEmbeddings,
    distinct_texts,
    read_pairs,
)
from opencse.evaluation.bootstrap import PairScores
from opencse.evaluation.estimate import Estimate, mean_estimate
from opencse.evaluation.probes.probes import (
    SPLITS,
    ProbeSentences,
    Retrieval,
    SplitResult,
    Transformations,
    load_probe_sts,
    read_sentences,
    search_versions,
    split_results,
    transformation_cosines,
)
from opencse.evaluation.task import HasTexts, Similarity, Task
from opencse.evaluation.written_sets import TripletSet, load_development, read_triplets
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.foundation.roles import encode_roles
from opencse.text.memory_tables import as_tables


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """The data of the probes; a probe without data is skipped.

    Args:
        sts: STS tasks, scored as `evaluate` does.
        split_sets: STS sets that are split into consistent and opposed pairs.
        pairs: The user's scored pairs, which are split if there are no such sets.
        sentences: Sentences with transformations.
        triplets: Sets of triplets: a text, its paraphrase and its contradiction.
        tasks: The user's own tasks.
        notes: Remarks on the data for the reader of a report.
    """

    sts: Sequence[ScoredPairs] = ()
    split_sets: Sequence[ScoredPairs] = ()
    pairs: Sequence[ScoredPairs] = ()
    sentences: ProbeSentences | None = None
    triplets: Sequence[TripletSet] = ()
    tasks: Sequence[Task] = ()
    notes: tuple[str, ...] = ()


def load_probe_data(
    *,
    data: str | Path | None = None,
    pairs: Sequence[Any] = (),
    sentences: Any = None,
) -> ProbeData:
    """Read the data of the probes.

    Args:
        data: Source of the STS tasks, as for `opencse.evaluation.load_sts`; None for none.
        pairs: Scored pairs, each as for `opencse.evaluation.read_pairs`.
        sentences: Sentences with transformations or built views (`read_sentences`); None
            for those that come with the package.

    Raises:
        OpencseError: A file cannot be read; the message names file and line.
    """
    antonyms = replace(read_triplets(ASSETS / "probe" / "antonyms.tsv"), name="negated antonyms")
    own = read_sentences(sentences)
    source = "those that come with opencse" if sentences is None else own.name
    drawn = f" of {own.total}, drawn at random." if own.total > len(own) else "."
    notes = [f"Sentences: {source}, {len(own)}{drawn}"]
    tasks: list[ScoredPairs] = []
    split_sets: list[ScoredPairs] = []
    if data is None:
        notes.append(
            "No STS data was given (--data), so agreement with people was not measured on them."
        )
    else:
        tasks, split_sets, missing = load_probe_sts(data)
        notes.append(
            f"STS text: {tasks[0].text}. Published numbers are for senteval, tokenised and "
            "lower-cased."
        )
        for name, reason in missing.items():
            notes.append(f"Not among the STS sets: {name} ({reason}).")
    return ProbeData(
        sts=tasks,
        split_sets=split_sets,
        pairs=[read_pairs(given) for given in as_tables(pairs)],
        sentences=own,
        triplets=[*load_development(""), antonyms] if sentences is None else (),
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True)
class ProbeScores:
    """Results of all probes for one model; None or empty if their data was not given.

    Attributes:
        sts: Results of the STS tasks and of the user's scored pairs.
        splits: Correlation on consistent and opposed pairs of STS sets, or else of the user's; last
            their average.
        transformations: Cosines by transformation of a sentence.
        retrieval: Retrieval among paraphrases and negations.
        triplets: Accuracy on each set of triplets (paraphrase against contradiction), and on the
            negated antonyms.
        tasks: Results of the user's own tasks.
        settings: What the scores depend on: weights hash, pooling, …; empty if it was not asked
            for.
        pairs: What `sts` was computed from, by the name of the set, to compare models pair by pair;
            files don't hold it.
    """

    sts: tuple[TaskResult, ...]
    splits: tuple[SplitResult, ...] = ()
    transformations: Transformations | None = None
    retrieval: Retrieval | None = None
    triplets: tuple[TripletResult, ...] = ()
    tasks: tuple[TaskResult, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    pairs: Mapping[str, PairScores] = field(default_factory=dict, repr=False, compare=False)

    def plain(self) -> dict[str, Any]:
        """Return the results as JSON types, without the scores of every pair, which are megabytes."""
        plain = asdict(replace(self, pairs={}))
        del plain["pairs"]
        return plain


def run_probes(
    data: ProbeData, encode: Encode, similarity: Similarity | None = None
) -> ProbeScores:
    """Encode every distinct text once, and run all probes that the data allows on the vectors.

    Args:
        data: What to probe on.
        encode: From n texts to a matrix of shape (n, dim).
        similarity: Similarity by which texts are compared, and the first hits of a search sorted;
            None for the cosine.

    Raises:
        OpencseError: There is nothing to measure, or two sets have one name.
    """
    scored = [*data.sts, *data.pairs]
    names = Counter(task.name for task in [*scored, *data.tasks])
    for name, count in names.items():
        if count > 1:
            raise OpencseError(
                f"two tasks are named {name!r}", "Rename one: results are keyed by name."
            )
    sources: list[HasTexts] = [*scored, *data.split_sets, *data.triplets, *data.tasks]
    if data.sentences is not None:
        sources.append(data.sentences)
    texts = distinct_texts(sources)
    if not texts:
        raise OpencseError(
            "there is nothing to probe", "Give scored pairs, or sentences with transformations."
        )
    embeddings = TextEmbeddings(texts, encode_roles(encode, texts), similarity)

    splits: tuple[SplitResult, ...] = ()
    if data.split_sets:
        average = f"{len(data.split_sets)} of the {len(SPLITS)} sets of OssCSE Table 2"
        splits = split_results(data.split_sets, embeddings, average)
    elif data.pairs:
        splits = split_results(data.pairs, embeddings, "all sets")
    transformations = None
    retrieval = None
    if data.sentences is not None:
        transformations = transformation_cosines(data.sentences, embeddings)
        retrieval = search_versions(data.sentences, embeddings)
    triplets = []
    for triplet_set in data.triplets:
        nearer = triplet_set.margins(embeddings) > 0
        triplets.append(_triplet_result(triplet_set, nearer))
    # Each set gets its own seed, so that the draws of two sets are independent.
    pair_scores = {}
    for seed, pairs in enumerate(scored):
        pair_scores[pairs.name] = PairScores(
            gold=pairs.gold, predicted=pairs.similarities(embeddings), seed=seed
        )
    return ProbeScores(
        sts=tuple(pairs.score(embeddings) for pairs in scored),
        pairs=pair_scores,
        tasks=tuple(task.score(embeddings) for task in data.tasks),
        splits=splits,
        transformations=transformations,
        retrieval=retrieval,
        triplets=tuple(triplets),
    )


def short_names(models: Sequence[str]) -> list[str]:
    """Return the shortest distinct endings of the models' paths; `model` keeps its run in front of it.

    Raises:
        OpencseError: A model is named twice.
    """
    parts = []
    runs = []
    for name in models:
        path = Path(name)
        pieces = path.resolve().parts if os.path.isdir(path) else path.parts
        parts.append(pieces)
        is_model_of_run = pieces[-1:] == ("model",) and len(pieces) > 1
        runs.append(pieces[:-1] if is_model_of_run else pieces)
    for name, pieces in zip(models, runs, strict=True):
        if runs.count(pieces) > 1:
            raise OpencseError(f"the model {name} is named twice", "Name it once.")
    for count in range(1, max(map(len, parts), default=1)):
        ends = [pieces[-count - (pieces[-1:] == ("model",)) :] for pieces in parts]
        short = ["/".join(pieces) for pieces in ends]
        if len(set(short)) == len(short):
            return short
    return ["/".join(pieces) for pieces in parts]


@dataclass(frozen=True, kw_only=True)
class TripletResult:
    """Accuracy on one set of triplets; those of one anchor and positive count as one choice.

    Attributes:
        name: Name of the set.
        accuracy: Share of the choices whose positive is nearer than every negative; a tie is not.
        groups: The same by group, such as `grade: near`, in the order of the file.
        rows_right: For each choice, in order: whether its positive is nearer.
    """

    name: str
    accuracy: Estimate
    groups: dict[str, Estimate]
    rows_right: tuple[bool, ...]


def _triplet_result(data: TripletSet, nearer: np.ndarray) -> TripletResult:
    """Return the accuracy of the choices, given for each triplet whether its positive is nearer."""
    choices: dict[tuple[str, str], list[int]] = {}
    for row, triplet in enumerate(data.triplets):
        choices.setdefault((triplet.anchor, triplet.positive), []).append(row)
    right = np.array([nearer[rows].all() for rows in choices.values()])
    # A choice belongs to the groups of its first triplet.
    firsts = tuple(data.triplets[rows[0]] for rows in choices.values())
    groups = replace(data, triplets=firsts).groups()
    return TripletResult(
        name=data.name,
        accuracy=mean_estimate(right),
        groups={group: mean_estimate(right[rows]) for group, rows in groups.items()},
        rows_right=tuple(right.tolist()),
    )
