"""Edits of token sequences that a discriminator has to detect (DiffCSE §3 and §5).

All functions take ids (n, L) with an attention mask (n, L) of 1 for real tokens, padded at the end, and use PyTorch's
global generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from opencse.losses.term import TermModule


@dataclass(frozen=True)
class EditedTokens:
    """Edited token sequences.

    Attributes:
        ids: Token ids, (n, L').
        mask: Attention mask, (n, L').
        marked: Tokens that were masked or inserted, or whose predecessor was deleted, (n, L') bool.
    """

    ids: Tensor
    mask: Tensor
    marked: Tensor


def sample_tokens(candidates: Tensor, ratio: float) -> Tensor:
    """Return a mask that keeps each of the candidates, (n, L) bool, with probability `ratio`."""
    return candidates & (torch.rand(candidates.shape, device=candidates.device) < ratio)


def mask_tokens(
    ids: Tensor, mask: Tensor, chosen: Tensor, mask_id: int, vocabulary: int, masking: Literal["mask", "bert"]
) -> EditedTokens:
    """Mask the chosen tokens.

    Args:
        ids: Token ids, (n, L).
        mask: Attention mask, (n, L).
        chosen: (n, L) bool.
        mask_id: Id of the mask token.
        vocabulary: Size of the vocabulary.
        masking: `mask` replaces all of them by the mask token; `bert` replaces 80 % of them, replaces 10 % by random
            tokens, and keeps 10 %.
    """
    if masking == "mask":
        return EditedTokens(ids.masked_fill(chosen, mask_id), mask, chosen)
    uniform = torch.rand(ids.shape, device=ids.device)
    random = torch.randint(vocabulary, ids.shape, device=ids.device)
    masked = torch.where(uniform < 0.8, mask_id, torch.where(uniform < 0.9, random, ids))
    return EditedTokens(torch.where(chosen, masked, ids), mask, chosen)


def insert_tokens(ids: Tensor, mask: Tensor, before: Tensor, token: int, pad_id: int, max_length: int) -> EditedTokens:
    """Insert a token before each token in `before`, (n, L) bool, up to `max_length` tokens per sequence."""
    free = (max_length - mask.sum(1, keepdim=True)).clamp(min=0)
    before = before & mask.bool() & (before.cumsum(1) <= free)
    target = torch.arange(ids.shape[1], device=ids.device) + before.cumsum(1)
    lengths = mask.sum(1) + before.sum(1)
    width = int(lengths.max())
    out = ids.new_full((len(ids), width + 1), pad_id)  # the last column collects discarded tokens
    marked = torch.zeros_like(out, dtype=torch.bool)
    real = mask.bool()
    out.scatter_(1, torch.where(real, target, width), ids)
    inserted = torch.where(before, target - 1, width)
    out.scatter_(1, inserted, torch.full_like(ids, token))
    marked.scatter_(1, inserted, torch.ones_like(before))
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return EditedTokens(out[:, :width], new_mask, marked[:, :width])


def delete_tokens(ids: Tensor, mask: Tensor, chosen: Tensor, pad_id: int) -> EditedTokens:
    """Delete the chosen tokens; the tokens after a deleted one are marked."""
    remains = mask.bool() & ~chosen
    follows = torch.cat([torch.zeros_like(chosen[:, :1]), chosen[:, :-1]], dim=1)
    lengths = remains.sum(1)
    width = int(lengths.max())
    target = torch.where(remains, remains.cumsum(1) - 1, width)
    out = ids.new_full((len(ids), width + 1), pad_id).scatter_(1, target, ids)
    marked = torch.zeros_like(out, dtype=torch.bool).scatter_(1, target, follows)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return EditedTokens(out[:, :width], new_mask, marked[:, :width])


class VocabularyModule(TermModule):
    """A module that knows the mask token and the special tokens of a tokenizer.

    Args:
        tokenizer: Tokenizer of the encoder.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self.vocabulary = len(tokenizer)
        self.mask_id: int = tokenizer.mask_token_id
        self._content = torch.ones(self.vocabulary, dtype=torch.bool)  # not a buffer: it stays on the CPU
        self._content[tokenizer.all_special_ids] = False

    def is_content(self, ids: Tensor) -> Tensor:
        """Return a mask of the ids that are not special tokens, of the shape of `ids`; both are on the CPU."""
        return self._content[ids]
