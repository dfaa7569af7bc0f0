"""The checks of options, which are done before a command imports what only its work needs.

Each option names its check in `opencse.commands.options`. A command is checked the same way from the
command line and from Python. A check imports what it needs itself: `opencse --help` shows the
options, and must not wait for any of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from opencse.recipes.load import RecipeFile


def text(given: Any) -> None:
    """Check that a corpus or a folder of documents exists; data in memory is read later."""
    from opencse.foundation.reading import existing_path
    from opencse.text.corpus import demo_path
    from opencse.text.memory_tables import is_path

    if is_path(given):
        existing_path(demo_path(given, "sentences.txt"))


def path(given: Any) -> None:
    """Check that a file or folder exists; data in memory is read later."""
    from opencse.foundation.reading import existing_path
    from opencse.text.memory_tables import is_path

    if is_path(given):
        existing_path(given)


def file(given: Any) -> None:
    """Check that a file exists and is no folder; data in memory is read later."""
    from opencse.foundation.reading import regular_file
    from opencse.text.memory_tables import is_path

    if is_path(given):
        regular_file(given)


def pairs(given: Any) -> None:
    """Check that a file of scored pairs exists, if it is not the one that comes with opencse."""
    from opencse.text.corpus import demo_path

    file(demo_path(given, "pairs.tsv") if isinstance(given, str | Path) else given)


def development(given: Any) -> None:
    """Check that the file of development pairs exists, if one is named."""
    from opencse.evaluation.sts import names_pairs

    if names_pairs(given):
        pairs(given)


def model(given: Any) -> None:
    """Check that the folder of a model exists, if it is named; a loaded one needs no check."""
    from opencse.encoder.names import resolve

    if isinstance(given, str | Path):
        resolve(given)


def family_backbone(given: str) -> None:
    """Check the model of `FAMILY=PATH`; without `=` the text is the model."""
    _, _, named = given.partition("=")
    model(named or given)


def override(given: str) -> None:
    """Check that a `--set` is `key=value`."""
    from opencse.foundation.toml_tables import parse_override

    parse_override(given)


def sts_data(data: str | Path | None) -> None:
    """Check that the folder of STS data has the files of SentEval."""
    from opencse.evaluation.sts import sts_folder

    if data is not None:
        sts_folder(data)


def processes() -> int:
    """Return the number of processes that a launcher such as `torchrun` started; 1 without one."""
    from opencse.foundation.workers import launched_processes

    return launched_processes()


def one_process() -> None:
    """Check that the command was not started in several processes.

    Raises:
        OpencseError: It was.
    """
    count = processes()
    if count > 1:
        raise OpencseError(
            f"{count} processes were started, but only `opencse train` and `opencse run` on text work in several",
            "Start this command without a launcher such as `torchrun`.",
        )


def columns_of_training(recipe: str, needed: Sequence[str], corpus: Any) -> None:
    """Check that a corpus has the columns that a recipe trains on: `opencse train` builds none.

    Raises:
        OpencseError: A column is missing.
    """
    from opencse.foundation.reading import file_extension
    from opencse.foundation.tables import TABLES
    from opencse.recipes.load import check_columns
    from opencse.text.corpus import Corpus, demo_path
    from opencse.text.documents import Documents

    if _is_dataset(corpus):
        # Its columns are known when it is opened.
        return
    present = ["text"]
    if isinstance(corpus, str | Path):
        place = demo_path(corpus, "sentences.txt")
        if place.is_dir():
            is_table = not Documents(place).are_prose
        else:
            is_table = file_extension(place) in (".parquet", *TABLES)
        if is_table:
            present.extend(Corpus(place).columns)
    name = str(corpus) if isinstance(corpus, str | Path) else "the list of texts"
    check_columns(recipe, needed, present, name)


def _is_dataset(corpus: Any) -> bool:
    """Return whether a corpus is a table in memory or a data set, which may have any columns."""
    from opencse.text.memory_tables import is_named_dataset, is_table

    return is_named_dataset(corpus) or is_table(corpus)


def translation(recipe: RecipeFile, settings: Sequence[str], corpus: Any) -> None:
    """Check that translation models are here if a recipe makes paraphrases of plain text with them.

    A recipe whose views the user changed is not judged: its paraphrases may come from elsewhere.
    """
    from opencse.foundation.reading import file_extension
    from opencse.foundation.tables import TABLES
    from opencse.recipes.rows.sentence_sample import tables_of_kind
    from opencse.text.corpus import demo_path
    from opencse.text.generated.paraphrases import BackTranslation

    if _is_dataset(corpus):
        return
    if isinstance(corpus, str | Path):
        place = demo_path(corpus, "sentences.txt")
        # A table may have a column of paraphrases.
        if os.path.isdir(place) or file_extension(place) in (".parquet", *TABLES):
            return
    if any(setting.startswith(("build", "losses", "views")) for setting in settings):
        return
    if "paraphrases" in recipe.layers["with"]:
        for _, table in tables_of_kind(recipe.table, "back_translation"):
            BackTranslation(models=table["models"]).check()


def output_folder(out: str | Path, *, resume: bool, overwrite: bool, backbone: Any) -> None:
    """Check that a run may write its output folder.

    Raises:
        OpencseError: Something is there that the user did not choose to resume or replace.
    """
    from opencse.foundation.files import locked
    from opencse.training.folder import check_folder

    folder = Path(out)
    if not folder.exists():
        return
    with locked(folder):
        check_folder(folder, resume=resume, overwrite=overwrite, backbone=backbone)


def seeds_output(out: str | Path, seeds: str) -> None:
    """Check the seeds of several runs, and that their folder is not a run itself."""
    from opencse.training.run_groups import parse_seeds, seed_folders

    seed_folders(out, parse_seeds(seeds))


def runs(given: Sequence[str | Path]) -> None:
    """Check that there are runs in these folders."""
    from opencse.training.run_groups import find_runs

    find_runs(given)
