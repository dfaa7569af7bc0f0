"""Vectors of the old length that follow meaning, for an index that cannot take longer ones.

v, which is longer, is projected to the directions in which most of it lies, and most of the
differences between a sentence and its rewordings and contradictions, which principal axes of
sentences lose first.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, islice

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize

from opencse.debias.meaning_block import block_of
from opencse.debias.meaning_loss import MeaningLoss
from opencse.debias.strength import Axes
from opencse.encoder.embedder import Embedder
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus

_ROWS = 3_000
# γ.
_OLD = 0.3


def projection_axes(
    strength: float, vectors: np.ndarray, pairs: np.ndarray, width: int
) -> np.ndarray:
    r"""Return the axes on which v of a strength is projected, (length of v, d).

    They are the first eigenvectors of :math:`C / \operatorname{tr} C + D / \operatorname{tr} D + \gamma E / d`, where C
    has the second moments of v over texts, and D those of v − v' over pairs of them. E is the identity on e: what these
    texts don't vary in may matter to others, and γ = 0.3 keeps more of it.

    Args:
        strength: β.
        vectors: v of n texts at strength 1, (n, length of v).
        pairs: Rows of pairs of texts that are to stay apart, or near, (pairs, 2).
        width: d, the dimension of e.
    """
    # v is e, and then z times the strength.
    parts = (width, vectors.shape[1] - width)
    scaled = vectors * np.repeat([1.0, strength], parts)
    differences = scaled[pairs[:, 0]] - scaled[pairs[:, 1]]
    total = np.diag(np.repeat([_OLD / width, 0.0], parts))
    for rows in (scaled, differences):
        trace = float((rows**2).sum())
        total += rows.T @ rows / max(trace, 1e-12)
    # The eigenvalues ascend, so the first eigenvectors are the last columns.
    _, axes = np.linalg.eigh(total)
    return axes[:, -width:].astype(np.float32)


def fit_projection(model: SentenceTransformer, corpus: Corpus, rows: int, recipe: Recipe) -> Axes:
    """Return the function from a strength to the axes that suit some of the training rows.

    Args:
        model: The model with a trained block, whose strength is 1.
        corpus: The rows, as for `train_encoder`.
        rows: How many there are.
        recipe: A recipe with a loss of the kind `meaning`.
    """
    loss = next(loss for loss in recipe.losses if isinstance(loss, MeaningLoss))
    paired = (*loss.same, *chain.from_iterable(loss.opposed), *loss.exchanged)
    columns = [recipe.used_views[view].text for view in (*paired, *loss.related, *loss.queries)]
    numbers: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    for row in islice(corpus.rows(columns), 0, None, max(1, rows // _ROWS)):
        # The columns of `paired` come first; their differences should survive the projection.
        found = []
        for column, text in enumerate(row):
            if text is None:
                continue
            number = numbers.setdefault(text, len(numbers))
            if column < len(paired):
                found.append(number)
        pairs += [(found[0], other) for other in found[1:]]
    vectors = Embedder(model, progress="encoding rows for the projection").encode(list(numbers))
    block = block_of(model)
    assert block is not None
    return partial(
        projection_axes,
        vectors=vectors,
        pairs=np.array(pairs, dtype=int).reshape(-1, 2),
        width=int(block.config["width"]),
    )


def append_projection(model: SentenceTransformer, axes: np.ndarray) -> None:
    """Append the projection to axes, (length of v, d), to a model with a block."""
    wide, width = axes.shape
    dense = Dense(wide, width, bias=False, activation_function=torch.nn.Identity())
    with torch.no_grad():
        dense.linear.weight.copy_(torch.from_numpy(axes.T.copy()))
    model.append(dense.to(model.device))
    model.append(Normalize())
