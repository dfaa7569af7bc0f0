"""Batches of masked inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from opencse.objectives.host import move
from opencse.pretraining.masking import mask_sequence
from opencse.pretraining.settings import InputSettings, Masking
from opencse.pretraining.store import SentenceIds
from opencse.pretraining.vocabulary import Pieces
from opencse.runs.grouping import length_groups

_MULTIPLE = 32  # positions are padded to a multiple, because matrix kernels are compiled for each new shape


@dataclass
class MaskedInputs:
    """Padded inputs of similar length with the masked tokens to predict.

    Attributes:
        ids: Token ids, (n, length).
        mask: Attention mask, (n, length).
        positions: Positions of the predicted tokens in the flattened batch, (m,).
        labels: Original tokens at these positions, (m,); -100 for padding positions.
    """

    ids: Tensor
    mask: Tensor
    positions: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> MaskedInputs:
        """Return the same inputs on a device."""
        tensors = (self.ids, self.mask, self.positions, self.labels)
        return MaskedInputs(*(move(tensor, device) for tensor in tensors))


@dataclass
class MaskedBatch:
    """The inputs of a step, in groups of similar length.

    Attributes:
        groups: The inputs.
        predicted: Number of tokens to predict in all groups.
        tokens: Number of tokens without padding in all groups.
    """

    groups: list[MaskedInputs]
    predicted: int
    tokens: int

    def to(self, device: torch.device) -> MaskedBatch:
        """Return the same batch on a device."""
        return MaskedBatch([g.to(device) for g in self.groups], self.predicted, self.tokens)


class MaskingAssembler:
    """Builder of masked batches; its seed for each batch is one number of PyTorch's global generator.

    Args:
        store: Token ids of the sentences.
        frame: Special tokens before and after an input.
        pad_id: Id of the padding token.
        pieces: The vocabulary.
        masking: Masking settings.
        text: Input settings.
        group_overhead: Cost of one more group of inputs, in tokens (`length_groups`).
    """

    def __init__(
        self,
        store: SentenceIds,
        frame: tuple[Sequence[int], Sequence[int]],
        pad_id: int,
        pieces: Pieces,
        masking: Masking,
        text: InputSettings,
        group_overhead: float,
    ) -> None:
        self._store, self._pad_id, self._pieces = store, pad_id, pieces
        self._before, self._after = (np.asarray(part, dtype=np.int64) for part in frame)
        self._masking, self._text, self._overhead = masking, text, group_overhead
        self._max_content = text.max_length - len(self._before) - len(self._after)

    def __call__(self, rows: Sequence[int] | np.ndarray) -> MaskedBatch:
        """Return the masked batch of these rows."""
        rng = np.random.default_rng(int(torch.randint(2**63 - 1, ())))
        return self._batch([self._store[int(row)] for row in rows], rng, rng.random() < self._text.joined)

    def fixed(self, store: SentenceIds, count: int) -> list[MaskedBatch]:
        """Return masked batches of the first sentences of a store, the same at every call."""
        rng = np.random.default_rng(0)
        texts = [store[i] for i in range(min(count, len(store)))]
        return [self._batch(texts[i : i + 128], rng, joined=False) for i in range(0, len(texts), 128)]

    def _batch(self, texts: list[np.ndarray], rng: np.random.Generator, joined: bool) -> MaskedBatch:
        texts = [ids[: self._max_content].astype(np.int64) for ids in texts]
        inputs = [
            np.concatenate([self._before, ids, self._after])
            for ids in (join(texts, self._max_content) if joined else texts)
        ]
        return masked_batch(inputs, self._pad_id, self._pieces, self._masking, rng, self._overhead)


def join(texts: Sequence[np.ndarray], max_tokens: int) -> list[np.ndarray]:
    """Concatenate texts in order into rows of at most `max_tokens` tokens."""
    rows: list[list[np.ndarray]] = []
    free = -1
    for ids in texts:
        if len(ids) > free:
            rows.append([])
            free = max_tokens
        rows[-1].append(ids)
        free -= len(ids)
    return [np.concatenate(parts) for parts in rows]


def masked_batch(
    inputs: Sequence[np.ndarray],
    pad_id: int,
    pieces: Pieces,
    masking: Masking,
    rng: np.random.Generator,
    overhead: float = 64.0,
) -> MaskedBatch:
    """Mask whole inputs, special tokens included, and group them by length."""
    inputs = sorted(inputs, key=len)
    lengths = np.array([len(ids) for ids in inputs])
    ends = np.cumsum(lengths)
    flat = np.concatenate(inputs)
    begins = np.zeros(len(flat), dtype=bool)
    begins[ends - lengths] = True
    masked, positions = mask_sequence(flat, begins, pieces, masking, rng)
    groups = [
        _group(part, flat, masked, positions, ends, lengths, pad_id)
        for part in length_groups(lengths.tolist(), overhead)
    ]
    return MaskedBatch(groups, len(positions), len(flat))


def _group(
    part: range,
    flat: np.ndarray,
    masked: np.ndarray,
    positions: np.ndarray,
    ends: np.ndarray,
    lengths: np.ndarray,
    pad_id: int,
) -> MaskedInputs:
    first, last = ends[part[0]] - lengths[part[0]], ends[part[-1]]
    width = int(lengths[part[-1]])
    mask = np.arange(width) < lengths[part.start : part.stop, None]
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = masked[first:last]
    own = positions[np.searchsorted(positions, first) : np.searchsorted(positions, last)]
    cells = np.flatnonzero(mask)[own - first]
    padding = -len(own) % _MULTIPLE
    return MaskedInputs(
        torch.from_numpy(ids),
        torch.from_numpy(mask.astype(np.int64)),
        torch.from_numpy(np.concatenate([cells, np.zeros(padding, dtype=np.int64)])),
        torch.from_numpy(np.concatenate([flat[own], np.full(padding, -100, dtype=np.int64)])),
    )
