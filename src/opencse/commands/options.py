"""What a user asks of each command: its options, with their help and their checks, as a dataclass.

A field names the check of its value; `check` of the class has what only several options tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from opencse.commands import checks
from opencse.commands.command_line import (
    CommandOptions,
    Notified,
    option,
    options_class,
    python_only,
)
from opencse.foundation.progress import Notify

if TYPE_CHECKING:
    from opencse.recipes.load import RecipeFile

Precision = Literal["auto", "fp32", "bf16"]
TextVariant = Literal["senteval", "raw"]
Variant = Literal["sound", "faithful"]

COLUMN = "Column of a table that holds the text; by default `text`, or the likeliest by name."
VARIANT = "`sound`, or `faithful`: the system as published, quirks included."
OUT = ("--out", "-o")
SET = ("--set",)
_CORPUS = (
    "Your text: .txt (one sentence per line), .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of Parquet "
    "files; documents in Markdown, HTML, PDF or DOCX, or a folder of these; or `demo`, sentences that come with "
    "opencse; or a data set: the folder that `save_to_disk` wrote, or hub:owner/name. In Python also strings, dicts, a data "
    "frame, a Dataset or an Arrow table."
)
_MEMORY = "In Python also a data frame, a Dataset, an Arrow table or dicts."
_BACKBONE = "The model to start from: a folder, a hub id (bert-base-uncased), or a bundled name: minilm, mini-mlm."
DATA = "The data: a folder with STS12/test.tsv.gz …, or SentEval's data/downstream."


@options_class
class _RecipeOptions(Notified):
    """A recipe, and the text that it is used on."""

    recipe: Any = option("A recipe's name (see `opencse recipes`) or a TOML file.", kw_only=False)
    corpus: Any = option(_CORPUS, check=checks.text, kw_only=False)
    column: str | None = option(COLUMN, default=None)
    variant: Variant = option(VARIANT, default="sound")
    overrides: Sequence[str] = option(
        "Override a value of the recipe; repeatable: --set optimizer.lr=1e-5", default=(), flags=SET
    )

    @property
    def settings(self) -> tuple[str, ...]:
        """All overrides of the recipe, including those implied by other options."""
        return tuple(self.overrides)

    @cached_property
    def recipe_file(self) -> RecipeFile | None:
        """The file of the recipe, read once; None for a `Recipe` that was resolved in Python."""
        # Here, because `--help` should not wait for the losses, which recipes import.
        from opencse.recipes.load import RecipeFile

        if isinstance(self.recipe, str | Path):
            return RecipeFile.read(self.recipe)
        return None

    def check(self) -> None:
        """Check the recipe as far as that needs no loss."""
        super().check()
        if self.recipe_file is not None:
            self.recipe_file.check(self.settings)


@options_class
class TrainOptions(_RecipeOptions):
    """Train a sentence encoder and write it as a sentence-transformers folder, OUT/model.

    Rows are taken as they are: if the recipe mixes parts (`[corpus.parts]`), `opencse run` draws
    the mixture. The best step on the development pairs is kept. An interrupted run continues with
    --resume and gives exactly the same result.
    """

    backbone: Any = option(_BACKBONE, check=checks.model)
    out: str | Path = option("Output folder.", flags=OUT, shown=Path)
    dev: Any = option(
        "Scored pairs that choose the best step: a table with sentence1, sentence2, score; `stsb` for STS-B dev below "
        f"--data, the default if that is given; or `none`. {_MEMORY}",
        default=None,
        check=checks.development,
    )
    data: str | Path | None = option(DATA, default=None, envvar="OPENCSE_DATA")
    guard: Any = option(
        "Your own guards, which are searches that must not get worse, for recipes such as debias: a file of searches, "
        "one per line, or a folder with questions.tsv (group, question), answers.tsv (question, passage), "
        f"topics.tsv (topic, text), long.tsv (summary, text), or searches.txt and documents.txt. {_MEMORY} Several "
        "tables go into a dict: {'questions': …, 'searches': …}.",
        default=None,
        check=checks.path,
        metavar="PATH",
    )
    same_width: bool = option(
        "Keep the original embedding size, for indexes that cannot store longer vectors (`debias` only). All vectors "
        "change, so embed your documents again. Shorthand for --set block.same_width=true.",
        default=False,
    )
    strength: float | None = option(
        "How much meaning counts (`debias` only). By default, as much as costs no search or classification check more "
        "than 0.3 points. Shorthand for --set block.strength=…",
        default=None,
    )
    seed: int | None = option("Shorthand for --set training.seed=…", default=None)
    track: Any = option(
        "Experiment trackers, separated by commas: tensorboard, wandb, mlflow, …, or a name that a plug-in gave its own; "
        "offline, in OUT/tracking. In Python also objects of accelerate's `GeneralTracker`.",
        default=None,
        shown=str,
    )
    callbacks: Sequence[Any] = option(
        "Your own callback, by the name that a plug-in gave it; repeatable. In Python also an object of "
        "`opencse.training.callbacks.TrainingCallback`.",
        default=(),
        flags=("--callback",),
        shown=list[str],
        metavar="NAME",
    )
    resume: bool = option("Continue from the last checkpoint in the output folder.", default=False)
    overwrite: bool = option("Replace the run in the output folder.", default=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """All overrides of the recipe, including those implied by other options."""
        settings = list(self.overrides)
        if self.seed is not None:
            settings.append(f"training.seed={self.seed}")
        if self.same_width:
            settings.append("block.same_width=true")
        if self.strength is not None:
            settings.append(f"block.strength={self.strength}")
        return tuple(settings)

    def check(self) -> None:
        """Check the recipe, the columns of the corpus, the data and the output folder."""
        super().check()
        # A `Recipe` object needs its losses to tell its columns; `train` checks those itself.
        if self.recipe_file is not None:
            columns = self.recipe_file.named_columns(self.settings, self.variant)
            checks.columns_of_training(self.recipe_file.name, columns, self.corpus)
        by_default = self.dev is None
        if by_default or (isinstance(self.dev, str) and self.dev == "stsb"):
            checks.sts_data(self.data)
        self.check_output()

    def check_output(self) -> None:
        """Check the output folder; of several processes, the main one does it when it begins."""
        if checks.processes() == 1:
            checks.output_folder(
                self.out, resume=self.resume, overwrite=self.overwrite, backbone=self.backbone
            )


@options_class
class TrainCommand(TrainOptions):
    """The options of `opencse train` on the command line."""

    several_processes: ClassVar[bool] = True

    seeds: str | None = option("Several runs, in OUT/seed-1 and so on: 1,2,3.", default=None)

    def check_output(self) -> None:
        """Check the output folder, or that of several runs."""
        if self.seeds is None:
            super().check_output()
        elif checks.processes() == 1:
            checks.seeds_output(self.out, self.seeds)


@options_class
class RunOptions(TrainOptions):
    """Build the text columns of a recipe, train, and report probes and scores before and after.

    Writes OUT/model (a sentence-transformers folder), OUT/report.html, OUT/results.json,
    OUT/metrics.jsonl, and the resolved recipe and environment next to them; OUT/views if columns
    were built.
    """

    corpus: Any = option(
        f"{_CORPUS} Leave it out to give the model the meaning block that comes with opencse.",
        default=None,
        check=checks.text,
        kw_only=False,
    )
    several_processes: ClassVar[bool] = True

    backbone: Any = option(_BACKBONE, default="minilm", check=checks.model)
    pairs: Any = option(
        f"Scored pairs to evaluate on before and after: a table as for --dev, or `demo`. {_MEMORY}",
        default=None,
        check=checks.pairs,
    )
    paraphrases: Any = option(
        "Paraphrases: a table with a column text, and one paraphrase, back_translation or candidate. Its sentences are "
        f"added to the corpus. {_MEMORY}",
        default=None,
        check=checks.file,
        metavar="TABLE",
    )
    tasks: Any = option(
        "Your own tasks to evaluate on before and after, by the names that a plug-in gave them, separated by commas. "
        "In Python also task objects.",
        default="",
        shown=str,
    )
    quick: bool = option("Run a short trial of a few steps on a few sentences.", default=False)
    minutes: float | None = option(
        "Time from the start of the command to the end of training; evaluation and report follow.",
        default=None,
        min=0.5,
    )

    def check(self) -> None:
        """Check the recipe, the data, the models that write paraphrases, and the output folder."""
        # Not the columns, as for `train`: a run builds those that are missing.
        _RecipeOptions.check(self)
        checks.sts_data(self.data)
        if self.corpus is not None and self.recipe_file is not None and self.paraphrases is None:
            checks.translation(self.recipe_file, self.settings, self.corpus)
        if self.corpus is None:
            checks.one_process()
        if checks.processes() == 1:
            self.check_output()

    def check_output(self) -> None:
        """Check the output folder; of several processes, the main one does it when it begins."""
        # A run that was killed while its text was built has no checkpoint yet, but continues.
        checks.output_folder(
            self.out,
            resume=False,
            overwrite=self.overwrite or self.resume,
            backbone=None if self.resume else self.backbone,
        )


@options_class
class BuildOptions(_RecipeOptions):
    """Build the text columns of a recipe: negations, paraphrases, substitutions, ...

    Writes OUT/part-00000-of-….parquet with id, text, and for each column its sentence (null if
    there is none), its rule and its scores. An interrupted build continues where it stopped.
    """

    out: str | Path = option("Folder for the Parquet parts.", flags=OUT, shown=Path, kw_only=False)
    only: Sequence[str] = option(
        "Build only this column and those it is made from; repeatable.", default=()
    )
    backbone: Any = option(
        "The model to be trained, for recipes that mine with it.",
        default="minilm",
        check=checks.model,
    )
    seed: int = option("Seed of all sampling.", default=0)
    resume: bool = option(
        "Keep finished parts, or replace what OUT holds.",
        default=True,
        flags=("--resume/--overwrite",),
    )
    engine: Any = option(
        "`local`, or `ray`: a cluster whose machines see the same files. The output is the same.",
        default="local",
        shown=Literal["local", "ray"],
    )
    workers: int | None = option(
        "Processes; one per core by default. The output is the same.", default=None
    )
    address: str = option("With --engine ray: address of a running cluster, or `auto`.", default="")
    stats: bool = option("Then show nulls, rules and mean scores of each column.", default=False)
    dry_run: bool = option(
        "Only report how many requests and tokens the columns cost that a language model writes. Nothing is sent.",
        default=False,
    )


_MODEL = "A model folder, a run, a hub id, or `minilm`."
QUERIES = "Searches that your users make: one per line, or a table with a column `query`."
_PAIRS = f"Scored pairs: a .csv, .tsv, .jsonl or .parquet file with sentence1, sentence2, score. Repeatable. {_MEMORY}"
_PRECISION = "Number format: `auto` is bf16 if that is faster on this machine, which changes scores by hundredths."
_POOLING = "Pooling of an encoder that has none: cls, mean, first_last, … (untuned baselines)."


@options_class
class EvaluateOptions(CommandOptions):
    """Score a sentence encoder on tasks of seven suites, or on your own data.

    Every distinct sentence is encoded once for all tasks. STS is one correlation of cosines with
    human judgements over all pairs of a task (SimCSE's "all" setting), transfer follows SentEval's
    protocol. Task sizes are checked against the published ones.

    opencse evaluate minilm --data eval/

    opencse evaluate out/model --data eval/ --tasks sts,transfer,geometry -o scores.json

    opencse evaluate bert-base-uncased --pooling first_last --data eval/

    opencse evaluate minilm out/model --tasks mteb:NevIR,nanobeir --data hub
    """

    model: Any = option(
        f"{_MODEL} On the command line, several are compared.",
        metavar="MODEL...",
        shown=list[str],
        check_each=checks.model,
        kw_only=False,
    )
    tasks: str | Sequence[Any] = option(
        "Suites and tasks, separated by commas: sts, transfer, classification, retrieval, geometry; "
        "development and guard, whose data comes with opencse; STS12, MR, Banking77, …; your own folder below --data; "
        "mteb:NAME, a task or benchmark of mteb, such as mteb:NevIR; nanobeir; or a task that a plug-in brings. In Python "
        "also task objects.",
        default="sts",
        shown=str,
    )
    data: str | Path | None = option(
        f"{DATA} `hub` fetches the data of mteb's tasks.", default=None, envvar="OPENCSE_DATA"
    )
    pairs: Sequence[Any] = option(
        f"Score these instead. {_PAIRS}", default=(), check_each=checks.pairs
    )
    text: TextVariant = option(
        "`senteval`, the tokenised, mostly lower-cased text of published scores; or `raw`, as released and as in mteb.",
        default="senteval",
    )
    precision: Precision = option(_PRECISION, default="auto")
    pooling: str | None = option(_POOLING, default=None)
    output: str | Path | None = option(
        "JSON file to write, with all settings that the scores depend on.",
        default=None,
        flags=("-o", "--output"),
        shown=Path,
    )

    def check(self) -> None:
        """Check the data if it is all that is scored."""
        super().check()
        if not self.pairs and self.tasks == "sts":
            checks.sts_data(self.data)


@options_class
class ProbeOptions(CommandOptions):
    """Measure how far models follow wording instead of meaning, and write a report.

    It needs no training, and no labels except for the STS sets. OUT/report.html is one
    self-contained file.

    For example:

    opencse probe minilm -o probe/

    opencse probe minilm out/ --data sts/ -o probe/

    opencse probe minilm --sentences out/views -o probe/
    """

    models: Any = option(
        "Model folders, runs, hub ids or `minilm`; the first is the baseline.",
        check_each=checks.model,
        shown=list[str],
        metavar="MODEL...",
        kw_only=False,
    )
    out: str | Path | None = option(
        "Folder for report.html and probe.json.", default=None, flags=OUT, shown=Path
    )
    data: str | Path | None = option(
        f"{DATA} Without it, only sentences are probed.", default=None, envvar="OPENCSE_DATA"
    )
    sentences: Any = option(
        "Your own sentences: a table or built views, with a column sentence or text and any of paraphrase, negation, "
        f"deletion, insertion, substitution, random. {_MEMORY}",
        default=None,
        check=checks.path,
        shown=str,
    )
    pairs: Sequence[Any] = option(f"Your own. {_PAIRS}", default=(), check_each=checks.pairs)
    precision: Precision = option(_PRECISION, default="auto")
    pooling: str | None = option(_POOLING, default=None)

    def check(self) -> None:
        """Check the data."""
        super().check()
        checks.sts_data(self.data)


@options_class
class CheckOptions(CommandOptions):
    """Measure how often a model ranks a contradiction above a rewording, on your own texts.

    Grammar rules write a contradiction (a negation, an opposite, another number) and a rewording of
    your sentences. The model then searches for each sentence among your texts. This takes about two
    minutes and needs no training and no labels.

    For example:

    opencse check minilm --texts docs/ -o check/

    opencse check out/model --texts articles.csv --column body
    """

    model: Any = option(_MODEL, check=checks.model, kw_only=False)
    texts: Any = option(
        "Your documents: Markdown, HTML, PDF, DOCX, .txt, .csv, .tsv, .jsonl, .parquet, or a folder of these; or "
        "`demo`; or a data set: the folder that `save_to_disk` wrote, or hub:owner/name. In Python also strings, dicts, a "
        "data frame, a Dataset or an Arrow table.",
        default="demo",
        flags=("--texts",),
        check=checks.text,
        kw_only=False,
    )
    out: str | Path | None = option(
        "Folder for check.html and check.json.", default=None, flags=OUT, shown=Path
    )
    column: str | None = option(COLUMN, default=None)
    words: int = option(
        "Maximum number of words in a passage, as in your index.", default=200, min=5
    )
    minutes: float = option(
        "How much to check: what a small model does in this time. Every model gets the same sentences.",
        default=2.0,
        min=0.1,
    )
    language: str = option(
        "Language whose rules rewrite the texts: `auto`, `en`, …", default="auto"
    )
    notify: Notify = python_only("Receives short notes for the user.", default=lambda _: None)


@options_class
class CompareOptions(CommandOptions):
    """Compare runs over several seeds, or two models on your searches.

    Shows mean and standard deviation over the seeds, the difference from the first group, and
    training times.

    With --texts, two models search your documents instead. You see which hits change and whether
    your stored vectors stay valid; -o writes a page with the lists side by side.

    For example:

    opencse compare runs/simcse runs/osscse -o comparison/

    opencse compare minilm out/ --texts docs/ --queries log.txt -o lists/
    """

    runs: Sequence[str | Path] = option(
        "Run folders, or folders of runs; the group of the first is the baseline. With --texts, two models: the one in "
        "use, and the one that may replace it.",
        metavar="RUN...",
        kw_only=False,
    )
    out: str | Path | None = option("Folder for the results.", default=None, flags=OUT, shown=Path)
    data: str | Path | None = option(
        "Evaluate the models now on these STS tasks; by default the scores that the runs wrote are compared.",
        default=None,
    )
    pairs: Sequence[Any] = option(
        f"Evaluate on these instead. {_PAIRS}", default=(), check_each=checks.pairs
    )


@options_class
class CompareCommand(CompareOptions):
    """The options of `opencse compare` on the command line."""

    texts: str | None = option(
        "Your documents: show which searches among them change.", default=None, check=checks.text
    )
    queries: str | None = option(
        f"With --texts: {QUERIES} By default sentences of the texts.",
        default=None,
        check=checks.path,
    )
    column: str | None = option(COLUMN, default=None)

    def check(self) -> None:
        """Check the runs and the data, unless texts are searched."""
        super().check()
        if self.texts is None:
            checks.runs(self.runs)
        if self.texts is None and not self.pairs:
            checks.sts_data(self.data)


@options_class
class ReproduceOptions(Notified):
    """Reproduce a table or figure of a paper, with the published values next to the measured ones.

    Runs are kept in OUT/runs under a hash of everything that they depend on. Tables share them, and
    an interrupted reproduction continues where it stopped.

    For example:

    opencse reproduce osscse/table-2 --data sts/

    opencse reproduce byop/table-1 --data sts/ --seeds 1,2,3
    """

    table: str | None = option(
        "Name of the table; without it, the tables are listed.", default=None, kw_only=False
    )
    out: str | Path = option(
        "Folder for the runs and PAPER/TABLE.*.", default=Path("papers"), flags=OUT, shown=Path
    )
    data: str | Path | None = option(
        f"{DATA} By default the pairs that come with opencse are scored.", default=None
    )
    corpus: Any = option(
        f"Sentences to train on, or `demo`. {_MEMORY}", default="demo", check=checks.text
    )
    scale: Literal["small", "full"] = option(
        "`small`: minutes, from mini-mlm. `full`: the backbones and settings of the paper; needs a GPU and --corpus.",
        default="small",
    )
    variant: Variant | None = option(
        f"{VARIANT} By default faithful for `full`, sound for `small`.", default=None
    )
    family: str | None = option(
        "The family whose rows and published settings are reproduced; by default all for `full`, and for `small` the "
        "rows of the first, with the backbone's own settings.",
        default=None,
    )
    backbone: Sequence[str] = option(
        "A backbone that stands for a family; repeatable.",
        default=(),
        metavar="FAMILY=PATH",
        check_each=checks.family_backbone,
    )
    seeds: Any = option(
        "Seeds, such as 1,2,3; by default 1 for `small`, as in the paper for `full`.", default=None
    )
    overrides: Sequence[str] = option(
        "Override a setting of all runs.", default=(), flags=SET, check_each=checks.override
    )
    paraphrases: Any = option(
        f"A table, in place of back-translation. {_MEMORY}",
        default=None,
        shown=str,
        check=checks.file,
    )
    sentences: Any = option(
        "Sentences with versions, as for `probe`.", default=None, shown=str, check=checks.path
    )
    triplets: Any = option(
        f"A table of text, entailment and contradiction. {_MEMORY}",
        default=None,
        shown=str,
        check=checks.path,
    )
    word_vectors: str | Path | None = option(
        "Word vectors as text, such as GloVe's, for the rows that average them.",
        default=None,
        shown=Path,
        check=checks.file,
    )

    def check(self) -> None:
        """Check the data."""
        super().check()
        checks.sts_data(self.data)


@options_class
class ExportOptions(CommandOptions):
    """Write a sentence encoder as an ONNX graph from token ids to sentence vectors.

    Pooling and normalisation are part of the graph; batch size and length are dynamic. It runs with
    onnxruntime and tokenizers, without PyTorch. Its vectors are compared with PyTorch's before
    anything is written: fp32 may differ by 1e-4 in a coordinate, fp16 by 0.005, and int8 must keep
    a cosine of 0.9.
    Needs `pip install "opencse[onnx]"`.

    opencse export out/ -o onnx/

    opencse export out/ --precision int8 -o onnx/
    """

    model: str | Path = option(_MODEL, check=checks.model, kw_only=False)
    out: str | Path = option(
        "Folder for model.onnx, tokenizer.json and encoder.json.",
        flags=OUT,
        shown=Path,
        kw_only=False,
    )
    precision: Literal["fp32", "fp16", "int8"] = option(
        "Number format of the weights: fp16 has half the size, int8 a quarter and is faster on a CPU. "
        "With a meaning block, int8 keeps 16 bits where agreement needs them.",
        default="fp32",
    )
    overwrite: bool = option(
        "Replace an earlier export; other files are never replaced.", default=False
    )


@options_class
class CacheOptions(CommandOptions):
    """Show the folder and the size of cached tokens, vectors and converted texts, or remove them.

    The folder is $OPENCSE_CACHE if that is set. Above 20 GiB, the longest unused files are removed.
    """

    clear: bool = option("Remove the cached files; the next run takes longer.", default=False)


@options_class
class ShowOptions(CommandOptions):
    """Print a recipe as it would be used, with all inherited settings.

    With --published: the settings of paper, README and code, next to those of the recipe and of its
    faithful variant. An empty cell means that there is no statement, "absent" that the recipe leaves the
    setting to the model or lacks it. A source that begins with the name of another recipe is
    inherited from it. --family shows one kind of backbone.
    """

    name: str = option("A recipe's name or TOML file.", kw_only=False)
    family: str | None = option(
        "Apply the settings of a family: bert-base, roberta-large, minilm, …", default=None
    )
    variant: Variant = option(VARIANT, default="sound")
    overrides: Sequence[str] = option(
        "Override a value: --set optimizer.lr=1e-5", default=(), flags=SET
    )
    published: bool = option(
        "Compare the recipe with the settings of paper and code.", default=False
    )
