"""The column of a table that holds the text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opencse.foundation.errors import OpencseError

TEXT_COLUMNS = (
    "text",
    "sentence",
    "sentences",
    "body",
    "content",
    "passage",
    "document",
    "paragraph",
    "abstract",
    "description",
)
"""Common names of a column of text, the likeliest first."""

QUERY_COLUMNS = ("query", "queries", "question", "search")
"""Names of a column of searches."""


def text_column(
    columns: Sequence[str], source: str | Path, wanted: str | None = None, *, option: str = "--column"
) -> str:
    """Return the column that holds the text: the wanted one, else the first of `TEXT_COLUMNS`, else the only one.

    Args:
        columns: The columns of the table.
        source: Name of the table, for messages.
        wanted: The column that the user asked for.
        option: How the user names a column, for messages.

    Raises:
        OpencseError: The wanted column is missing, or none of several has a known name.
    """
    if wanted is not None:
        if wanted not in columns:
            raise OpencseError(f"{source}: no column '{wanted}'", f"It has: {', '.join(columns) or 'none'}.")
        return wanted
    by_name = {column.lower(): column for column in reversed(columns)}
    for name in TEXT_COLUMNS:
        if name in by_name:
            return by_name[name]
    if len(columns) == 1:
        return columns[0]
    raise OpencseError(
        f"{source}: which column holds the text? It has {', '.join(columns) or 'none'}", f"Name it with `{option}`."
    )


def query_column(columns: Sequence[str], source: str | Path) -> str:
    """Return the column that holds searches: the first of `QUERY_COLUMNS`, or else that of text.

    Args:
        columns: The columns of the table.
        source: Name of the table, for messages.

    Raises:
        OpencseError: None of several columns has a known name.
    """
    return next((name for name in QUERY_COLUMNS if name in columns), None) or text_column(columns, source)
