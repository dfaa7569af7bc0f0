"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from opencse.commands.add_block import add_block
from opencse.commands.command_line import apply, takes
from opencse.commands.inputs import RunInputs, first_stage_measures, read_validation, resolve_inputs
from opencse.commands.options import RunOptions
from opencse.commands.run_report import RunResult, measure_and_report
from opencse.commands.train import run_control, train_on_rows
from opencse.encoder.backbone import Backbone
from opencse.evaluation.probes import load_probe_data
from opencse.foundation.files import locked
from opencse.foundation.numbers import check_minutes
from opencse.foundation.progress import collect, timed
from opencse.foundation.result_table import show
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
        probe_data = load_probe_data(data=options.data, pairs=[] if options.pairs is None else [options.pairs])
        if not options.resume:
            check_folder(folder, resume=False, overwrite=options.overwrite)
        measures = read_validation(inputs.recipe, inputs.corpus, options)
        for line in filter(None, [*inputs.few, inputs.language.line(inputs.missing_specs)]):
            notify(line)
        rows = prepare_rows(inputs.recipe, inputs.corpus, folder, _sources(inputs, options, control), notify)
        if not (folder / "run.json").is_file():
            control = replace(control, resume=False)
        trained = train_on_rows(inputs.recipe, rows, inputs.backbone, measures, control)
        scores, outcome, report = measure_and_report(inputs, trained, probe_data)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def command(options: RunOptions) -> None:
    """Run, and print the result."""
    show(apply(run, options))


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
        keep=options.resume or not options.overwrite,
    )
