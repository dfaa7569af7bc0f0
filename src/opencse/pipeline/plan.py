"""The plan of a run: its steps and sizes, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.pipeline.inputs import resolve_inputs
from opencse.recipes import Recipe
from opencse.syntax.language import LANGUAGES, likely_language

_LANGUAGE_SAMPLE = 500  # sentences whose language is detected


@dataclass(frozen=True, kw_only=True)
class Plan(JupyterMixin):
    """The steps and sizes of a run.

    Attributes:
        corpus: Name of the corpus.
        sentences: Number of sentences in it.
        language: Code of its likely language; None for unknown.
        build: Columns of related sentences that are built.
        sampled: Maximum number of sentences that they are built for; None for all.
        rows: Maximum number of training rows; None for every sentence once an epoch.
        steps: Maximum number of optimiser steps; None if the epochs decide.
        batch_size: Sentences per step.
        task_vectors: Recipes whose task vectors are trained first.
    """

    corpus: str
    sentences: int
    language: str | None
    build: tuple[str, ...]
    sampled: int | None
    rows: int | None
    steps: int | None
    batch_size: int
    task_vectors: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the plan in words, one line for each step."""
        found = f"reads {self.sentences:,} sentences of {self.corpus}"
        if self.language != "en":
            found += f"; they look {LANGUAGES.get(self.language or '', 'not English')}, and the rules are for English"
        lines = [found]
        if self.build:
            some = "all of them" if self.sampled is None else f"up to {self.sampled:,} of them"
            lines.append(f"builds {', '.join(self.build)} for {some}")
        if self.rows is not None:
            lines.append(f"draws up to {self.rows:,} rows to train on")
        lines += [f"trains {name} for its task vector" for name in self.task_vectors]
        steps = "over all sentences" if self.steps is None else f"for up to {self.steps:,} steps"
        lines.append(f"trains {steps}, {self.batch_size} rows each")
        lines.append("probes and scores the model before and after, and writes a report")
        return lines

    def __rich__(self) -> RenderableType:
        return Group(*(Text(f"{i}. {line}") for i, line in enumerate(self.lines(), 1)))


def plan(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any = "minilm",
    paraphrases: str | Path | None = None,
    llm: str | None = None,
    column: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int | None = None,
    quick: bool = False,
) -> Plan:
    """Return the plan of the run that `opencse.run` makes of the same arguments.

    The corpus is read and converted, and the conversion is cached for `run`; nothing is built or trained.

    Args:
        recipe: As for `opencse.run`, like all arguments.
        corpus: As for `opencse.run`.
        backbone: As for `opencse.run`.
        paraphrases: As for `opencse.run`.
        llm: As for `opencse.run`.
        column: As for `opencse.run`.
        variant: As for `opencse.run`.
        overrides: As for `opencse.run`.
        seed: As for `opencse.run`.
        quick: As for `opencse.run`.

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
    )
    resolved = inputs.recipe
    first: list[str] = []
    count = 0
    for text in inputs.corpus.texts():
        count += 1
        if len(first) < _LANGUAGE_SAMPLE:
            first.append(text)
    sampled = None if resolved.corpus.rows is None else min(count, resolved.corpus.rows + resolved.corpus.opposites)
    parts = resolved.used_parts
    return Plan(
        corpus=inputs.corpus.name,
        sentences=count,
        language=likely_language(first),
        build=tuple(inputs.missing_specs),
        sampled=sampled,
        rows=sum(part.rows for part in parts.values()) if parts else None,
        steps=resolved.training.max_steps,
        batch_size=resolved.training.batch_size,
        task_vectors=tuple(vector.recipe for vector in resolved.task_vectors.values() if vector.weight),
    )
