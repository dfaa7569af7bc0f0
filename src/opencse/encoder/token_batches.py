"""Token ids of many texts in flat arrays, and batches with little padding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        columns: Values of each model input at every token, texts concatenated; one number if all values are equal
            (attention masks are 1, BERT's segment ids 0).
        padding: Padding value of each model input.
        left: Whether the tokenizer pads on the left.
    """

    lengths: np.ndarray
    columns: Mapping[str, np.ndarray | int]
    padding: Mapping[str, int]
    left: bool
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", np.concatenate([[0], np.cumsum(self.lengths)[:-1]]))

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Return the model inputs of some texts: int64 tensors (len(rows), longest), padded like the tokenizer."""
        lengths = self.lengths[rows]
        width = int(lengths.max())
        position = np.arange(width)
        offset = (width - lengths if self.left else np.zeros_like(lengths))[:, None]
        real = (position >= offset) & (position < offset + lengths[:, None])
        # Index of each cell's token in the flat columns; any valid index at padding.
        source = np.where(real, self.starts[rows][:, None] + position - offset, 0)
        cells = {
            name: np.where(real, column if isinstance(column, int) else column[source], self.padding[name])
            for name, column in self.columns.items()
        }
        return {name: torch.from_numpy(value.astype(np.int64, copy=False)) for name, value in cells.items()}


class TokenTableBuilder:
    """Builder of a `TokenTable` from the output of a tokenizer, chunk by chunk."""

    def __init__(self, tokenizer: Any) -> None:
        self._padding = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
        }
        self._left = tokenizer.padding_side == "left"
        self._lengths: list[np.ndarray] = []
        self._columns: dict[str, list[np.ndarray]] = {}

    def add(self, encoded: Mapping[str, list[list[int]]]) -> None:
        """Add the unpadded output of the tokenizer for some texts."""
        lengths = np.fromiter(map(len, encoded["input_ids"]), dtype=np.int64, count=len(encoded["input_ids"]))
        self._lengths.append(lengths)
        tokens = int(lengths.sum())
        for name, lists in encoded.items():
            flat = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=tokens)
            self._columns.setdefault(name, []).append(flat)

    def build(self) -> TokenTable:
        """Return the finished table.

        Raises:
            OpencseError: The tokenizer has no padding token and the texts differ in length.
        """
        lengths = np.concatenate(self._lengths)
        if self._padding["input_ids"] is None:
            if len(np.unique(lengths)) > 1:
                raise OpencseError("the model's tokenizer has no padding token", "Set tokenizer.pad_token and save it.")
            self._padding["input_ids"] = 0
        columns = {name: _constant_or_array(np.concatenate(parts)) for name, parts in self._columns.items()}
        padding = {name: int(self._padding.get(name, 0)) for name in columns}
        return TokenTable(lengths=lengths, columns=columns, padding=padding, left=self._left)


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


def _constant_or_array(column: np.ndarray) -> np.ndarray | int:
    return int(column[0]) if len(column) and (column == column[0]).all() else column


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
