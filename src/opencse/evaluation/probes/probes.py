"""The probes: scored pairs whose wording misleads (OssCSE §3.3), and sentences with versions.

Two measurements compare the versions: their cosines (OssCSE §3.1) and a search among them (DiffCSE
Table 9). Every result on few rows is an estimate with a confidence interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings, load_sts
from opencse.evaluation.bootstrap import RESAMPLES, PairScores, interval
from opencse.evaluation.estimate import Estimate, mean_estimate, weighted
from opencse.evaluation.retrieval import search
from opencse.evaluation.sts import spearman, why_undefined
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows
from opencse.foundation.reading import ASSETS
from opencse.foundation.tables import read_table
from opencse.text.corpus import Corpus
from opencse.text.memory_tables import data_file, data_name
from opencse.text.surface import consistency_opposition, match_error_rate


def _read_splits() -> dict[str, tuple[float, ...]]:
    splits = {}
    for _, row in read_table(ASSETS / "evaluation" / "splits.tsv"):
        numbers = [float(str(cell)) for name, cell in row.items() if name != "set"]
        splits[str(row["set"])] = tuple(numbers)
    return splits


SPLITS = _read_splits()
"""OssCSE Table 2, by data set.

Consistent and opposed pairs, median human score and median match error rate.
"""

WEIGHTED_UNSUPERVISED = (0.8574, 0.4982)

WEIGHTED_SUPERVISED = (0.8891, 0.6152)
"""OssCSE Table 3: average over the sets weighted by their pairs, consistent and opposed."""


def load_probe_sts(
    source: str | Path,
) -> tuple[list[ScoredPairs], list[ScoredPairs], dict[str, str]]:
    """Load the seven STS tasks and the sets of OssCSE Table 2, on which surface bias is measured.

    Args:
        source: As for `opencse.evaluation.load_sts`.

    Returns:
        The tasks; the sets of the table: subsets of the tasks and two parts of STS-B; and why the
        other ones are missing, by name. The training part of STS-B, which evaluation does not need,
        may be absent.

    Raises:
        OpencseError: As `load_sts`.
    """
    tasks = load_sts(source)
    missing: dict[str, str] = {}
    sets = []
    for task in tasks:
        sets += _by_subset(task)
    try:
        (training,) = load_sts(source, tasks=["STS-B"], split="train")
        sets.append(replace(training, name="STS-B train"))
    except OpencseError as error:
        missing["STS-B train"] = error.problem
    listed = {}
    for pairs in sets:
        if pairs.name == "STS-B":
            pairs = replace(pairs, name="STS-B test")
        if pairs.name in SPLITS:
            listed[pairs.name] = pairs
    for name in SPLITS:
        if name not in listed and name not in missing:
            missing[name] = "the source has no such subset"
    return tasks, list(listed.values()), missing


def _by_subset(pairs: ScoredPairs) -> list[ScoredPairs]:
    """Return one set per subset, in order of first occurrence; the set itself if it has none."""
    if pairs.subsets is None:
        return [pairs]
    members: dict[str, list[int]] = {}
    for row, subset in enumerate(pairs.subsets):
        members.setdefault(subset, []).append(row)
    return [pairs.subset(f"{pairs.name} {subset}", rows) for subset, rows in members.items()]


@dataclass(frozen=True)
class SplitResult:
    """Spearman correlation on both parts of one set, or its average over several sets.

    The average is weighted by the numbers of pairs.

    Attributes:
        name: Name of the set, or of the average.
        consistent: On pairs whose wording agrees with their meaning.
        opposed: On pairs where it misleads.
        median_score: Median human score, at which a set was split; None for an average.
        median_error_rate: Median match error rate, at which it was split.
    """

    name: str
    consistent: Estimate
    opposed: Estimate
    median_score: float | None = None
    median_error_rate: float | None = None


def split_results(
    sets: Sequence[ScoredPairs], embeddings: TextEmbeddings, average: str = "all sets"
) -> tuple[SplitResult, ...]:
    """Return the correlations on consistent and opposed pairs of sets, and their average.

    The average comes last (OssCSE Table 3).

    Args:
        sets: The sets.
        embeddings: The vectors of their sentences.
        average: Name of the average over all sets.
    """
    results = []
    draws = []
    for seed, pairs in enumerate(sets):
        cosine = pairs.similarities(embeddings)
        split = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
        sides = []
        for rows in (split.consistent, ~split.consistent):
            sides.append(PairScores(gold=pairs.gold[rows], predicted=cosine[rows], seed=seed))
        consistent, opposed = sides
        draws.append(sides)
        results.append(
            SplitResult(
                name=pairs.name,
                consistent=_correlation(consistent),
                opposed=_correlation(opposed),
                median_score=split.median_score,
                median_error_rate=split.median_error_rate,
            )
        )
    total = SplitResult(
        name=average,
        consistent=_average([result.consistent for result in results], [side for side, _ in draws]),
        opposed=_average([result.opposed for result in results], [side for _, side in draws]),
    )
    return (*results, total)


def _correlation(scores: PairScores) -> Estimate:
    """Return the Spearman correlation of a set with its interval."""
    rows = len(scores.gold)
    reason = why_undefined(scores.gold, scores.predicted)
    if reason is not None:
        return Estimate(value=None, rows=rows, undefined=reason)
    low, high = interval(scores.draws)
    value = spearman(scores.gold, scores.predicted)
    return Estimate(value=value, rows=rows, low=low, high=high)


def _average(estimates: list[Estimate], sets: Sequence[PairScores]) -> Estimate:
    """Return the average of correlations, weighted by their pairs, with its interval."""
    average = weighted(estimates)
    if average.value is None:
        return average
    draws = np.zeros(RESAMPLES)
    for estimate, scores in zip(estimates, sets, strict=True):
        draws += scores.draws * estimate.rows / average.rows
    low, high = interval(draws)
    return replace(average, low=low, high=high)


KINDS = ("paraphrase", "negation", "deletion", "insertion", "substitution", "random")
"""OssCSE's six transformations. Only the negation says the opposite in nearly the same words."""

