"""Sources of retrieval and reranking tasks: STS-B, and the user's folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

from opencse.evaluation.retrieval import RerankingTask, RetrievalTask
from opencse.evaluation.sts_sources import TextVariant, load_sts
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import parse_score, read_table

RETRIEVAL_TASKS = ("STSB-97",)
"""DiffCSE §6.2: each sentence of the 97 pairs with score 5 in STS-B test searches for its pair among all sentences."""

_TOP_SCORE = 5.0


def load_retrieval(source: str | Path, task: str, *, text: TextVariant = "senteval") -> RetrievalTask:
    """Load `STSB-97`, or a folder in BEIR's layout.

    That layout is `<task>/corpus.jsonl` with `_id`, `text` and perhaps `title`; `queries.jsonl` with `_id` and `text`;
    and `qrels/test.tsv` with `query-id`, `corpus-id` and `score` (each file may be compressed: `.gz`). Queries without
    a relevant text are left out.

    Args:
        source: As for `load_sts`, or a folder that contains the folder of the task, or its `eval` folder.
        task: Name of the task.
        text: Text variant of STS-B.

    Raises:
        OpencseError: There is no such task, or a file is invalid.
    """
    if task in RETRIEVAL_TASKS:
        return _top_pairs(source, task, text)
    folder = _folder(source, task)
    corpus = {
        str(row["_id"]): f"{row.get('title') or ''} {row['text']}".strip()
        for _, row in _rows(folder, "corpus.jsonl", "_id", "text")
    }
    queries = {str(row["_id"]): str(row["text"]) for _, row in _rows(folder, "queries.jsonl", "_id", "text")}
    position = {name: index for index, name in enumerate(corpus)}
    relevant: dict[str, dict[int, float]] = {}
    judged = folder / "qrels" / "test.tsv"
    for line, row in _rows(folder, "qrels/test.tsv", "query-id", "corpus-id", "score"):
        query, document, grade = str(row["query-id"]), str(row["corpus-id"]), parse_score(row["score"], judged, line)
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


def load_reranking(source: str | Path, task: str) -> RerankingTask:
    """Load a reranking task from the user's folder.

    It has `<task>/test.jsonl` (or `.jsonl.gz`) with one line for each query:
    `{"query": …, "positive": […], "negative": […]}`, as in `mteb`.

    Args:
        source: The parent of the task's folder, or that of a folder `eval` in between.
        task: Name of the task.

    Raises:
        OpencseError: There is no such task, or a file is invalid.
    """
    folder = _folder(source, task)
    queries, candidates, relevance = [], [], []
    for _, row in _rows(folder, "test.jsonl", "query", "positive", "negative"):
        query, positive, negative = row["query"], row["positive"], row["negative"]
        if not isinstance(query, str) or not _is_texts(positive) or not _is_texts(negative):
            raise OpencseError(
                f"{folder}/test.jsonl: the row of {str(query)[:60]!r} is not a text and two lists of texts",
                "Correct it.",
            )
        queries.append(query)
        candidates.append([*positive, *negative])
        relevance.append([1.0] * len(positive) + [0.0] * len(negative))
    return RerankingTask(name=task, queries=queries, candidates=candidates, relevance=relevance)


def _top_pairs(source: str | Path, task: str, text: TextVariant) -> RetrievalTask:
    (pairs,) = load_sts(source, tasks=["STS-B"], text=text)
    corpus = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    position = {sentence: index for index, sentence in enumerate(corpus)}
    top_pairs = [(a, b) for a, b, score in zip(pairs.sentence1, pairs.sentence2, pairs.scores) if score == _TOP_SCORE]
    searches = [pair for a, b in top_pairs if a != b for pair in ((a, b), (b, a))]
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
    for root in (Path(source), Path(source) / "eval"):
        if (root / name).is_dir():
            return root / name
    if str(source) == "hub":
        raise OpencseError(f"{name} is not read from the hub", "Give a folder.")
    raise OpencseError(f"{source} holds no folder {name}", "Check the task's name and the folder.")


def _rows(folder: Path, name: str, *columns: str) -> list[tuple[int, Mapping[str, object]]]:
    """Return line number and cells of the rows of a file (plain or .gz) with these columns."""
    path = next((path for path in (folder / f"{name}.gz", folder / name) if path.exists()), folder / name)
    rows = []
    for line, row in read_table(path):
        if row and any(row.get(column) is None for column in columns):
            raise OpencseError(f"{path}, line {line}: it lacks one of {', '.join(columns)}", "Correct this row.")
        rows += [(line, row)] if row else []
    if not rows:
        raise OpencseError(f"{path} holds no row", "Give at least one.")
    return rows


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
