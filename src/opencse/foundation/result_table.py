"""One table of results for the terminal, notebooks, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNLIMITED = 100_000
"""Width in characters where there is no terminal: no line is that long."""


@dataclass(frozen=True)
class Number:
    """A figure in a cell of a table.

    Attributes:
        value: The figure; None if it is undefined.
        digits: Digits behind the point.
        unit: Text behind the figure, such as ` %`.
        aside: Remark in brackets, such as an interval; of an undefined figure, the reason.
        deviation: Standard deviation; None for none.
        signed: Whether a positive figure has a plus sign.
    """

    value: float | None
    digits: int = 2
    unit: str = ""
    aside: str = ""
    deviation: float | None = None
    signed: bool = False

    @property
    def figure(self) -> str:
        """The figure as text, without the remark: thousands separated, a true minus sign, no negative zero."""
        if self.value is None:
            return "undefined"
        sign = "+" if self.signed else ""
        figure = f"{self.value:{sign}z,.{self.digits}f}".replace("-", "−")
        return (
            figure
            + ("" if self.deviation is None else f" ± {self.deviation:.{self.digits}f}")
            + self.unit
        )

    def __str__(self) -> str:
        if not self.aside:
            return self.figure
        return f"undefined: {self.aside}" if self.value is None else f"{self.figure} ({self.aside})"


Cell = str | int | Number


@dataclass(frozen=True)
class Table:
    """A table; figures are aligned to the right.

    Attributes:
        columns: Headings.
        rows: Cells by row: texts, counts and figures.
        title: Heading of the table.
        notes: Remarks for the reader.
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
        for column, figures in zip(self.columns, self._figures(), strict=True):
            table.add_column(Text(column), justify="right" if figures else "left", overflow="fold")
        for row, total in self._texts():
            table.add_row(*map(Text, row), style="bold" if total else None)
        title = [Text(self.title, style="bold")] if self.title else []
        return Group(*title, table, *map(Text, self.notes))

    __rich__ = rich

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown, with its title above and its notes below."""
        rule = ["---:" if figures else "---" for figures in self._figures()]
        rows = (self.columns, *(row for row, _ in self._texts()))
        cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
        lines = [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]
        title = [f"# {self.title}", ""] if self.title else []
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*title, *lines, *notes, ""])

    def html(self) -> str:
        """Return the table as a section of a page. A cell names its column, for narrow screens."""
        figures = [' class="figure"' if numeric else "" for numeric in self._figures()]
        labels = [escape(column) for column in self.columns]
        head = "".join(
            f'<th scope="col"{right}><bdi>{label}</bdi></th>'
            for label, right in zip(labels, figures, strict=True)
        )
        body = ""
        for row, total in self._texts():
            strong = ' class="strong"' if total else ""
            shown = [f"<bdi>{escape(cell)}</bdi>" if cell else "" for cell in row]
            cells = "".join(
                f'<td{right} data-label="{label}">{cell}</td>'
                for cell, label, right in zip(shown, labels, figures, strict=True)
            )
            body += f"<tr{strong}>{cells}</tr>\n"
        title = f"<h3>{escape(self.title)}</h3>\n" if self.title else ""
        notes = "".join(f'<p class="small">{escape(note)}</p>\n' for note in self.notes)
        table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
        region = (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">'
        )
        return f'<section class="table">\n{title}{notes}{region}\n{table}\n</div>\n</section>'

    __html__ = _repr_html_ = html  # for Jinja, and for notebooks

    def _figures(self) -> list[bool]:
        """Return for each column whether it holds figures."""
        return [
            any(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))
        ]

    def _texts(self) -> list[tuple[list[str], bool]]:
        """Return the cells of each row as text, and whether the row is a total."""
        first_total = len(self.rows) - self.totals
        return [
            (
                [str(Number(cell, 0) if isinstance(cell, int) else cell) for cell in row],
                i >= first_total,
            )
            for i, row in enumerate(self.rows)
        ]


def show(*results: RenderableType) -> None:
    """Print results to standard output; without a terminal, no line is wrapped or cut."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=_UNLIMITED)
    for result in results:
        console.print(result, markup=False, highlight=False)
