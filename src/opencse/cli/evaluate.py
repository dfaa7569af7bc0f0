"""`opencse evaluate`: score a model on any of the known tasks, or on data of your own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opencse.cli import options
from opencse.errors import OpencseError

if TYPE_CHECKING:
    from opencse.evaluation.run_suites import Outcome
    from opencse.evaluation.task import Task


class TextVariant(StrEnum):
    """Which text the tasks are read in."""

    senteval = "senteval"
    raw = "raw"


class ClassifierName(StrEnum):
    """Classifier of the transfer tasks."""

    senteval = "senteval"
    sklearn = "sklearn"


class PrecisionName(StrEnum):
    """Number format of the encoder."""

    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"


class Format(StrEnum):
    """Form of the result."""

    table = "table"
    json = "json"
    mteb = "mteb"


def evaluate(
    model: Annotated[str, typer.Argument(help="A model folder, a hub id, or `minilm`.")],
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks",
            "--suite",
            help="Suites and tasks, separated by commas: sts, transfer, classification, reranking, retrieval, "
            "geometry; development and guard, whose data comes with opencse; STS12, MR, Banking77, …; or a folder of "
            "your own below --data.",
        ),
    ] = "sts",
    data: Annotated[
        str | None,
        typer.Option(
            envvar="OPENCSE_DATA",
            help="Where the data is: a folder with STS12/test.tsv.gz etc., SentEval's data/downstream folder, or the "
            "word `hub` to download it.",
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="Score these pairs instead: .csv, .tsv or .jsonl with sentence1, sentence2, score. Repeatable."
        ),
    ] = None,
    text: Annotated[
        TextVariant | None,
        typer.Option(
            help="`senteval` is the tokenised, mostly lower-cased text behind published numbers; `raw` the text as "
            "released, as in mteb. Scores differ: never compare across. By default senteval, and raw with --data hub, "
            "which has no other.",
        ),
    ] = None,
    classifier: Annotated[
        ClassifierName,
        typer.Option(
            help="Of the transfer tasks: `senteval` is SentEval's, as in papers; `sklearn` is far faster, and its "
            "scores are others."
        ),
    ] = ClassifierName.senteval,
    precision: Annotated[
        PrecisionName,
        typer.Option(help="`auto`: bf16 if that is faster on this machine. It moves scores by hundredths of a point."),
    ] = PrecisionName.auto,
    pooling: Annotated[
        str | None,
        typer.Option(help="For an encoder without pooling of its own: cls, mean, first_last, … (un-tuned baselines)."),
    ] = None,
    whiten: Annotated[
        Path | None,
        typer.Option(
            help="Whiten the vectors, fitted on this corpus of one sentence per line (BERT-whitening baseline)."
        ),
    ] = None,
    whiten_dimension: Annotated[
        int | None, typer.Option(min=1, help="Keep this many whitened dimensions; by default all.")
    ] = None,
    format: Annotated[
        Format,
        typer.Option(
            help="`table` for people, `json` with all that a number depends on, `mteb` for mteb's file layout."
        ),
    ] = Format.table,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write there: a JSON file, or for `mteb` a folder. Without it JSON is printed."
        ),
    ] = None,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Score a sentence encoder on tasks of eight suites, or on your own data.

    Every distinct sentence is encoded once for all tasks. STS is one correlation of cosines with human judgements over
    all pairs of a task (SimCSE's "all" setting), transfer is SentEval's protocol. The sizes of the tasks are checked
    against the published ones.

    opencse evaluate minilm --data eval/

    opencse evaluate out/model --data eval/ --tasks sts,transfer,geometry --format json -o scores.json

    opencse evaluate bert-base-uncased --pooling first_last --whiten corpus.txt --data eval/

    opencse evaluate out/model --tasks development,guard

    opencse evaluate out/model --pairs my_pairs.csv
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    if format is Format.mteb and output is None:
        raise OpencseError("--format mteb writes several files", "Name a folder with -o.")
    text = text or (TextVariant.raw if data == "hub" else TextVariant.senteval)
    suites = _load(data, pairs, tasks, text, classifier)
    from opencse.encoder import load_encoder
    from opencse.encoder.precision_choice import describe, model_config
    from opencse.evaluation.run_suites import evaluate_model
    from opencse.progress import note

    encoder = load_encoder(model, pooling=pooling or "backbone")
    note(f"evaluating {describe(precision.value, model_config(encoder), encoder.device)}")
    outcome = evaluate_model(
        encoder, suites, name=model, precision=precision.value, whiten=whiten, whiten_dimension=whiten_dimension
    )
    _show(outcome, {"suite": ",".join(suites)}, format, output)


def _load(
    data: str | None, pairs: list[Path] | None, tasks: str, text: TextVariant, classifier: ClassifierName
) -> dict[str, list[Task]]:
    """Read the test sets before the model, which takes longer."""
    from opencse.evaluation.pairs import read_pairs
    from opencse.evaluation.sts import PairsTask
    from opencse.evaluation.suites import load_suites

    if pairs:
        return {"pairs": [PairsTask(pairs=read_pairs(path)) for path in pairs]}
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    return load_suites(names, data, text=text.value, classifier=classifier.value)


def _show(outcome: Outcome, settings: dict[str, Any], form: Format, output: Path | None) -> None:
    """Write and print the results."""
    from rich.console import Console
    from rich.markup import escape

    from opencse.evaluation.mteb_format import write_mteb
    from opencse.evaluation.results_table import as_json, as_table
    from opencse.io.files import write_json

    document = as_json(outcome, settings)
    if form is Format.mteb and output is not None:
        written: Path | None = write_mteb(
            outcome.results.values(),
            output,
            model=document["model"],
            revision=document["revision"],
            dimension=document["dimension"],
        )
    else:
        if output is not None:
            write_json(output, document)
        written = output
    if form is Format.json and output is None:
        import json

        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = Console()
    console.print(f"{document['model']}: {document['pooling']} pooling, {document['precision']}", markup=False)
    for suite, results in outcome.results.items():
        console.print(as_table(suite, results, title=suite, caption=_caption(suite, outcome)))
        for result in results.results:
            for metric, reason in result.undefined.items():
                console.print(f"{escape(result.task)}: {metric} is undefined: {escape(reason)}")
    console.print(f"{outcome.texts} distinct texts of {outcome.asked}, each encoded once")
    if written is not None:
        console.print(f"written to {written}", markup=False)


def _caption(suite: str, outcome: Outcome) -> str:
    """What the numbers of a suite are."""
    first = outcome.results[suite].results[0].details
    if suite in ("sts", "pairs"):
        return f"Spearman x 100, all pairs of a task together; {first['text']} text"
    if suite == "transfer":
        return f"accuracy in %, classifier: {first['classifier']}"
    if suite == "classification":
        return "accuracy in %: on all training texts, and on a few per class as in mteb"
    if suite == "development":
        return "paraphrase nearer than contradiction, in % of triplets; ties are wrong"
    return {"retrieval": "in %", "reranking": "in %", "guard": "in %"}.get(suite, "")
