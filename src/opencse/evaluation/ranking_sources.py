"""Sources of retrieval and reranking tasks: STS-B, and the user's folders."""

from __future__ import annotations

from itertools import accumulate, pairwise, starmap
from pathlib import Path

from opencse.evaluation.data_files import TextVariant, complete_rows, find_file, find_folder
from opencse.evaluation.retrieval import RetrievalTask
from opencse.evaluation.sts_sources import load_sts
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import parse_score

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
        for _, row in complete_rows(_file(folder, "corpus.jsonl"), "text", others=["_id"])
    }
    asked = complete_rows(_file(folder, "queries.jsonl"), "text", others=["_id"])
    queries = {str(row["_id"]): row["text"] for _, row in asked}
    position = {name: index for index, name in enumerate(corpus)}
    relevant: dict[str, dict[int, float]] = {}
    judged = _file(folder / "qrels", "test.tsv")
    for line, row in complete_rows(judged, others=["query-id", "corpus-id", "score"]):
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
    if wrong := next((row for row in rows if not (_is_texts(row["positive"]) and _is_texts(row["negative"]))), None):
        raise OpencseError(f"{file}: the row of {wrong['query'][:60]!r} has not two lists of texts", "Correct it.")
    ends = list(accumulate((len(row["positive"]) + len(row["negative"]) for row in rows), initial=0))
    return RetrievalTask(
        name=task,
        queries=[row["query"] for row in rows],
        corpus=[text for row in rows for text in (*row["positive"], *row["negative"])],
        relevant=[dict.fromkeys(range(i, i + len(row["positive"])), 1.0) for i, row in zip(ends, rows, strict=False)],
        candidates=list(starmap(range, pairwise(ends))),
        main="map",
    )


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
    if (found := find_folder(source, name)) is None:
        problem = f"{name} is not read from the hub" if str(source) == "hub" else f"{source} holds no folder {name}"
        raise OpencseError(problem, "Check the task's name and the folder.")
    return found


def _file(folder: Path, name: str) -> Path:
    return find_file(folder, name) or folder / name


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
