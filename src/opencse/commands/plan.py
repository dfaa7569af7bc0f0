"""The plan of a run: its steps and sizes, without running it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from opencse.commands.before_after import read_probe_data
from opencse.commands.inputs import resolve_inputs
from opencse.commands.validation import read_validation
from opencse.recipes import Recipe


def plan(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    guard: str | Path | None = None,
    pairs: str | Path | None = None,
    **options: Any,
) -> list[str]:
    """Return what `opencse.run` does with the same arguments, a line for each step.

    The corpus is read and converted, and the conversion is cached for `run`. Nothing is built or trained.

    Args:
        recipe: As for `opencse.run`, like all arguments.
        corpus: As for `opencse.run`.
        dev: As for `opencse.run`.
        data: As for `opencse.run`.
        guard: As for `opencse.run`.
        pairs: As for `opencse.run`.
        **options: As for `resolve_inputs`.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    inputs = resolve_inputs(recipe, corpus, **options)
    read_probe_data(data, pairs)  # a mistake in a path is found now
    found, name = inputs.recipe, inputs.corpus.name
    read_validation(found, inputs.corpus.texts, dev=dev, data=data, guard=guard)
    sentences = sum(1 for _ in inputs.corpus.texts())
    lines = [f"reads {sentences:,} sentences of {name}"]
    if language := inputs.language_line():
        lines.append(language)
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
