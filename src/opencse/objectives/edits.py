"""Changes to token sequences whose traces a discriminator is to find (DiffCSE §3 and §5).

All functions work on ids (n, L) with an attention mask (n, L) of 1 for real tokens, padding at the end. They draw from
PyTorch's generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True)
class Edit:
    """A changed sequence.

    Attributes:
        ids: (n, L'), padding ids where the mask is 0.
        mask: (n, L'), 1 for real tokens.
        marked: (n, L') bool: tokens that were masked, inserted, or whose predecessor was deleted.
    """

    ids: Tensor
    mask: Tensor
    marked: Tensor


def choose(candidates: Tensor, ratio: float) -> Tensor:
    """Return each candidate (n, L) with probability `ratio`, independently."""
    return candidates & (torch.rand(candidates.shape, device=candidates.device) < ratio)


def mask_tokens(
    ids: Tensor, mask: Tensor, chosen: Tensor, mask_id: int, vocabulary: int, masking: Literal["mask", "bert"]
) -> Edit:
    """Hide the chosen tokens.

    Args:
        ids: (n, L).
        mask: (n, L).
        chosen: (n, L) bool.
        mask_id: Id of the mask token.
        vocabulary: Ids lie below it.
        masking: `mask` hides all of them behind the mask token; `bert` hides 80 % of them, puts a random token in the
            place of 10 %, and leaves 10 %.
    """
    if masking == "mask":
        return Edit(ids.masked_fill(chosen, mask_id), mask, chosen)
    draw = torch.rand(ids.shape, device=ids.device)
    random = torch.randint(vocabulary, ids.shape, device=ids.device)
    hidden = torch.where(draw < 0.8, mask_id, torch.where(draw < 0.9, random, ids))
    return Edit(torch.where(chosen, hidden, ids), mask, chosen)


def insert_tokens(ids: Tensor, mask: Tensor, before: Tensor, token: int, pad_id: int, longest: int) -> Edit:
    """Insert a token before each of the tokens `before` (n, L) bool, as far as `longest` tokens a sequence allow."""
    room = (longest - mask.sum(1, keepdim=True)).clamp(min=0)
    before = before & mask.bool() & (before.cumsum(1) <= room)
    target = torch.arange(ids.shape[1], device=ids.device) + before.cumsum(1)
    lengths = mask.sum(1) + before.sum(1)
    width = int(lengths.max())
    out = ids.new_full((len(ids), width + 1), pad_id)  # the last column takes what is thrown away
    marked = torch.zeros_like(out, dtype=torch.bool)
    real = mask.bool()
    out.scatter_(1, torch.where(real, target, width), ids)
    inserted = torch.where(before, target - 1, width)
    out.scatter_(1, inserted, torch.full_like(ids, token))
    marked.scatter_(1, inserted, torch.ones_like(before))
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return Edit(out[:, :width], new_mask, marked[:, :width])


def delete_tokens(ids: Tensor, mask: Tensor, chosen: Tensor, pad_id: int) -> Edit:
    """Delete the chosen tokens; marked are those that follow a deleted one."""
    kept = mask.bool() & ~chosen
    follows = torch.cat([torch.zeros_like(chosen[:, :1]), chosen[:, :-1]], dim=1)
    lengths = kept.sum(1)
    width = int(lengths.max())
    target = torch.where(kept, kept.cumsum(1) - 1, width)
    out = ids.new_full((len(ids), width + 1), pad_id).scatter_(1, target, ids)
    marked = torch.zeros_like(out, dtype=torch.bool).scatter_(1, target, follows)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return Edit(out[:, :width], new_mask, marked[:, :width])
