"""`opencse probe`: does a model go by wording or by meaning?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opencse.cli import options
from opencse.cli.evaluate import PrecisionName, TextVariant


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
            help="The STS tasks, as for `opencse evaluate`; without them only sentences are probed.",
        ),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Sentences of your own: a table or built views, with a column sentence or text and any of paraphrase, "
            "negation, deletion, insertion, substitution, random. By default those that come with opencse."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scored pairs of your own: .csv, .tsv or .jsonl with sentence1, sentence2, score. Repeatable."
        ),
    ] = None,
    text: Annotated[TextVariant, typer.Option(help="Text variant of the STS tasks; published splits: senteval.")] = (
        TextVariant.senteval
    ),
    precision: Annotated[
        PrecisionName, typer.Option(help="`auto`: bf16 if that is faster on this machine.")
    ] = PrecisionName.auto,
    pooling: Annotated[
        str | None, typer.Option(help="For an encoder without pooling of its own: cls, mean, first_last, …")
    ] = None,
    limit: Annotated[int, typer.Option(min=2, help="Sentences taken at most, drawn by chance.")] = 2000,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure how far models go by wording where meaning should count, and write a report.

    No training, and no labels beyond the STS sets. OUT/report.html is one file that needs nothing else.

    For example:

    opencse probe minilm -o probe/

    opencse probe minilm out/ --data sts/ -o probe/

    opencse probe minilm --sentences out/views -o probe/
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from rich.console import Console

    from opencse.pipeline.probe import probe as run

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
    Console().print(result)
