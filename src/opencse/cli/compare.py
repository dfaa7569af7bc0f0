"""`opencse compare`: runs side by side, with what chance may explain."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opencse.cli import options
from opencse.cli.evaluate import TextVariant

if TYPE_CHECKING:
    from opencse.compare import RunRecord
    from opencse.evaluation import Encode, ScoredPairs


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

    Examples:
    opencse compare runs/simcse runs/osscse -o comparison/

    opencse compare runs/* --data sts/ --format latex
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from dataclasses import asdict

    from opencse.compare import compare, find_runs, group_runs, pair_cosines, read_run
    from opencse.compare.curves import save_curves
    from opencse.compare.tables import FORMATS
    from opencse.evaluation import load_sts, read_pairs
    from opencse.io import demo
    from opencse.io.files import write_json, write_text

    groups = group_runs([read_run(folder) for folder in find_runs(runs)])
    sets: list[ScoredPairs] = []
    cosines = None
    if data is not None or pairs:
        sets = [read_pairs(demo.pairs(path)) for path in pairs] if pairs else load_sts(str(data), text=text.value)
        cosines = pair_cosines({run: _loader(run) for group in groups for run in group.runs}, sets)
    comparison = compare(groups, sets=sets, cosines=cosines, resamples=resamples)
    if out is not None:
        for ending, write in FORMATS.values():
            write_text(out / f"comparison.{ending}", write(comparison))
        write_json(out / "comparison.json", asdict(comparison))
        save_curves(groups, out / "learning_curves")
    typer.echo(FORMATS[format.value][1](comparison), nl=False)


def _loader(run: RunRecord) -> Callable[[], Encode]:
    """A function that loads the model of a run."""

    def load() -> Encode:
        from opencse.encoder import load_encoder
        from opencse.encoder.embedder import Embedder

        return Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")

    return load
