"""The polarity teacher: a small head on a frozen encoder that separates paraphrases from contradictions.

It reads the token averages of several layers, each scaled to length 1, and returns a unit vector of a few dimensions.
The inner product of two vectors is near 1 if the sentences mean the same, and near -1 if they contradict each other.
The head is trained on constructed pairs, in about a minute of one core, before the encoder itself is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.errors import OpencseError
from opencse.io.cache import sealed_store
from opencse.progress import track
from opencse.recipes import PolarityHead

_SCALE = 5.0
"""Factor of the inner product in the logistic loss."""


class PolarityProjection(nn.Module):
    """Map from layer averages to unit vectors: linear, or with one hidden layer of GELU units.

    Args:
        inputs: Width of the layer averages.
        width: Size of the output.
        hidden: Size of the hidden layer; 0 for none.
    """

    def __init__(self, inputs: int, width: int, hidden: int) -> None:
        super().__init__()
        self.settings = {"inputs": inputs, "width": width, "hidden": hidden}
        if hidden:
            self.layers = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, width))
        else:
            self.layers = nn.Sequential(nn.Linear(inputs, width))

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace `sentence_embedding` (n, inputs) by unit vectors (n, width)."""
        return {**features, "sentence_embedding": self.encode(features["sentence_embedding"])}

    def encode(self, means: Tensor) -> Tensor:
        """Return unit vectors (n, width) of layer averages (n, inputs)."""
        return F.normalize(self.layers(means), dim=-1)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that determine the output together with the weights."""
        return self.settings

    def get_embedding_dimension(self) -> int:
        """Return the size of the output."""
        return self.settings["width"]


def polarity_head(
    encode: Callable[[Sequence[str]], np.ndarray],
    inputs: int,
    rows: Sequence[Mapping[str, str | None]],
    settings: PolarityHead,
    *,
    key: str,
    seed: int = 0,
    progress: bool = True,
) -> PolarityProjection:
    """Return a trained head, from the cache if possible.

    Args:
        encode: From n texts to their layer averages, (n, inputs).
        inputs: Width of the layer averages.
        rows: Texts by view of each training row.
        settings: The pairs, the head and its training.
        key: Name in the cache, a hash of everything that the head depends on.
        seed: Seed of the initial weights, the batches and the dropout.
        progress: Show a progress bar while training.

    Raises:
        OpencseError: No row has a paraphrase pair, or none has a contradiction pair.
    """
    head = PolarityProjection(inputs, settings.width, settings.hidden)

    def build(folder: Path) -> None:
        texts, pairs = constructed_pairs(rows, settings)
        train_head(head, torch.from_numpy(encode(texts)), pairs, settings, seed=seed, progress=progress)
        weights = {name: tensor.numpy() for name, tensor in head.state_dict().items()}
        np.savez(folder / "head.npz", **weights)

    folder = sealed_store("polarity", key, build)
    with np.load(folder / "head.npz", allow_pickle=False) as stored:
        head.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    return head.eval()


def constructed_pairs(
    rows: Sequence[Mapping[str, str | None]], settings: PolarityHead
) -> tuple[list[str], list[tuple[float, np.ndarray]]]:
    """Return the distinct texts, and for each kind of pair its polarity and the indices of its texts, (n, 2).

    Raises:
        OpencseError: No row has a paraphrase pair, or none has a contradiction pair.
    """
    index: dict[str, int] = {}
    found: list[tuple[float, np.ndarray]] = []
    for polarity, kinds in ((1.0, settings.same), (-1.0, settings.opposite)):
        before = len(found)
        for first, second in kinds:
            pairs = dict.fromkeys((row[first], row[second]) for row in rows if row[first] and row[second])
            numbers = [[index.setdefault(str(text), len(index)) for text in pair] for pair in pairs]
            if numbers:
                found.append((polarity, np.asarray(numbers)))
        if len(found) == before:
            names = ", ".join("-".join(pair) for pair in kinds)
            raise OpencseError(f"the polarity teacher finds none of the pairs {names} in the training rows")
    return list(index), found


def train_head(
    head: PolarityProjection,
    means: Tensor,
    pairs: Sequence[tuple[float, np.ndarray]],
    settings: PolarityHead,
    *,
    seed: int = 0,
    progress: bool = False,
) -> None:
    r"""Minimise the logistic loss :math:`\log(1 + e^{-5 y\, u \cdot v})` over constructed pairs.

    Half of each batch are paraphrases (y = 1), half contradictions (y = -1); within each half, every kind of pair is
    equally likely.

    Args:
        head: Trained in place.
        means: Layer averages of all texts, (n, inputs).
        pairs: Polarity and indices of the texts, (m, 2), of each kind of pair.
        settings: Steps, batch size, learning rate and regularisation.
        seed: Seed of the weights, the batches and the dropout.
        progress: Show a progress bar.
    """
    rng = np.random.default_rng(seed)
    sides = [[numbers for polarity, numbers in pairs if polarity == sign] for sign in (1.0, -1.0)]
    signs = torch.tensor([1.0, -1.0]).repeat(settings.batch_size // 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in head.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
        optimizer = torch.optim.AdamW(head.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
        head.train()
        for step in track(range(settings.steps), "polarity head", unit="steps", show=progress):
            factor = min(1.0, (step + 1) / 50) * (1 - step / settings.steps)
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * factor
            batch = torch.from_numpy(_draw_batch(sides, settings.batch_size, rng))
            first, second = (
                head.encode(F.dropout(means[batch[:, side]], settings.dropout, training=True)) for side in (0, 1)
            )
            loss = F.softplus(-_SCALE * signs * (first * second).sum(dim=-1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    head.eval()


def _draw_batch(sides: Sequence[Sequence[np.ndarray]], size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a batch of pairs (size, 2) that alternates between both polarities."""
    batch = np.empty((size, 2), dtype=np.int64)
    for side, kinds in enumerate(sides):
        for row, kind in zip(range(side, size, 2), rng.integers(len(kinds), size=-(-size // 2)), strict=False):
            batch[row] = kinds[kind][rng.integers(len(kinds[kind]))]
    return batch
