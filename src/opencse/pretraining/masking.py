"""Selection and replacement of the tokens that a masked language model predicts."""

from __future__ import annotations

import numpy as np

from opencse.pretraining.settings import Masking
from opencse.pretraining.vocabulary import Pieces


def mask_sequence(
    ids: np.ndarray, begins: np.ndarray, pieces: Pieces, settings: Masking, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Mask a sequence of tokens, which may contain many texts one after another.

    Every word (or token) is chosen with probability `rate`, independently; a chosen token becomes `[MASK]`, a random
    ordinary token, or stays (Devlin et al., 2019, section 3.1). Special tokens are never chosen. At least one
    word is chosen.

    Args:
        ids: Token ids, (n,).
        begins: Mask of the tokens at which a text begins, (n,).
        pieces: The vocabulary.
        settings: Masking settings.
        rng: Generator of all choices.

    Returns:
        The ids with replacements, (n,), and the positions of the chosen tokens, ascending; none only if all tokens are
        special.
    """
    special = pieces.special[ids]
    if settings.whole_words:
        follows = np.zeros(len(ids), dtype=bool)
        follows[1:] = special[:-1]
        words = np.cumsum(begins | follows | pieces.starts[ids]) - 1
        if len(words) and words[0] < 0:
            words += 1
    else:
        words = np.arange(len(ids))
    chosen = (rng.random(len(ids)) < settings.rate)[words] & ~special
    if not chosen.any() and not special.all():
        chosen = (words == words[rng.choice(np.flatnonzero(~special))]) & ~special
    positions = np.flatnonzero(chosen)
    masked = ids.copy()
    uniform = rng.random(len(positions))
    noise = pieces.ordinary[rng.integers(len(pieces.ordinary), size=len(positions))]
    replacement = np.where(uniform < settings.random, noise, pieces.mask_id)
    changed = uniform < 1 - settings.keep
    masked[positions[changed]] = replacement[changed]
    return masked, positions
