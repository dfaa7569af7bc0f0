"""`opencse compare`: runs side by side, over their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opencse.commands.cli import options
from opencse.commands.cli.evaluate import TextVariant
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import show


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Run folders, or folders that contain them; the group of the first run is the baseline. With --texts, "
            "two models: the one in use, and the one that may replace it.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for comparison.md and comparison.json.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Evaluate the models now on these STS tasks, like `opencse evaluate`, which allows a bootstrap over "
            "pairs. By default the scores that the runs wrote are compared."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None, typer.Option(help="Evaluate on these scored pairs instead. Repeatable.")
    ] = None,
    text: Annotated[TextVariant, typer.Option(help="Text variant of the STS tasks.")] = TextVariant.senteval,
    texts: Annotated[
        str | None,
        typer.Option(help="Your documents, as for `opencse check`: show which searches among them change."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="With --texts: searches that your users make, one per line or in a column `query`; by default "
            "sentences of the texts."
        ),
    ] = None,
    column: options.Column = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap samples.")] = 1000,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Group runs that differ only in their seed, and compare the groups with the first.

    Mean and standard deviation over seeds; the difference from the baseline, with --data with its interval over pairs
    (paired bootstrap); training time.

    With --texts, two models search your documents instead: which lists of hits change, whether stored vectors stay
    usable, and with -o a page on which to judge the lists.

    For example:

    opencse compare runs/simcse runs/osscse -o comparison/

    opencse compare minilm out/ --texts docs/ --queries log.txt -o judge/
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    if texts is not None:
        _compare_search(runs, texts, queries, column, out)
        return
    if queries is not None:
        raise OpencseError("--queries goes with --texts", "Add --texts DOCS.")
    from opencse.commands.compare import compare as run

    show(run(runs, out=out, data=data, pairs=pairs or (), text=text.value, resamples=resamples))


def _compare_search(models: list[str], texts: str, queries: Path | None, column: str | None, out: Path | None) -> None:
    from opencse.commands.compare_search import compare_search

    if len(models) != 2:
        raise OpencseError(
            f"--texts compares two models, not {len(models)}", "Name the one in use, then the one that may replace it."
        )
    show(compare_search(models[0], models[1], texts, queries=queries, column=column, out=out))
    if out is not None:
        typer.echo(f"page: {out / 'search.html'}")
