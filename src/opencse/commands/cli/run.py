"""`opencse run`: build the columns of a recipe, train, and report scores before and after."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from opencse.commands.cli import options
from opencse.foundation import progress
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import show


def run(
    recipe: options.Recipe,
    corpus: options.Corpus,
    out: options.Out,
    backbone: options.Backbone = "minilm",
    dev: options.Dev = None,
    data: options.Data = None,
    guard: options.Guard = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Scored pairs to evaluate on before and after: a file as for --dev, or `demo`, the pairs that come "
            "with opencse."
        ),
    ] = None,
    paraphrases: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="For recipes that can use paraphrases: a table with a column text, and one paraphrase, "
            "back_translation or candidate. Its sentences are added to the corpus.",
        ),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            metavar="URL#MODEL",
            help="Let a language model behind an OpenAI-compatible endpoint write the paraphrases (extra `llm`): "
            "http://localhost:8000/v1#NAME.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Points by which the development score may fall below that of the untouched model; beyond, the "
            "trained weights are interpolated towards the untouched ones. Shorthand for --set selection.keep=last "
            "--set selection.tolerance=…",
        ),
    ] = None,
    column: options.Column = None,
    variant: options.Variant = "sound",
    overrides: options.Overrides = [],  # noqa: B006
    seed: options.Seed = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a short trial of a few steps on a few sentences: a test that everything works.",
        ),
    ] = False,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Your own labels to train on: a .csv, .tsv or .jsonl file with sentence1, sentence2 and label (same "
            "or opposite), or the judgements.csv of `opencse compare`.",
        ),
    ] = None,
    label_share: Annotated[
        float,
        typer.Option(
            help="Share of the training rows that the labels make up, at most 0.5; none is repeated more than 20 times."
        ),
    ] = 0.1,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            help="Time from the start of the command to the end of training. The steps that fit are computed after the "
            "first twenty; evaluation and report follow.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps and sizes of the run, and stop.")] = False,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    track: options.Track = [],  # noqa: B006
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Build the text columns of a recipe, train, and report probes and scores before and after.

    Writes OUT/model (a sentence-transformers folder), OUT/report.html, OUT/results.json, OUT/metrics.jsonl, and the
    resolved recipe and environment beside them.
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.commands.run import run as run_pipeline

    if tolerance is not None and (dev == "none" or (dev is None and data is None)):
        raise OpencseError(
            "--tolerance needs development pairs to measure how much the model has lost",
            "Give scored pairs with --dev FILE, or the STS files with --data.",
        )
    limits = [] if tolerance is None else ["selection.keep=last", f"selection.tolerance={tolerance}"]
    inputs: dict[str, Any] = {
        "backbone": backbone,
        "dev": dev,
        "data": data,
        "guard": guard,
        "pairs": pairs,
        "paraphrases": paraphrases,
        "llm": llm,
        "column": column,
        "variant": variant,
        "overrides": [*limits, *overrides],
        "seed": seed,
        "quick": quick,
        "labels": labels,
        "label_share": label_share,
    }
    if dry_run:
        from opencse.commands.plan import plan

        for number, line in enumerate(plan(recipe, corpus, **inputs), 1):
            typer.echo(f"{number}. {line}")
        return
    result = run_pipeline(
        recipe,
        corpus,
        **inputs,
        minutes=minutes,
        out=out,
        resume=resume,
        overwrite=overwrite,
        track=track,
        notify=progress.note,
    )
    show(result)
