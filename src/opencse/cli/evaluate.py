"""`opencse evaluate`: score a model on the seven STS tasks, or on pairs of your own."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opencse.errors import OpencseError

if TYPE_CHECKING:
    from opencse.evaluation.pairs import ScoredPairs


class Suite(StrEnum):
    """What to measure."""

    sts = "sts"


class TextVariant(StrEnum):
    """Which text the tasks are read in."""

    senteval = "senteval"
    raw = "raw"


class PrecisionName(StrEnum):
    """Number format of the encoder."""

    fp32 = "fp32"
    bf16 = "bf16"


class Format(StrEnum):
    """Form of the result."""

    table = "table"
    json = "json"
    mteb = "mteb"


def evaluate(
    model: Annotated[str, typer.Argument(help="A model folder, a hub id, or `minilm`.")],
    suite: Annotated[Suite, typer.Option(help="`sts`: STS12-16, STS-B and SICK-R, as in SimCSE's tables.")] = Suite.sts,
    data: Annotated[
        str | None,
        typer.Option(
            envvar="OPENCSE_DATA",
            help="Where the tasks are: a folder with STS12/test.tsv.gz etc., SentEval's data/downstream folder, or the "
            "word `hub` to download them.",
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="Score these pairs instead: .csv, .tsv or .jsonl with sentence1, sentence2, score. Repeatable."
        ),
    ] = None,
    text: Annotated[
        TextVariant,
        typer.Option(
            help="`senteval` is the tokenised, mostly lower-cased text behind published numbers; `raw` the text as "
            "released, as in mteb. Scores differ: never compare across."
        ),
    ] = TextVariant.senteval,
    precision: Annotated[
        PrecisionName, typer.Option(help="`bf16` is about twice as fast; scores move by hundredths of a point.")
    ] = PrecisionName.fp32,
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
) -> None:
    """Score a sentence encoder: Spearman correlation of cosines with human judgements, times 100.

    Each task is one correlation over all its pairs (SimCSE's "all" setting). Every distinct sentence is encoded once
    for all tasks. The sizes of the tasks are checked against the published ones.

    opencse evaluate minilm --data eval/

    opencse evaluate out/model --data SentEval/data/downstream --format json -o scores.json

    opencse evaluate bert-base-uncased --pooling first_last --whiten corpus.txt --data eval/

    opencse evaluate out/model --pairs my_pairs.csv
    """
    if format is Format.mteb and output is None:
        raise OpencseError("--format mteb writes several files", "Name a folder with -o.")
    tasks = _load(data, pairs, text)
    from opencse.encoder import load_encoder
    from opencse.evaluation.run import evaluate_pairs

    encoder = load_encoder(model, pooling=pooling or "backbone")
    outcome = evaluate_pairs(
        encoder, tasks, name=model, precision=precision.value, whiten=whiten, whiten_dimension=whiten_dimension
    )
    settings: dict[str, Any] = {"suite": "pairs" if pairs else suite.value, **outcome.settings}
    _show(outcome.results, settings, format, output)


def _load(data: str | None, pairs: list[Path] | None, text: TextVariant) -> list[ScoredPairs]:
    """Read the test sets before the model, which takes longer."""
    from opencse.evaluation.pairs import read_pairs
    from opencse.evaluation.sources import load_sts

    if pairs:
        return [read_pairs(path) for path in pairs]
    if data is None:
        raise OpencseError(
            "the STS tasks are nowhere to be found",
            "Give --data (or set OPENCSE_DATA): a folder with STS12/test.tsv.gz …, the data/downstream folder that "
            "SentEval's get_transfer_data.bash makes, or `--data hub --text raw` to download them.",
        )
    return load_sts(data, text=text.value)


def _show(results: Any, settings: dict[str, Any], form: Format, output: Path | None) -> None:
    """Write and print the results."""
    from rich.console import Console

    from opencse.evaluation.mteb_format import write_mteb
    from opencse.evaluation.report import as_json, as_table
    from opencse.files import write_json

    document = as_json(results, settings)
    if form is Format.mteb and output is not None:
        written: Path | None = write_mteb(
            results,
            output,
            model=settings["model"],
            revision=settings["revision"],
            dimension=settings["dimension"],
        )
    else:
        if output is not None:
            write_json(output, document)
        written = output
    if form is Format.json and output is None:
        import json

        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return
    caption = "Spearman x 100, all pairs of a task together; {text} text, {pooling} pooling, {precision}".format(
        **settings
    )
    console = Console()
    console.print(as_table(results, title=settings["model"], caption=caption))
    for result in results.results:
        for metric, reason in result.undefined.items():
            console.print(f"{result.task}: {metric} is undefined: {reason}")
    if written is not None:
        console.print(f"written to {written}")
