"""BERT-whitening and BERT-flow: maps of sentence vectors that are fitted on sentences, without training the encoder.

The map becomes the last module of the model, and is saved with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.flow import fit_flow
from opencse.encoder.loading import replace_modules
from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense

# Sentences that are encoded at a time to find the whitening.
_CHUNK = 16384

# Share of the largest standard deviation below which vectors do not differ, but for rounding. The
# last layer normalisation of a BERT leaves one such direction.
_NO_VARIANCE = 1e-5

FLOW_SENTENCES = 1_000_000
"""Sentences that a flow is trained on at most: their vectors are in memory."""


def add_whitening(
    model: SentenceTransformer, sentences: Iterable[str], *, precision: Precision = "auto"
) -> SentenceTransformer:
    """Return BERT-whitening: a model whose vectors have mean 0 and covariance 1 over some sentences.

    The map is linear, a `Dense` module of sentence-transformers. Source: Su et al., Whitening
    Sentence Representations for Better Semantics and Faster Retrieval (2021), with all dimensions.

    Args:
        model: The model, which is not changed.
        sentences: Sentences such as those that will be compared.
        precision: Precision in which the sentences are encoded.

    Raises:
        OpencseError: The sentences are too few for vectors of this size.
    """
    with model.truncate_embeddings(None):
        embed = Embedder(model, precision=precision)
        dense = fit_whitening(embed(chunk) for chunk in chunks(sentences, _CHUNK))
    return replace_modules(model, [*model, dense.to(model.device)])


def fit_whitening(vectors: Iterable[np.ndarray]) -> Dense:
    """Return the linear map after which some vectors have mean 0 and covariance 1.

    Directions in which the vectors do not differ become 0.

    Args:
        vectors: Blocks (n, width) of vectors; each block with at least `width` rows but the last.

    Raises:
        OpencseError: There are too few.
    """
    from sentence_transformers.sentence_transformer.modules import Dense
    from sklearn.decomposition import IncrementalPCA

    pca = IncrementalPCA()
    for block in vectors:
        pca.partial_fit(np.asarray(block, dtype=np.float64))
    if pca.n_samples_seen_ <= pca.n_features_in_:
        raise OpencseError(
            f"whitening was given {pca.n_samples_seen_:.0f} sentences, which are too few",
            "Give it more.",
        )
    deviations = np.sqrt(pca.explained_variance_)
    differ = deviations > _NO_VARIANCE * deviations.max()
    factors = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=differ)
    weight = pca.components_ * factors[:, None]
    bias = -weight @ pca.mean_

    width = pca.n_features_in_
    dense = Dense(width, width, bias=True, activation_function=nn.Identity())
    with torch.no_grad():
        dense.linear.weight.copy_(torch.from_numpy(weight))
        dense.linear.bias.copy_(torch.from_numpy(bias))
    return dense


def add_flow(
    model: SentenceTransformer,
    sentences: Iterable[str],
    *,
    epochs: float = 1.0,
    seed: int = 0,
    precision: Precision = "auto",
) -> SentenceTransformer:
    """Return BERT-flow: a model with an invertible map of its vectors to a standard normal distribution.

    Source: Li et al., On the Sentence Embeddings from Pre-trained Language Models (EMNLP 2020); the
    map is `opencse.encoder.flow.SentenceFlow`.

    Args:
        model: The model, which is not changed.
        sentences: Sentences such as those that will be compared; at most a million are used.
        epochs: Passes over them.
        seed: Seed of the map and of the order of the sentences.
        precision: Precision in which the sentences are encoded.

    Raises:
        OpencseError: The vectors cannot be halved twice.
    """
    taken = list(islice(sentences, FLOW_SENTENCES))
    with model.truncate_embeddings(None):
        vectors = Embedder(model, precision=precision)(taken)
    try:
        flow = fit_flow(torch.from_numpy(vectors), epochs=epochs, seed=seed)
    except ValueError as error:
        raise OpencseError(f"BERT-flow: {error}", "Choose another model.") from error
    return replace_modules(model, [*model, flow.to(model.device)])
