"""Sources of the seven STS tasks: this project's TSV layout, a SentEval folder, or the hub.

The number of pairs must be the published one, because a truncated or differently filtered file is the usual cause of
irreproducible STS scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from opencse.evaluation.pairs import ScoredPairs, read_pairs
from opencse.evaluation.sts import STS_TASKS
from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.tables import parse_score, read_lines, read_table
from opencse.text import demo

TextVariant = Literal["senteval", "raw"]

PUBLISHED_ROWS = {
    ("STS12", "test"): 3108,
    ("STS13", "test"): 1500,  # without SMT, which is not redistributed
    ("STS14", "test"): 3750,
    ("STS15", "test"): 3000,
    ("STS16", "test"): 1186,
    ("STS-B", "test"): 1379,
    ("STS-B", "dev"): 1500,
    ("STS-B", "train"): 5749,
    ("SICK-R", "test"): 4927,
    ("SICK-R", "dev"): 500,
    ("SICK-R", "train"): 4500,
}
"""Published number of pairs of each task and split."""

_FILE = {("SICK-R", "dev"): "trial"}  # the data set's own name of this split
_FOLDER = {"STS-B": "STSB", "SICK-R": "SICKR"}
_HUB = {
    **{f"STS{year}": f"mteb/sts{year}-sts" for year in range(12, 17)},
    "STS-B": "mteb/stsbenchmark-sts",
    "SICK-R": "mteb/sickr-sts",
}
_SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def load_sts(
    source: str | Path, *, text: TextVariant = "senteval", tasks: Sequence[str] = STS_TASKS, split: str = "test"
) -> list[ScoredPairs]:
    """Load STS tasks and check their sizes.

    Args:
        source: A folder in this project's layout (`STS12/test.tsv.gz`, …; or its parent with an `eval` folder),
            SentEval's `data/downstream` folder as its download script leaves it, or `hub` (the `mteb` data
            sets on the Hugging Face hub, through `datasets`).
        text: `senteval` is the text of published numbers: tokenised, and lower-cased except for SICK. `raw` is the text
            as released. A SentEval folder has only the first, the hub only the second.
        tasks: Names among `STS_TASKS`.
        split: `test`, or `dev` for STS-B and SICK-R (not on the hub, which lacks SICK's).

    Raises:
        OpencseError: The source is not such a folder, lacks the text variant, or a number of pairs is not the published
            one.
    """
    if text not in get_args(TextVariant):
        raise OpencseError(f"text variant {text!r} is unknown", f"Use one of {', '.join(get_args(TextVariant))}.")
    for task in tasks:
        if (task, split) not in PUBLISHED_ROWS:
            known = ", ".join(name for name, existing in PUBLISHED_ROWS if existing == split)
            raise OpencseError(f"there is no {split} split of {task!r}", f"Tasks with this split: {known or 'none'}.")
    if str(source) == "hub":
        _require(text, "raw", "the hub has the raw text only")
        return [_checked(_from_hub(task, split), split) for task in tasks]
    root, of_senteval = sts_folder(source)
    if not of_senteval:
        return [_checked(_from_tsv(root, task, split, text), split) for task in tasks]
    _require(text, "senteval", f"{root} is a SentEval folder, which has the SentEval text only")
    return [_checked(_from_senteval(root, task, split), split) for task in tasks]


def sts_folder(source: str | Path) -> tuple[Path, bool]:
    """Return the folder that holds the STS tasks, and whether it is one of SentEval.

    Raises:
        OpencseError: The source is no such folder.
    """
    folder = Path(source)
    for root in (folder, folder / "eval"):
        if (root / "STS12").is_dir() or (root / "STSB").is_dir():
            return root, False
    for root in (folder, folder / "downstream", folder / "data" / "downstream"):
        if (root / "STS").is_dir():
            return root, True
    raise OpencseError(
        f"{source} holds no STS data" if folder.is_dir() else f"{source} is not a folder",
        "Give a folder with STS12/test.tsv.gz …, SentEval's data/downstream folder, or the word hub.",
    )


def _require(text: str, available: str, problem: str) -> None:
    if text != available:
        raise OpencseError(
            f"{problem}, not {text!r}", f"Ask for the text variant {available!r}, or use another source."
        )


def _checked(pairs: ScoredPairs, split: str) -> ScoredPairs:
    check_count(f"{pairs.name} {split}", len(pairs), "pairs", PUBLISHED_ROWS[pairs.name, split])
    return pairs


def check_count(name: str, found: int, items: str, published: int) -> None:
    """Raise an `OpencseError` if a part of a data set does not have the published number of items."""
    if found != published:
        raise OpencseError(
            f"{name} has {found} {items} instead of the published {published}",
            "The download is incomplete or filtered differently: fetch it again.",
        )


def _from_tsv(root: Path, task: str, split: str, text: str) -> ScoredPairs:
    """Read this project's layout: raw and SentEval text side by side in one file."""
    folder, split = root / _FOLDER.get(task, task), _FILE.get((task, split), split)
    path = next((p for p in (folder / f"{split}.tsv.gz", folder / f"{split}.tsv") if p.exists()), None)
    if path is None:
        raise OpencseError(f"{folder / split}.tsv.gz does not exist", "Fetch the task's file, or leave the task out.")
    ending = "_senteval" if text == "senteval" else ""
    rows = []
    for line, row in read_table(path):
        cells = [row.get(column) for column in (f"sentence1{ending}", f"sentence2{ending}", "score")]
        if any(cell is None for cell in cells):
            raise OpencseError(f"{path} has no columns sentence1{ending}, sentence2{ending}, score", "Fetch it again.")
        first, second, gold = map(str, cells)
        if ending:
            first, second = respaced(first), respaced(second)
        rows.append((first, second, parse_score(gold, path, line), str(row.get("subset") or task)))
    return _pairs(task, rows, text)


def _from_senteval(root: Path, task: str, split: str) -> ScoredPairs:
    """Read SentEval's files by SentEval's rules (senteval/sts.py, senteval/sick.py)."""
    if task in _SUBSETS:
        rows = [row for subset in _SUBSETS[task] for row in _senteval_subset(root, task, subset)]
    elif task == "STS-B":
        path = root / "STS" / "STSBenchmark" / f"sts-{split}.csv"  # tab-separated despite its name; no header
        rows = [_row(path, line, cells, 5, 6, 4) for line, cells in _cells(path)]
    else:
        path = root / "SICK" / ("SICK_trial.txt" if split == "dev" else "SICK_test_annotated.txt")
        rows = [_row(path, line, cells, 1, 2, 3) for line, cells in _cells(path) if line > 1]  # line 1 is a header
    return _pairs(task, rows, "senteval")


def _senteval_subset(root: Path, task: str, subset: str) -> Iterator[tuple[str, str, float, str]]:
    """Yield pairs of one subset of STS12–16; a pair without a gold score does not count."""
    folder = root / "STS" / f"{task}-en-test"
    sentences, gold = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
    pairs, scores = list(_cells(sentences)), list(read_lines(gold))
    if len(pairs) != len(scores):
        raise OpencseError(f"{sentences} has {len(pairs)} lines, {gold} has {len(scores)}", "Fetch both files again.")
    for (line, cells), (_, score) in zip(pairs, scores, strict=True):
        if score.strip():
            first, second, value, _ = _row(gold, line, [*cells[:2], score], 0, 1, 2)
            yield first, second, value, subset


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    return ((line, text.split("\t")) for line, text in read_lines(path))


def _row(path: Path, line: int, cells: list[str], s1: int, s2: int, gold: int) -> tuple[str, str, float, str]:
    score, first, second = labelled_cells(path, line, cells, gold, s1, s2)
    return first, second, parse_score(score, path, line), ""


def labelled_cells(path: Path, line: int, cells: list[str], label: int, *texts: int) -> tuple[str, ...]:
    """Return the label or score of a line of SentEval's, and its texts, from cells given by their places.

    Raises:
        OpencseError: The line has too few cells.
    """
    if len(cells) <= max(label, *texts):
        raise OpencseError(f"{path}, line {line}: {len(cells)} tab-separated cells are too few", "Fetch it again.")
    return (cells[label].strip(), *(respaced(cells[column]) for column in texts))


def _from_hub(task: str, split: str) -> ScoredPairs:
    """Fetch `mteb`'s data sets; called only if the user names the hub."""
    rows = fetch(_HUB[task], split="validation" if split == "dev" else split)
    return _pairs(task, [(r["sentence1"], r["sentence2"], float(r["score"]), "") for r in rows], "raw")


def fetch(name: str, *configuration: str | None, **options: str) -> Any:
    """Return a data set of the hub, as `datasets` loads it.

    Raises:
        OpencseError: It cannot be fetched.
    """
    load_dataset = imported("datasets", "datasets").load_dataset

    try:
        return load_dataset(name, *configuration, **options)
    except Exception as problem:
        raise OpencseError(
            f"{name} cannot be fetched ({type(problem).__name__})", "Check the network, or give a data folder."
        ) from problem


def _pairs(task: str, rows: Sequence[tuple[str, str, float, str]], text: str) -> ScoredPairs:
    first, second, scores, subsets = zip(*rows, strict=True) if rows else ((), (), (), ())
    return ScoredPairs(
        name=task,
        sentence1=first,
        sentence2=second,
        scores=scores,
        subsets=subsets if len(set(subsets)) > 1 else None,
        text=text,
    )


def respaced(text: str) -> str:
    """Return the text with single spaces: SentEval splits it, SimCSE joins the words."""
    return " ".join(text.split())


def development_sets(
    dev: str | Path | None, data: str | Path | None, tasks: Sequence[str] = ("STS-B",)
) -> list[ScoredPairs]:
    """Read the sets of scored pairs that `--dev` names.

    Args:
        dev: A file of scored pairs, `demo`, `stsb` (STS-B dev below `data`), `none`, or None for `tasks` if there is
            `data`.
        data: The STS files.
        tasks: The development sets that the recipe names (`Selection.tasks`).

    Returns:
        The sets, whose mean score counts; empty if there are none.

    Raises:
        OpencseError: A file cannot be read, or `stsb` is asked for without `data`.
    """
    if str(dev) == "none" or (dev is None and data is None):
        return []
    if (file := development_file(dev)) is not None:
        return [read_pairs(file)]
    if data is None:
        raise OpencseError("--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev.")
    if dev is not None or str(data) == "hub":  # the hub has no other development set
        tasks = ["STS-B"]
    return load_sts(data, text=sts_text(data), tasks=list(tasks), split="dev")


def development_file(dev: str | Path | None) -> Path | None:
    """Return the file that `--dev` names; None for None, `none` and `stsb`."""
    return None if dev is None or str(dev) in ("none", "stsb") else demo.pairs(dev)


def sts_text(data: str | Path | None) -> Literal["senteval", "raw"]:
    """Return the text variant to read: `raw` from the hub, which has no other, otherwise that of published scores."""
    return "raw" if str(data) == "hub" else "senteval"
