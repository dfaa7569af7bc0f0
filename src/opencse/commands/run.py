"""`opencse.run`: build columns, train, probe before and after, and report; or, without text, add a block."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from accelerate.utils import broadcast_object_list

from opencse.commands.add_block import add_shipped_block
from opencse.commands.command_line import apply, takes
from opencse.commands.options import RunOptions
from opencse.commands.reports.examples import own_triples
from opencse.commands.reports.scores_on_card import add_scores
from opencse.commands.run_data import Source, make_rows, open_source, train_miners
from opencse.commands.run_result import RunResult
from opencse.commands.run_scores import (
    check_own_texts,
    probe_models,
    read_probe_data,
    report_run,
)
from opencse.commands.train import read_validation, recipe_callbacks, run_control, train_on_rows
from opencse.encoder.device import join_processes
from opencse.evaluation.probes import ProbeData
from opencse.foundation.files import locked
from opencse.foundation.numbers import check_minutes
from opencse.foundation.progress import collect
from opencse.foundation.result_table import show
from opencse.text.corpus import Corpus
from opencse.training.session import RunControl, wait_for_long
from opencse.training.train import TrainingRun


@takes(RunOptions)
def run(options: RunOptions) -> RunResult:
    """Build columns, train and evaluate.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message tells how to fix it.
    """
    if options.corpus is None:
        return add_shipped_block(options)
    processes = join_processes()
    main = processes.is_main_process
    if not main:
        # Of several processes, one speaks.
        options = replace(options, progress=False, notify=_silent)
    folder = Path(options.out)
    control = start_control(options)
    # Only the main process writes into the folder.
    with locked(folder) if main else nullcontext(), collect() as timings:
        if main and processes.num_processes > 1:
            options.check_output()
        source = open_source(options)
        # All data is read before any training, so that a mistake in a path costs nothing.
        probe_data = read_probe_data(options)
        evaluators = read_validation(source.recipe, options)
        callbacks = recipe_callbacks(source.recipe, source.corpus, source.likely, options)
        control = replace(control, callbacks=callbacks, language=source.likely)
        for line in source.remarks():
            options.notify(line)

        # Building text and measuring models may take the main process hours.
        wait_for_long()
        miners = train_miners(source, control, options)
        with processes.main_process_first():
            # The other processes find what the main process built.
            built = options if main else replace(options, resume=True)
            rows = make_rows(source, miners, built)
        if not (folder / "run.json").is_file():
            # Killed while its text was built: there is nothing to resume but the text.
            control = replace(control, resume=False)
        trained = train_on_rows(source.recipe, rows, source.backbone, evaluators, control)

        result = None
        if main:
            result = measure(source, rows, trained, probe_data, options)
    if result is not None:
        result = replace(result, timings=timings.rounded())
        result.save(folder / "results.json")
        options.notify(timings.line())
    return from_main_process(result)


def measure(
    source: Source, rows: Corpus, trained: TrainingRun, probe_data: ProbeData, options: RunOptions
) -> RunResult:
    """Score both models, and write the report and the card."""
    triples = own_triples(rows, source.recipe)
    probed = probe_models(trained, source.backbone, probe_data, triples)
    own_texts = check_own_texts(source, trained)
    comparison, report = report_run(trained, probed, probe_data.notes, source.few, own_texts)
    readme = trained.model / "README.md"
    add_scores(readme, probed.by_name(), probed.trained, made_of=source.description())
    told = [line.removeprefix("warning: ") for line in source.few]
    return RunResult(
        run=replace(trained, warnings=(*told, *trained.warnings)),
        untouched=probed.untouched,
        trained=probed.trained,
        scores=probed.by_name(),
        comparison=comparison,
        report=report,
        timings={},
    )


def from_main_process(result: RunResult | None) -> RunResult:
    """Return the result of the main process, in every process."""
    shared = [result]
    broadcast_object_list(shared)
    (received,) = shared
    assert received is not None
    return received


def _silent(_: str) -> None:
    """Say nothing."""


def start_control(options: RunOptions) -> RunControl:
    """Return how the run is carried out; the clock of `--minutes` starts here, with the command."""
    deadline = None
    if options.minutes is not None:
        check_minutes(options.minutes)
        deadline = time.perf_counter() + 60 * options.minutes
    return replace(run_control(options), deadline=deadline)


def command(options: RunOptions) -> None:
    """Run, and print the result."""
    result = apply(run, options)
    if join_processes().is_main_process:
        show(result)
