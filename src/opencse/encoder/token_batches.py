"""Token ids of many texts in flat arrays, and batches with little padding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from opencse.foundation.errors import OpencseError

_MAX_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTexts:
    """Deduplicated, tokenised texts; made by `Embedder.prepare`, read by `Embedder.encode`.

    Args:
        rows: Index of the distinct text of each given text, (n,).
        texts: The distinct texts, in order of first occurrence.
        tokens: Their token ids; None if the model tokenises itself.
    """

    rows: np.ndarray
    texts: list[str]
    tokens: TokenTable | None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenTable:
    """Token ids and other inputs, such as segment ids, of m texts: 4 bytes per token, no padding.

    Args:
        lengths: Number of tokens of each text, (m,).
        columns: Values of each model input at every token, texts concatenated.
        padding: Padding value of each model input.
        left: Whether the tokenizer pads on the left.
    """

    lengths: np.ndarray
    columns: Mapping[str, np.ndarray]
    padding: Mapping[str, int]
    left: bool

    @classmethod
    def of(cls, tokenizer: Any, chunks: Iterable[Mapping[str, list[list[int]]]]) -> TokenTable:
        """Collect the unpadded output of a tokenizer, chunk by chunk.

        Raises:
            OpencseError: The tokenizer has no padding token and the texts differ in length.
        """
        all_lengths: list[np.ndarray] = []
        parts: dict[str, list[np.ndarray]] = {}
        for encoded in chunks:
            all_lengths.append(np.array([len(ids) for ids in encoded["input_ids"]]))
            for name, lists in encoded.items():
                parts.setdefault(name, []).append(np.fromiter(chain.from_iterable(lists), np.int32))
        lengths = np.concatenate(all_lengths)
        if tokenizer.pad_token_id is None and len(np.unique(lengths)) > 1:
            raise OpencseError("the model's tokenizer has no padding token", "Set tokenizer.pad_token and save it.")
        padding = dict.fromkeys(parts, 0) | {
            "input_ids": tokenizer.pad_token_id or 0,
            "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
        }
        columns = {name: _compact(np.concatenate(arrays)) for name, arrays in parts.items()}
        return cls(lengths=lengths, columns=columns, padding=padding, left=tokenizer.padding_side == "left")

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of the first token of each text, (m,)."""
        return np.cumsum(self.lengths) - self.lengths

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Return the model inputs of some texts: int64 tensors (len(rows), longest), padded like the tokenizer."""
        lengths = self.lengths[rows]
        width = int(lengths.max())
        position = np.arange(width)
        offset = (width - lengths if self.left else np.zeros_like(lengths))[:, None]
        real = (position >= offset) & (position < offset + lengths[:, None])
        # Index of each cell's token in the flat columns; any valid index at padding.
        source = np.where(real, self.starts[rows][:, None] + position - offset, 0)
        cells = {name: np.where(real, column[source], self.padding[name]) for name, column in self.columns.items()}
        return {name: torch.from_numpy(value.astype(np.int64, copy=False)) for name, value in cells.items()}


def _compact(column: np.ndarray) -> np.ndarray:
    """Return a column, in the memory of one number if all are equal: attention masks are 1, BERT's segment ids 0."""
    equal = len(column) and (column == column[0]).all()
    return np.broadcast_to(column[:1], column.shape) if equal else column


def cut_note(lengths: np.ndarray, limit: int | None) -> str:
    """Return a remark if more than a tenth of some texts reach the limit of tokens; else an empty string.

    Args:
        lengths: Number of tokens of each text that are read, (m,).
        limit: Maximum number of tokens; None for none.
    """
    cut = 0 if limit is None else int((lengths >= limit).sum())
    if 10 * cut <= len(lengths):
        return ""
    return f"{cut:,} of {len(lengths):,} texts reach the limit of {limit} tokens: what comes after it is not read"


def plan_batches(lengths: np.ndarray, budget: int, *, workers: int = 1) -> list[np.ndarray]:
    """Group texts into batches of nearly equal length.

    Texts are sorted by token length, longest first, so that memory runs out in the first batch or never. A batch ends
    at `budget` padded tokens, or at a change of length from a quarter of the budget on, so that only rare lengths are
    padded. The budget is reduced if there would be too few batches for the workers.

    Args:
        lengths: Number of tokens of each text, (m,).
        budget: Maximum number of tokens per batch, padding included; a longer text is a batch of its own.
        workers: Number of batches that run at the same time.

    Returns:
        Index arrays that partition 0 … m-1.
    """
    if workers > 1:
        budget = min(budget, max(256, int(lengths.sum()) // (4 * workers)))
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = min(len(order), start + max(1, budget // longest), start + _MAX_ROWS)
        change = start + np.flatnonzero(np.diff(lengths[order[start:end]])) + 1  # first text of each shorter length
        settled = change[(change - start) * longest >= budget // 4]
        if len(settled):
            end = int(settled[0])
        batches.append(order[start:end])
        start = end
    return batches
