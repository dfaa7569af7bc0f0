"""The plan of a run: its steps, sizes and expected time, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.pipeline import time_estimate
from opencse.pipeline.before_after import read_probe_data
from opencse.pipeline.inputs import resolve_inputs, with_precision
from opencse.pipeline.time_budget import TimeBudget, fit_to_minutes, rounded, run_sizes
from opencse.pipeline.time_estimate import RunSizes, seconds_by_part
from opencse.pipeline.validation import read_validation
from opencse.recipes import Recipe

_NAMED = 0.05  # share of the time from which a part is named


@dataclass(frozen=True, kw_only=True)
class Plan(JupyterMixin):
    """The steps, sizes and expected time of a run.

    Attributes:
        corpus: Name of the corpus.
        sentences: Number of sentences in it.
        language: One line about its language and the rules for it; empty if no view needs grammar.
        build: Columns of related sentences that are built.
        sampled: Maximum number of sentences that they are built for; None for all.
        rows: Maximum number of training rows; None for every sentence once an epoch.
        batch_size: Sentences per step.
        labels: The user's labels, in words; empty without any.
        sizes: Numbers of texts that are scored and probed.
        budget: Steps, expected time, and the share of the recipe that fits into `--minutes`.
        seconds: Expected seconds by part of the run.
    """

    corpus: str
    sentences: int
    language: str
    build: tuple[str, ...]
    sampled: int | None
    rows: int | None
    batch_size: int
    labels: str
    sizes: RunSizes
    budget: TimeBudget
    seconds: dict[str, float]

    def lines(self) -> list[str]:
        """Return the plan in words, one line for each step, and the expected time."""
        found = f"reads {self.sentences:,} sentences of {self.corpus}"
        lines = [found, *([self.language] if self.language else [])]
        if self.build:
            some = "all of them" if self.sampled is None else f"up to {self.sampled:,} of them"
            lines.append(f"builds {', '.join(self.build)} for {some}")
        if self.labels:
            lines.append(f"adds labels: {self.labels}")
        if self.rows is not None:
            lines.append(f"draws up to {self.rows:,} rows to train on")
        lines.append(f"trains for {self.budget.steps:,} steps, {self.batch_size} rows each")
        if self.sizes.scored.texts:
            lines.append(f"scores {self.sizes.scored.texts:,} development texts on the way")
        lines.append(f"probes the model before and after on {self.sizes.probed.texts:,} texts, and writes a report")
        lines.append(self._time())
        return lines

    def _time(self) -> str:
        total = sum(self.seconds.values())
        slow = sorted(self.seconds.items(), key=lambda part: -part[1])
        parts = ", ".join(f"{name} {rounded(seconds)}" for name, seconds in slow if seconds >= _NAMED * total)
        share = "" if self.budget.share == 1 else f" ({self.budget.share:.0%} of the recipe)"
        return f"takes about {rounded(total)} on this machine{share}: {parts}"

    def __rich__(self) -> RenderableType:
        return Group(*(Text(f"{i}. {line}") for i, line in enumerate(self.lines(), 1)))


def plan(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any = "minilm",
    dev: str | Path | None = None,
    data: str | Path | None = None,
    guard: str | Path | None = None,
    pairs: str | Path | None = None,
    paraphrases: str | Path | None = None,
    llm: str | None = None,
    column: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int | None = None,
    quick: bool = False,
    labels: str | Path | None = None,
    label_share: float = 0.1,
    minutes: float | None = None,
) -> Plan:
    """Return the plan of the run that `opencse.run` makes of the same arguments.

    The corpus is read and converted, and the conversion is cached for `run`; the machine is timed for a few seconds.
    Nothing is built or trained.

    Args:
        recipe: As for `opencse.run`, like all arguments.
        corpus: As for `opencse.run`.
        backbone: As for `opencse.run`.
        dev: As for `opencse.run`.
        data: As for `opencse.run`.
        guard: As for `opencse.run`.
        pairs: As for `opencse.run`.
        paraphrases: As for `opencse.run`.
        llm: As for `opencse.run`.
        column: As for `opencse.run`.
        variant: As for `opencse.run`.
        overrides: As for `opencse.run`.
        seed: As for `opencse.run`.
        quick: As for `opencse.run`.
        labels: As for `opencse.run`.
        label_share: As for `opencse.run`.
        minutes: As for `opencse.run`.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    inputs = resolve_inputs(
        recipe,
        corpus,
        backbone=backbone,
        paraphrases=paraphrases,
        llm=llm,
        column=column,
        variant=variant,
        overrides=overrides,
        seed=seed,
        quick=quick,
        labels=labels,
        label_share=label_share,
    )
    inputs, _ = with_precision(inputs)
    validation = read_validation(inputs.recipe, inputs.corpus.texts, dev=dev, data=data, guard=guard)
    sizes, first = run_sizes(inputs, read_probe_data(data, pairs), validation)
    speed = time_estimate.measure_speed(inputs, first)
    inputs, budget = fit_to_minutes(inputs, sizes, first, minutes, speed=speed)
    resolved, parts = inputs.recipe, inputs.recipe.used_parts
    asked = None if resolved.corpus.rows is None else resolved.corpus.rows + resolved.corpus.opposites
    return Plan(
        corpus=inputs.corpus.name,
        sentences=sizes.sentences,
        language=inputs.language_line(),
        build=tuple(inputs.missing_specs),
        sampled=None if asked is None else min(sizes.sentences, asked),
        rows=sum(part.rows for part in parts.values()) if parts else None,
        batch_size=resolved.training.batch_size,
        labels="" if inputs.labels is None else inputs.labels.describe(),
        sizes=sizes,
        budget=budget,
        seconds=seconds_by_part(resolved, sizes, speed),
    )
