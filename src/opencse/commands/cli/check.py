"""`opencse check`: does a model follow wording or meaning on your own texts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opencse.commands.cli import options
from opencse.commands.cli.evaluate import PrecisionName
from opencse.foundation.result_table import show


def check(
    model: Annotated[str, typer.Argument(help="A model folder, a run, a hub id, or `minilm`.")],
    texts: Annotated[
        str,
        typer.Option(
            help="Your documents: Markdown, HTML, .txt, .csv, .tsv, .jsonl, .parquet, or a folder of these; `demo` for "
            "the sample sentences."
        ),
    ] = "demo",
    queries: Annotated[
        Path | None, typer.Option(help="Searches that your users make: one per line, or a table with a column `query`.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for check.html and check.json.")] = None,
    column: options.Column = None,
    words: Annotated[int, typer.Option(min=5, help="Maximum number of words in a passage, as in your index.")] = 200,
    minutes: Annotated[float, typer.Option(min=0.1, help="Approximate time limit.")] = 2.0,
    precision: Annotated[
        PrecisionName, typer.Option(help="`auto`: bf16 if that is faster on this machine.")
    ] = PrecisionName.auto,
    pooling: Annotated[
        str | None, typer.Option(help="Pooling of an encoder that defines none: cls, mean, first_last, …")
    ] = None,
    language: Annotated[
        str, typer.Option(help="Language whose rules rewrite the texts: `auto`, `en`, … (see the guide on languages).")
    ] = "auto",
    syntax: Annotated[str, typer.Option(help="A spaCy pipeline for this language, by name or folder.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of all sampling.")] = 0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure how often a model ranks a contradiction above a rewording, on your own texts.

    Rules of grammar contradict sentences of your texts (negation, opposite, number, name) and reword them. The model
    then searches for each sentence among your texts. No training, no labels, about two minutes.

    For example:

    opencse check minilm --texts docs/ -o check/

    opencse check out/model --texts articles.csv --column body --queries log.txt
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.commands.check import check as run
    from opencse.foundation import progress

    result = run(
        model,
        texts,
        queries=queries,
        out=out,
        column=column,
        words=words,
        minutes=minutes,
        precision=precision.value,
        pooling=pooling,
        language=language,
        syntax=syntax,
        seed=seed,
        notify=progress.note,
    )
    show(result)
    if out is None:
        progress.note("-o FOLDER writes a page with more examples")
    else:
        typer.echo(f"page: {out / 'check.html'}")
