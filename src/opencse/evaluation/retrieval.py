"""Search with cosine similarity: retrieval, reranking, neighbours of one topic, kept hits; and their sources.

The metrics of a query follow trec_eval's definitions, from the ranks of the relevant items. In
them, ties are ordered against the model, the less relevant first, so that constant scores do not
profit from the order of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.evaluation.sts import ROUNDING, load_sts
from opencse.evaluation.task import (
    Similarity,
    TaskResult,
    TextEmbeddings,
    TextVariant,
    complete_rows,
    find_file,
    find_folder,
    rows_sha256,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.roles import as_documents, as_queries
from opencse.foundation.tables import parse_score


def measures(scores: np.ndarray, relevance: np.ndarray) -> dict[str, float]:
    """Return the measures of one query, in [0, 1]; trec_eval's names are in brackets.

    `map` and `map@10` (`map`, `map_cut_10`): average precision, whose mean over queries is MAP.
    `mrr` (`recip_rank`) and `mrr@10`: 1 / rank of the first relevant item. `recall@k` (`recall_k`):
    share of the relevant items among the first k. `ndcg@10` (`ndcg_cut_10`): normalised discounted
    cumulative gain, with linear gain.

    Args:
        scores: Scores (n,), higher is better.
        relevance: Grades (n,), at least one above 0; those items are relevant.
    """
    scores = np.asarray(scores)
    relevance = np.asarray(relevance, dtype=np.float64)
    relevant = np.flatnonzero(relevance > 0)
    # By descending score; of ties, the less relevant item first.
    relevant = relevant[np.lexsort((relevance[relevant], -scores[relevant]))]
    grades = relevance[relevant]
    # A tied irrelevant item ranks above a relevant one.
    others = np.sort(scores[relevance <= 0])
    above = len(others) - np.searchsorted(others, scores[relevant], side="left")
    ranks = above + np.arange(1, len(relevant) + 1)
    first_ten = ranks <= 10
    precision = np.arange(1, len(ranks) + 1) / ranks
    reciprocal = 1 / ranks[0]
    gain = (grades[first_ten] / np.log2(ranks[first_ten] + 1)).sum()
    best = -np.sort(-grades)[:10]
    best_gain = (best / np.log2(np.arange(2, len(best) + 2))).sum()
    values = {
        "ndcg@10": gain / best_gain,
        "map": precision.mean(),
        "mrr": reciprocal,
        "map@10": (precision * first_ten).mean(),
        "mrr@10": reciprocal if first_ten[0] else 0.0,
    }
    for k in (1, 5, 10):
        values[f"recall@{k}"] = (ranks <= k).mean()
    return {name: float(value) for name, value in values.items()}


# Queries at a time, which bounds the memory of the similarities.
_BLOCK = 256
_TOP = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class RetrievalTask:
    """Retrieval: each query ranks a corpus by similarity; or reranking: each ranks a few texts of it.

    Metrics, in percent, means over queries: `ndcg@10`, `map`, `mrr`, `map@10`, `mrr@10`,
    `recall@1`, `@5`, `@10`.

    Args:
        name: Name of the data set.
        queries: The query texts.
        corpus: The texts to search.
        relevant: For each query, grades (above 0) by position in the corpus.
        candidates: For each query, the positions of the texts that it ranks; None for all.
        others_only: Whether a text that equals the query is left out of its ranking.
        main: Main metric of the task.
        text: Text variant, as in `ScoredPairs`.

    Raises:
        OpencseError: There is no query, or a query has no relevant text.
    """

    name: str
    queries: Sequence[str]
    corpus: Sequence[str]
    relevant: Sequence[Mapping[int, float]]
    candidates: Sequence[Sequence[int]] | None = None
    others_only: bool = False
    main: str = "ndcg@10"
    text: str = "given"

    def __post_init__(self) -> None:
        if not self.queries:
            raise OpencseError(f"{self.name} holds no query", "Give at least one.")
        for query, grades in zip(self.queries, self.relevant, strict=True):
            if not any(grade > 0 for grade in grades.values()):
                problem = f"{self.name}: nothing is relevant to {query[:60]!r}"
                raise OpencseError(problem, "Drop the query, or judge its texts.")
        if self.others_only and len(set(self.corpus)) < len(self.corpus):
            raise OpencseError(
                f"{self.name}: a text occurs twice in the corpus", "Keep one of them."
            )

    def texts(self) -> Iterator[str]:
        """Yield queries and corpus."""
        yield from as_queries(self.queries)
        yield from as_documents(self.corpus)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Search with every query, and return the metrics.

        They are undefined if the model gives all texts the same score.
        """
        measured = []
        spread = 0.0
        for cosine, relevance in self._ranked(embeddings):
            spread = max(spread, float(np.ptp(cosine)))
            measured.append(measures(cosine, relevance))
        metrics: dict[str, float | None] = {}
        undefined = {}
        for key in measured[0]:
            metrics[key] = 100 * float(np.mean([values[key] for values in measured]))
            if spread <= ROUNDING:
                metrics[key] = None
                undefined[key] = "the model gives all texts the same score"
        judged = [sorted(grades.items()) for grades in self.relevant]
        data: list[object] = list(zip(self.queries, judged, strict=True))
        data += self.corpus
        for places in self.candidates or ():
            data.append(list(places))
        return TaskResult(
            task=self.name,
            main=self.main,
            metrics=metrics,
            rows=len(measured),
            data_sha256=rows_sha256(data, end="\n"),
            undefined=undefined,
            details={"text": self.text, "corpus": len(self.corpus)},
        )

    def _ranked(self, embeddings: TextEmbeddings) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield similarities and grades of the texts that each query ranks."""
        position = {text: index for index, text in enumerate(self.corpus)}
        for start in range(0, len(self.queries), _BLOCK):
            block = self.queries[start : start + _BLOCK]
            compared = embeddings.compared(as_queries(block), as_documents(self.corpus))
            for number, cosine in enumerate(compared, start):
                grades = self.relevant[number]
                relevance = np.zeros(len(self.corpus))
                relevance[list(grades)] = list(grades.values())
                if self.candidates is not None:
                    places = list(self.candidates[number])
                    yield cosine[places], relevance[places]
                    continue
                query = self.queries[number]
                own = []
                if self.others_only and query in position:
                    own.append(position[query])
                yield np.delete(cosine, own), np.delete(relevance, own)


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourTask:
    """`precision@10` in percent: how many of the ten nearest other texts have the text's label.

    Args:
        name: Name of the data set.
        items: n distinct texts.
        labels: Their n labels.

    Raises:
        OpencseError: A text occurs twice, or there are no more than ten texts.
    """

    name: str
    items: Sequence[str]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise OpencseError(f"{self.name}: a text occurs twice", "Keep one of them.")
        if len(self.items) <= _TOP:
            raise OpencseError(
                f"{self.name}: {len(self.items)} texts for {_TOP} neighbours", "Give more texts."
            )

    def texts(self) -> Iterator[str]:
        """Yield the texts."""
        yield from self.items

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Compare the labels of every text and of its neighbours."""
        names, labels = np.unique(np.array(self.labels), return_inverse=True)
        unit = embeddings.sides(self.items)
        nearest, _ = search(unit, unit, _TOP, np.arange(len(unit)), embeddings.similarity)
        own = labels[nearest] == labels[:, None]
        return TaskResult(
            task=self.name,
            main=f"precision@{_TOP}",
            metrics={f"precision@{_TOP}": 100 * float(own.mean())},
            rows=len(labels),
            data_sha256=rows_sha256([[list(self.items), list(self.labels), _TOP]]),
            details={"text": "given", "labels": len(names)},
        )


