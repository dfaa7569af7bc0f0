"""A comparison of groups of runs, and its table as Markdown, LaTeX (booktabs) or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import RenderableType
from rich.jupyter import JupyterMixin
from rich.markdown import Markdown

from opencse.comparison.statistics import Difference, Spread

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "−": r"$-$",
        "×": r"$\times$",
    }
)


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """Results of one group of runs.

    Attributes:
        label: Recipe and backbone of the group.
        seeds: Seeds of its runs.
        tasks: Mean and deviation over seeds of each task's score.
        average: The same for the average over tasks.
        before: Average of the untouched backbone; None if it was not measured, is undefined, or differs between runs.
        published: Published average for this recipe and backbone family.
        above_published: Mean minus published.
        seeds_test: Difference from the baseline over seeds (Welch); None for the baseline itself.
        pairs_test: Difference from the baseline over pairs (bootstrap); None for the baseline, or without pairs.
        seconds: Training time in seconds, over seeds.
        steps: Number of steps; None if it differs between runs.
        dev: Development score over seeds.
        notes: Remarks for the reader.
    """

    label: str
    seeds: tuple[int, ...]
    tasks: Mapping[str, Spread]
    average: Spread
    before: float | None
    published: float | None
    above_published: float | None
    seeds_test: Difference | None
    pairs_test: Difference | None
    seconds: Spread
    steps: int | None
    dev: Spread
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison(JupyterMixin):
    """All groups, scored on the same tasks; displayed as a table in a terminal (rich) and in a notebook.

    Attributes:
        suite: `sts`, `pairs`, or another suite of results.json.
        rows: Results of each group; the first group is the baseline.
        notes: Remarks on all groups.
    """

    suite: str
    rows: tuple[GroupRow, ...]
    notes: tuple[str, ...]

    def __rich__(self) -> RenderableType:
        return Markdown(markdown(self))


def table_cells(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return column headings and rows of cells, as text."""
    tasks = list(comparison.rows[0].tasks)
    head = ["run", "seeds", *tasks]
    head += ["average"] if len(tasks) > 1 else []
    measured: Callable[[str], bool] = lambda name: any(getattr(row, name) is not None for row in comparison.rows)  # noqa: E731
    optional = [name for name in ("before", "published", "seeds_test", "pairs_test") if measured(name)]
    names = {
        "before": "backbone",
        "published": "published (difference)",
        "seeds_test": "against the first, over seeds",
        "pairs_test": "against the first, over pairs",
    }
    head += [*(names[name] for name in optional), "steps", "seconds"]
    return head, [_cells(row, tasks, optional) for row in comparison.rows]


def markdown(comparison: Comparison) -> str:
    """Return a table in GitHub's Markdown, with the notes below it."""
    head, rows = table_cells(comparison)
    clean = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    lines = ["| " + " | ".join(row) + " |" for row in clean]
    lines.insert(1, "|" + "---|" + "---:|" * (len(head) - 1))
    return "\n".join([*lines, "", *(f"- {note}" for note in _notes(comparison))]) + "\n"


def latex(comparison: Comparison) -> str:
    """Return a LaTeX `tabular` for the package booktabs, with the notes as comments."""
    head, rows = table_cells(comparison)
    lines = [f"% {' '.join(note.split())}" for note in _notes(comparison)]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule"]
    lines += [_latex_line(head), r"\midrule", *map(_latex_line, rows), r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def comma_separated(comparison: Comparison) -> str:
    """Return one CSV line for each group and task, the average included, with plain numbers."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["run", "task", "runs", "mean", "sd", "published", "seeds", "steps", "seconds_mean"])
    for row in comparison.rows:
        for task, value in [*row.tasks.items(), ("average", row.average)]:
            published = row.published if task == "average" else None
            tail = [published, " ".join(map(str, row.seeds)), row.steps, row.seconds.mean]
            cells = [row.label, task, value.runs, value.mean, value.deviation, *tail]
            writer.writerow(["" if cell is None else cell for cell in cells])
    return stream.getvalue()


FORMATS: dict[str, tuple[str, Callable[[Comparison], str]]] = {
    "markdown": ("md", markdown),
    "latex": ("tex", latex),
    "csv": ("csv", comma_separated),
}
"""File ending and writer of each format."""


def _cells(row: GroupRow, tasks: list[str], optional: list[str]) -> list[str]:
    cells = [row.label, " ".join(map(str, row.seeds)), *(_spread(row.tasks[task]) for task in tasks)]
    cells += [_spread(row.average)] if len(tasks) > 1 else []
    for name in optional:
        if name == "before":
            cells.append("" if row.before is None else f"{row.before:.2f}")
        elif name == "published":
            cells.append("" if row.published is None else f"{row.published:.2f} ({_signed(row.above_published)})")
        else:
            test = getattr(row, name)
            cells.append("–" if test is None else _difference(test))
    seconds = "" if row.seconds.mean is None else f"{row.seconds.mean:.0f}"
    return [*cells, "differ" if row.steps is None else str(row.steps), seconds]


def _spread(value: Spread) -> str:
    if value.mean is None:
        return "undefined"
    return f"{value.mean:.2f}" + (f" ± {value.deviation:.2f}" if value.deviation is not None else " (n = 1)")


def _difference(test: Difference) -> str:
    if test.low is None or test.high is None:
        return f"{_signed(test.value)} ({test.undefined})"
    p = "" if test.p is None else f", p {'< 0.001' if test.p < 0.001 else f'= {test.p:.3f}'}"
    return f"{_signed(test.value)} [{_signed(test.low)}, {_signed(test.high)}]{p}"


def _signed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:+.2f}".replace("-", "−")


def _notes(comparison: Comparison) -> list[str]:
    general = [
        "Spearman × 100; mean ± standard deviation (n − 1) over seeds.",
        "Over seeds: Welch's t-test, 95 % interval; it covers new training runs on these test sets.",
    ]
    if any(row.pairs_test is not None for row in comparison.rows):
        general.append(
            "Over pairs: paired bootstrap of the test pairs, 95 % interval; it covers new test pairs for these models."
        )
    if any(row.published is not None for row in comparison.rows):
        general.append(
            "Published: the authors' figure, mostly of one run; a difference of one point may be due to the seed."
        )
    return [*general, *comparison.notes]


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cell.translate(_LATEX).replace("\n", " ") for cell in cells) + r" \\"
