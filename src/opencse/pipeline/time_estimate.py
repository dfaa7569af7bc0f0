"""The expected time of a run, from a probe of a few seconds, and the share of a recipe that fits into some minutes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import torch

from opencse.encoder import load_encoder
from opencse.encoder.device import choose_device
from opencse.encoder.embedder import Embedder
from opencse.encoder.fast import prepare_for_training
from opencse.encoder.precision import MixedPrecision
from opencse.engines import Local
from opencse.errors import OpencseError
from opencse.evaluation.compatibility import TEXTS
from opencse.pipeline.inputs import RunInputs
from opencse.progress.phase import duration
from opencse.recipes import Recipe, load_recipe, scaled
from opencse.runs.blending import MOST_TRIALS

_SHARES = (*(share / 20 for share in range(20, 1, -1)), 0.07, 0.05, 0.03, 0.02)
_ENCODED_TEXTS = 128  # for fewer, padding costs more than in bulk
_TRAINED_TEXTS = 64
_SECONDS = 1.0  # for each of the two speeds, unless two calls take longer
_OVERHEAD = 25.0  # seconds: imports, models and worker processes that are loaded, the report
_PARSING = 0.004  # seconds to parse and rewrite a sentence in one process; timing it would take a loaded parser
_PRESENT = 0.8  # share of a row's optional views that are there, in the rows that `debias` draws from Wikipedia
_WORDS_DRAWN = 0.7  # words of a drawn text, relative to a sentence of the corpus: short ones are rewritten more often


@dataclass(frozen=True, kw_only=True)
class MachineSpeed:
    """Seconds for one text of the run, on this machine.

    Attributes:
        train: In a training step: forward, backward and update.
        encode: Encoded for a score, a teacher or mining.
    """

    train: float
    encode: float


@dataclass(frozen=True)
class TextAmount:
    """Texts that are encoded.

    Attributes:
        texts: How many there are.
        sentences: How many sentences of the corpus have as many words.
    """

    texts: int = 0
    sentences: int = 0


@dataclass(frozen=True, kw_only=True)
class RunSizes:
    """Amounts of work that the corpus and the options of a run decide.

    Attributes:
        sentences: Sentences in the corpus.
        builds: Whether columns are built.
        scored: Texts of the development pairs.
        guarded: Texts of the guards.
        probed: Texts of the probes before and after training.
    """

    sentences: int
    builds: bool
    scored: TextAmount
    guarded: TextAmount
    probed: TextAmount


def measure_speed(inputs: RunInputs, texts: Sequence[str]) -> MachineSpeed:
    """Time a few steps of the recipe's shape on texts of the corpus, a few seconds in all.

    Args:
        inputs: The recipe with its precision settled, and the backbone.
        texts: Sentences of the corpus.
    """
    encoded, trained = (list(islice(cycle(texts), number)) for number in (_ENCODED_TEXTS, _TRAINED_TEXTS))
    recipe = inputs.recipe
    encoder = load_encoder(inputs.backbone, **recipe.pooling, device=str(choose_device()))
    embed = Embedder(encoder, precision="fp32" if recipe.training.precision == "fp32" else "bf16")
    encode = _seconds(lambda: embed(encoded)) / len(encoded)
    train = _seconds(_training_step(encoder, trained, recipe)) / len(trained)
    return MachineSpeed(train=train, encode=encode)


def total_steps(recipe: Recipe, sizes: RunSizes) -> int:
    """Return the number of optimiser steps of a run."""
    steps = recipe.training.epochs * math.ceil(_rows(recipe, sizes) / recipe.training.batch_size)
    return min(steps, recipe.training.max_steps or steps)


def seconds_by_part(recipe: Recipe, sizes: RunSizes, speed: MachineSpeed) -> dict[str, float]:
    """Estimate the seconds of each part of a run."""
    sampled = sizes.sentences
    if recipe.corpus.rows is not None:
        sampled = min(sampled, recipe.corpus.rows + recipe.corpus.opposites)
    sampled += recipe.corpus.paraphrases or 0
    per_row, steps = _sentences_per_row(recipe), total_steps(recipe, sizes)
    parsed = sampled * (recipe.corpus.clauses + 1 / Local().workers) if sizes.builds else 0
    # A teacher encodes each distinct text once, however many rows repeat it.
    taught = min(_rows(recipe, sizes) * per_row, sampled * len(recipe.columns))
    mined = sum(hasattr(spec, "model") for spec in recipe.build.values()) if sizes.builds else 0
    stages = [load_recipe(stage.recipe, overrides=stage.set) for stage in recipe.first_stages.values()]
    trials = MOST_TRIALS if recipe.selection.keep == "last" else 0
    scorings = 1 + math.ceil(steps / recipe.selection.every) + trials
    return {
        "start and report": _OVERHEAD,
        "views": _PARSING * parsed + mined * speed.encode * sampled,
        "first stages": sum(_training_seconds(other, sizes.sentences, speed, steps) for other in stages),
        "teachers": len(recipe.teachers) * taught * speed.encode,
        "training": steps * recipe.training.batch_size * per_row * speed.train,
        "scores": (scorings * sizes.scored.sentences + (1 + trials) * sizes.guarded.sentences) * speed.encode,
        "evaluation": 2 * (sizes.probed.sentences + min(TEXTS, sizes.sentences)) * speed.encode,
    }


def fitting_share(recipe: Recipe, sizes: RunSizes, speed: MachineSpeed, seconds: float) -> float:
    """Return the largest share of a recipe that takes no more than so many seconds.

    Raises:
        OpencseError: Even a fiftieth of it takes longer.
    """
    steps = total_steps(recipe, sizes)
    needed = 0.0
    for share in _SHARES:
        needed = sum(seconds_by_part(scaled(recipe, share, steps), sizes, speed).values())
        if needed <= seconds:
            return share
    raise OpencseError(
        f"{duration(seconds)} are too few: a fiftieth of {recipe.name} takes about {duration(needed)} on this machine",
        f"Give at least {math.ceil(needed / 60) + 1} minutes.",
    )


def _rows(recipe: Recipe, sizes: RunSizes) -> int:
    parts = recipe.used_parts
    return sum(part.rows for part in parts.values()) if parts else sizes.sentences


def _sentences_per_row(recipe: Recipe) -> float:
    """Return the mean number of words of a row's views together, in sentences of the corpus."""
    parts = recipe.used_parts
    rows = sum(part.rows for part in parts.values())
    if not rows:
        return float(len(recipe.views))
    views = sum(part.rows * (1 + len(part.needs) + _PRESENT * len(part.keeps)) for part in parts.values())
    return _WORDS_DRAWN * views / rows