class KeptHitsTask:
    """Searches whose first hit by an untouched model stays among the first hits of a changed one.

    It needs no labels.

    The first model that is scored is the untouched one; it scores 100. Metrics of the others, in
    percent: `kept@10` (the main one) and `kept@1`, the shares of the searches whose first hit by
    the untouched model is one of the ten nearest texts by cosine, and the nearest. Ten, because a
    contradiction that was found first should move down.

    Args:
        name: Name of the task.
        queries: q distinct searches.
        documents: n distinct texts that are searched.

    Raises:
        OpencseError: There is no search, or there are no more than ten texts.
    """

    def __init__(self, name: str, queries: Sequence[str], documents: Sequence[str]) -> None:
        if not queries:
            raise OpencseError(f"{name}: no search", "Give at least one, one per line.")
        if len(documents) <= _TOP:
            raise OpencseError(
                f"{name}: {len(documents)} texts to search", f"Give more than {_TOP}."
            )
        self.name = name
        self._queries = queries
        self._documents = documents
        self._first: np.ndarray | None = None

    def texts(self) -> Iterator[str]:
        """Yield searches and documents."""
        yield from as_queries(self._queries)
        yield from as_documents(self._documents)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Search with every query; cost is O(q n d)."""
        documents = embeddings.sides(as_documents(self._documents))
        queries = embeddings.sides(as_queries(self._queries))
        hits, _ = search(queries, documents, _TOP, similarity=embeddings.similarity)
        if self._first is None:
            self._first = hits[:, 0]
        same = hits == self._first[:, None]
        return TaskResult(
            task=self.name,
            main=f"kept@{_TOP}",
            metrics={
                f"kept@{_TOP}": 100 * float(same.any(axis=1).mean()),
                "kept@1": 100 * float(same[:, 0].mean()),
            },
            rows=len(same),
            data_sha256=rows_sha256([[list(self._queries), list(self._documents)]]),
            details={"text": "given", "corpus": len(self._documents)},
        )


def search(
    queries: np.ndarray,
    index: np.ndarray,
    k: int,
    own: np.ndarray | None = None,
    similarity: Similarity | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest unit vectors of each query in descending order; of ties, the first.

    Args:
        queries: Unit vectors (q, d).
        index: The unit vectors to search, (n, d).
        k: Number of hits.
        own: The row of the index that each query doesn't find, (q,).
        similarity: Similarity by which vectors are compared; None for the cosine.

    Returns:
        Row numbers (q, k) and their cosines, or similarities, (q, k).
    """
    rows = []
    cosines = []
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        if similarity is None:
            similarities = block @ index.T
        else:
            similarities = np.asarray(similarity(block, index))
        if own is not None:
            similarities[np.arange(len(similarities)), own[start : start + _BLOCK]] = -np.inf
        nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        rows.append(nearest)
        cosines.append(np.take_along_axis(similarities, nearest, axis=1))
    return np.concatenate(rows), np.concatenate(cosines)


