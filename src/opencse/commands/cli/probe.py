"""`opencse probe`: do models follow wording or meaning?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opencse.commands.cli import options
from opencse.commands.cli.evaluate import PrecisionName, TextVariant
from opencse.foundation.result_table import show


def probe(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Model folders, runs, hub ids or `minilm`; the first is the baseline."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for report.html, probe.json and the figures.")],
    data: Annotated[
        str | None,
        typer.Option(
            envvar="OPENCSE_DATA",
            help="The STS tasks, as for `opencse evaluate`; without them, only sentences are probed.",
        ),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Your own sentences: a table or built views, with a column sentence or text and any of paraphrase, "
            "negation, deletion, insertion, substitution, random. By default those that come with opencse."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(help="Your own scored pairs: .csv, .tsv or .jsonl with sentence1, sentence2, score. Repeatable."),
    ] = None,
    text: Annotated[TextVariant, typer.Option(help="Text variant of the STS tasks; published splits: senteval.")] = (
        TextVariant.senteval
    ),
    precision: Annotated[
        PrecisionName, typer.Option(help="`auto`: bf16 if that is faster on this machine.")
    ] = PrecisionName.auto,
    pooling: Annotated[
        str | None, typer.Option(help="Pooling of an encoder that defines none: cls, mean, first_last, …")
    ] = None,
    limit: Annotated[int, typer.Option(min=2, help="Maximum number of sentences; more are sampled at random.")] = 2000,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure how far models follow wording instead of meaning, and write a report.

    It needs no training, and no labels except for the STS sets. OUT/report.html is one self-contained file.

    For example:

    opencse probe minilm -o probe/

    opencse probe minilm out/ --data sts/ -o probe/

    opencse probe minilm --sentences out/views -o probe/
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.commands.probe import probe as run

    result = run(
        models,
        out=out,
        data=data,
        sentences=sentences,
        pairs=pairs or (),
        text=text.value,
        precision=precision.value,
        pooling=pooling,
        limit=limit,
    )
    show(result)
