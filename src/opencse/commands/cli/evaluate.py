"""`opencse evaluate`: score a model on known tasks or on your own data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opencse.commands.cli import options
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import show

if TYPE_CHECKING:
    from opencse.evaluation.results_table import Evaluation


class TextVariant(StrEnum):
    """Text variant of the STS tasks."""

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


class OutputFormat(StrEnum):
    """Format of the result."""

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
            "geometry; development and guard, whose data comes with opencse; STS12, MR, Banking77, …; or your own "
            "folder below --data.",
        ),
    ] = "sts",
    data: Annotated[
        str | None,
        typer.Option(
            envvar="OPENCSE_DATA",
            help="The data: a folder with STS12/test.tsv.gz etc., SentEval's data/downstream folder, or `hub` to "
            "download it.",
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
            "released, as in mteb. Their scores are not comparable. By default senteval, or raw with --data hub, "
            "which has no other.",
        ),
    ] = None,
    classifier: Annotated[
        ClassifierName,
        typer.Option(
            help="Classifier of the transfer tasks: `senteval`, as in papers, or `sklearn`, which is much faster and "
            "gives other scores."
        ),
    ] = ClassifierName.senteval,
    precision: Annotated[
        PrecisionName,
        typer.Option(
            help="`auto`: bf16 if that is faster on this machine, which changes scores by hundredths of a point."
        ),
    ] = PrecisionName.auto,
    pooling: Annotated[
        str | None,
        typer.Option(help="Pooling of an encoder that defines none: cls, mean, first_last, … (untuned baselines)."),
    ] = None,
    whiten: Annotated[
        Path | None,
        typer.Option(
            help="Whiten the vectors; the whitening is fitted on this corpus, one sentence per line (BERT-whitening)."
        ),
    ] = None,
    whiten_dimension: Annotated[
        int | None, typer.Option(min=1, help="Number of whitened dimensions to keep; by default all.")
    ] = None,
    format: Annotated[
        OutputFormat,
        typer.Option(
            help="`table`, `json` with all settings that the scores depend on, or `mteb` for mteb's file layout."
        ),
    ] = OutputFormat.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="JSON file to write, or a folder with `mteb`. By default JSON is printed."),
    ] = None,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Score a sentence encoder on tasks of eight suites, or on your own data.

    Every distinct sentence is encoded once for all tasks. STS is one correlation of cosines with human judgements over
    all pairs of a task (SimCSE's "all" setting), transfer follows SentEval's protocol. Task sizes are checked
    against the published ones.

    opencse evaluate minilm --data eval/

    opencse evaluate out/model --data eval/ --tasks sts,transfer,geometry --format json -o scores.json

    opencse evaluate bert-base-uncased --pooling first_last --whiten corpus.txt --data eval/

    opencse evaluate out/model --tasks development,guard

    opencse evaluate out/model --pairs my_pairs.csv
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    if format is OutputFormat.mteb and output is None:
        raise OpencseError("--format mteb writes several files", "Name a folder with -o.")
    from opencse.commands.evaluate import evaluate as run

    result = run(
        model,
        data=data,
        tasks=[name.strip() for name in tasks.split(",") if name.strip()],
        pairs=pairs or (),
        text=None if text is None else text.value,
        classifier=classifier.value,
        precision=precision.value,
        pooling=pooling,
        whiten=whiten,
        whiten_dimension=whiten_dimension,
    )
    written = _written(result, format, output)
    if format is OutputFormat.json and output is None:
        return
    show(result, *([] if written is None else [f"written to {written}"]))


def _written(result: Evaluation, output_format: OutputFormat, output: Path | None) -> Path | None:
    """Write the result to `output`, or print it as JSON; return the path written."""
    from opencse.evaluation.mteb_format import write_mteb
    from opencse.evaluation.results_table import as_json
    from opencse.foundation.files import write_json

    document = as_json(result, {"suite": ",".join(result.results)})
    if output is None:
        if output_format is OutputFormat.json:
            import json

            typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return None
    if output_format is OutputFormat.mteb:
        names = {name: document[name] for name in ("model", "revision", "dimension")}
        return write_mteb(result.results.values(), output, **names)
    write_json(output, document)
    return output
