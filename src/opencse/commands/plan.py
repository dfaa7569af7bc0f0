"""The plan of a run: its steps and sizes, without running it."""

from __future__ import annotations

import math

from opencse.commands.inputs import resolve_inputs
from opencse.commands.options import RunOptions
from opencse.commands.run_report import read_probe_data
from opencse.commands.validation import read_validation


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
