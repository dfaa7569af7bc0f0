"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import typer

from opencse.commands.add_block import add_block
from opencse.commands.command_line import apply, takes
from opencse.commands.inputs import RunInputs, first_stage_measures, read_validation, resolve_inputs
from opencse.commands.options import RunCommand, RunOptions
from opencse.commands.run_report import RunResult, measure_and_report, read_probe_data
from opencse.commands.train import run_control, train_on_rows
from opencse.encoder.backbone import Backbone
from opencse.foundation.lock import locked
from opencse.foundation.numbers import check_minutes
from opencse.foundation.progress import collect, timed
from opencse.foundation.result_table import show
from opencse.recipes.rows.labels import labels_note
from opencse.recipes.rows.prepare import RowSources, prepare_rows
from opencse.training.folder import check_folder
from opencse.training.session import RunControl
from opencse.training.train import train_first_stages


@takes(RunOptions)
def run(options: RunOptions) -> RunResult:
    """Build columns, train and evaluate.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if options.corpus is None:
        return add_block(options)
    folder, notify, deadline = Path(options.out), options.notify, None
    if options.minutes is not None:
        check_minutes(options.minutes)
        deadline = time.perf_counter() + 60 * options.minutes
    with locked(folder), collect() as timings:
        control = replace(run_control(options), deadline=deadline)
        inputs = resolve_inputs(options)
        # Read before any training, so that a mistake in a path costs nothing.
        probe_data = read_probe_data(options.data, options.pairs)
        if not options.resume:
            check_folder(folder, resume=False, overwrite=options.overwrite)
        measures = read_validation(inputs.recipe, inputs.corpus, options)
        for line in filter(None, [*inputs.few, inputs.language_line()]):
            notify(line)
        rows = prepare_rows(inputs.recipe, inputs.corpus, folder, _sources(inputs, options, control), notify)
        remarks = []
        if inputs.labels is not None:
            remarks.append(labels_note(inputs.labels, rows.rows(inputs.labels.columns)))
            notify(remarks[0])
        if not (folder / "run.json").is_file():
            control = replace(control, resume=False)
        trained = train_on_rows(inputs.recipe, rows, inputs.backbone, measures, control)
        scores, outcome, report = measure_and_report(inputs, trained, probe_data, remarks)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def command(options: RunCommand) -> None:
    """Run, or say what a run would do, and print the result."""
    if not options.dry_run:
        show(apply(run, options))
        return
    for number, line in enumerate(plan(options), 1):
        typer.echo(f"{number}. {line}")


def plan(options: RunOptions) -> list[str]:
    """Return what `opencse.run` does with these options, a line for each step.

    The corpus is read and converted, and the conversion is cached for `run`. Nothing is built or trained.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if options.corpus is None:
        return [f"appends the meaning block that comes with opencse for {options.backbone}; nothing is trained"]
    inputs = resolve_inputs(options)
    read_probe_data(options.data, options.pairs)  # a mistake in a path is found now
    found, name = inputs.recipe, inputs.corpus.name
    read_validation(found, inputs.corpus, options)
    sentences = sum(1 for _ in inputs.corpus.texts())
    lines = [f"reads {sentences:,} sentences of {name}"]
    lines += filter(None, [*inputs.few, inputs.language_line()])
    if inputs.missing_specs:
        most = math.inf if found.corpus.rows is None else found.corpus.rows + found.corpus.opposites
        some = "all of them" if most >= sentences else f"up to {most:,} of them"
        lines.append(f"builds {', '.join(inputs.missing_specs)} for {some}")
    if inputs.labels is not None:
        lines.append(f"adds labels: {inputs.labels.describe()}")
    rows = sentences
    if parts := found.used_parts:
        rows = sum(part.rows for part in parts.values())
        lines.append(f"draws up to {rows:,} rows to train on")
    training = found.training
    steps = training.epochs * math.ceil(rows / training.batch_size)
    steps = min(steps, training.max_steps or steps)
    lines.append(f"trains for {steps:,} steps, {training.batch_size} rows each")
    return [*lines, "probes the model before and after, and writes a report"]


def _sources(inputs: RunInputs, options: RunOptions, control: RunControl) -> RowSources:
    """Return what rows are made with; the models that build text columns are trained first."""
    measures = first_stage_measures(options.dev, options.data)
    with timed("first stages"), collect():  # what is inside counts for it
        stages = train_first_stages(
            inputs.recipe, inputs.missing_specs, inputs.corpus, inputs.backbone, measures, control
        )
    return RowSources(
        models={"backbone": inputs.backbone, **{name: Backbone(path) for name, path in stages.items()}},
        paraphrases=inputs.paraphrases,
        pack=inputs.language.pack,
        labels=inputs.labels,
        keep=options.resume or not options.overwrite,
    )
