"""Sentences and their versions, and the probes of them: cosines (OssCSE §3.1), retrieval (DiffCSE Table 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.retrieval import search
from opencse.evaluation.sts import paired_cosine
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows
from opencse.foundation.reading import ASSETS
from opencse.text.corpus import Corpus
from opencse.text.surface import match_error_rate

KINDS = ("paraphrase", "negation", "deletion", "insertion", "substitution", "random")
"""OssCSE's six transformations. Of these, only the negation says the opposite in nearly the same words."""

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
        yield from (text for cells in self.versions.values() for text in cells if text is not None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The transformations among the versions, in the order of `KINDS`."""
        return tuple(kind for kind in KINDS if kind in self.versions)

    def pairs(self, column: str) -> tuple[np.ndarray, list[str], list[str]]:
        """Return the row numbers that have this version, their sentences, and the versions."""
        cells = self.versions[column]
        rows = [row for row, cell in enumerate(cells) if cell is not None]
        return np.array(rows, dtype=np.int64), [self.anchors[r] for r in rows], [str(cells[r]) for r in rows]


def read_sentences(path: str | Path | None = None, *, limit: int = 2000) -> ProbeSentences:
    """Read sentences and their versions.

    Args:
        path: Any format of `opencse.text.corpus` that has columns, or a folder of built views. The column `sentence` or
            `text` holds the sentences, and columns named as in `KINDS` their transformations. None is the sentences
            that come with the package.
        limit: Maximum number of rows; more are sampled at random.

    Raises:
        OpencseError: There is no such file, it has no column of sentences, no version of them, or no usable row.
    """
    path = ASSETS / "probe" / "transformations.tsv" if path is None else Path(path)
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
        rows = [rows[i] for i in np.sort(np.random.default_rng(0).choice(total, limit, replace=False))]
    anchors, *cells = zip(*rows, strict=True)
    found = {
        column: each for column, each in zip(columns, cells, strict=True) if any(cell is not None for cell in each)
    }
    if not found:
        raise OpencseError(f"{path}: the columns {', '.join(columns)} are empty", "Fill at least one of them.")
    return ProbeSentences(name=path.name, anchors=anchors, versions=found, total=total)


@dataclass(frozen=True, kw_only=True)
class TransformationCosines:
    """Cosines of all sentences with one transformation.

    Attributes:
        kind: Name of the transformation.
        cosine: Mean cosine of sentence and transformation, with a bootstrap interval over sentences.
        error_rate: Mean match error rate, the share of words that changed.
        cosines: Each cosine, in the order of `error_rates`.
        error_rates: Each match error rate.
    """

    kind: str
    cosine: Estimate
    error_rate: float
    cosines: tuple[float, ...]
    error_rates: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Transformations:
    """Mean cosines of one model between sentences and their transformations.

    Attributes:
        kinds: The transformations that the sentences have.
        paraphrase_above_negation: Share of sentences whose paraphrase is closer than their negation; a tie does not
            count as above.
        rows_above: For each sentence with both, in order: whether the paraphrase is above.
    """

    kinds: tuple[TransformationCosines, ...]
    paraphrase_above_negation: Estimate
    rows_above: tuple[bool, ...]


def transformation_cosines(sentences: ProbeSentences, embeddings: TextEmbeddings) -> Transformations:
    """Return the cosines of sentences with their versions, by transformation."""
    pairs = {kind: sentences.pairs(kind) for kind in sentences.kinds}
    cosines = {kind: paired_cosine(embeddings(first), embeddings(second)) for kind, (_, first, second) in pairs.items()}
    above = np.zeros(0, dtype=bool)  # of sentences that have both
    if {"paraphrase", "negation"} <= cosines.keys():
        _, one, other = np.intersect1d(pairs["paraphrase"][0], pairs["negation"][0], return_indices=True)
        above = cosines["paraphrase"][one] > cosines["negation"][other]
    kinds = []
    for kind, (_, first, second) in pairs.items():
        rates = match_error_rate(first, second)
        kinds.append(
            TransformationCosines(
                kind=kind,
                cosine=mean_estimate(cosines[kind]),
                error_rate=float(rates.mean()),
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
    """Search for each sentence that has a paraphrase and a negation, among all such sentences and both versions."""
    versions = [sentences.versions.get(kind, [None] * len(sentences)) for kind in ("paraphrase", "negation")]
    whole = [row for row in zip(sentences.anchors, *versions, strict=True) if all(row) and len({*row}) == 3]
    rows = list({row[0]: row for row in whole}.values())  # a sentence that occurs twice is one query
    texts = list(dict.fromkeys(text for row in rows for text in row if text))
    hits = []
    if rows:
        corpus, position = unit_rows(embeddings(texts), np.float64), {text: index for index, text in enumerate(texts)}
        own = np.array([position[query] for query, *_ in rows])
        found = search(corpus[own], corpus, min(TOP, len(corpus) - 1), own)
        for (_, paraphrase, negation), places, cosines in zip(rows, *found, strict=True):
            relation = {paraphrase: "paraphrase", negation: "negation"}
            nearest = ((texts[place], round(float(cosine), 4)) for place, cosine in zip(places, cosines, strict=True))
            hits.append(tuple(RetrievedText(text, relation.get(text, "other"), cosine) for text, cosine in nearest))
    relations = [[hit.relation for hit in row] for row in hits]
    return Retrieval(
        paraphrase_first=mean_estimate([row[0] == "paraphrase" for row in relations], empty=_NO_ROW),
        negation_first=mean_estimate([row[0] == "negation" for row in relations], empty=_NO_ROW),
        recall=mean_estimate(["paraphrase" in row for row in relations], empty=_NO_ROW),
        corpus=len(texts),
        queries=tuple(query for query, *_ in rows),
        hits=tuple(hits),
    )
