"""One table of results for the terminal, notebooks, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from opencse.foundation.terminal import Printable

if TYPE_CHECKING:
    from rich.console import RenderableType

# Width in characters if there is no terminal, so that no line wraps.
_UNLIMITED = 100_000


@dataclass(frozen=True)
class Number:
    """A number in a table cell.

    Attributes:
        value: The number; None if it is undefined.
        digits: Number of decimals.
        unit: Text after the number, such as ` %`.
        aside: Remark in brackets, such as an interval. If the number is undefined, the reason.
        deviation: Standard deviation, shown after ±.
        signed: Whether a positive number gets a plus sign.
    """

    value: float | None
    digits: int = 2
    unit: str = ""
    aside: str = ""
    deviation: float | None = None
    signed: bool = False

    @property
    def figure(self) -> str:
        """The number as text, without the remark, with thousands separators and a true minus."""
        if self.value is None:
            return "undefined"
        sign = "+" if self.signed else ""
        # "z" turns a negative zero into a plain zero.
        text = f"{self.value:{sign}z,.{self.digits}f}".replace("-", "−")
        if self.deviation is not None:
            text += f" ± {self.deviation:.{self.digits}f}"
        return text + self.unit

    def __str__(self) -> str:
        if not self.aside:
            return self.figure
        if self.value is None:
            return f"undefined: {self.aside}"
        return f"{self.figure} ({self.aside})"


Cell = str | int | Number


@dataclass(frozen=True)
class Table:
    """A table of results; numbers are aligned to the right.

    Attributes:
        columns: Headings.
        rows: Cells by row: texts, counts and numbers.
        title: Heading of the table.
        notes: Remarks for the reader.
        totals: How many of the last rows sum up the others.
        totals: Number of final rows that sum up the others.

    Example:
        >>> print(Table(("task", "score"), [("STS-B", Number(79.456))]).markdown())
        | task | score |
        | --- | ---: |
        | STS-B | 79.46 |
        <BLANKLINE>
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    notes: Sequence[str] = ()
    totals: int = 0

    def rich(self) -> RenderableType:
        """Return the table for a terminal."""
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            box=None, pad_edge=False, header_style="bold", show_header=any(self.columns)
        )
        for column, numeric in zip(self.columns, self._numeric_columns(), strict=True):
            justify: Literal["left", "right"] = "right" if numeric else "left"
            table.add_column(Text(column), justify=justify, overflow="fold")
        for row, total in self._texts():
            cells = [Text(cell) for cell in row]
            table.add_row(*cells, style="bold" if total else None)
        parts: list[RenderableType] = []
        if self.title:
            parts.append(Text(self.title, style="bold"))
        parts.append(table)
        for note in self.notes:
            parts.append(Text(note))
        return Group(*parts)

    __rich__ = rich

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown, with its title above and its notes below."""
        lines: list[str] = []
        if self.title:
            lines.append(f"# {self.title}")
            lines.append("")
        rule = ["---:" if numeric else "---" for numeric in self._numeric_columns()]
        lines.append(_markdown_row(self.columns))
        lines.append(f"| {' | '.join(rule)} |")
        for row, _ in self._texts():
            lines.append(_markdown_row(row))
        if self.notes:
            lines.append("")
        for note in self.notes:
            lines.append(f"- {note}")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        """Return the table as a section of a page; cells name their column, for small screens."""
        classes = [' class="figure"' if numeric else "" for numeric in self._numeric_columns()]
        labels = [escape(column) for column in self.columns]

        head = ""
        for label, css in zip(labels, classes, strict=True):
            head += f'<th scope="col"{css}><bdi>{label}</bdi></th>'

        body = ""
        for row, total in self._texts():
            cells = ""
            for text, label, css in zip(row, labels, classes, strict=True):
                shown = f"<bdi>{escape(text)}</bdi>" if text else ""
                cells += f'<td{css} data-label="{label}">{shown}</td>'
            strong = ' class="strong"' if total else ""
            body += f"<tr{strong}>{cells}</tr>\n"

        title = escape(self.title)
        heading = f"<h3>{title}</h3>\n" if title else ""
        notes = "".join(f'<p class="small">{escape(note)}</p>\n' for note in self.notes)
        table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
        region = f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        return f'<section class="table">\n{heading}{notes}{region}\n{table}\n</div>\n</section>'

    # Jinja calls `__html__`, notebooks call `_repr_html_`.
    __html__ = _repr_html_ = html

    def _numeric_columns(self) -> list[bool]:
        """Return for each column whether it holds numbers."""
        numeric = []
        for i in range(len(self.columns)):
            numeric.append(any(not isinstance(row[i], str) for row in self.rows))
        return numeric

    def _texts(self) -> list[tuple[list[str], bool]]:
        """Return the cells of each row as text, and whether the row is a total."""
        first_total = len(self.rows) - self.totals
        rows = []
        for i, row in enumerate(self.rows):
            texts = []
            for cell in row:
                if isinstance(cell, int):
                    # A count gets thousands separators like any other number.
                    cell = Number(cell, 0)
                texts.append(str(cell))
            rows.append((texts, i >= first_total))
        return rows


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def show(*results: RenderableType) -> None:
    """Print results to standard output. Without a terminal, no line is wrapped or truncated."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=_UNLIMITED)
    for result in results:
        console.print(Printable(result), markup=False, highlight=False)
