"""Sources of the seven STS tasks: this project's TSV layout, a SentEval folder, or the hub.

The number of pairs must be the published one, because a truncated or differently filtered file is the usual cause of
irreproducible STS scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from opencse.evaluation.data_files import (
    SENTEVAL,
    TextVariant,
    check_count,
    complete_rows,
    fetch,
    find_file,
    find_folder,
    respaced,
    senteval_cells,
)
from opencse.evaluation.pairs import ScoredPairs, read_pairs
from opencse.evaluation.sts import STS_TASKS
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import parse_score, read_lines
from opencse.text import demo

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
    source: str | Path, *, text: TextVariant | None = None, tasks: Sequence[str] = STS_TASKS, split: str = "test"
) -> list[ScoredPairs]:
    """Load STS tasks and check their sizes.

    Args:
        source: A folder in this project's layout (`STS12/test.tsv.gz`, …; or its parent with an `eval` folder),
            SentEval's `data/downstream` folder as its download script leaves it, or `hub` (the `mteb` data
            sets on the Hugging Face hub, through `datasets`).
        text: `senteval` is the text of published numbers: tokenised, and lower-cased except for SICK. `raw` is the text
            as released. A SentEval folder has only the first, the hub only the second. By default that of `sts_text`.
        tasks: Names among `STS_TASKS`.
        split: `test`, or `dev` for STS-B and SICK-R (not on the hub, which lacks SICK's).

    Raises:
        OpencseError: The source is not such a folder, lacks the text variant, or a number of pairs is not the published
            one.
    """
    text = sts_text(source) if text is None else text
    if text not in get_args(TextVariant):
        raise OpencseError(f"text variant {text!r} is unknown", f"Use one of {', '.join(get_args(TextVariant))}.")
    for task in tasks:
        if (task, split) not in PUBLISHED_ROWS:
            known = ", ".join(name for name, existing in PUBLISHED_ROWS if existing == split)
            raise OpencseError(f"there is no {split} split of {task!r}", f"Tasks with this split: {known or 'none'}.")
    hub = str(source) == "hub"
    root, of_senteval = (Path(source), False) if hub else sts_folder(source)
    if (hub and text != "raw") or (of_senteval and text != "senteval"):
        given = "the hub has the raw text" if hub else f"{root} is a SentEval folder, which has the SentEval text"
        raise OpencseError(f"{given} only", "Ask for the other text variant, or use another source.")
    read = _from_hub if hub else _from_senteval if of_senteval else _from_tsv
    sets = []
    for task in tasks:
        rows = list(read(root, task, split, text))
        check_count(f"{task} {split}", len(rows), "pairs", PUBLISHED_ROWS[task, split])
        first, second, scores, subset = zip(*rows, strict=True)
        pairs = ScoredPairs(name=task, sentence1=first, sentence2=second, scores=scores, subsets=subset, text=text)
        sets.append(pairs if len(set(subset)) > 1 else replace(pairs, subsets=None))
    return sets


def sts_folder(source: str | Path) -> tuple[Path, bool]:
    """Return the folder that holds the STS tasks, and whether it is one of SentEval.

    Raises:
        OpencseError: The source is no such folder.
    """
    if (found := find_folder(source, "STS12", "STSB")) is not None:
        return found.parent, False
    if (found := find_folder(source, "STS", below=SENTEVAL)) is not None:
        return found.parent, True
    raise OpencseError(
        f"{source} holds no STS data" if Path(source).is_dir() else f"{source} is not a folder",
        "Give a folder with STS12/test.tsv.gz …, SentEval's data/downstream folder, or the word hub.",
    )


Row = tuple[str, str, float, str]
"""Both sentences, score and subset."""


def _from_tsv(root: Path, task: str, split: str, text: str) -> Iterator[Row]:
    """Read this project's layout: raw and SentEval text side by side in one file."""
    folder, name = root / _FOLDER.get(task, task), f"{_FILE.get((task, split), split)}.tsv"
    path = find_file(folder, name)
    if path is None:
        raise OpencseError(f"{folder / name}.gz does not exist", "Fetch the task's file, or leave the task out.")
    ending = "_senteval" if text == "senteval" else ""
    first, second = f"sentence1{ending}", f"sentence2{ending}"
    for line, row in complete_rows(path, first, second, others=["score"]):
        texts = (respaced(row[first]), respaced(row[second])) if ending else (row[first], row[second])
        yield *texts, parse_score(row["score"], path, line), str(row.get("subset") or task)


def _from_senteval(root: Path, task: str, split: str, _: str) -> Iterator[Row]:
    """Read SentEval's files by SentEval's rules (senteval/sts.py, senteval/sick.py)."""
    for subset in _SUBSETS.get(task, ()):
        folder = root / "STS" / f"{task}-en-test"
        sentences, gold = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs, scores = [cells for _, cells in senteval_cells(sentences, 0, 1)], list(read_lines(gold))
        if len(pairs) != len(scores):
            problem = f"{sentences} has {len(pairs)} lines, {gold} has {len(scores)}"
            raise OpencseError(problem, "Fetch both files again.")
        for texts, (line, score) in zip(pairs, scores, strict=True):
            if score.strip():  # a pair without a gold score does not count
                yield texts[0], texts[1], parse_score(score, gold, line), subset
    if task in _SUBSETS:
        return
    if task == "STS-B":  # tab-separated despite its name
        path, places = root / "STS" / "STSBenchmark" / f"sts-{split}.csv", (5, 6, 4)
    else:
        path, places = root / "SICK" / f"SICK_{'trial' if split == 'dev' else 'test_annotated'}.txt", (1, 2, 3)
    for number, cells in senteval_cells(path, *places, header=task == "SICK-R"):
        yield cells[0], cells[1], parse_score(cells[2], path, number), ""


def _from_hub(_: Path, task: str, split: str, __: str) -> Iterator[Row]:
    """Fetch `mteb`'s data sets."""
    for row in fetch(_HUB[task], split="validation" if split == "dev" else split):
        yield row["sentence1"], row["sentence2"], float(row["score"]), ""


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
    return load_sts(data, tasks=list(tasks), split="dev")


def development_file(dev: str | Path | None) -> Path | None:
    """Return the file that `--dev` names; None for None, `none` and `stsb`."""
    return None if dev is None or str(dev) in ("none", "stsb") else demo.pairs(dev)


def sts_text(data: str | Path | None) -> TextVariant:
    """Return the text variant to read: `raw` from the hub, which has no other, otherwise that of published scores."""
    return "raw" if str(data) == "hub" else "senteval"
