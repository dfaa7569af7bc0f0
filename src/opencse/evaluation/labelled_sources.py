"""Sources of transfer and classification tasks: this project's table layout, or a SentEval folder.

Rows of SentEval's tasks are in SentEval's order (by number of words, then by class), on which its folds and batches
depend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from opencse.evaluation.data_files import (
    SENTEVAL,
    TextVariant,
    check_count,
    complete_rows,
    find_file,
    find_folder,
    respaced,
    senteval_cells,
)
from opencse.evaluation.labelled import CLASSIFICATION_TASKS, TRANSFER_TASKS, LabelledSet, LabelledTexts
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import TABLES, read_lines, table_columns

LabelledRow = tuple[str, ...]  # class, text, and for pairs the second text
Parts = dict[str, list[LabelledRow]]

PUBLISHED_PARTS: dict[str, dict[str, int]] = {
    "MR": {"train": 10662},
    "CR": {"train": 3775},
    "SUBJ": {"train": 10000},
    "MPQA": {"train": 10606},
    "SST2": {"train": 67349, "dev": 872, "test": 1821},
    "TREC": {"train": 5452, "test": 500},
    "MRPC": {"train": 4076, "test": 1725},
    "Banking77": {"train": 10003, "test": 3080},
    "Emotion": {"train": 16000, "test": 2000},
    "CLINC150": {"train": 15000, "test": 4500},
    "AmazonCounterfactual": {"train": 4018, "test": 670},
    "TweetSentiment": {"test": 3534},
}
"""Published number of rows of each part."""

_SENTEVAL_FOLDERS = {"SST2": "SST/binary"}
_TWO_CLASS_FILES = {  # files of SentEval's two-class tasks, class 1 first, as SentEval reads them
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}


def load_labelled(source: str | Path, task: str, *, text: TextVariant = "senteval") -> LabelledSet:
    """Load one transfer or classification task and check its size.

    Args:
        source: A folder in this project's layout (`<task>/train.tsv.gz` and `test.tsv.gz`, or `data.tsv.gz` for a task
            without parts; `.csv`, `.tsv` or `.jsonl`, plain or `.gz`, with the columns `label` and `text`, or `label`,
            `sentence1` and `sentence2`; or its parent with an `eval` folder), or SentEval's `data/downstream` folder.
        task: Name of the folder: one of `TRANSFER_TASKS`, `CLASSIFICATION_TASKS`, or any other.
        text: `senteval`, the tokenised text, where the files have it (columns ending in `_senteval`), or `raw`.

    Raises:
        OpencseError: There is no such task, or a file is invalid; the message names it.
    """
    parts, variant = _read(source, task, text)
    for part, rows in PUBLISHED_PARTS.get(task, {}).items():
        check_count(f"{task} {part}", len(parts.get(part, ())), "rows", rows)
    if task in CLASSIFICATION_TASKS:
        parts.pop("dev", None)  # not used by the protocol
    return LabelledSet(name=task, text=variant, **{part: _labelled(task, rows) for part, rows in parts.items()})


def _labelled(task: str, rows: list[LabelledRow]) -> LabelledTexts:
    """Return the rows as columns, in SentEval's order for its tasks."""
    if task in TRANSFER_TASKS:
        rows = sorted(rows, key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
    labels, texts, *seconds = zip(*rows, strict=True)
    return LabelledTexts(labels=labels, texts=texts, seconds=seconds[0] if seconds else None)


def _read(source: str | Path, task: str, text: TextVariant) -> tuple[Parts, str]:
    """Return the rows of each part, and their text variant."""
    folder = find_folder(source, task)
    if folder is not None and (train := _table(folder, "train", "data")) is not None:
        paths = {"train": train, "dev": _table(folder, "dev"), "test": _table(folder, "test")}
        both = any(name.endswith("_senteval") for name in table_columns(train))
        ending = "_senteval" if both and text == "senteval" else ""
        clean = respaced if ending or task in TRANSFER_TASKS else str
        tables = {part: [*_table_rows(path, ending, clean)] for part, path in paths.items() if path is not None}
        return tables, text if both else "released"
    folder = find_folder(source, _SENTEVAL_FOLDERS.get(task, task), below=SENTEVAL)
    if folder is not None and task in TRANSFER_TASKS:
        if text != "senteval":
            raise OpencseError(f"{folder} is a SentEval folder, which has the SentEval text only", "Use senteval.")
        return _from_senteval(folder, task), "senteval"
    raise OpencseError(
        f"{source} holds no {task}" if Path(source).is_dir() else f"{source} is not a folder",
        f"Give a folder with {task}/train.tsv (or data.tsv), or leave the task out.",
    )


def _table(folder: Path, *parts: str) -> Path | None:
    """Return the file of a part, whatever its format."""
    return find_file(folder, *(f"{part}{kind}" for part in parts for kind in TABLES))


def _table_rows(path: Path, ending: str, clean: Callable[[str], str]) -> Iterator[LabelledRow]:
    names = ["text"] if "text" in table_columns(path) else ["sentence1", "sentence2"]
    columns = [f"{name}{ending}" for name in names]
    for line, row in complete_rows(path, others=["label"]):
        texts: list[Any] = [row.get(column) for column in columns]  # published texts may be empty
        if not all(isinstance(text, str) for text in texts):
            raise OpencseError(f"{path}, line {line}: no text in {', '.join(columns)}", "Give every row its text.")
        yield (str(row["label"]).strip(), *map(clean, texts))


def _from_senteval(folder: Path, task: str) -> Parts:
    """Read SentEval's files by SentEval's rules (senteval/binary.py, sst.py, trec.py, mrpc.py)."""
    if task in _TWO_CLASS_FILES:
        files = zip(("1", "0"), _TWO_CLASS_FILES[task], strict=True)
        read = ((label, read_lines(folder / name, "latin-1")) for label, name in files)
        return {"train": [(label, respaced(line)) for label, lines in read for _, line in lines]}
    if task == "TREC":
        names = {"train": "train_5500.label", "test": "TREC_10.label"}
        return {part: [*_questions(folder / name)] for part, name in names.items()}
    if task == "SST2":
        return {part: _cells(folder / f"sentiment-{part}", 1, 0) for part in ("train", "dev", "test")}
    return {part: _cells(folder / f"msr_paraphrase_{part}.txt", 0, 3, 4, header=True) for part in ("train", "test")}


def _cells(path: Path, *places: int, header: bool = False) -> list[LabelledRow]:
    return [tuple(cells) for _, cells in senteval_cells(path, *places, header=header)]


def _questions(path: Path) -> Iterator[LabelledRow]:
    """Yield class and question of lines like `ABBR:exp What does … ?`."""
    for number, line in read_lines(path, "latin-1"):
        label, _, rest = line.strip().partition(":")
        _, space, question = rest.partition(" ")
        if not label or not space:
            raise OpencseError(f"{path}, line {number}: no class and question", "Fetch it again.")
        yield label, respaced(question)
