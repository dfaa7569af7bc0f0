"""`opencse average`: the mean of several models' weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    models: Annotated[list[str], typer.Argument(help="Two or more model folders, runs, hub ids, or `minilm`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")],
    pooling: Annotated[
        str | None, typer.Option(help="Pooling of encoders that define none: cls, mean, first_last.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier model.")] = False,
) -> None:
    """Average the weights of runs that differ in their seed.

    The mean is usually a better model than one of them, and as fast. The runs must have been trained from the same
    backbone. Later seeds can train on the text that the first run built:

    opencse run debias docs/ -o runs/1 --seed 1

    opencse run debias runs/1/views -o runs/2 --seed 2

    opencse average runs/1 runs/2 -o model/

    opencse probe minilm runs/1 model/
    """
    from opencse.pipeline.average import average

    average(models, out=out, pooling=pooling or "backbone", overwrite=overwrite)
    typer.echo(f"written to {out}: the mean of {len(models)} models")
