"""What a user asks of the commands that measure, show and write what is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from opencse.commands.command_line import option, options_class, python_only
from opencse.commands.options import COLUMN, OUT, SET, VARIANT, Notified, Notify, Precision, TextVariant, Variant

_MODEL = "A model folder, a run, a hub id, or `minilm`."
_PAIRS = "Scored pairs: a .csv, .tsv or .jsonl file with sentence1, sentence2, score. Repeatable."
_PRECISION = "Number format: `auto` is bf16 if that is faster on this machine, which changes scores by hundredths."
_POOLING = "Pooling of an encoder that defines none: cls, mean, first_last, … (untuned baselines)."


@options_class
class EvaluateOptions:
    """Score a sentence encoder on tasks of seven suites, or on your own data.

    Every distinct sentence is encoded once for all tasks. STS is one correlation of cosines with human judgements over
    all pairs of a task (SimCSE's "all" setting), transfer follows SentEval's protocol. Task sizes are checked
    against the published ones.

    opencse evaluate minilm --data eval/

    opencse evaluate out/model --data eval/ --tasks sts,transfer,geometry --format json -o scores.json

    opencse evaluate bert-base-uncased --pooling first_last --whiten corpus.txt --data eval/

    opencse evaluate out/model --tasks development,guard

    opencse evaluate out/model --pairs my_pairs.csv
    """

    model: Any = option(_MODEL, kw_only=False)
    tasks: str | Sequence[str] = option(
        "Suites and tasks, separated by commas: sts, transfer, classification, retrieval, geometry; "
        "development and guard, whose data comes with opencse; STS12, MR, Banking77, …; or your own folder below "
        "--data.",
        default="sts",
        shown=str,
    )
    data: str | Path | None = option(
        "The data: a folder with STS12/test.tsv.gz etc., SentEval's data/downstream folder, or `hub` to download it.",
        default=None,
        envvar="OPENCSE_DATA",
    )
    pairs: Sequence[str | Path] = option(f"Score these instead. {_PAIRS}", default=[])
    text: TextVariant | None = option(
        "`senteval` is the tokenised, mostly lower-cased text behind published numbers; `raw` the text as released, as "
        "in mteb. Their scores are not comparable. By default senteval, or raw with --data hub, which has no other.",
        default=None,
    )
    precision: Precision = option(_PRECISION, default="auto")
    pooling: str | None = option(_POOLING, default=None)
    whiten: str | Path | None = option(
        "Whiten the vectors; the whitening is fitted on this corpus, one sentence per line (BERT-whitening).",
        default=None,
        shown=Path,
    )
    whiten_dimension: int | None = option("Number of whitened dimensions to keep; by default all.", default=None, min=1)


@options_class
class EvaluateCommand(EvaluateOptions):
    """The options of `opencse evaluate` on the command line."""

    format: Literal["table", "json"] = option(
        "`table`, or `json` with all settings that the scores depend on.", default="table"
    )
    output: Path | None = option(
        "JSON file to write. By default JSON is printed.",
        default=None,
        flags=("-o", "--output"),
    )


@options_class
class ProbeOptions:
    """Measure how far models follow wording instead of meaning, and write a report.

    It needs no training, and no labels except for the STS sets. OUT/report.html is one self-contained file.

    For example:

    opencse probe minilm -o probe/

    opencse probe minilm out/ --data sts/ -o probe/

    opencse probe minilm --sentences out/views -o probe/
    """

    models: Any = option(
        "Model folders, runs, hub ids or `minilm`; the first is the baseline.",
        shown=list[str],
        metavar="MODEL...",
        kw_only=False,
    )
    out: str | Path | None = option(
        "Folder for report.html, probe.json and the figures.", default=None, flags=OUT, shown=Path
    )
    data: str | Path | None = option(
        "The STS tasks, as for `opencse evaluate`; without them, only sentences are probed.",
        default=None,
        envvar="OPENCSE_DATA",
    )
    sentences: str | Path | None = option(
        "Your own sentences: a table or built views, with a column sentence or text and any of paraphrase, negation, "
        "deletion, insertion, substitution, random. By default those that come with opencse.",
        default=None,
        shown=Path,
    )
    pairs: Sequence[str | Path] = option(f"Your own. {_PAIRS}", default=[])
    precision: Precision = option(_PRECISION, default="auto")
    pooling: str | None = option(_POOLING, default=None)
    limit: int = option("Maximum number of sentences; more are sampled at random.", default=2000, min=2)


@options_class
class ProbeCommand(ProbeOptions):
    """The options of `opencse probe` on the command line, where a report is always written."""

    out: Path = option("Folder for report.html, probe.json and the figures.", flags=OUT)


@options_class
class CheckOptions:
    """Measure how often a model ranks a contradiction above a rewording, on your own texts.

    Rules of grammar contradict sentences of your texts (negation, opposite, number, name) and reword them. The model
    then searches for each sentence among your texts. No training, no labels, about two minutes.

    For example:

    opencse check minilm --texts docs/ -o check/

    opencse check out/model --texts articles.csv --column body --queries log.txt
    """

    model: Any = option(_MODEL, kw_only=False)
    texts: Any = option(
        "Your documents: Markdown, HTML, .txt, .csv, .tsv, .jsonl, .parquet, or a folder of these; `demo` for the "
        "sample sentences. In Python also a list of strings, a pandas DataFrame or a `datasets.Dataset`.",
        default="demo",
        flags=("--texts",),
        kw_only=False,
    )
    queries: Any = option(
        "Searches that your users make: one per line, or a table with a column `query`.", default=None, shown=Path
    )
    out: str | Path | None = option("Folder for check.html and check.json.", default=None, flags=OUT, shown=Path)
    column: str | None = option(COLUMN, default=None)
    words: int = option("Maximum number of words in a passage, as in your index.", default=200, min=5)
    minutes: float = option(
        "Approximate time limit; fewer texts are used if all would take longer.", default=2.0, min=0.1
    )
    precision: Precision = option(_PRECISION, default="auto")
    pooling: str | None = option(_POOLING, default=None)
    language: str = option(
        "Language whose rules rewrite the texts: `auto`, `en`, … (see the guide on languages).", default="auto"
    )
    syntax: str = option("A spaCy pipeline for this language, by name or folder.", default="")
    seed: int = option("Seed of all sampling.", default=0)
    notify: Notify = python_only("Receives short notes for the user.", default=lambda _: None)


@options_class
class CompareOptions:
    """Group runs that differ only in their seed, and compare the groups with the first.

    Mean and standard deviation over seeds; the difference from the baseline, with --data with its interval over pairs
    (paired bootstrap); training time.

    With --texts, two models search your documents instead: which lists of hits change, whether stored vectors stay
    usable, and with -o a page on which to judge the lists.

    For example:

    opencse compare runs/simcse runs/osscse -o comparison/

    opencse compare minilm out/ --texts docs/ --queries log.txt -o judge/
    """

    runs: Sequence[str | Path] = option(
        "Run folders, or folders that contain them; the group of the first run is the baseline. With --texts, two "
        "models: the one in use, and the one that may replace it.",
        metavar="RUN...",
        kw_only=False,
    )
    out: str | Path | None = option(
        "Folder for comparison.md and comparison.json.", default=None, flags=OUT, shown=Path
    )
    data: str | Path | None = option(
        "Evaluate the models now on these STS tasks, like `opencse evaluate`, which allows a bootstrap over pairs. By "
        "default the scores that the runs wrote are compared.",
        default=None,
    )
    pairs: Sequence[str | Path] = option(f"Evaluate on these instead. {_PAIRS}", default=[])
    resamples: int = option("Bootstrap samples.", default=1000, min=100)


@options_class
class CompareCommand(CompareOptions):
    """The options of `opencse compare` on the command line."""

    texts: str | None = option(
        "Your documents, as for `opencse check`: show which searches among them change.", default=None
    )
    queries: Path | None = option(
        "With --texts: searches that your users make, one per line or in a column `query`; by default sentences of the "
        "texts.",
        default=None,
    )
    column: str | None = option(COLUMN, default=None)


@options_class
class SearchOptions:
    """Search the same texts with two models, and compare the lists of hits."""

    old: Any = option("The model in use: a folder, a hub id, a bundled name or a `SentenceTransformer`.", kw_only=False)
    new: Any = option("The model that may replace it.", kw_only=False)
    texts: Any = option("Your documents, as for `check`.", kw_only=False)
    queries: Any = option(
        "Searches that your users make, as for `check`; by default sentences of the texts.", default=None
    )
    out: str | Path | None = option(
        "Folder for `search.html`, a page to judge the lists, and `search.json`; by default nothing is written.",
        default=None,
    )
    column: str | None = option(COLUMN, default=None)
    words: int = option("Maximum number of words in a passage, as in your index.", default=200)
    documents: int = option("Maximum number of texts searched; more are sampled at random.", default=5000)
    precision: Precision = option(_PRECISION, default="auto")
    seed: int = option("Seed of all sampling.", default=0)


@options_class
class ReproduceOptions(Notified):
    """Reproduce a table or figure of a paper, with the published figures beside the measured ones.

    Runs are kept in OUT/runs under a hash of everything that they depend on. Tables share them, and an interrupted
    reproduction continues where it stopped.

    For example:

    opencse reproduce

    opencse reproduce osscse/table-2 --data sts/

    opencse reproduce byop/table-1 --data sts/ --seeds 1,2,3
    """

    table: str | None = option(
        "Name of the table, such as osscse/table-4. Without it, the tables are listed.", default=None, kw_only=False
    )
    out: str | Path = option(
        "Folder for the runs, which tables share, and for PAPER/TABLE.md, .json and the plots.",
        default=Path("papers"),
        flags=OUT,
        shown=Path,
    )
    data: str | Path | None = option(
        "The STS files, as for `opencse evaluate`; by default the pairs that come with opencse are scored.",
        default=None,
    )
    corpus: str | Path = option("Sentences to train on, or `demo`.", default="demo")
    scale: Literal["small", "full"] = option(
        "`small`: minutes, from mini-mlm. `full`: the backbones and settings of the paper; needs a GPU and --corpus.",
        default="small",
    )
    variant: Variant | None = option(f"{VARIANT} By default faithful for `full`, sound for `small`.", default=None)
    family: str | None = option(
        "The family of the paper's backbones that is reproduced: its rows and, whatever the backbone, its published "
        "settings. By default all for `full`; for `small` the rows of the first, with the backbone's own settings.",
        default=None,
    )
    backbone: Sequence[str] = option(
        "A backbone that stands for a family: bert-base=PATH. Repeatable.",
        default=[],
        metavar="FAMILY=PATH",
    )
    seeds: Any = option(
        "Seeds, such as 1,2,3. By default 1 for `small`; for `full` as many as in the paper, or the recipe's own if it "
        "has one run.",
        default=None,
    )
    overrides: Sequence[str] = option(
        "Override a setting of all runs: --set training.max_steps=500", default=[], flags=SET
    )
    paraphrases: str | Path | None = option(
        "A table of sentences and paraphrases, in place of back-translation.", default=None, shown=Path
    )
    llm: str | None = option(
        "A language model behind an OpenAI-compatible endpoint, for rows whose text one writes (extra `llm`): "
        "http://localhost:8000/v1#NAME.",
        default=None,
        metavar="URL#MODEL",
    )
    sentences: str | Path | None = option(
        "The paper's own sentences with their versions, as for `opencse probe`; by default opencse's.",
        default=None,
        shown=Path,
    )
    triplets: str | Path | None = option(
        "The corpus of supervised SimCSE: a table of text, entailment and contradiction.", default=None, shown=Path
    )


@options_class
class ExportOptions:
    """Write a sentence encoder as an ONNX graph from token ids to sentence vectors.

    Pooling and normalisation are part of the graph; batch size and length are dynamic. It runs with onnxruntime and
    tokenizers, without PyTorch. Its vectors are compared with PyTorch's before anything is written: fp32 may differ by
    1e-4 in a coordinate, fp16 must keep a cosine of 0.999, int8 of 0.9. Needs `pip install "opencse[onnx]"`.

    opencse export out/ -o onnx/

    opencse export out/ --precision int8 -o onnx/

    opencse export bert-base-uncased --pooling cls -o onnx/
    """

    model: str = option(_MODEL, kw_only=False)
    out: Path = option("Folder for model.onnx, tokenizer.json and encoder.json.", flags=OUT)
    precision: Literal["fp32", "fp16", "int8"] = option(
        "Number format of the weights: fp32, fp16 (half the size), int8 (a quarter).", default="fp32"
    )
    pooling: str | None = option(_POOLING, default=None)
    overwrite: bool = option("Replace an earlier export.", default=False)


@options_class
class CacheOptions:
    """Show the folder and the size of cached tokens, vectors and converted texts, or remove them.

    The folder is $OPENCSE_CACHE if that is set. Above $OPENCSE_CACHE_GIB (20), the longest unused files are removed.
    """

    clear: bool = option("Remove the cached files; the next run takes longer.", default=False)
    only: Sequence[str] = option("With --clear: only this kind; repeatable.", default=[])


@options_class
class ShowOptions:
    """Print a recipe as it would be used, with all inherited settings.

    With --published: the settings of paper, README and code, beside those of the recipe and of its faithful variant.
    An empty cell means that nothing is said, "absent" that the recipe leaves the setting to the model or lacks it. A
    source that begins with the name of another recipe is inherited from it. --family shows one kind of backbone.
    """

    name: str = option("A recipe's name or TOML file.", kw_only=False)
    backbone: str | None = option(
        "Apply the settings published for this backbone (folder, hub id or name).", default=None
    )
    family: str | None = option(
        "Apply the settings of a backbone family: bert-base, roberta-large, minilm, …", default=None
    )
    variant: Variant = option(VARIANT, default="sound")
    overrides: Sequence[str] = option("Override a value: --set optimizer.lr=1e-5", default=[], flags=SET)
    published: bool = option(
        "Compare the recipe with the settings of the paper and its code, with their sources.",
        default=False,
        flags=("--published",),
    )
