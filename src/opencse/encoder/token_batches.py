"""Token ids of many texts, held flat, and the batches that waste no computation on padding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from opencse.errors import OpencseError

_MAX_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTexts:
    """Deduplicated, tokenised texts; made by `Embedder.prepare`, read by `Embedder.encode`.

    Args:
        rows: (n,) for each text asked for, which distinct text it is.
        texts: The distinct texts, in order of first occurrence.
        tokens: Their token ids, or `None` where the model does its own tokenising.
    """

    rows: np.ndarray
    texts: list[str]
    tokens: TokenTable | None

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenTable:
    """Token ids (and their companions, such as segment ids) of m texts: 4 bytes a token, no padding.

    Args:
        lengths: (m,) tokens per text.
        columns: For each model input its value at every token, texts end to end; a single number where it is the
            same at all of them (attention masks are 1, BERT's segment ids 0).
        padding: For each model input the value at padding.
        left: Whether the tokenizer pads on the left.
    """

    lengths: np.ndarray
    columns: Mapping[str, np.ndarray | int]
    padding: Mapping[str, int]
    left: bool
    starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", np.concatenate([[0], np.cumsum(self.lengths)[:-1]]))

    @staticmethod
    def builder(tokenizer: Any) -> TokenTableBuilder:
        """Start a table for the texts of `tokenizer`."""
        return TokenTableBuilder(tokenizer)

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Model inputs for the texts `rows`: int64 tensors (len(rows), longest), padded as the tokenizer pads."""
        lengths = self.lengths[rows]
        width = int(lengths.max())
        position = np.arange(width)
        offset = (width - lengths if self.left else np.zeros_like(lengths))[:, None]
        real = (position >= offset) & (position < offset + lengths[:, None])
        # Where each cell's token lies in the flat columns; at padding any valid index will do.
        source = np.where(real, self.starts[rows][:, None] + position - offset, 0)
        cells = {
            name: np.where(real, column if isinstance(column, int) else column[source], self.padding[name])
            for name, column in self.columns.items()
        }
        return {name: torch.from_numpy(value.astype(np.int64, copy=False)) for name, value in cells.items()}


class TokenTableBuilder:
    """Collects a tokenizer's output chunk by chunk into a `TokenTable`."""

    def __init__(self, tokenizer: Any) -> None:
        self._padding = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
        }
        self._left = tokenizer.padding_side == "left"
        self._lengths: list[np.ndarray] = []
        self._columns: dict[str, list[np.ndarray]] = {}

    def add(self, encoded: Mapping[str, list[list[int]]]) -> None:
        """Add the tokenizer's unpadded output for some texts."""
        lengths = np.fromiter(map(len, encoded["input_ids"]), dtype=np.int64, count=len(encoded["input_ids"]))
        self._lengths.append(lengths)
        tokens = int(lengths.sum())
        for name, lists in encoded.items():
            flat = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=tokens)
            self._columns.setdefault(name, []).append(flat)

    def build(self) -> TokenTable:
        """The finished table.

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


def _constant_or_array(column: np.ndarray) -> np.ndarray | int:
    return int(column[0]) if len(column) and (column == column[0]).all() else column


def plan_batches(lengths: np.ndarray, budget: int, *, workers: int = 1) -> list[np.ndarray]:
    """Group texts into batches of nearly equal length.

    Texts are sorted by token length, longest first (the largest batch comes first, so memory runs out at once or not at
    all). A batch closes when it holds `budget` padded tokens; it closes at a change of length already at a quarter of
    the budget, so that padding is confined to lengths that only few texts have. The budget is cut when
    there would not be a few batches for each worker.

    Args:
        lengths: (m,) tokens per text.
        budget: Most tokens per batch, padding included; a longer text is a batch of its own.
        workers: Batches that run at the same time.

    Returns:
        Index arrays that together hold 0 … m-1, each once.
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
