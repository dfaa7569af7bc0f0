"""Estimate of the time of a run before it begins, and `--minutes`: the part of a recipe that fits into a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from opencse.errors import Interrupted, OpencseError
from opencse.evaluation import ScoredPairs, TripletTask
from opencse.io.reading import read_json
from opencse.pipeline.inputs import RunInputs
from opencse.pipeline.time_estimate import (
    MachineSpeed,
    RunSizes,
    TextAmount,
    fitting_share,
    measure_speed,
    seconds_by_part,
    total_steps,
)
from opencse.pipeline.validation import ValidationData
from opencse.probing import ProbeData
from opencse.progress import Notify
from opencse.progress.phase import duration
from opencse.recipes import scaled
from opencse.settings.numbers import check_minutes


@dataclass(frozen=True, kw_only=True)
class TimeBudget:
    """The time of a run, as it stands in `run.json`.

    Attributes:
        minutes: What the user allows; None for no limit.
        share: Share of the recipe's sentences and steps that is run.
        estimated_seconds: Estimate of that share; None for a run that goes on.
        steps: Optimiser steps.
    """

    minutes: float | None
    share: float
    estimated_seconds: float | None
    steps: int

    def line(self, sentences: int, recipe: str) -> str:
        """Return the first line of a run."""
        steps = f"{sentences:,} sentences, {self.steps:,} training steps"
        if self.estimated_seconds is None:
            return f"goes on: {steps}"
        if self.share < 1:
            steps += f"; {100 * self.share:.0f} % of {recipe}, to keep within {self.minutes:g} minutes"
        return f"takes about {rounded(self.estimated_seconds)} on this machine ({steps})"


def run_sizes(inputs: RunInputs, probed: ProbeData, validation: ValidationData) -> tuple[RunSizes, list[str]]:
    """Return the amounts of work of a run, and the first sentences of its corpus that may become training rows."""
    most = max((part.words or math.inf for part in inputs.recipe.used_parts.values()), default=math.inf)
    short = (text for text in inputs.corpus.texts() if len(text.split()) <= most)
    first = list(islice(short, 200)) or list(islice(inputs.corpus.texts(), 200))
    if not first:
        raise OpencseError(f"{inputs.corpus.name}: no sentence", "Give a text with at least one line.")
    return RunSizes(
        sentences=sum(1 for _ in inputs.corpus.texts()),
        builds=bool(inputs.missing_specs),
        scored=_amount(_texts_of_pairs(validation.development), first),
        guarded=_amount({text for task in validation.guards for text in task.texts()}, first),
        probed=_amount(_probed_texts(probed), first),
    ), first


def _probed_texts(probed: ProbeData) -> list[str]:
    """Return the texts of the probes."""
    written = [] if probed.sentences is None else [probed.sentences.anchors, *probed.sentences.versions.values()]
    triplets = {text for each in probed.triplets for text in TripletTask(data=each).texts()}
    texts = [
        *_texts_of_pairs([*probed.sts, *probed.pairs]),
        *triplets,
        *(text for column in written for text in column),
    ]
    return [text for text in texts if text]


def _texts_of_pairs(sets: Sequence[ScoredPairs]) -> set[str]:
    """Return the distinct texts: each is encoded once."""
    return {text for each in sets for text in (*each.sentence1, *each.sentence2)}


def _amount(texts: Collection[str], sentences: Sequence[str]) -> TextAmount:
    """Return an amount of texts, beside sentences of the usual length: guards are longer, scored pairs are shorter."""
    words = sum(len(text.split()) for text in texts)
    usual = sum(len(text.split()) for text in sentences)
    return TextAmount(len(texts), round(words * len(sentences) / max(1, usual)))


def fit_to_minutes(
    inputs: RunInputs,
    sizes: RunSizes,
    texts: Sequence[str],
    minutes: float | None,
    begun: TimeBudget | None = None,
    speed: MachineSpeed | None = None,
) -> tuple[RunInputs, TimeBudget]:
    """Return the inputs with as much of the recipe as fits, and the time it takes.

    Args:
        inputs: With the precision settled.
        sizes: Amounts of work.
        texts: Sentences of the corpus, for the probe of the machine.
        minutes: What the user allows; None for the whole recipe.
        begun: The budget of a run that goes on, which keeps its share.
        speed: The speed of the machine, if it is known.

    Raises:
        OpencseError: The time is too short for a fiftieth of the recipe.
    """
    if minutes is not None:
        check_minutes(minutes)
    whole = inputs.recipe
    steps = total_steps(whole, sizes)
    share, seconds = (1.0, None) if begun is None else (begun.share, None)
    if begun is None:
        speed = speed or measure_speed(inputs, texts)
        share = 1.0 if minutes is None else fitting_share(whole, sizes, speed, 60 * minutes)
        seconds = round(sum(seconds_by_part(scaled(whole, share, steps), sizes, speed).values()))
    recipe = scaled(whole, share, steps)
    minutes = minutes if begun is None else begun.minutes
    budget = TimeBudget(minutes=minutes, share=share, estimated_seconds=seconds, steps=total_steps(recipe, sizes))
    return replace(inputs, recipe=recipe), budget


def begun_budget(folder: Path) -> TimeBudget | None:
    """Return the budget that the run in a folder began with; None if it has not begun."""
    path = folder / "run.json"
    if not path.is_file():
        return None
    try:
        found: dict[str, Any] = read_json(path).get("budget") or {}
        minutes, share = found.get("minutes"), float(found.get("share", 1))
        minutes = None if minutes is None else float(minutes)
    except (OpencseError, ValueError, TypeError, AttributeError, OverflowError):
        return None
    if not 0 < share <= 1 or not (minutes is None or 0 < minutes < math.inf):
        return None
    return TimeBudget(minutes=minutes, share=share, estimated_seconds=None, steps=0)


def announce(line: str, notify: Notify, confirm: Callable[[str], bool] | None) -> None:
    """Say how long the run takes, or ask whether to begin if there is someone to ask.

    Raises:
        Interrupted: The answer is no.
    """
    if confirm is None:
        notify(line)
    elif not confirm(line):
        raise Interrupted("stopped before anything was built")


def rounded(seconds: float) -> str:
    """Return a time span as exactly as an estimate is."""
    return duration(60 * round(seconds / 60)) if seconds >= 90 else duration(10 * max(1, round(seconds / 10)))
