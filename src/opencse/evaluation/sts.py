"""Semantic textual similarity: scored sentence pairs, and the correlation of their cosines.

By SimCSE's protocol there is one Spearman correlation over all pairs of a task: subsets of STS12–16
are concatenated ("all"), not averaged (Gao et al. 2021, appendix B). The seven tasks are read from
this project's TSV layout or a SentEval folder, and must have the published number of pairs, because
a truncated or differently filtered file is the usual cause of irreproducible STS scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np

from opencse.evaluation.task import (
    PUBLISHED_ROWS,
    SENTEVAL,
    TaskResult,
    TextEmbeddings,
    TextVariant,
    check_count,
    complete_rows,
    find_file,
    find_folder,
    respaced,
    rows_sha256,
    senteval_cells,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LEAST_PAIRS
from opencse.foundation.progress import note
from opencse.foundation.reading import as_items
from opencse.foundation.tables import parse_score, read_lines, table_columns
from opencse.text.corpus import content_hash
from opencse.text.memory_tables import data_file, is_path

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
"""The seven tasks, in the order of the papers' tables."""

ROUNDING = 5e-7
"""Largest rounding difference between the cosines of equal float32 vectors."""

# The data set has its own name for this split.
_FILE = {("SICK-R", "dev"): "trial"}
_FOLDER = {"STS-B": "STSB", "SICK-R": "SICKR"}

_SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredPairs:
    """n sentence pairs with gold similarity scores: an STS task, or any set of scored pairs.

    Metrics (times 100): `spearman` (the main one) and `pearson`, both of cosines and gold scores
    over all pairs; `details` has the Spearman correlation and the mean cosine of each subset.

    Args:
        name: Name of the set, such as `STS12`.
        sentence1: First sentences.
        sentence2: Second sentences.
        scores: Gold scores, on any scale.
        subsets: Subset of each pair, if there are several.
        text: Text variant: `senteval` (tokenised, mostly lower-cased), `raw`, or `given`.

    Raises:
        OpencseError: The columns differ in length, there is no pair, or a score is not finite.
    """

    name: str
    sentence1: Sequence[str]
    sentence2: Sequence[str]
    scores: Sequence[float]
    subsets: Sequence[str] | None = None
    text: str = "given"

    def __post_init__(self) -> None:
        columns = (self.sentence1, self.sentence2, self.scores, self.subsets)
        lengths = {len(column) for column in columns if column is not None}
        if len(lengths) > 1:
            raise OpencseError(
                f"{self.name}: columns of unequal length {sorted(lengths)}",
                "Give one value per pair.",
            )
        if not len(self.scores):
            raise OpencseError(
                f"{self.name} holds no sentence pair", "Give at least two scored pairs."
            )
        for row, value in enumerate(self.scores):
            if not math.isfinite(value):
                raise OpencseError(
                    f"{self.name}: pair {row} has the score {value}",
                    "Drop the pair or give a number.",
                )

    def __len__(self) -> int:
        return len(self.scores)

    def texts(self) -> Iterator[str]:
        """Yield the sentences of all pairs."""
        yield from self.sentence1
        yield from self.sentence2

    def subset(self, name: str, rows: Sequence[int]) -> ScoredPairs:
        """Return the pairs of some rows as a separate set."""
        return ScoredPairs(
            name=name,
            sentence1=[self.sentence1[row] for row in rows],
            sentence2=[self.sentence2[row] for row in rows],
            scores=[self.scores[row] for row in rows],
            text=self.text,
        )

    @property
    def gold(self) -> np.ndarray:
        """Gold scores, float64 (n,)."""
        return np.asarray(self.scores, dtype=np.float64)

    @cached_property
    def sha256(self) -> str:
        """Hash of the rows (sentences and scores) in order."""
        return rows_sha256(
            zip(self.sentence1, self.sentence2, map(float, self.scores), strict=True)
        )

    def similarities(self, embeddings: TextEmbeddings) -> np.ndarray:
        """Return the similarity of each pair, (n,)."""
        return embeddings.paired(self.sentence1, self.sentence2)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the correlations of cosines with gold scores."""
        gold = self.gold
        cosine = self.similarities(embeddings)
        reason = why_undefined(gold, cosine)
        pearson = None if reason else 100 * float(np.corrcoef(gold, cosine)[0, 1])
        metrics = {"spearman": _percent(spearman(gold, cosine)), "pearson": pearson}
        undefined = dict.fromkeys(metrics, reason) if reason else {}
        details: dict[str, Any] = {"text": self.text, "aggregation": "all"}
        subsets = list(dict.fromkeys(self.subsets or ()))
        if len(subsets) > 1:
            details["subsets"] = {}
            for name in subsets:
                rows = np.asarray(self.subsets) == name
                details["subsets"][name] = {
                    "rows": int(rows.sum()),
                    "spearman": _percent(spearman(gold[rows], cosine[rows])),
                    "cosine_mean": float(cosine[rows].mean()),
                }
        return TaskResult(
            task=self.name,
            main="spearman",
            metrics=metrics,
            rows=len(self),
            data_sha256=self.sha256,
            undefined=undefined,
            details=details,
        )


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return the Spearman correlation of two vectors (n,); None if undefined.

    Ties share their mean rank.
    """
    from scipy.stats import rankdata

    if why_undefined(x, y):
        return None
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def why_undefined(gold: np.ndarray, predicted: np.ndarray) -> str | None:
    """Return why a correlation is undefined, or None if it is defined."""
    if len(gold) < 2:
        return f"{len(gold)} pair"
    if np.ptp(gold) == 0:
        return "all gold scores are equal"
    # Otherwise the correlation of a collapsed model would be that of its rounding errors.
    if np.ptp(predicted) <= ROUNDING:
        return "the model gives all pairs the same score"
    return None


