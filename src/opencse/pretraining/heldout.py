"""Accuracy on masked tokens of held-out sentences: of a model, and of n-gram counts on the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from opencse.encoder import special_frame
from opencse.pretraining.batches import MaskedInputs, masked_batch
from opencse.pretraining.network import MaskedLMNetwork
from opencse.pretraining.settings import Masking
from opencse.pretraining.store import SentenceIds
from opencse.pretraining.vocabulary import Pieces
from opencse.progress import track

_BATCH = 64


@dataclass(frozen=True)
class PredictionScores:
    """Scores of predictions of masked tokens.

    Attributes:
        tokens: Number of predicted tokens.
        perplexity: exp of the mean negative log-probability of the true token.
        top1: Share with the true token as the most probable one, in %.
        top5: Share with the true token among the five most probable ones, in %.
    """

    tokens: int
    perplexity: float
    top1: float
    top5: float

    @classmethod
    def of(cls, losses: np.ndarray, ranks: np.ndarray) -> PredictionScores:
        """Return the scores from the negative log-probability (nats) and the rank (from 0) of each true token."""
        mean = float(losses.astype(np.float64).mean())
        return cls(len(losses), float(np.exp(mean)), 100 * float((ranks < 1).mean()), 100 * float((ranks < 5).mean()))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as a dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class MaskedTokens:
    """The masked tokens to predict, with their neighbours.

    Attributes:
        batches: Inputs of the model.
        labels: The true tokens, (m,).
        visible_neighbours: The tokens before and after them in the input, some of them `[MASK]`; `[CLS]` and `[SEP]` at
            the ends of a sentence, (2, m).
        true_neighbours: The original tokens before and after them, (2, m).
    """

    batches: list[MaskedInputs]
    labels: np.ndarray
    visible_neighbours: np.ndarray
    true_neighbours: np.ndarray


def mask_sentences(
    store: Sequence[np.ndarray], tokenizer: Any, masking: Masking, seed: int = 0, max_length: int = 256
) -> MaskedTokens:
    """Mask sentences; the same seed gives the same masks.

    Args:
        store: Token ids of sentences, without special tokens.
        tokenizer: Their tokenizer.
        masking: Masking settings; for comparable scores, every chosen token should become `[MASK]`.
        seed: Seed of the masks.
        max_length: Maximum input length in tokens.
    """
    frame, pieces = special_frame(tokenizer), Pieces.of(tokenizer)
    rng = np.random.default_rng(seed)
    max_content = max_length - len(frame)
    before, after = np.array(frame.before, dtype=np.int64), np.array(frame.after, dtype=np.int64)
    batches, found = [], []
    for start in range(0, len(store), _BATCH):
        rows = range(start, min(start + _BATCH, len(store)))
        inputs = [np.concatenate([before, store[i][:max_content].astype(np.int64), after]) for i in rows]
        for group in masked_batch(inputs, tokenizer.pad_token_id or 0, pieces, masking, rng).groups:
            batches.append(group)
            found.append(_with_neighbours(group))
    labels, seen, told = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    return MaskedTokens(batches, labels, seen, told)


def _with_neighbours(group: MaskedInputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the true tokens of a group, and their neighbours as in the input and as in the original."""
    real = (group.labels != -100).numpy()
    positions, labels = group.positions.numpy()[real], group.labels.numpy()[real]
    seen = group.ids.numpy().reshape(-1)
    told = seen.copy()
    told[positions] = labels
    beside = np.stack([positions - 1, positions + 1])
    return labels, seen[beside], told[beside]


@torch.inference_mode()
def model_scores(model: Any, masked: MaskedTokens, progress: bool = True) -> PredictionScores:
    """Return the scores of a masked language model, computed in fp32."""
    network = MaskedLMNetwork(model).eval()
    losses, ranks = [], []
    for inputs in track(masked.batches, "predicting", unit="batches", show=progress):
        logits = network.logits(inputs.to(model.device)).float()
        labels = inputs.labels.to(model.device)
        real = labels != -100
        logits, labels = logits[real], labels[real]
        losses.append(F.cross_entropy(logits, labels, reduction="none").cpu().numpy())
        ranks.append((logits > logits.gather(1, labels[:, None])).sum(1).cpu().numpy())
    return PredictionScores.of(np.concatenate(losses), np.concatenate(ranks))


