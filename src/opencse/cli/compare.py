"""`opencse compare`: runs side by side, with what chance may explain."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from opencse.cli import options
from opencse.cli.evaluate import TextVariant


class TableFormat(StrEnum):
    """Form of the printed table."""

    markdown = "markdown"
    latex = "latex"
    csv = "csv"


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run folders, or folders that hold some; the first run's group is the baseline."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the tables, comparison.json and learning curves.")
    ] = None,
    format: Annotated[TableFormat, typer.Option(help="Form of the table on the screen.")] = TableFormat.markdown,
    data: Annotated[
        str | None,
        typer.Option(
            help="Evaluate the models now on these STS tasks, as `opencse evaluate`: allows a bootstrap over pairs. "
            "Otherwise the scores are those that the runs wrote."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None, typer.Option(help="Evaluate on these scored pairs instead. Repeatable.")
    ] = None,
    text: Annotated[TextVariant, typer.Option(help="Text variant of the STS tasks.")] = TextVariant.senteval,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap samples.")] = 1000,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Group runs that differ in their seed alone, and compare the groups with the first.

    Mean and standard deviation over seeds; the difference from the baseline over seeds (Welch) and, with --data, over
    pairs (paired bootstrap); the published score; training time.

    For example:

    opencse compare runs/simcse runs/osscse -o comparison/

    opencse compare runs/* --data sts/ --format latex
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.comparison.tables import FORMATS
    from opencse.pipeline.compare import compare as run

    comparison = run(runs, out=out, data=data, pairs=pairs or (), text=text.value, resamples=resamples)
    typer.echo(FORMATS[format.value][1](comparison), nl=False)
