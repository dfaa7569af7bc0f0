"""What a training step reads: batches of tokens. Views with the same dropout share an encoder pass."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from opencse.encoder.embedder import plan_batches
from opencse.encoder.packing import ACCELERATOR_STEP, Packing
from opencse.encoder.prompts import Frame
from opencse.foundation.draws import RowDraws
from opencse.foundation.tensors import move
from opencse.recipes.rows.token_store import TokenStore
from opencse.training.token_edits import edited

Treatment = tuple[float | None, tuple[str, float], int | None]
"""What the encoder does to some rows: dropout, cutoff, and the length of the prompt that the pooling leaves out."""

# Rows of a block, and blocks that are shuffled together: 16,777,216 rows, whose numbers take 134 MB.
_BLOCK = 1 << 16
_BLOCKS_TOGETHER = 256

_NO_TOKENS = np.zeros(0, dtype=np.int64)
NO_EDIT = ("none", 0.0)
NO_CUTOFF = ("none", 0.0)


class BatchSampler:
    """Shuffled batches without replacement; the last one of an epoch may be smaller, as in transformers' Trainer.

    Up to 16,777,216 rows are shuffled completely. More are divided into blocks of 65,536 neighbours;
    256 random blocks at a time are shuffled together, so that only their row numbers are in memory.
    Each sentence then has its in-batch negatives among those of 256 random blocks.

    Args:
        rows: Number of training rows.
        batch_size: Rows per batch, over all processes.
        seed: Seed of the order of rows, together with the number of the epoch.
        processes: Number of processes, which share a batch. A last batch need not divide: its first
            shares have one row more (`shares_of`). It is dropped if it has less than two rows, a
            sentence and a negative, or less than one for each process.
    """

    def __init__(self, rows: int, batch_size: int, seed: int, processes: int = 1) -> None:
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        last = rows % batch_size
        self.rows_per_epoch = rows if last >= max(2, processes) else rows - last
        self.batches_per_epoch = -(-self.rows_per_epoch // batch_size)
        self._shuffled: tuple[int, int] = (-1, -1)
        self._order = np.zeros(0, dtype=np.int64)

    def batch(self, step: int) -> np.ndarray:
        """Return the row numbers of a batch, int64, at most batch_size; steps count from 0 over all epochs."""
        epoch, position = divmod(step, self.batches_per_epoch)
        start = position * self.batch_size
        stop = min(start + self.batch_size, self.rows_per_epoch)
        blocks = -(-self.rows // _BLOCK)
        if blocks <= _BLOCKS_TOGETHER:
            return self._whole_order(epoch)[start:stop]

        order = np.random.default_rng([self.seed, epoch]).permutation(blocks)
        sizes = np.full(blocks, _BLOCK)
        sizes[-1] = self.rows - (blocks - 1) * _BLOCK
        groups = [order[at : at + _BLOCKS_TOGETHER] for at in range(0, blocks, _BLOCKS_TOGETHER)]
        ends = np.cumsum([sizes[group].sum() for group in groups])
        parts = []
        while start < stop:
            number = int(np.searchsorted(ends, start, side="right"))
            first = int(ends[number - 1]) if number else 0
            end = min(stop, int(ends[number]))
            rows = self._order_of_group(epoch, number, groups[number])
            parts.append(rows[start - first : end - first])
            start = end
        return np.concatenate(parts)

    def _whole_order(self, epoch: int) -> np.ndarray:
        """Return the order of all rows in an epoch."""
        if self._shuffled != (epoch, 0):
            order = np.arange(self.rows, dtype=np.int64)
            np.random.default_rng([self.seed, epoch]).shuffle(order)
            self._shuffled = (epoch, 0)
            self._order = order
        return self._order

    def _order_of_group(self, epoch: int, number: int, blocks: np.ndarray) -> np.ndarray:
        """Return the order of the rows of some blocks that are shuffled together."""
        if self._shuffled != (epoch, number):
            parts = []
            for block in blocks.tolist():
                first = block * _BLOCK
                parts.append(np.arange(first, min(first + _BLOCK, self.rows), dtype=np.int64))
            order = np.concatenate(parts)
            np.random.default_rng([self.seed, epoch, number]).shuffle(order)
            self._shuffled = (epoch, number)
            self._order = order
        return self._order


def shares_of(rows: int, processes: int) -> list[int]:
    """Return how many of a batch's rows each process takes; the first ones take one more if they do not divide."""
    return [rows // processes + int(rank < rows % processes) for rank in range(processes)]


@dataclass(frozen=True)
class ViewTokens:
    """How a view of a batch is made from stored tokens; the tokens themselves are a `TokenSource`.

    What is here may differ between views of one text, and changes from step to step, so it is no
    part of the store.

    Attributes:
        source: Index of its `TokenSource` in the token store.
        frame: The token ids around the text.
        budget: Maximum number of content tokens.
        dropout: Dropout rate of the view; None for that of the model.
        repetition: Maximum share of the tokens that are repeated (ESimCSE).
        edit: How the tokens are edited at each step, and what share of them.
        cutoff: What the embedding layer cuts off, and what share of it.
        read: Whether a loss reads the tokens.
        cut_left: Whether a long text loses its beginning, not its end.
        prompt_length: Number of tokens of special tokens and prompt before the text, for poolings
            that leave them out; None for all others.
    """

    source: int
    frame: Frame
    budget: int
    dropout: float | None
    repetition: float = 0.0
    edit: tuple[str, float] = NO_EDIT
    cutoff: tuple[str, float] = NO_CUTOFF
    read: bool = False
    cut_left: bool = False
    prompt_length: int | None = None

    @property
    def changes_at_random(self) -> bool:
        """Whether tokens are repeated or edited."""
        return self.repetition > 0 or self.edit != NO_EDIT

    @property
    def longest(self) -> int:
        """Maximum sequence length, including tokens added by repetition."""
        length = len(self.frame) + self.budget
        return length + max(0, _repeated_below(self.repetition, length) - 1)


@dataclass
class EncoderPass:
    """All rows of all views with one dropout rate and one cut-off, in groups of similar length.

    Attributes:
        dropout: Dropout rate; None for that of the model.
        cutoff: What the embedding layer cuts off, and what share of it.
        groups: Token ids and attention mask of each group, (n, length), and its layout without
            padding, for accelerators.
        slots: The view x row slot of each encoded row, in the order of the groups, (rows,), on the
            CPU.
        lengths: The number of tokens of each encoded row, (rows,), on the CPU.
        prompt_length: As in `ViewTokens`.
        draws: Random numbers of each encoded row, in the order of the groups; None if the rows are
            unknown.
    """

    dropout: float | None
    cutoff: tuple[str, float]
    groups: list[tuple[Tensor, Tensor, Packing | None]]
    slots: Tensor
    lengths: Tensor
    prompt_length: int | None = None
    draws: RowDraws | None = None


@dataclass
class Batch:
    """The input of one training step.

    Attributes:
        views: The names of the views; slot `v * rows + r` is view v of row r.
        rows: Number of rows in this process's part of the batch.
        passes: The inputs of the encoder.
        present: Mask of the views that each row has, (views, rows), on the CPU.
        teachers: Vectors by teacher and view, (rows, d_t) fp32; zero if a row lacks the view.
        everyone: `present` for the rows of all processes; None if it is not known.
        shares: Rows of each process, if they differ.
        tokens: Token ids and attention mask, each (rows, length), of the views whose tokens a loss
            reads, on the CPU.
        draws: Random numbers of the rows; None if the rows are unknown.
    """

    views: tuple[str, ...]
    rows: int
    passes: list[EncoderPass]
    present: Tensor
    teachers: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    tokens: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    shares: tuple[int, ...] = ()
    draws: RowDraws | None = None
    everyone: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the same batch with the inputs of the encoder and the vectors of the teachers on a device."""

        def moved(
            ids: Tensor, mask: Tensor, packing: Packing | None
        ) -> tuple[Tensor, Tensor, Packing | None]:
            return move(ids, device), move(mask, device), packing and packing.to(device)

        passes = [
            replace(part, groups=[moved(*group) for group in part.groups]) for part in self.passes
        ]
        teachers = {
            name: {v: move(rows, device) for v, rows in views.items()}
            for name, views in self.teachers.items()
        }
        return replace(self, passes=passes, teachers=teachers)


class Collator:
    """Builder of batches from a token store.

    Args:
        store: The tokens.
        views: Source of the tokens, by view.
        pad_id: Id of the padding token.
        budget: Maximum number of tokens of a group, padding included (`plan_batches`); None for a
            single group.
        teachers: Vectors of all rows by teacher and view, (rows, d_t) fp32.
        packed: Lay out each group without padding, for encoders that run packed on an accelerator.
        seed: Seed of the changes that views make at random, together with step and row.
        micro_batch: Largest number of rows of a group; None for no limit.
        attend_padding: Let the tokens of a group attend to its padding.
        widths: Lengths in ascending order. A group is padded to the first that its longest text
            fits, so that a compiler sees few shapes (`few_widths`).
    """

    def __init__(
        self,
        store: TokenStore,
        views: Mapping[str, ViewTokens],
        pad_id: int,
        budget: int | None = None,
        teachers: Mapping[str, Mapping[str, np.ndarray]] | None = None,
        packed: bool = False,
        micro_batch: int | None = None,
        attend_padding: bool = False,
        seed: int = 0,
        widths: Sequence[int] = (),
    ) -> None:
        self._seed = seed
        self._store, self._views, self._pad_id, self._budget = store, views, pad_id, budget
        self._teachers, self._packed, self._micro_batch = teachers or {}, packed, micro_batch
        self._attend_padding = attend_padding
        self._widths = widths

    def without_changes(self) -> Collator:
        """Return a collator whose views are not changed at random, nor cut off, and whose padding is masked."""
        plain = copy.copy(self)
        plain._attend_padding = False
        plain._views = {
            name: replace(view, repetition=0.0, edit=NO_EDIT, cutoff=NO_CUTOFF)
            for name, view in self._views.items()
        }
        return plain

    def present(self, rows: np.ndarray) -> Tensor:
        """Return the mask of the views that some rows have, (views, rows), on the CPU."""
        masks = [self._store.has(view.source, rows) for view in self._views.values()]
        return torch.from_numpy(np.stack(masks))

    def __call__(self, rows: Sequence[int] | np.ndarray, step: int = 0) -> Batch:
        """Return the batch of these rows of the store, as views change them at a step."""
        with torch.random.fork_rng(devices=[]):
            return self._batch(rows, step)

    def _batch(self, rows: Sequence[int] | np.ndarray, step: int) -> Batch:
        present = torch.zeros(len(self._views), len(rows), dtype=torch.bool)
        # Views that the encoder treats alike share a pass.
        together: dict[Treatment, list[tuple[int, np.ndarray]]] = {}
        tokens_of: dict[str, tuple[Tensor, Tensor]] = {}
        for v, (name, view) in enumerate(self._views.items()):
            before, after = (
                np.array(view.frame.before, np.int64),
                np.array(view.frame.after, np.int64),
            )
            sequences = [_NO_TOKENS] * len(rows)
            for r, row in enumerate(rows):
                content = self._store.ids(view.source, int(row))
                if content is not None:
                    content = _cut(content, view).astype(np.int64)
                    if view.changes_at_random:
                        # The same with any number of processes.
                        place = np.random.SeedSequence([self._seed, step, v, int(row)])
                        torch.default_generator.manual_seed(int(place.generate_state(1)[0]))
                    if view.repetition:
                        kept = max(0, (view.prompt_length or 0) - len(before))
                        content = _with_repetitions(
                            content, view.repetition, len(view.frame), prompt=kept
                        )
                    sequences[r] = _with_edit(view, before, content, after)
                    treated = (view.dropout, view.cutoff, view.prompt_length)
                    together.setdefault(treated, []).append((v * len(rows) + r, sequences[r]))
                    present[v, r] = True
            if view.read:
                tokens_of[name] = self._padded(sequences)
        draws = RowDraws.of(rows, self._seed, step)
        of_slots = draws.of_views(len(self._views))
        passes = [self._pass(*treated, items) for treated, items in together.items()]
        for part in passes:
            part.draws = of_slots[part.slots.numpy()]
        teachers = {
            name: {
                view: torch.from_numpy(vectors[np.asarray(rows)]) for view, vectors in views.items()
            }
            for name, views in self._teachers.items()
        }
        return Batch(
            tuple(self._views), len(rows), passes, present, teachers, tokens_of, draws=draws
        )

    def _pass(
        self,
        dropout: float | None,
        cutoff: tuple[str, float],
        prompt_length: int | None,
        items: list[tuple[int, np.ndarray]],
    ) -> EncoderPass:
        """Return the encoder pass of some rows, with rows of similar length in one group.

        Args:
            dropout: As in `EncoderPass`.
            cutoff: As in `EncoderPass`.
            prompt_length: As in `EncoderPass`.
            items: The slot and the tokens of each row.
        """
        lengths = np.array([len(tokens) for _, tokens in items])
        planned = [np.arange(len(items))]
        if self._budget is not None:
            planned = plan_batches(lengths, self._budget)
        # GradCache encodes a few texts at a time, whatever their length.
        size = self._micro_batch or len(items)
        groups = []
        for rows in planned:
            for first in range(0, len(rows), size):
                part = rows[first : first + size]
                ids, mask = self._padded([items[i][1] for i in part], self._widths)
                if self._attend_padding:
                    mask = torch.ones_like(mask)
                packing = Packing.of(mask, ACCELERATOR_STEP) if self._packed else None
                groups.append((ids, mask, packing))
        order = np.concatenate(planned)
        slots = torch.tensor([items[i][0] for i in order])
        counts = torch.from_numpy(lengths[order])
        return EncoderPass(dropout, cutoff, groups, slots, counts, prompt_length)

    def _padded(
        self, sequences: Sequence[np.ndarray], widths: Sequence[int] = ()
    ) -> tuple[Tensor, Tensor]:
        """Return ids and attention mask (sequences, longest), at least one token wide."""
        longest = max((len(sequence) for sequence in sequences if len(sequence)), default=1)
        width = next((width for width in widths if width >= longest), longest)
        block = np.full((len(sequences), width), self._pad_id, dtype=np.int64)
        mask = np.zeros((len(sequences), width), dtype=np.int64)
        for i, sequence in enumerate(sequences):
            block[i, : len(sequence)] = sequence
            mask[i, : len(sequence)] = 1
        return torch.from_numpy(block), torch.from_numpy(mask)


def few_widths(longest: int) -> tuple[int, ...]:
    """Return at most four lengths, up to the longest, that batches are padded to.

    Example:
        >>> few_widths(32), few_widths(100)
        ((8, 16, 24, 32), (32, 64, 96, 100))
    """
    step = 8 * math.ceil(longest / 32)
    return tuple(min(width, longest) for width in range(step, longest + step, step))


def _repeated_below(share: float, length: int) -> int:
    """Return the exclusive upper bound of repeated tokens among `length`, special ones included (ESimCSE's code)."""
    return min(10, int(share * length))


def _cut(content: np.ndarray, view: ViewTokens) -> np.ndarray:
    """Return the tokens of a text that a view has room for, from the side that its tokenizer keeps."""
    if view.cut_left:
        return content[max(0, len(content) - view.budget) :]
    return content[: view.budget]


def _with_edit(
    view: ViewTokens, before: np.ndarray, content: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """Return the tokens of a text with its frame, edited as the view asks."""
    kind, share = view.edit
    if kind == "none":
        return np.concatenate([before, content, after])
    if kind == "shuffle_all":  # special tokens too, as ConSERT's shuffled positions do
        return edited(np.concatenate([before, content, after]), "shuffle", share, room=0)
    room = view.budget - len(content)
    return np.concatenate([before, edited(content, kind, share, room), after])


def _with_repetitions(
    content: np.ndarray, share: float, special: int, *, prompt: int = 0
) -> np.ndarray:
    """Repeat some tokens in place; number and positions are drawn from PyTorch's generator.

    The first `prompt` tokens are not repeated: a pooling leaves them out by their number.
    """
    prompt = min(prompt, len(content))
    free = len(content) - prompt
    below = min(_repeated_below(share, len(content) + special), free + 1)
    count = int(torch.randint(below, ())) if below > 0 else 0
    times = np.ones(len(content), dtype=np.int64)
    times[prompt + torch.randperm(free)[:count].numpy()] = 2
    return np.repeat(content, times)
