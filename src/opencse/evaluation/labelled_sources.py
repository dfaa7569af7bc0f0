"""Sources of transfer and classification tasks: this project's table layout, a SentEval folder, or the hub.

Rows of SentEval's tasks are in SentEval's order (by number of words, then by class), on which its folds and batches
depend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from opencse.evaluation.labelled import CLASSIFICATION_TASKS, TRANSFER_TASKS, LabelledSet, LabelledTexts
from opencse.evaluation.sts_sources import TextVariant, check_count, fetch, labelled_cells, respaced
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import TABLES, read_lines, read_table, table_columns

LabelledRow = tuple[str, ...]  # class, text, and for pairs the second text

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

_HUB = {
    "Banking77": ("mteb/banking77", None),
    "Emotion": ("mteb/emotion", None),
    "AmazonCounterfactual": ("mteb/amazon_counterfactual", "en"),
    "TweetSentiment": ("mteb/tweet_sentiment_extraction", None),
}

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
            `sentence1` and `sentence2`; or its parent with an `eval` folder), SentEval's `data/downstream` folder, or
            `hub` for the classification tasks that `mteb` has there.
        task: Name of the folder: one of `TRANSFER_TASKS`, `CLASSIFICATION_TASKS`, or any other.
        text: `senteval`, the tokenised text, where the files have it (columns ending in `_senteval`), or `raw`.

    Raises:
        OpencseError: There is no such task, or a file is invalid; the message names it.
    """
    if str(source) == "hub":
        return _checked(_from_hub(task))
    folder = Path(source)
    for root in (folder, folder / "eval"):
        if (root / task).is_dir() and _file(root / task, "train", "data") is not None:
            return _checked(_from_tables(root / task, task, text))
    for root in (folder, folder / "downstream", folder / "data" / "downstream"):
        if task in TRANSFER_TASKS and (root / _SENTEVAL_FOLDERS.get(task, task)).is_dir():
            if text != "senteval":
                raise OpencseError(f"{root} is a SentEval folder, which has the SentEval text only", "Use senteval.")
            return _checked(_from_senteval(root, task))
    raise OpencseError(
        f"{source} holds no {task}" if folder.is_dir() else f"{source} is not a folder",
        f"Give a folder with {task}/train.tsv (or data.tsv), or leave the task out.",
    )


def _checked(data: LabelledSet) -> LabelledSet:
    """Return the data after checking the published number of rows."""
    parts = dict(data.parts())
    for part, rows in PUBLISHED_PARTS.get(data.name, {}).items():
        check_count(f"{data.name} {part}", len(parts[part]) if part in parts else 0, "rows", rows)
    return data


def _set(task: str, rows: Callable[[str], list[LabelledRow] | None], text: str) -> LabelledSet:
    """Return the parts as one data set, in SentEval's order for its tasks."""
    parts = {part: rows(part) for part in ("train", "dev", "test")}
    labelled = {part: _labelled(task, part, found) for part, found in parts.items() if found is not None}
    if task in CLASSIFICATION_TASKS:
        labelled.pop("dev", None)  # not used by the protocol
    return LabelledSet(name=task, text=text, **labelled)


