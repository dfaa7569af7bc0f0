"""What a user asks of `run`, `train` and `build`, and what all commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from opencse.commands.command_line import option, options_class, python_only

Precision = Literal["auto", "fp32", "bf16"]
TextVariant = Literal["senteval", "raw"]
Variant = Literal["sound", "faithful"]
Notify = Callable[[str], None]

COLUMN = "Column of a table that holds the text; by default `text`, or the likeliest by name."
VARIANT = "`sound`, or `faithful`: the system as published, quirks included."
OUT = ("--out", "-o")
SET = ("--set",)
_CORPUS = (
    "Your text: .txt (one sentence per line), .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of Parquet "
    "files; documents in Markdown or HTML, or a folder of these; or `demo`, the sample "
    "sentences that come with opencse. In Python also a list of strings, a pandas DataFrame or a `datasets.Dataset`."
)
_BACKBONE = "The model to start from: a folder, a hub id (bert-base-uncased), or a bundled name: minilm, mini-mlm."
DATA = "The data: a folder with STS12/test.tsv.gz …, or SentEval's data/downstream."


@options_class
class Notified:
    """Progress and notes, which the command line always shows."""

    progress: bool = python_only("Show progress bars.", default=True)
    notify: Notify = python_only("Receives short notes for the user.", default=lambda _: None)


@options_class
class RecipeOptions(Notified):
    """A recipe, and the text that it is used on."""

    recipe: Any = option("A recipe's name (see `opencse recipes`) or a TOML file.", kw_only=False)
    corpus: Any = option(_CORPUS, kw_only=False)
    column: str | None = option(COLUMN, default=None)
    variant: Variant = option(VARIANT, default="sound")
    family: str | None = option("Settings of this family of backbones; by default that of the backbone.", default=None)
    overrides: Sequence[str] = option(
        "Override a value of the recipe; repeatable: --set optimizer.lr=1e-5", default=(), flags=SET
    )


@options_class
class TrainOptions(RecipeOptions):
    """Train a sentence encoder and write it as a sentence-transformers folder, OUT/model.

    Rows are taken as they are: if the recipe mixes parts (`[corpus.parts]`), `opencse run` draws the mixture. The best
    step on the development pairs is kept. An interrupted run continues with --resume and gives exactly the same result.
    """

    backbone: Any = option(_BACKBONE)
    out: str | Path = option("Output folder.", flags=OUT, shown=Path)
    dev: str | Path | None = option(
        "Scored pairs that choose the best step: a file with sentence1, sentence2, score; `stsb` for STS-B dev below "
        "--data, the default if that is given; or `none`.",
        default=None,
    )
    data: str | Path | None = option(DATA, default=None, envvar="OPENCSE_DATA")
    guard: str | Path | None = option(
        "Your own guards, which must not get worse, for recipes such as debias: a file of searches, one per line, or a "
        "folder with questions.tsv (group, question), answers.tsv (question, passage), topics.tsv (topic, text), "
        "long.tsv (summary, text), or searches.txt and documents.txt.",
        default=None,
        metavar="PATH",
    )
    seed: int | None = option("Shorthand for --set training.seed=…", default=None)
    resume: bool = option("Continue from the last checkpoint in the output folder.", default=False)
    overwrite: bool = option("Replace the run in the output folder.", default=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """The overrides of the recipe, the seed among them."""
        return (*self.overrides, *([] if self.seed is None else [f"training.seed={self.seed}"]))


@options_class
class TrainCommand(TrainOptions):
    """The options of `opencse train` on the command line."""

    seeds: str | None = option("Several runs, in OUT/seed-1 and so on: 1,2,3 or 1-5.", default=None)


@options_class
class RunOptions(TrainOptions):
    """Build the text columns of a recipe, train, and report probes and scores before and after.

    Writes OUT/model (a sentence-transformers folder), OUT/report.html, OUT/results.json, OUT/metrics.jsonl, and the
    resolved recipe and environment beside them; OUT/views if columns were built.
    """

    corpus: Any = option(
        f"{_CORPUS} Leave it out to give the model the meaning block that comes with opencse.",
        default=None,
        kw_only=False,
    )
    backbone: Any = option(_BACKBONE, default="minilm")
    pairs: str | Path | None = option(
        "Scored pairs to evaluate on before and after: a file as for --dev, or `demo`.", default=None
    )
    paraphrases: str | Path | None = option(
        "Paraphrases: a table with a column text, and one paraphrase, back_translation or candidate. Its sentences are "
        "added to the corpus.",
        default=None,
        metavar="TABLE",
    )
    quick: bool = option("Run a short trial of a few steps on a few sentences.", default=False)
    minutes: float | None = option(
        "Time from the start of the command to the end of training; evaluation and report follow.",
        default=None,
        min=0.5,
    )


@options_class
class BuildOptions(RecipeOptions):
    """Build the text columns of a recipe: negations, paraphrases, substitutions, ...

    Writes OUT/part-00000-of-….parquet with id, text, and for each column its sentence (null if there is none), its
    rule and its scores. An interrupted build continues where it stopped.
    """

    out: str | Path = option("Folder for the Parquet parts.", flags=OUT, shown=Path, kw_only=False)
    only: Sequence[str] = option("Build only this column and those it is made from; repeatable.", default=())
    backbone: Any = option("The model to be trained, for recipes that mine with it.", default="minilm")
    seed: int = option("Seed of all sampling.", default=0)
    resume: bool = option(
        "Keep finished parts, or replace what OUT holds.", default=True, flags=("--resume/--overwrite",)
    )
    engine: Any = python_only("Runs the work; by default one process per core.", default=None)


@options_class
class BuildCommand(BuildOptions):
    """The options of `opencse build` on the command line."""

    engine: Any = option(
        "`local`, or `ray`: a cluster whose machines see the same files. The output is the same.",
        default="local",
        shown=Literal["local", "ray"],
    )
    workers: int | None = option("Processes; one per core by default. The output is the same.", default=None)
    address: str = option("With --engine ray: address of a running cluster, or `auto`.", default="")
    stats: bool = option("Then show nulls, rules and mean scores of each column.", default=False)