def read_pairs(given: Any) -> ScoredPairs:
    """Read scored pairs from a table, named after the file.

    Columns `sentence1`, `sentence2` and `score`, in any order among others; a column `subset` or
    `kind` is kept. CSV is quoted as usual (RFC 4180). **TSV has no quoting**: a quotation mark is a
    character. Blank lines are skipped.

    Args:
        given: A `.csv`, `.tsv`, `.jsonl` (each also `.gz`) or `.parquet` file; `demo` for the pairs
            that come with the package; or a table in memory, or a data set
            (`opencse.text.memory_tables.data_file`).

    Raises:
        OpencseError: A column, a text or a score is missing, a score is not a number, a row has too
            few cells, the file is not valid UTF-8, or it has no rows; the message has the line
            number.
    """
    path = data_file(given, "pairs.tsv")
    name = path.name.split(".")[0]
    if not is_path(given):
        # Two tables without a file have two names.
        name = f"pairs-{content_hash(path)[:6]}"
    names = table_columns(path)
    subset = ""
    if "subset" in names:
        subset = "subset"
    elif "kind" in names:
        subset = "kind"
    rows = list(complete_rows(path, "sentence1", "sentence2", others=["score"]))
    if len(rows) < LEAST_PAIRS:
        note(
            f"{name}: {len(rows)} pairs are too few for a correlation to mean much "
            f"(at least {LEAST_PAIRS})"
        )
    return ScoredPairs(
        name=name,
        sentence1=[row["sentence1"] for _, row in rows],
        sentence2=[row["sentence2"] for _, row in rows],
        scores=[parse_score(row["score"], path, line) for line, row in rows],
        subsets=[str(row.get(subset)) for _, row in rows] if subset else None,
    )


def load_sts(
    source: str | Path,
    *,
    text: TextVariant = "senteval",
    tasks: Sequence[str] = STS_TASKS,
    split: str = "test",
) -> list[ScoredPairs]:
    """Load STS tasks and check their sizes.

    Args:
        source: A folder in this project's layout (`STS12/test.tsv.gz`, …; or its parent with an
            `eval` folder), or SentEval's `data/downstream` folder as its download script leaves it.
        text: `senteval` is the text of published numbers: tokenised, and lower-cased except for
            SICK. `raw` is the text as released, which a SentEval folder lacks.
        tasks: Names among `STS_TASKS`.
        split: `test`, or `dev` for STS-B and SICK-R.

    Raises:
        OpencseError: The source is not such a folder, lacks the text variant, or a number of pairs
            is not the published one.
    """
    tasks = as_items(tasks)
    if text not in get_args(TextVariant):
        raise OpencseError(
            f"text variant {text!r} is unknown", f"Use one of {', '.join(get_args(TextVariant))}."
        )
    for task in tasks:
        if (task, split) not in PUBLISHED_ROWS:
            offered = ", ".join(name for name, existing in PUBLISHED_ROWS if existing == split)
            raise OpencseError(
                f"there is no {split} split of {task!r}",
                f"Tasks with this split: {offered or 'none'}.",
            )
    root, of_senteval = sts_folder(source)
    if of_senteval and text != "senteval":
        raise OpencseError(
            f"{root} is a SentEval folder, which has the SentEval text only", "Use another source."
        )
    read = _from_senteval if of_senteval else _from_tsv
    sets = []
    for task in tasks:
        rows = list(read(root, task, split, text))
        check_count(f"{task} {split}", len(rows), "pairs", PUBLISHED_ROWS[task, split])
        first, second, scores, subset = zip(*rows, strict=True)
        several = len(set(subset)) > 1
        pairs = ScoredPairs(
            name=task,
            sentence1=first,
            sentence2=second,
            scores=scores,
            subsets=subset if several else None,
            text=text,
        )
        sets.append(pairs)
    return sets


