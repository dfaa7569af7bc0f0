"""`opencse train`: train a model from a recipe and a corpus."""

from __future__ import annotations

from opencse.commands.cli import options
from opencse.foundation import progress
from opencse.foundation.result_table import show


def train(
    recipe: options.Recipe,
    corpus: options.Corpus,
    out: options.Out,
    backbone: options.Backbone,
    dev: options.Dev = None,
    data: options.Data = None,
    guard: options.Guard = None,
    column: options.Column = None,
    variant: options.Variant = "sound",
    overrides: options.Overrides = [],  # noqa: B006
    seed: options.Seed = None,
    seeds: options.Seeds = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    track: options.Track = [],  # noqa: B006
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Train a sentence encoder and write it as a sentence-transformers folder, OUT/model.

    The best step on the development pairs is kept. An interrupted run continues with --resume and gives exactly the
    same result.
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from accelerate import PartialState

    from opencse.commands.comparison import parse_seeds, seed_folders
    from opencse.commands.display import run_lines
    from opencse.commands.train import train as run
    from opencse.foundation.errors import OpencseError

    if seed is not None and seeds is not None:
        raise OpencseError("--seed and --seeds exclude each other")
    folders = {seed: out} if seeds is None else seed_folders(out, parse_seeds(seeds))
    for each, folder in folders.items():
        result = run(
            recipe,
            corpus,
            backbone=backbone,
            out=folder,
            dev=dev,
            data=data,
            guard=guard,
            column=column,
            variant=variant,
            overrides=overrides,
            seed=each,
            # Some of several runs may not have started before an interruption.
            resume=resume and (seeds is None or (folder / "run.json").is_file()),
            overwrite=overwrite,
            track=track,
            notify=progress.note,
        )
        if PartialState().is_main_process:
            show(run_lines(result))
