"""The start of a new meaning block: its small parts are fitted to what the untouched model says of some texts.

The transformer reads some batches of the training text once. On these, φ is fitted to max(c, 0)^k, from e alone, and
the code to the logistic loss alone: thousands of steps in half a minute, after which training begins where the copied
layers are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder.meaning_block import MeaningBlock, block_of
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase
from opencse.losses import Context, MeaningLoss
from opencse.losses.meaning import Relations, code_loss, sharpening_loss
from opencse.recipes import Recipe
from opencse.training.batches import Batch, BatchSampler
from opencse.training.network import Network

_RANDOM, _NEAREST = 192, 64  # texts of a step of φ: at random, and neighbours of one
_WARMUP = 50
_CODE_LR, _TOPIC_LR = 2e-3, 1e-3


class _Read(NamedTuple):
    """What a block reads of the texts of a batch, and how they are related."""

    e: Tensor
    frozen: Tensor
    copied: Tensor
    related: Relations


def fit_block(
    network: Network, assembler: Callable[[Any], Batch], rows: int, recipe: Recipe, *, show: bool = False
) -> None:
    """Fit the code and φ of the network's new block; the random state of the training does not change.

    Args:
        network: The network, on its device.
        assembler: Makes a batch of row numbers.
        rows: Number of training rows.
        recipe: A recipe with a block and a term of kind `meaning`.
        show: Show the progress.
    """
    block, settings = block_of(network.encoder), recipe.block
    term = next((term for term in recipe.terms if isinstance(term, MeaningLoss)), None)
    if block is None or settings is None or term is None:
        raise OpencseError(f"{recipe.name}: a recipe with a [block] needs a term of the kind 'meaning'")
    sampler = BatchSampler(rows, min(recipe.training.batch_size, rows), recipe.training.seed)
    batches = min(settings.fit_batches, sampler.batches_per_epoch)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        with Phase("reading for the block", total=batches, unit="batches", show=show) as phase:
            read = []
            for step in range(batches):
                read.append(_read(network, block, term, assembler(sampler.batch(step))))
                phase.update()
        block.standardise(*(torch.cat([getattr(each, name) for each in read]) for name in ("copied", "frozen")))
        block.train()
        _fit_topic(block, torch.cat([each.e for each in read]), term.power, settings.fit_steps // 3)
        _fit_code(block, read, settings.fit_steps)


@torch.no_grad()
def _read(network: Network, block: MeaningBlock, term: MeaningLoss, batch: Batch) -> _Read:
    """Return what the block reads of the texts of a batch, in the order of the term's views."""
    network.eval()
    device = block.center.device
    rows, related = term.related_texts(dict(zip(batch.views, batch.present, strict=True)), Context())
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    for part in batch.passes:
        for ids, mask, _ in part.groups:
            features: Any = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
            for module in list(cast(nn.Sequential, network.encoder))[:-1]:
                features = module(features)
            found.append((*block.read(features), block.copied(features)))
    place = torch.zeros(len(batch.views) * batch.rows, dtype=torch.long)
    slots = torch.cat([part.slots for part in batch.passes])
    place[slots] = torch.arange(len(slots))
    order = torch.cat([place[batch.views.index(view) * batch.rows + rows[view]] for view in term.views]).to(device)
    e, frozen, copied = (torch.cat(parts)[order] for parts in zip(*found, strict=True))
    return _Read(e, frozen, copied, related.to(device))


def _fit_code(block: MeaningBlock, read: list[_Read], steps: int) -> None:
    optimizer = torch.optim.AdamW(block.code.parameters(), lr=_CODE_LR, weight_decay=0.05)
    for step in range(steps):
        one = read[step % len(read)]
        code, _, _ = block.meaning(one.e, one.frozen, one.copied)
        _step(optimizer, code_loss(code, one.related), _CODE_LR, step, steps)


def _fit_topic(block: MeaningBlock, e: Tensor, power: float, steps: int) -> None:
    """Fit φ to max(c, 0)^k; its weights of all that it reads but e become 0."""
    rng = np.random.default_rng(0)
    first, last = cast(nn.Linear, block.sharpen[0]), block.sharpen[2]
    d = e.shape[1]
    optimizer = torch.optim.AdamW(block.sharpen.parameters(), lr=_TOPIC_LR)
    for step in range(steps):
        near = (e @ e[int(rng.integers(len(e)))]).topk(min(_NEAREST, len(e))).indices
        chosen = torch.cat([torch.from_numpy(rng.permutation(len(e))[:_RANDOM]).to(near.device), near])
        hidden = F.relu(F.linear(e[chosen] * d**0.5, first.weight[:, :d], first.bias))
        _step(optimizer, sharpening_loss(F.normalize(last(hidden), dim=-1), e[chosen], power), _TOPIC_LR, step, steps)
    with torch.no_grad():
        first.weight[:, d:] = 0


def _step(optimizer: torch.optim.Optimizer, loss: Tensor, peak: float, step: int, steps: int) -> None:
    for group in optimizer.param_groups:
        group["lr"] = peak * min(1, (step + 1) / _WARMUP) * (1 - step / steps)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