class NgramCounts:
    """Unigram and bigram probabilities of a training text, as a baseline.

    Bigrams are smoothed by method C of Witten and Bell (1991): `p(w | c) = (n(c, w) + T(c) p(w)) / (n(c) + T(c))`, with
    T(c) the number of distinct tokens seen beside c. Unigrams have one half added to each count.

    Args:
        store: The training sentences.
        frame: Special tokens before and after each sentence.
        size: Size of the vocabulary.
    """

    def __init__(self, store: SentenceIds, frame: tuple[Sequence[int], Sequence[int]], size: int) -> None:
        from scipy import sparse

        pairs = sparse.csr_matrix((size, size), dtype=np.float32)
        counts = np.zeros(size)
        for texts in store.chunks():
            ids = np.concatenate([np.concatenate([frame[0], t, frame[1]]) for t in texts]).astype(np.int64)
            counts += np.bincount(np.concatenate(texts), minlength=size)
            # The pair of a sentence's end and the next one's start is never looked up.
            weights = np.ones(len(ids) - 1, dtype=np.float32)
            pairs = pairs + sparse.coo_matrix((weights, (ids[:-1], ids[1:])), shape=(size, size)).tocsr()
        self.unigrams = (counts + 0.5) / (counts.sum() + 0.5 * size)
        self._after, self._before = pairs.tocsr(), pairs.T.tocsr()

    def after(self, context: np.ndarray) -> np.ndarray:
        """Return the probabilities of the token after each context token, (m, vocabulary)."""
        return self._smoothed(self._after[context])

    def before(self, context: np.ndarray) -> np.ndarray:
        """Return the probabilities of the token before each context token, (m, vocabulary)."""
        return self._smoothed(self._before[context])

    def _smoothed(self, rows: Any) -> np.ndarray:
        dense = rows.toarray().astype(np.float64)
        totals = dense.sum(1, keepdims=True)
        kinds = np.maximum((dense > 0).sum(1, keepdims=True), 1)
        return (dense + kinds * self.unigrams) / (totals + kinds)


def count_scores(
    counts: NgramCounts, masked: MaskedTokens, true_neighbours: bool = False, progress: bool = True
) -> dict[str, PredictionScores]:
    """Return the scores of n-gram counts: unigrams, given the left neighbour, and given both neighbours.

    The mixture weights of both neighbours are fitted on the scored tokens, which favours this baseline.

    Args:
        counts: Counts of the training text.
        masked: The tokens to predict.
        true_neighbours: Use the true neighbours even if they are masked for the model. By default the counts use the
            neighbours in the input, and a masked neighbour is not informative.
        progress: Show a progress bar.
    """
    m, neighbours = len(masked.labels), masked.true_neighbours if true_neighbours else masked.visible_neighbours
    chosen = np.empty((3, m))  # probabilities of the true tokens: unigram, from the left, from the right
    parts = [slice(i, min(i + 512, m)) for i in range(0, m, 512)]

    def given(part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        labels = masked.labels[part]
        return np.arange(len(labels)), labels, counts.after(neighbours[0, part]), counts.before(neighbours[1, part])

    for part in track(parts, "counting", unit="parts", show=progress):
        own, labels, left, right = given(part)
        chosen[:, part] = counts.unigrams[labels], left[own, labels], right[own, labels]
    names = {"unigram": np.array([1.0, 0, 0]), "bigram": np.array([0, 1.0, 0])}
    names["both neighbours"] = _mixture_weights(chosen)
    ranks: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for part in track(parts, "ranking", unit="parts", show=progress):
        own, labels, left, right = given(part)
        for name, (alone, before, after) in names.items():
            mixed = alone * counts.unigrams + before * left + after * right
            ranks[name].append((mixed > mixed[own, labels][:, None]).sum(1))
    return {n: PredictionScores.of(-np.log(w @ chosen), np.concatenate(ranks[n])) for n, w in names.items()}


def _mixture_weights(chosen: np.ndarray, rounds: int = 50) -> np.ndarray:
    """Return the maximum-likelihood weights of a mixture, by expectation maximisation."""
    weights = np.full(len(chosen), 1 / len(chosen))
    for _ in range(rounds):
        shares = weights[:, None] * chosen
        weights = (shares / shares.sum(0)).mean(1)
    return weights
