"""From rows of the token store to the tensors of one step: one pass for all views of equal dropout."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from opencse.data.token_store import TokenStore
from opencse.encoder.prompts import Frame
from opencse.runs.grouping import length_groups

_NO_TOKENS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class ViewTokens:
    """Where a view's tokens come from.

    Attributes:
        source: Index of its text in the token store.
        frame: The ids around it.
        budget: The most content tokens that are kept.
        dropout: The view's own dropout rate; None for the model's.
        repetition: Share of the tokens up to which tokens are repeated.
    """

    source: int
    frame: Frame
    budget: int
    dropout: float | None
    repetition: float = 0.0

    @property
    def most_repeated(self) -> int:
        """The most tokens that repetition can add."""
        return max(0, _repeated_below(self.repetition, len(self.frame) + self.budget) - 1)


@dataclass
class Pass:
    """All rows of all views of one dropout rate, in groups of like length.

    Attributes:
        dropout: The rate; None for the model's own.
        ids: For each group the token ids (n, length).
        masks: For each group the attention mask (n, length).
        slots: Which of the batch's view x row slots each row fills, in the order of the groups: (rows,).
    """

    dropout: float | None
    ids: list[Tensor]
    masks: list[Tensor]
    slots: Tensor


@dataclass
class Batch:
    """One step's input.

    Attributes:
        views: The names of the views; slot `v * rows + r` is view v of row r.
        rows: Sentences in this process's part of the batch.
        passes: What goes through the encoder.
        present: (views, rows), whether the row has this view.
        teachers: For each teacher and view its vectors, (rows, d_t) fp32, zero where the row lacks the view.
        tokens: For each view whose tokens are asked for its ids and attention mask, (rows, length).
    """

    views: tuple[str, ...]
    rows: int
    passes: list[Pass]
    present: Tensor
    teachers: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    tokens: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=True)

        passes = [Pass(p.dropout, [*map(move, p.ids)], [*map(move, p.masks)], move(p.slots)) for p in self.passes]
        teachers = {name: {v: move(rows) for v, rows in views.items()} for name, views in self.teachers.items()}
        tokens = {view: (move(ids), move(mask)) for view, (ids, mask) in self.tokens.items()}
        return Batch(self.views, self.rows, passes, move(self.present), teachers, tokens)


class Assembler:
    """Builds batches from a token store.

    Args:
        store: The tokens.
        views: For each view where its tokens come from.
        pad_id: Fills up rows of a group.
        group_overhead: What one more group costs, in tokens (`length_groups`); None for a single group, as wide as the
            longest row.
        teachers: For each teacher and view the vectors of all rows, (rows, d_t) fp32.
        tokens: The views whose tokens some term asks for.
    """

    def __init__(
        self,
        store: TokenStore,
        views: Mapping[str, ViewTokens],
        pad_id: int,
        group_overhead: float | None = None,
        teachers: Mapping[str, Mapping[str, np.ndarray]] | None = None,
        tokens: Collection[str] = (),
    ) -> None:
        self._store, self._views, self._pad_id, self._overhead = store, views, pad_id, group_overhead
        self._teachers, self._tokens = teachers or {}, tokens

    def __call__(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Assemble the batch of these rows."""
        present = torch.zeros(len(self._views), len(rows), dtype=torch.bool)
        by_dropout: dict[float | None, list[tuple[int, np.ndarray]]] = {}
        lines: dict[str, list[np.ndarray]] = {name: [_NO_TOKENS] * len(rows) for name in self._tokens}
        for v, (name, view) in enumerate(self._views.items()):
            before, after = np.array(view.frame.before, np.int64), np.array(view.frame.after, np.int64)
            for r, row in enumerate(rows):
                content = self._store.ids(view.source, int(row))
                if content is not None:
                    content = content[: view.budget].astype(np.int64)
                    if view.repetition:
                        content = _with_repetitions(content, view.repetition, len(view.frame))
                    tokens = np.concatenate([before, content, after])
                    by_dropout.setdefault(view.dropout, []).append((v * len(rows) + r, tokens))
                    present[v, r] = True
                    if name in lines:
                        lines[name][r] = tokens
        passes = [self._pass(dropout, items) for dropout, items in by_dropout.items()]
        teachers = {
            name: {view: torch.from_numpy(vectors[np.asarray(rows)]) for view, vectors in views.items()}
            for name, views in self._teachers.items()
        }
        tokens_of = {name: self._padded(found) for name, found in lines.items()}
        return Batch(tuple(self._views), len(rows), passes, present, teachers, tokens_of)

    def _pass(self, dropout: float | None, items: list[tuple[int, np.ndarray]]) -> Pass:
        if self._overhead is not None:
            items = sorted(items, key=lambda item: len(item[1]))
        lengths = [len(tokens) for _, tokens in items]
        ranges = [range(len(items))] if self._overhead is None else length_groups(lengths, self._overhead)
        ids, masks = [], []
        for part in ranges:
            block, mask = self._padded([items[i][1] for i in part])
            ids.append(block)
            masks.append(mask)
        return Pass(dropout, ids, masks, torch.tensor([slot for slot, _ in items]))

    def _padded(self, lines: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        """Ids and attention mask (lines, longest), at least one token wide."""
        width = max((len(line) for line in lines if len(line)), default=1)
        block = np.full((len(lines), width), self._pad_id, dtype=np.int64)
        mask = np.zeros((len(lines), width), dtype=np.int64)
        for i, line in enumerate(lines):
            block[i, : len(line)] = line
            mask[i, : len(line)] = 1
        return torch.from_numpy(block), torch.from_numpy(mask)


def _repeated_below(share: float, length: int) -> int:
    """One more than the most tokens that are repeated of `length`, special ones included (ESimCSE's code)."""
    return min(10, int(share * length))


def _with_repetitions(content: np.ndarray, share: float, special: int) -> np.ndarray:
    """Repeat distinct tokens in place; how many, and which, are drawn from PyTorch's generator."""
    below = min(_repeated_below(share, len(content) + special), len(content) + 1)
    count = int(torch.randint(below, ())) if below > 0 else 0
    times = np.ones(len(content), dtype=np.int64)
    times[torch.randperm(len(content))[:count].numpy()] = 2
    return np.repeat(content, times)
