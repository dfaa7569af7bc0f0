"""The start of a new meaning block: φ is fitted to what the untouched model says of some texts.

The transformer reads some batches of the training text once. What the block reads is standardised by them, and φ is
fitted to f(c) of the loss, from e alone: hundreds of steps in some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder.meaning_block import MeaningBlock, block_of
from opencse.foundation.errors import OpencseError
from opencse.losses import MeaningLoss
from opencse.losses.meaning import sharpening_loss
from opencse.recipes import Recipe
from opencse.training.batches import Batch, BatchSampler
from opencse.training.network import Network

_RANDOM, _NEAREST = 192, 64  # texts of a step of φ: at random, and neighbours of one
_WARMUP = 50
_LR = 1e-3


def fit_block(network: Network, assembler: Callable[[Any], Batch], rows: int, recipe: Recipe) -> None:
    """Fit φ of the network's new block; the random state of the training does not change.

    Args:
        network: The network, on its device.
        assembler: Makes a batch of row numbers.
        rows: Number of training rows.
        recipe: A recipe with a block and a term of kind `meaning`.
    """
    block, settings = block_of(network.encoder), recipe.block
    if block is None or settings is None or not any(isinstance(term, MeaningLoss) for term in recipe.terms):
        raise OpencseError(f"{recipe.name}: a recipe with a [block] needs a term of the kind 'meaning'")
    sampler = BatchSampler(rows, min(recipe.training.batch_size, rows), recipe.training.seed)
    network.eval()
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        read: list[tuple[Tensor, Tensor, Tensor]] = []
        for step in range(min(settings.fit_batches, sampler.batches_per_epoch)):
            read += _read(network, block, assembler(sampler.batch(step)))
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
            yield (*block.read(features), block.copied(features))


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
        for group in optimizer.param_groups:
            group["lr"] = _LR * min(1, (step + 1) / _WARMUP) * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        first.weight[:, d:] = 0
