"""`opencse reproduce`: a table of a paper from one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from opencse.commands.cli import options
from opencse.foundation.result_table import Table, show


class Scale(StrEnum):
    """Scale of the training runs."""

    small = "small"
    full = "full"


def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Name of the table, such as osscse/table-4. Without it, the tables are listed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs, which tables share.")] = Path("papers"),
    data: Annotated[str | None, typer.Option(help="The STS files, as for `opencse evaluate`.")] = None,
    corpus: Annotated[str, typer.Option(help="Sentences to train on, or `demo`.")] = "demo",
    scale: Annotated[
        Scale,
        typer.Option(
            help="`small`: minutes, from mini-mlm. `full`: the backbones and settings of the paper; needs a GPU."
        ),
    ] = Scale.small,
    seeds: Annotated[str | None, typer.Option(help="Seeds, such as 1,2,3.")] = None,
    overrides: Annotated[
        list[str], typer.Option("--set", help="Override a setting of all runs: --set training.max_steps=500")
    ] = [],  # noqa: B006
    paraphrases: Annotated[
        Path | None, typer.Option(help="A table of sentences and paraphrases, in place of back-translation.")
    ] = None,
    triplets: Annotated[
        Path | None,
        typer.Option(help="The corpus of supervised SimCSE: a table of text, entailment and contradiction."),
    ] = None,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Reproduce a table of a paper, with the published figures beside the measured ones.

    Tables share their runs, and an interrupted reproduction continues where it stopped.

    Examples:
    opencse reproduce

    opencse reproduce osscse/table-2 --data sts/

    opencse reproduce byop/table-1 --data sts/ --seeds 1,2,3
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.commands.reproduction import entry_names, load_entry
    from opencse.foundation.errors import OpencseError

    if table is None:
        show(Table(("table", "title"), [(name, load_entry(name).title) for name in entry_names()]))
        return
    from opencse.commands.reproduce import reproduce as run
    from opencse.foundation.progress import note

    try:
        chosen = None if seeds is None else [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise OpencseError(f"--seeds {seeds}: expected numbers", "Such as --seeds 1,2,3.") from None
    result = run(
        table,
        out=out,
        data=data,
        corpus=corpus,
        scale=scale.value,
        seeds=chosen,
        overrides=overrides,
        paraphrases=paraphrases,
        triplets=triplets,
        progress=not quiet,
        notify=note,
    )
    typer.echo(result.markdown(), nl=False)