_ANCHORS = ("sentence", "text")
_NO_ROW = "no sentence has a paraphrase and a negation"
TOP = 3


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

    def texts(self) -> Iterator[str]:
        """Yield the sentences and all versions."""
        yield from self.anchors
        for cells in self.versions.values():
            for text in cells:
                if text is not None:
                    yield text

    @property
    def kinds(self) -> tuple[str, ...]:
        """The transformations among the versions, in the order of `KINDS`."""
        return tuple(kind for kind in KINDS if kind in self.versions)

    def pairs(self, column: str) -> tuple[np.ndarray, list[str], list[str]]:
        """Return the numbers of the rows with this version, their sentences, and the versions."""
        rows = []
        sentences = []
        versions = []
        for row, version in enumerate(self.versions[column]):
            if version is not None:
                rows.append(row)
                sentences.append(self.anchors[row])
                versions.append(version)
        return np.array(rows, dtype=np.int64), sentences, versions


def read_sentences(given: Any = None, *, limit: int = 2000) -> ProbeSentences:
    """Read sentences and their versions.

    Args:
        given: Any format of `opencse.text.corpus` that has columns, a folder of built views, a table
            in memory or a data set (`opencse.text.memory_tables.data_file`). The column `sentence`
            or `text` holds the sentences, and columns named as in `KINDS` their transformations.
            None is the sentences that come with the package.
        limit: Maximum number of rows; more are sampled at random.

    Raises:
        OpencseError: There is no such file, it has no column of sentences, no version of them, or
            no usable row.
    """
    if given is None:
        given = ASSETS / "probe" / "transformations.tsv"
    path = data_file(given)
    corpus = Corpus(path, data_name(given))
    names = corpus.columns
    anchor = next((name for name in _ANCHORS if name in names), None)
    if anchor is None:
        raise OpencseError(
            f"{path}: no column 'sentence' or 'text' among {', '.join(names) or 'none'}",
            "Name it so.",
        )
    columns = [name for name in names if name in KINDS]
    if "substitution.overlap" in names or "substitution.tokens_in" in names:
        # This column is SAN's hard negative, not OssCSE's substitution.
        columns.remove("substitution")
    if not columns:
        raise OpencseError(
            f"{path}: no transformed version of the sentences",
            f"Add at least one of the columns {', '.join(KINDS)}.",
        )
    rows = [row for row in corpus.rows((anchor, *columns)) if row[0] is not None]
    if not rows:
        raise OpencseError(f"{path}: holds no sentence", "Give at least one row.")
    total = len(rows)
    if total > limit:
        chosen = np.random.default_rng(0).choice(total, limit, replace=False)
        rows = [rows[i] for i in np.sort(chosen)]
    anchors, *cells = zip(*rows, strict=True)
    versions = {}
    for column, texts in zip(columns, cells, strict=True):
        if any(cell is not None for cell in texts):
            versions[column] = texts
    if not versions:
        raise OpencseError(
            f"{path}: the columns {', '.join(columns)} are empty", "Fill at least one of them."
        )
    return ProbeSentences(name=corpus.name, anchors=anchors, versions=versions, total=total)