def _training_seconds(recipe: Recipe, rows: int, speed: MachineSpeed, most: int) -> float:
    """Return the seconds of another run that this one depends on; it takes no more steps than this one."""
    training = recipe.training
    steps = min(most, training.epochs * math.ceil(rows / training.batch_size), training.max_steps or most)
    return steps * training.batch_size * _sentences_per_row(recipe) * speed.train


def _training_step(encoder: Any, texts: Sequence[str], recipe: Recipe) -> Callable[[], None]:
    """Return one optimiser step on the texts, with a loss on all their cosines."""
    features = encoder.preprocess(list(texts))
    length = recipe.encoder.max_length
    features = {k: v[:, :length].to(encoder.device) for k, v in features.items() if isinstance(v, torch.Tensor)}
    prepare_for_training(encoder)
    precision = recipe.training.precision
    assert precision != "auto"
    mixed = MixedPrecision(precision, encoder, encoder.device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-9)

    def step() -> None:
        encoder.train()
        with mixed.forward():
            vectors = encoder(dict(features))["sentence_embedding"]
        mixed.backward((vectors.float() @ vectors.float().T).mean())
        mixed.collect_gradients(optimizer, 1.0)
        mixed.step(optimizer)

    return step


def _seconds(work: Callable[[], Any]) -> float:
    """Return the shortest wall time of a few calls after a first one, which takes longer."""
    work()
    found: list[float] = []
    while len(found) < 2 or (sum(found) < _SECONDS and len(found) < 5):
        before = time.perf_counter()
        work()
        found.append(time.perf_counter() - before)
    return min(found)
