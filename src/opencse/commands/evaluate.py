"""`opencse.evaluate`: scores of one model on known tasks or on the user's own pairs."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from opencse.commands.command_line import apply, takes
from opencse.commands.measuring_options import EvaluateCommand, EvaluateOptions
from opencse.encoder import load_encoder
from opencse.encoder.backbone import model_source
from opencse.encoder.precision import describe, model_config
from opencse.evaluation import PairsTask, read_pairs
from opencse.evaluation.results import Evaluation, as_json
from opencse.evaluation.sts_sources import sts_text
from opencse.evaluation.suites import evaluate_model, load_suites
from opencse.evaluation.task import Task
from opencse.foundation.files import write_json
from opencse.foundation.progress import note
from opencse.foundation.result_table import show
from opencse.text import demo


@takes(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> Evaluation:
    """Score a model.

    Returns:
        Scores by suite, with every setting that they depend on; it displays as tables in a notebook.

    Raises:
        OpencseError: A file or the model cannot be read, or there is no such task.
    """
    data, suites = options.data, dict[str, list[Task]]()
    if options.pairs:
        suites["pairs"] = [PairsTask(pairs=read_pairs(demo.pairs(path))) for path in options.pairs]
    else:
        text = options.text or sts_text(data)
        names = options.tasks.split(",") if isinstance(options.tasks, str) else options.tasks
        suites = load_suites([name.strip() for name in names if name.strip()], data, text=text)
    # The model is loaded last, because a mistake in the data shows sooner.
    model = model_source(options.model)
    encoder = load_encoder(model, pooling=options.pooling or "backbone")
    note(f"evaluating {describe(options.precision, model_config(encoder), encoder.device)}")
    return evaluate_model(
        encoder,
        suites,
        name=str(model),
        precision=options.precision,
        whiten=None if options.whiten is None else Path(options.whiten),
        whiten_dimension=options.whiten_dimension,
    )


def command(options: EvaluateCommand) -> None:
    """Evaluate, and print or write the scores."""
    result = apply(evaluate, options)
    document = as_json(result, {"suite": ",".join(result.results)})
    if options.output is not None:
        write_json(options.output, document)
        show(result, f"written to {options.output}")
    elif options.format == "json":
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show(result)