RETRIEVAL_TASKS = ("STSB-97",)
"""DiffCSE §6.2: the sentences of the 97 pairs of STS-B test with score 5 search for each other."""

_TOP_SCORE = 5.0


def load_retrieval(
    source: str | Path, task: str, *, text: TextVariant = "senteval"
) -> RetrievalTask:
    """Load `STSB-97`, or a folder in BEIR's layout.

    That layout is `<task>/corpus.jsonl` with `_id`, `text` and perhaps `title`; `queries.jsonl`
    with `_id` and `text`; and `qrels/test.tsv` with `query-id`, `corpus-id` and `score` (each file
    may be compressed: `.gz`). Queries without a relevant text are left out.

    Args:
        source: As for `load_sts`, or a folder that contains the folder of the task, or its `eval`
            folder.
        task: Name of the task.
        text: Text variant of STS-B.

    Raises:
        OpencseError: There is no such task, or a file is invalid.
    """
    if task in RETRIEVAL_TASKS:
        return _top_pairs(source, task, text)
    folder = _folder(source, task)
    corpus = {}
    for _, row in complete_rows(_file(folder, "corpus.jsonl"), "text", others=["_id"]):
        title = row.get("title") or ""
        corpus[str(row["_id"])] = f"{title} {row['text']}".strip()
    query_rows = complete_rows(_file(folder, "queries.jsonl"), "text", others=["_id"])
    queries = {str(row["_id"]): row["text"] for _, row in query_rows}
    position = {name: index for index, name in enumerate(corpus)}
    relevant: dict[str, dict[int, float]] = {}
    judged = _file(folder / "qrels", "test.tsv")
    for line, row in complete_rows(judged, others=["query-id", "corpus-id", "score"]):
        query = str(row["query-id"])
        document = str(row["corpus-id"])
        grade = parse_score(row["score"], judged, line)
        if query not in queries or document not in position:
            missing = query if query not in queries else document
            raise OpencseError(f"{judged}: there is no text {missing!r}", "Correct the judgements.")
        if grade > 0:
            relevant.setdefault(query, {})[position[document]] = grade
    return RetrievalTask(
        name=task,
        queries=[queries[query] for query in relevant],
        corpus=list(corpus.values()),
        relevant=list(relevant.values()),
    )


def load_reranking(source: str | Path, task: str) -> RetrievalTask:
    """Load a reranking task from the user's folder.

    It has `<task>/test.jsonl` (or `.jsonl.gz`) with one line for each query:
    `{"query": …, "positive": […], "negative": […]}`, as in `mteb`.

    Args:
        source: The parent of the task's folder, or that of a folder `eval` in between.
        task: Name of the task.

    Raises:
        OpencseError: There is no such task, or a file is invalid.
    """
    file = _file(_folder(source, task), "test.jsonl")
    rows = [row for _, row in complete_rows(file, "query", others=["positive", "negative"])]
    for row in rows:
        if not (_is_texts(row["positive"]) and _is_texts(row["negative"])):
            raise OpencseError(
                f"{file}: the row of {row['query'][:60]!r} has not two lists of texts",
                "Correct it.",
            )
    corpus: list[str] = []
    relevant = []
    candidates = []
    for row in rows:
        start = len(corpus)
        corpus += row["positive"]
        relevant.append(dict.fromkeys(range(start, len(corpus)), 1.0))
        corpus += row["negative"]
        candidates.append(range(start, len(corpus)))
    return RetrievalTask(
        name=task,
        queries=[row["query"] for row in rows],
        corpus=corpus,
        relevant=relevant,
        candidates=candidates,
        main="map",
    )


def _top_pairs(source: str | Path, task: str, text: TextVariant) -> RetrievalTask:
    (pairs,) = load_sts(source, tasks=["STS-B"], text=text)
    corpus = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    position = {sentence: index for index, sentence in enumerate(corpus)}
    searches = []
    for a, b, score in zip(pairs.sentence1, pairs.sentence2, pairs.scores, strict=True):
        if score == _TOP_SCORE and a != b:
            searches.append((a, b))
            searches.append((b, a))
    return RetrievalTask(
        name=task,
        queries=[query for query, _ in searches],
        corpus=corpus,
        relevant=[{position[target]: 1.0} for _, target in searches],
        others_only=True,
        main="recall@1",
        text=pairs.text,
    )


def _folder(source: str | Path, name: str) -> Path:
    folder = find_folder(source, name)
    if folder is None:
        raise OpencseError(
            f"{source} holds no folder {name}", "Check the task's name and the folder."
        )
    return folder
    return folder


def _file(folder: Path, name: str) -> Path:
    return find_file(folder, name) or folder / name


def _is_texts(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(text, str) for text in value)
