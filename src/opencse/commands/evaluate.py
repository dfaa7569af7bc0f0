"""`opencse.evaluate`: scores of a model on known tasks or on the user's own pairs."""

from __future__ import annotations

from typing import Any

from opencse.commands.command_line import takes
from opencse.commands.integrations.mteb import OF_MTEB, load_mteb
from opencse.commands.options import EvaluateCommand, EvaluateOptions
from opencse.encoder.backbone import model_source
from opencse.evaluation import PairsTask, read_pairs
from opencse.evaluation.suites import Evaluation, as_json, evaluate_model, load_suites, scores_table
from opencse.evaluation.task import Task
from opencse.foundation.files import write_json
from opencse.foundation.result_table import show


@takes(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> Evaluation:
    """Score a model.

    Returns:
        Scores by suite, with every setting that they depend on; it displays as a table in a notebook.

    Raises:
        OpencseError: A file or the model cannot be read, or there is no such task.
    """
    # The model is loaded last, because a mistake in the data shows sooner.
    suites = _suites(options)
    return evaluate_model(model_source(options.model), suites, pooling=options.pooling, precision=options.precision)


def _suites(options: EvaluateOptions) -> dict[str, list[Task]]:
    """Load the tasks, by suite."""
    if options.pairs:
        return {"pairs": [PairsTask(pairs=read_pairs(path)) for path in options.pairs]}
    asked = options.tasks.split(",") if isinstance(options.tasks, str) else options.tasks
    names = [name.strip() for name in asked if name.strip()]
    of_mteb = [name for name in names if name.startswith(OF_MTEB)]
    ours = [name for name in names if not name.startswith(OF_MTEB)]
    suites = load_suites(ours, options.data, text=options.text)
    return suites | (load_mteb(of_mteb, options.data) if of_mteb else {})


def command(options: EvaluateCommand) -> None:
    """Evaluate one model or several, and print or write the scores."""
    suites = _suites(options)
    settings: dict[str, Any] = {"pooling": options.pooling, "precision": options.precision}
    found = [evaluate_model(model_source(each), suites, **settings) for each in options.model]
    tables = found if len(found) == 1 else [scores_table(found)]
    show(*tables)
    if options.output is not None:
        documents = [as_json(result) for result in found]
        write_json(options.output, documents[0] if len(found) == 1 else {"models": documents})
        show(f"written to {options.output}")
