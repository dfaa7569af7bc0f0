"""Alignment and uniformity of training sentences while a model trains (BYOP Figure 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import torch

from opencse.text.corpus import Corpus

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SENTENCES = 256
"""Sentences that are measured: the first of the rows."""
_BATCH = 64


def first_sentences(rows: Corpus) -> list[str]:
    """Return the first distinct sentences of the rows."""
    return list(dict.fromkeys(islice(rows.texts(rows.text_column()), SENTENCES)))


def training_geometry(encoder: SentenceTransformer, texts: Sequence[str]) -> Callable[[], dict[str, float]]:
    """Return a function that measures the current weights as they train, with dropout.

    `training alignment` is the mean squared distance of the two vectors of a sentence, `training uniformity` the
    logarithm of the mean of exp(-2 d²) over the distances d of different sentences (Wang and Isola 2020). The random
    state and the mode of the model stay as they were.

    Args:
        encoder: The encoder that trains.
        texts: The sentences.
    """

    def encoded() -> torch.Tensor:
        blocks = []
        for start in range(0, len(texts), _BATCH):
            features = encoder.preprocess(list(texts[start : start + _BATCH]))
            features = {k: v.to(encoder.device) if isinstance(v, torch.Tensor) else v for k, v in features.items()}
            blocks.append(encoder(features)["sentence_embedding"].float())
        return torch.nn.functional.normalize(torch.cat(blocks))

    def measure() -> dict[str, float]:
        mode = encoder.training
        encoder.train()
        with torch.no_grad(), torch.random.fork_rng(enabled=True):
            torch.manual_seed(0)
            first, second = encoded(), encoded()
        encoder.train(mode)
        distances = torch.pdist(first) ** 2
        return {
            "training alignment": float(((first - second) ** 2).sum(dim=1).mean()),
            "training uniformity": float(torch.exp(-2 * distances).mean().log()),
        }

    return measure