def sts_folder(source: str | Path) -> tuple[Path, bool]:
    """Return the folder that holds the STS tasks, and whether it is one of SentEval.

    Raises:
        OpencseError: The source is no such folder.
    """
    folder = find_folder(source, "STS12", "STSB")
    if folder is not None:
        return folder.parent, False
    folder = find_folder(source, "STS", below=SENTEVAL)
    if folder is not None:
        return folder.parent, True
    is_folder = Path(source).is_dir()
    raise OpencseError(
        f"{source} holds no STS data" if is_folder else f"{source} is not a folder",
        "Give a folder with STS12/test.tsv.gz …, or SentEval's data/downstream folder.",
    )


ScoredRow = tuple[str, str, float, str]
"""Both sentences, score and subset."""


def _from_tsv(root: Path, task: str, split: str, text: str) -> Iterator[ScoredRow]:
    """Read this project's layout: raw and SentEval text side by side in one file."""
    folder = root / _FOLDER.get(task, task)
    name = f"{_FILE.get((task, split), split)}.tsv"
    path = find_file(folder, name)
    if path is None:
        raise OpencseError(
            f"{folder / name}.gz does not exist", "Fetch the task's file, or leave the task out."
        )
    ending = "_senteval" if text == "senteval" else ""
    first = f"sentence1{ending}"
    second = f"sentence2{ending}"
    for line, row in complete_rows(path, first, second, others=["score"]):
        sentence1 = row[first]
        sentence2 = row[second]
        if ending:
            sentence1 = respaced(sentence1)
            sentence2 = respaced(sentence2)
        score = parse_score(row["score"], path, line)
        yield sentence1, sentence2, score, str(row.get("subset") or task)


def _from_senteval(root: Path, task: str, split: str, _: str) -> Iterator[ScoredRow]:
    """Read SentEval's files by SentEval's rules (senteval/sts.py, senteval/sick.py)."""
    for subset in _SUBSETS.get(task, ()):
        folder = root / "STS" / f"{task}-en-test"
        sentences = folder / f"STS.input.{subset}.txt"
        gold = folder / f"STS.gs.{subset}.txt"
        pairs = [cells for _, cells in senteval_cells(sentences, 0, 1)]
        scores = list(read_lines(gold))
        if len(pairs) != len(scores):
            problem = f"{sentences} has {len(pairs)} lines, {gold} has {len(scores)}"
            raise OpencseError(problem, "Fetch both files again.")
        for texts, (line, score) in zip(pairs, scores, strict=True):
            # A pair without a gold score does not count.
            if score.strip():
                yield texts[0], texts[1], parse_score(score, gold, line), subset
    if task in _SUBSETS:
        return
    if task == "STS-B":
        # Tab-separated despite its name.
        path = root / "STS" / "STSBenchmark" / f"sts-{split}.csv"
        places = (5, 6, 4)
    else:
        part = "trial" if split == "dev" else "test_annotated"
        path = root / "SICK" / f"SICK_{part}.txt"
        places = (1, 2, 3)
    for number, cells in senteval_cells(path, *places, header=task == "SICK-R"):
        yield cells[0], cells[1], parse_score(cells[2], path, number), ""


def development_sets(
    dev: Any, data: str | Path | None, tasks: Sequence[str] = ("STS-B",)
) -> list[ScoredPairs]:
    """Read the sets of scored pairs that `--dev` names.

    Args:
        dev: Scored pairs, as for `read_pairs`, `demo`, `stsb` (STS-B dev below `data`), `none`, or None for
            `tasks` if there is `data`.
        data: The STS files.
        tasks: The development sets that the recipe names (`Selection.tasks`).

    Returns:
        The sets, whose mean score counts; empty if there are none.

    Raises:
        OpencseError: A file cannot be read, or `stsb` is asked for without `data`.
    """
    if dev is None and data is None:
        return []
    if isinstance(dev, str) and dev == "none":
        return []
    if names_pairs(dev):
        return [read_pairs(dev)]
    if data is None:
        raise OpencseError(
            "--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev."
        )
    wanted = list(tasks) if dev is None else ["STS-B"]
    return load_sts(data, tasks=wanted, split="dev")


def names_pairs(dev: Any) -> bool:
    """Return whether `--dev` names scored pairs: it is not None, `none` or `stsb`."""
    if dev is None:
        return False
    return not isinstance(dev, str) or dev not in ("none", "stsb")
