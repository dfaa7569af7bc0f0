"""`opencse pretrain`: train a masked language model on raw text."""

from __future__ import annotations

from typing import Annotated

import typer

from opencse import progress
from opencse.cli import options

Corpora = Annotated[
    list[str], typer.Argument(help="Raw sentences, one or more files or folders (see `opencse train`).")
]
Backbone = Annotated[
    str | None,
    typer.Option(help="Continue to train this model (a folder, a hub id, or a bundled name) instead of a new one."),
]
Settings = Annotated[
    str | None,
    typer.Option(
        help="A TOML file, or: mini-mlm (the default for a new model), small-mlm, adapt (the default with --backbone)."
    ),
]
Overrides = Annotated[
    list[str], typer.Option("--set", help="Override a setting; repeatable: --set training.max_steps=2000")
]


def pretrain(
    corpus: Corpora,
    out: options.Out,
    backbone: Backbone = None,
    settings: Settings = None,
    overrides: Overrides = [],  # noqa: B006
    seed: options.Seed = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    track: options.Track = [],  # noqa: B006
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Train a masked language model on raw text, and write it as OUT/model.

    The model is a backbone for `opencse run`, and loads with transformers and sentence-transformers. An
    interrupted run continues with --resume and gives exactly the same result.
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.io import demo
    from opencse.pipeline.inputs import with_seed
    from opencse.pretraining import pretrain as run

    result = run(
        [demo.corpus(c) for c in corpus],
        out=out,
        backbone=backbone,
        settings=settings,
        overrides=with_seed(overrides, seed),
        resume=resume,
        overwrite=overwrite,
        track=track,
        notify=progress.note,
    )
    outcome = result.outcome
    text = f"{outcome.steps} steps in {outcome.seconds:.0f} s"
    if outcome.best_score is not None:
        text += f"; accuracy on held-out masked tokens: {outcome.best_score:.1f} %"
        text += f" (before training {outcome.first_score:.1f} %)"
    typer.echo(text)
    typer.echo(f"model: {result.model}   use it with --backbone {result.model}")