def _labelled(task: str, part: str, rows: list[LabelledRow]) -> LabelledTexts:
    if not rows:
        raise OpencseError(f"{task} {part} holds no text", "Fetch the file again.")
    if task in TRANSFER_TASKS:
        rows = sorted(rows, key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
    columns = list(zip(*rows, strict=True))
    return LabelledTexts(labels=columns[0], texts=columns[1], seconds=columns[2] if len(columns) > 2 else None)


def _file(folder: Path, *parts: str) -> Path | None:
    """Return the file of a part, whatever its format."""
    names = (f"{part}{kind}{packed}" for part in parts for kind in TABLES for packed in (".gz", ""))
    return next((folder / name for name in names if (folder / name).exists()), None)


def _from_tables(folder: Path, task: str, text: TextVariant) -> LabelledSet:
    paths = {part: _file(folder, part, *(["data"] if part == "train" else [])) for part in ("train", "dev", "test")}
    assert paths["train"] is not None  # checked by the caller
    both = any(name.endswith("_senteval") for name in table_columns(paths["train"]))
    ending = "_senteval" if both and text == "senteval" else ""

    def rows(part: str) -> list[LabelledRow] | None:
        path = paths[part]
        return None if path is None else list(_table(path, ending, respace=bool(ending) or task in TRANSFER_TASKS))

    return _set(task, rows, text if both else "released")


def _table(path: Path, ending: str, *, respace: bool) -> Iterator[LabelledRow]:
    for line, cells in read_table(path):
        if not cells:
            continue
        columns = [f"{name}{ending}" for name in (["text"] if "text" in cells else ["sentence1", "sentence2"])]
        row = [cells.get(column) for column in ("label", *columns)]
        if any(cell is None for cell in row) or isinstance(row[0], bool | float):
            raise OpencseError(
                f"{path}, line {line}: no columns label, {', '.join(columns)} among {', '.join(cells)}",
                "Use these names, and give every row a label and its text.",
            )
        if not str(row[0]).strip() or not all(isinstance(cell, str) for cell in row[1:]):
            raise OpencseError(
                f"{path}, line {line}: the label is empty or the text is not a string", "Correct this row."
            )
        texts = (respaced(str(cell)) if respace else str(cell) for cell in row[1:])
        yield (str(row[0]).strip(), *texts)


def _from_senteval(root: Path, task: str) -> LabelledSet:
    """Read SentEval's files by SentEval's rules (senteval/binary.py, sst.py, trec.py, mrpc.py)."""
    folder = root / _SENTEVAL_FOLDERS.get(task, task)

    def rows(part: str) -> list[LabelledRow] | None:
        if task in _TWO_CLASS_FILES:
            return None if part != "train" else list(_two_class_rows(folder, *_TWO_CLASS_FILES[task]))
        if task == "SST2":
            path = folder / f"sentiment-{part}"
            return [labelled_cells(path, n, line.strip().split("\t"), 1, 0) for n, line in read_lines(path)]
        if part == "dev":
            return None
        if task == "TREC":
            path = folder / {"train": "train_5500.label", "test": "TREC_10.label"}[part]
            return [_question(path, number, line) for number, line in read_lines(path, "latin-1")]
        path = folder / f"msr_paraphrase_{part}.txt"
        return [
            labelled_cells(path, number, line.split("\t"), 0, 3, 4) for number, line in read_lines(path) if number > 1
        ]

    return _set(task, rows, "senteval")


def _two_class_rows(folder: Path, first: str, second: str) -> Iterator[LabelledRow]:
    for label, name in (("1", first), ("0", second)):
        for _, line in read_lines(folder / name, "latin-1"):
            yield label, respaced(line)


def _question(path: Path, number: int, line: str) -> LabelledRow:
    """Return the class and question of a line like `ABBR:exp What does … ?`."""
    label, _, rest = line.strip().partition(":")
    _, space, question = rest.partition(" ")
    if not label or not space:
        raise OpencseError(f"{path}, line {number}: no class and question", "Fetch it again.")
    return label, respaced(question)


def _from_hub(task: str) -> LabelledSet:
    """Fetch `mteb`'s data sets; called only if the user names the hub."""
    if task not in _HUB:
        raise OpencseError(
            f"{task} is not read from the hub", f"There: {', '.join(_HUB)}. Give a folder for the others."
        )
    parts = fetch(*_HUB[task])
    found: dict[str, list[LabelledRow]] = {
        part: [(str(row["label"]), str(row["text"])) for row in parts[part]] for part in ("train", "test")
    }
    return _set(task, lambda part: found.get(part), "raw")
