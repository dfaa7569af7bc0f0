"""Initial word embeddings from cooccurrence counts.

A small model that is trained on a few ten million tokens spends most of its steps on learning which words are frequent
and which occur together. Both can be counted in minutes: the output bias starts as the log-probability of each
piece, and the (tied) embeddings as a factorisation of the positive pointwise mutual information of pieces that occur
near each other (Levy and Goldberg, 2014: what skip-gram with negative sampling implicitly factorises; context
distribution smoothing 0.75 and symmetric square-root weighting from Levy, Goldberg and Dagan, 2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opencse.pretraining.store import SentenceIds
from opencse.pretraining.vocabulary import Pieces

_WINDOW = 4
_SMOOTHING = 0.75
_SCALE = 0.04  # root mean square of an embedding's elements; BERT's other embeddings start at 0.02
_MAX_SENTENCES = 500_000  # counted for cooccurrences


def initialise_embeddings(model: Any, store: SentenceIds, pieces: Pieces, seed: int) -> None:
    """Set the word embeddings of a new model from cooccurrence counts, in place.

    Args:
        model: A model from `new_model`.
        store: Its training sentences.
        pieces: The vocabulary; special tokens keep their random embeddings.
        seed: Seed of the randomised factorisation.
    """
    pairs = cooccurrences(store, len(pieces.starts))
    vectors = factorise(pairs, model.config.hidden_size, seed)
    known = np.flatnonzero((np.linalg.norm(vectors, axis=1) > 0) & ~pieces.special)
    vectors = vectors[known] - vectors[known].mean(0)
    vectors *= _SCALE * np.sqrt(vectors.shape[1]) / np.linalg.norm(vectors, axis=1, keepdims=True)
    with torch.no_grad():
        model.get_input_embeddings().weight[torch.from_numpy(known)] = torch.from_numpy(vectors).float()


def cooccurrences(store: SentenceIds, size: int) -> Any:
    """Count pairs of pieces at most four tokens apart in a sentence, each pair weighted by 1 / distance.

    Returns:
        A symmetric sparse matrix (size, size).
    """
    from scipy import sparse

    total = sparse.csr_matrix((size, size), dtype=np.float32)
    for texts in store.chunks(_MAX_SENTENCES):
        ids = np.concatenate(texts).astype(np.int32)
        sentence = np.repeat(np.arange(len(texts)), [len(t) for t in texts])
        for distance in range(1, _WINDOW + 1):
            same = sentence[distance:] == sentence[:-distance]
            left, right = ids[:-distance][same], ids[distance:][same]
            weights = np.full(len(left), 1 / distance, dtype=np.float32)
            total = total + sparse.coo_matrix((weights, (left, right)), shape=(size, size)).tocsr()
    return total + total.T


def piece_counts(store: SentenceIds, size: int) -> np.ndarray:
    """Return the count of each piece, (size,)."""
    counts = np.zeros(size, dtype=np.int64)
    for texts in store.chunks():
        counts += np.bincount(np.concatenate(texts), minlength=size)
    return counts


def factorise(pairs: Any, width: int, seed: int) -> np.ndarray:
    """Return vectors (size, width) whose inner products approximate the positive pointwise mutual information."""
    from sklearn.utils.extmath import randomized_svd

    entries = pairs.tocoo()
    rows = np.asarray(pairs.sum(1)).ravel()
    contexts = rows**_SMOOTHING
    contexts /= contexts.sum()
    information = np.log(entries.data / (rows[entries.row] * contexts[entries.col]))
    kept = (information > 0) & (entries.data >= 1)
    entries.data, entries.row, entries.col = information[kept], entries.row[kept], entries.col[kept]
    u, s, _ = randomized_svd(entries.tocsr(), width, n_oversamples=16, n_iter=2, random_state=seed)
    return u * np.sqrt(s)
