"""The start and the end of training a meaning block: φ is fitted before the first step, the strength found last.

The strength is the largest that harms no guard. φ is fitted to f(c) of the loss, from e alone: the transformer reads
some batches of the training text once, what the block reads is standardised by them; hundreds of steps take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder.device import autocast
from opencse.encoder.meaning_block import MeaningBlock, block_of, rescale
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.foundation.progress import Phase, timed
from opencse.foundation.result_table import Cell, Number, Table
from opencse.losses import MeaningLoss
from opencse.losses.meaning import sharpening_loss
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
        strengths: The strengths that were measured, ascending; the first is 0, the model without the block.
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
        """Return the score of every measure at every strength."""
        measured = {**self.meaning, **self.guards}
        rows: list[list[Cell]] = []
        for place, strength in enumerate(self.strengths):
            mark = " (chosen)" if strength == self.chosen else ""
            rows.append([f"{strength:g}{mark}", *(Number(values[place], 1) for values in measured.values())])
        names = (name.removeprefix("dev-").replace("guard-", "guard: ") for name in measured)
        note = f"A guard may lose {self.tolerance:g} points, in the mean of three strengths, too; 0: no block."
        return Table(("strength", *names), rows, "Scores by strength of the meaning block", [note])


def find_strength(block: MeaningBlock, measures: Measures, tolerance: float, axes: Axes | None = None) -> StrengthCurve:
    """Give a block the largest strength at which no guard loses more than it may; without guards, it stays.

    A guard may lose as little in the mean of a strength and its two neighbours: it moves by 0.2 points from one to the
    next by chance. Every text is encoded once, whatever the number of strengths.

    Args:
        block: The block of the model that the measures were started with.
        measures: Guards and measures of meaning.
        tolerance: Points that a guard may lose.
        axes: Axes to which the vectors are projected; None for whole ones.
    """
    before, block.strength = block.strength, 1.0
    strengths = STRENGTHS if measures.guards is not None else tuple(sorted({*STRENGTHS, before}))
    curves: list[dict[str, tuple[float, ...]]] = []

    def at(vectors: np.ndarray, strength: float) -> np.ndarray:
        scaled = rescale(vectors, 1.0, strength, int(block.config["width"]))
        return scaled if axes is None else scaled @ axes(strength)

    with timed("strength"):
        for measure in (measures.guards, measures.meaning):
            scores: list[dict[str, float]] = []
            if measure is not None:
                vectors = measure.vectors()
                scores = [measure.scored(at(vectors, strength)) for strength in strengths]
            names = scores[0] if scores else {}
            curves.append({name: tuple(result[name] for result in scores) for name in names})
    guards, meaning = curves

    def kept(place: int) -> bool:  # in points with one decimal, as they are shown
        beside = slice(max(place - 1, 0), place + 2)
        lost = [v[0] - score for v in guards.values() for score in (v[place], float(np.mean(v[beside])))]
        return place == 0 or all(round(points, 1) <= tolerance for points in lost)

    harmless = [strength for place, strength in enumerate(strengths) if kept(place)]
    block.strength = before if measures.guards is None else max(harmless)
    return StrengthCurve(
        chosen=block.strength, tolerance=tolerance, strengths=strengths, guards=guards, meaning=meaning
    )


def meaning_term(recipe: Recipe) -> MeaningLoss:
    """Return the term that trains the block of a recipe; raise an `OpencseError` if it has none."""
    for term in recipe.terms:
        if isinstance(term, MeaningLoss):
            return term
    raise OpencseError(f"{recipe.name}: a recipe with a [block] needs a term of the kind 'meaning'")


_RANDOM, _NEAREST = 192, 64  # texts of a step of φ: at random, and neighbours of one
_FITTED_BATCHES = 40  # whose texts φ is fitted to
_WARMUP, _LR = 50, 1e-3


def fit_block(
    network: Network, assembler: Callable[[Any], Batch], rows: int, recipe: Recipe, *, show: bool = False
) -> None:
    """Fit φ of the network's new block; the random state of the training does not change.

    Args:
        network: The network, on its device.
        assembler: Makes a batch of row numbers.
        rows: Number of training rows.
        recipe: A recipe with a block and a term of kind `meaning`.
        show: Show progress.
    """
    block, settings = block_of(network.encoder), recipe.block
    assert block is not None
    assert settings is not None
    sampler = BatchSampler(rows, min(recipe.training.batch_size, rows), recipe.training.seed)
    network.eval()
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        read: list[tuple[Tensor, Tensor, Tensor]] = []
        batches = min(_FITTED_BATCHES, sampler.batches_per_epoch)
        phase = Phase("fitting the block", total=batches, unit="batches", show=show)
        with autocast(recipe.training.precision, block.center.device), phase:
            for step in range(batches):
                read += _read(network, block, assembler(sampler.batch(step)))
                phase.update()
        e, frozen, copied = map(torch.cat, zip(*read, strict=True))
        block.standardise(copied, frozen)
        _fit_topic(block, e, settings.fit_steps)


@torch.no_grad()
def _read(network: Network, block: MeaningBlock, batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield e, the averages and what the copied layers say of each group of texts of a batch."""
    for part in batch.passes:
        for ids, mask, _ in part.groups:
            features: Any = {"input_ids": ids.to(block.center.device), "attention_mask": mask.to(block.center.device)}
            for module in list(cast(nn.Sequential, network.encoder))[:-1]:
                features = module(features)
            e, frozen = block.read(features)
            yield e.float(), frozen.float(), block.copied(features).float()


def _fit_topic(block: MeaningBlock, e: Tensor, steps: int) -> None:
    """Fit φ to f(c); its weights of all that it reads but e become 0."""
    rng = np.random.default_rng(0)
    first, last = cast(nn.Linear, block.sharpen[0]), block.sharpen[2]
    d = e.shape[1]
    optimizer = torch.optim.AdamW(block.sharpen.parameters(), lr=_LR)
    for step in range(steps):
        near = (e @ e[int(rng.integers(len(e)))]).topk(min(_NEAREST, len(e))).indices
        chosen = torch.cat([torch.from_numpy(rng.permutation(len(e))[:_RANDOM]).to(near.device), near])
        hidden = F.relu(F.linear(e[chosen] * d**0.5, first.weight[:, :d], first.bias))
        loss = sharpening_loss(F.normalize(last(hidden), dim=-1), e[chosen])
        optimizer.param_groups[0]["lr"] = _LR * min(1, (step + 1) / _WARMUP) * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        first.weight[:, d:] = 0
