"""Mistakes in the options of a command, told before the command imports what only its work needs.

The checks are functions that the command itself calls later, so that each mistake has the same
message from Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opencse.commands.options import (
    CompareCommand,
    EvaluateCommand,
    ProbeOptions,
    RecipeOptions,
    ReproduceOptions,
    RunOptions,
    TrainCommand,
    TrainOptions,
)
from opencse.commands.run_groups import find_runs, parse_seeds, seed_folders
from opencse.encoder.names import resolve
from opencse.evaluation.sts import development_file, sts_folder
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked
from opencse.foundation.reading import existing_path, file_extension, regular_file
from opencse.foundation.tables import TABLES
from opencse.foundation.toml_tables import parse_override
from opencse.foundation.workers import launched_processes
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.sentence_sample import tables_of_kind
from opencse.text.corpus import demo_path
from opencse.text.generated.paraphrases import BackTranslation
from opencse.training.folder import check_folder

_GIVEN: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(
        ("corpus", "texts"), lambda given: existing_path(demo_path(given, "sentences.txt"))
    ),
    **dict.fromkeys(("queries", "sentences", "triplets", "guard"), existing_path),
    "paraphrases": regular_file,
    "pairs": lambda given: regular_file(demo_path(given, "pairs.tsv")),
    "dev": lambda given: (file := development_file(given)) and regular_file(file),
    **dict.fromkeys(("backbone", "model", "models"), resolve),
}
"""The check of each option that names files or a model."""


def check_options(options: Any) -> None:
    """Check what can be checked of a command's options without PyTorch, in a fraction of a second.

    Raises:
        OpencseError: An override or a name is unknown, or there is no such file or model; the
            output folder is in use; the command does not work in several processes.
    """
    processes = launched_processes()
    if processes > 1 and not isinstance(options, TrainCommand):
        raise OpencseError(
            f"{processes} processes were started, but only `opencse train` works in several",
            "Start this command without a launcher such as `torchrun`.",
        )
    match options:
        case RecipeOptions():
            RecipeFile.read(options.recipe).check(getattr(options, "settings", options.overrides))
        case ReproduceOptions():
            for text in options.overrides:
                parse_override(text)
        case CompareCommand(texts=None):
            find_runs(options.runs)
    if _uses_sts(options):
        sts_folder(options.data)
    for name, check in _GIVEN.items():
        given = getattr(options, name, None)
        if name == "backbone" and isinstance(options, ReproduceOptions):
            given = [backbone.partition("=")[2] or backbone for backbone in options.backbone]
        for value in given if isinstance(given, list | tuple) else [] if given is None else [given]:
            check(value)
    if isinstance(options, RunOptions) and options.corpus is not None:
        _check_translation(options)
    unchanged = isinstance(options, RunOptions) and options.resume
    if isinstance(options, TrainCommand) and options.seeds is not None and processes == 1:
        seed_folders(options.out, parse_seeds(options.seeds))
    elif (
        isinstance(options, TrainOptions)
        and processes == 1
        and not unchanged
        and os.path.exists(options.out)
    ):
        folder = Path(options.out)
        with locked(folder):
            check_folder(
                folder,
                resume=options.resume,
                overwrite=options.overwrite,
                backbone=options.backbone,
            )


def _check_translation(options: RunOptions) -> None:
    """Check that translation models are here if a recipe as it is shall make paraphrases of plain text with them."""
    file, corpus = RecipeFile.read(options.recipe), demo_path(options.corpus, "sentences.txt")
    tables = os.path.isdir(corpus) or file_extension(corpus) in (".parquet", *TABLES)
    changed = any(text.startswith(("build", "losses", "views")) for text in options.settings)
    if "paraphrases" in file.layers["with"] and not (options.paraphrases or tables or changed):
        for _, translation in tables_of_kind(file.table, "back_translation"):
            BackTranslation(models=translation["models"]).check()


def _uses_sts(options: Any) -> bool:
    """Return whether the command reads all its STS data from `--data`."""
    match options:
        case TrainCommand():
            used = options.dev in (None, "stsb")
        case EvaluateCommand():
            used = not options.pairs and options.tasks == "sts"
        case CompareCommand():
            used = not options.pairs and options.texts is None
        case _:
            used = isinstance(options, RunOptions | ProbeOptions | ReproduceOptions)
    return used and options.data is not None
