"""Cosines and wording of sentence pairs under one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opencse.commands.reproduction.pair_groups import SentencePairs
from opencse.evaluation import TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.text.surface import lexical_overlap, match_error_rate

Listing = tuple[tuple[str, ...], ...]
"""Rows of texts to be read, the headings first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairCosines:
    """Cosines and match error rates of groups of pairs, under one model.

    Attributes:
        pairs: The pairs, by group.
        cosines: Their cosines.
        error_rates: Their match error rates, the share of words that changed.
    """

    pairs: Mapping[str, SentencePairs]
    cosines: Mapping[str, np.ndarray]
    error_rates: Mapping[str, np.ndarray]

    def scores(self) -> dict[str, float]:
        """Return by `GROUP: MEASURE` the mean cosine, its deviation, the mean wording and the number of pairs."""
        found: dict[str, float] = {}
        for name, pairs in self.pairs.items():
            cosines = self.cosines[name]
            found |= {
                f"{name}: count": float(len(cosines)),
                f"{name}: cosine": float(cosines.mean()),
                f"{name}: deviation": float(cosines.std(ddof=1)) if len(cosines) > 1 else 0.0,
                f"{name}: error rate": float(self.error_rates[name].mean()),
                f"{name}: overlap": float(lexical_overlap(pairs.first, pairs.second).mean()),
            }
        return found


def texts_of(groups: Mapping[str, SentencePairs]) -> list[str]:
    """Return the distinct sentences of all pairs."""
    return list(dict.fromkeys(text for pairs in groups.values() for text in (*pairs.first, *pairs.second)))


def pair_cosines(groups: Mapping[str, SentencePairs], embeddings: TextEmbeddings) -> PairCosines:
    """Measure groups of pairs.

    Args:
        groups: The pairs, by group.
        embeddings: The vectors of their sentences.
    """
    return PairCosines(
        pairs=groups,
        cosines={name: paired_cosine(embeddings(p.first), embeddings(p.second)) for name, p in groups.items()},
        error_rates={name: match_error_rate(p.first, p.second) for name, p in groups.items()},
    )


def list_pairs(measured: Mapping[str, PairCosines], count: int) -> Listing:
    """Return the first pairs of each group with their cosines under each model.

    Args:
        measured: By label, the same pairs under several models.
        count: Number of pairs of each group.
    """
    groups = next(iter(measured.values())).pairs
    scored = any(pairs.scores for pairs in groups.values())
    rows = [("", "sentence", "compared with", *(["human score"] if scored else []), *measured)]
    for name, pairs in groups.items():
        for row in range(min(count, len(pairs.first))):
            score = [f"{pairs.scores[row]:g}" if pairs.scores else ""] if scored else []
            cosines = [f"{each.cosines[name][row]:.4f}" for each in measured.values()]
            rows.append((name, pairs.first[row], pairs.second[row], *score, *cosines))
    return tuple(rows)


def list_training_pairs(measured: Mapping[str, PairCosines], count: int) -> Listing:
    """Return the first pairs of each group of each label, whose pairs are its own."""
    rows = [("", "", "sentence", "compared with", "cosine")]
    for label, each in measured.items():
        for name, pairs in each.pairs.items():
            for row in range(min(count, len(pairs.first))):
                rows.append((label, name, pairs.first[row], pairs.second[row], f"{each.cosines[name][row]:.4f}"))
    return tuple(rows)
