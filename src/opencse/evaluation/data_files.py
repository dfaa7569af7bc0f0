"""Folders and files of evaluation data, and strict reading of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.foundation.tables import read_lines, read_table, require_text

TextVariant = Literal["senteval", "raw"]
"""`senteval` is the tokenised text of published scores, `raw` the text as released."""

SENTEVAL = ("", "downstream", "data/downstream")
"""Where SentEval's download script leaves its folders."""

PUBLISHED_ROWS = {
    (str(row["task"]), str(row["part"])): int(str(row["rows"]))
    for _, row in read_table(ASSETS / "evaluation" / "published-rows.tsv")
}
"""Published number of rows by task and part; STS13 is without SMT, which is not redistributed."""


def find_folder(source: str | Path, *names: str, below: Sequence[str] = ("", "eval")) -> Path | None:
    """Return the first folder below a source, or below one of its folders, that has one of these names."""
    folders = (Path(source) / root / name for root in below for name in names)
    return next((folder for folder in folders if folder.is_dir()), None)


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of some files that exists in a folder, with or without `.gz` behind its name."""
    return next((path for name in names for path in (folder / f"{name}.gz", folder / name) if path.exists()), None)


def complete_rows(path: Path, *texts: str, others: Sequence[str] = ()) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line number and cells of the rows of a table; blank lines are skipped.

    Args:
        path: A `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`.
        texts: Columns that hold a text in every row.
        others: Columns that hold anything in every row.

    Raises:
        OpencseError: As `read_table`; or a cell is empty, or there is no row. The message has the line number.
    """
    columns, count = (*texts, *others), 0
    for line, row in read_table(path):
        for column in columns if row else ():
            cell = row.get(column)
            if cell is None or not str(cell).strip():
                remedy = f"Give every row the columns {', '.join(columns)}."
                raise OpencseError(f"{path}, line {line}: no {column} among {', '.join(row)}", remedy)
            if column in texts:
                require_text(cell, column, path, line)
        if row:
            count += 1
            yield line, row
    if not count:
        raise OpencseError(f"{path} holds no row", f"Give a row with the columns {', '.join(columns)}.")


def senteval_cells(path: Path, *places: int, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and some cells, given by their places, of a tab-separated file of SentEval's.

    Raises:
        OpencseError: As `read_lines`, or a line has too few cells.
    """
    for line, text in islice(read_lines(path), header, None):
        cells = text.split("\t")
        if len(cells) <= max(places):
            raise OpencseError(f"{path}, line {line}: {len(cells)} tab-separated cells are too few", "Fetch it again.")
        yield line, [respaced(cells[place]) for place in places]


def respaced(text: str) -> str:
    """Return the text with single spaces: SentEval splits it, SimCSE joins the words."""
    return " ".join(text.split())


def check_count(name: str, found: int, items: str, published: int) -> None:
    """Raise an `OpencseError` if a part of a data set does not have the published number of items."""
    if found != published:
        raise OpencseError(
            f"{name} has {found} {items} instead of the published {published}",
            "The download is incomplete or filtered differently: fetch it again.",
        )
