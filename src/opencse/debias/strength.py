"""The start and the end of training a meaning block.

Before the first step, what a new block reads is standardised by some batches of the training text.
The strength is found last: the largest that harms no guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from opencse.debias.meaning_block import MeaningBlock, block_of, rescale
from opencse.encoder.device import autocast
from opencse.foundation.evaluator import Evaluators, VectorEvaluator
from opencse.foundation.progress import Phase, timed
from opencse.foundation.result_table import Cell, Number, Table
from opencse.recipes import Recipe
from opencse.training.batches import Batch, BatchSampler
from opencse.training.network import Network

STRENGTHS = tuple(step / 20 for step in range(17))
"""0 to 0.8, in steps of 0.05."""

Scores = Mapping[str, tuple[float, ...]]
Axes = Callable[[float], np.ndarray]
"""From a strength to the axes to which vectors are projected, (2 d, d) (`same_width`)."""


@dataclass(frozen=True, kw_only=True)
class StrengthCurve:
    """Scores of a model by the strength of its meaning block.

    Attributes:
        chosen: The strength of the model.
        tolerance: Points that a guard may lose.
        strengths: The strengths that were measured, ascending; the first is 0, the model without
            the block.
        guards: Scores of each guard at these strengths.
        meaning: Scores of what the block is for.
    """

    chosen: float
    tolerance: float
    strengths: tuple[float, ...]
    guards: dict[str, tuple[float, ...]]
    meaning: dict[str, tuple[float, ...]]

    def before_and_after(self, scores: Scores) -> dict[str, tuple[float, float]]:
        """Return each of some scores without the block and at the chosen strength."""
        place = self.strengths.index(self.chosen)
        return {name: (values[0], values[place]) for name, values in scores.items()}

    def table(self) -> Table:
        """Return every score at every strength."""
        measured = {**self.meaning, **self.guards}
        rows: list[list[Cell]] = []
        for place, strength in enumerate(self.strengths):
            mark = " (chosen)" if strength == self.chosen else ""
            rows.append(
                [f"{strength:g}{mark}", *(Number(values[place], 1) for values in measured.values())]
            )
        names = (name.removeprefix("dev-").replace("guard-", "guard: ") for name in measured)
        note = f"A guard may lose {self.tolerance:g} points, in the mean of three strengths, too; 0: no block."
        return Table(("strength", *names), rows, "Scores by strength of the meaning block", [note])


def find_strength(
    block: MeaningBlock, evaluators: Evaluators, tolerance: float, axes: Axes | None = None
) -> StrengthCurve:
    """Give a block the largest strength at which no guard loses more than it may; without guards, it stays.

    A guard may lose as little in the mean of a strength and its two neighbours: it moves by 0.2
    points from one to the next by chance. Every text is encoded once, whatever the number of
    strengths.

    Args:
        block: The block of the model that the evaluators were started with.
        evaluators: Evaluators of the guards and of meaning.
        tolerance: Points that a guard may lose.
        axes: Axes to which the vectors are projected; None for whole ones.
    """
    before, block.strength = block.strength, 1.0
    strengths = STRENGTHS if evaluators.guards is not None else tuple(sorted({*STRENGTHS, before}))

    def at(vectors: np.ndarray, strength: float) -> np.ndarray:
        scaled = rescale(vectors, 1.0, strength, int(block.config["width"]))
        return scaled if axes is None else scaled @ axes(strength)

    def scored(evaluator: VectorEvaluator | None) -> dict[str, tuple[float, ...]]:
        if evaluator is None:
            return {}
        vectors = evaluator.vectors()
        scores = [evaluator.scored(at(vectors, strength)) for strength in strengths]
        return {name: tuple(result[name] for result in scores) for name in scores[0]}

    with timed("strength"):
        guards, meaning = scored(evaluators.guards), scored(evaluators.meaning)

    def kept(place: int) -> bool:  # in points with one decimal, as they are shown
        beside = slice(max(place - 1, 0), place + 2)
        lost = [
            v[0] - score for v in guards.values() for score in (v[place], float(np.mean(v[beside])))
        ]
        return place == 0 or all(round(points, 1) <= tolerance for points in lost)

    harmless = [strength for place, strength in enumerate(strengths) if kept(place)]
    block.strength = before if evaluators.guards is None else max(harmless)
    return StrengthCurve(
        chosen=block.strength,
        tolerance=tolerance,
        strengths=strengths,
        guards=guards,
        meaning=meaning,
    )


_READ_BATCHES = 40  # by which what a new block reads is standardised


def standardise_block(
    network: Network,
    collator: Callable[[Any], Batch],
    rows: int,
    recipe: Recipe,
    *,
    show: bool = False,
) -> None:
    """Standardise what the network's new block reads.

    Args:
        network: The network, on its device.
        collator: Makes a batch of row numbers.
        rows: Number of training rows.
        recipe: The recipe.
        show: Show progress.
    """
    block = block_of(network.encoder)
    assert block is not None
    sampler = BatchSampler(rows, min(recipe.training.batch_size, rows), recipe.training.seed)
    network.eval()
    read: list[tuple[Tensor, Tensor]] = []
    device, batches = block.center.device, min(_READ_BATCHES, sampler.batches_per_epoch)
    phase = Phase("reading for the block", total=batches, unit="batches", show=show)
    with torch.no_grad(), autocast(recipe.training.precision, device), phase:
        for step in range(batches):
            batch = collator(sampler.batch(step))
            for ids, mask, _ in chain.from_iterable(part.groups for part in batch.passes):
                features: Any = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
                for module in list(network.encoder.children())[:-1]:
                    features = module(features)
                read.append((block.copied(features).float(), block.read(features)[1].float()))
            phase.update()
    block.standardise(*map(torch.cat, zip(*read, strict=True)))