@dataclass(frozen=True, kw_only=True)
class TransformationCosines:
    """Cosines of all sentences with one transformation.

    Attributes:
        kind: Name of the transformation.
        cosine: Mean cosine of sentence and transformation, with a bootstrap interval over
            sentences.
        cosines: Each cosine, in the order of `error_rates`.
        error_rates: Each match error rate, the share of words that changed.
    """

    kind: str
    cosine: Estimate
    cosines: tuple[float, ...]
    error_rates: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Transformations:
    """Mean cosines of one model between sentences and their transformations.

    Attributes:
        kinds: The transformations that the sentences have.
        paraphrase_above_negation: Share of sentences whose paraphrase is closer than their
            negation; a tie does not count as above.
        rows_above: For each sentence with both, in order: whether the paraphrase is above.
    """

    kinds: tuple[TransformationCosines, ...]
    paraphrase_above_negation: Estimate
    rows_above: tuple[bool, ...]


def transformation_cosines(
    sentences: ProbeSentences, embeddings: TextEmbeddings
) -> Transformations:
    """Return the cosines of sentences with their versions, by transformation."""
    pairs = {kind: sentences.pairs(kind) for kind in sentences.kinds}
    cosines = {}
    for kind, (_, first, second) in pairs.items():
        cosines[kind] = embeddings.paired(first, second)
    # Of the sentences that have both a paraphrase and a negation.
    above = np.zeros(0, dtype=bool)
    if {"paraphrase", "negation"} <= cosines.keys():
        _, reworded, negated = np.intersect1d(
            pairs["paraphrase"][0], pairs["negation"][0], return_indices=True
        )
        above = cosines["paraphrase"][reworded] > cosines["negation"][negated]
    kinds = []
    for kind, (_, first, second) in pairs.items():
        rates = match_error_rate(first, second)
        kinds.append(
            TransformationCosines(
                kind=kind,
                cosine=mean_estimate(cosines[kind]),
                cosines=tuple(cosines[kind].round(4).tolist()),
                error_rates=tuple(rates.round(4).tolist()),
            )
        )
    return Transformations(
        kinds=tuple(kinds),
        paraphrase_above_negation=mean_estimate(above, empty=_NO_ROW),
        rows_above=tuple(above.tolist()),
    )


@dataclass(frozen=True)
class RetrievedText:
    """A search result, whose relation to the query is `paraphrase`, `negation` or `other`."""

    text: str
    relation: str
    cosine: float


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Nearest neighbours of each sentence among all sentences, paraphrases and negations.

    Attributes:
        paraphrase_first: Share of queries whose nearest text is their own paraphrase.
        negation_first: Share whose nearest text is their own negation.
        recall: Share whose paraphrase is among the first three (recall at 3).
        corpus: Number of distinct texts searched.
        queries: The queries.
        hits: The three nearest texts of each query, nearest first.
    """

    paraphrase_first: Estimate
    negation_first: Estimate
    recall: Estimate
    corpus: int
    queries: tuple[str, ...]
    hits: tuple[tuple[RetrievedText, ...], ...]


def search_versions(sentences: ProbeSentences, embeddings: TextEmbeddings) -> Retrieval:
    """Search for every sentence with a paraphrase and a negation, among all such texts."""
    rows = _complete_rows(sentences)
    texts = list(dict.fromkeys(text for row in rows for text in row))
    hits = []
    if rows:
        corpus = unit_rows(embeddings(texts), np.float64)
        position = {text: index for index, text in enumerate(texts)}
        own = np.array([position[query] for query, _, _ in rows])
        count = min(TOP, len(corpus) - 1)
        places, cosines = search(corpus[own], corpus, count, own, embeddings.similarity)
        for k, (_, paraphrase, negation) in enumerate(rows):
            relation = {paraphrase: "paraphrase", negation: "negation"}
            nearest = []
            for place, cosine in zip(places[k], cosines[k], strict=True):
                text = texts[place]
                rounded = round(float(cosine), 4)
                nearest.append(RetrievedText(text, relation.get(text, "other"), rounded))
            hits.append(tuple(nearest))
    relations = [[hit.relation for hit in row] for row in hits]
    return Retrieval(
        paraphrase_first=mean_estimate(
            [row[0] == "paraphrase" for row in relations], empty=_NO_ROW
        ),
        negation_first=mean_estimate([row[0] == "negation" for row in relations], empty=_NO_ROW),
        recall=mean_estimate(["paraphrase" in row for row in relations], empty=_NO_ROW),
        corpus=len(texts),
        queries=tuple(query for query, _, _ in rows),
        hits=tuple(hits),
    )


def _complete_rows(sentences: ProbeSentences) -> list[tuple[str, str, str]]:
    """Return sentence, paraphrase and negation of the rows that have all three, all different.

    A sentence that occurs twice is one query.
    """
    none = [None] * len(sentences)
    paraphrases = sentences.versions.get("paraphrase", none)
    negations = sentences.versions.get("negation", none)
    rows = {}
    for texts in zip(sentences.anchors, paraphrases, negations, strict=True):
        sentence, paraphrase, negation = texts
        if sentence and paraphrase and negation and len(set(texts)) == 3:
            rows[sentence] = (sentence, paraphrase, negation)
    return list(rows.values())
