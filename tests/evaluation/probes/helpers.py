"""A model that sees words only, and a few sentences to probe it with."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings, distinct_texts
from opencse.evaluation.task import HasTexts


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """Each word a fixed random direction: similarity is wording and nothing else."""
    rows = [
        np.sum([_direction(word) for word in text.lower().split()] or [np.zeros(64)], axis=0)
        for text in texts
    ]
    return np.array(rows).reshape(len(texts), 64)


@functools.cache
def _direction(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=64)


def embedded(*parts: HasTexts, encode=bag_of_words) -> TextEmbeddings:
    texts = distinct_texts(parts)
    return TextEmbeddings(texts, encode(texts))


def pairs(rows: Sequence[tuple[str, str, float]], name: str = "set") -> ScoredPairs:
    first, second, scores = zip(*rows, strict=True)
    return ScoredPairs(name=name, sentence1=first, sentence2=second, scores=scores)


ROWS = [
    (
        "the drug is safe",
        "patients may take it without risk",
        "the drug is not safe",
        "our train left late",
    ),
    ("she won the race", "first place went to her", "she lost the race", "the soup needs salt"),
    (
        "bees can see colour",
        "insects perceive hues",
        "bees cannot see colour",
        "he sold his bicycle",
    ),
    (
        "the shop was open",
        "you could buy things there",
        "the shop was closed",
        "a storm hit the coast",
    ),
]


def write_sentences(path: Path) -> Path:
    lines = ["id\tsentence\tparaphrase\tnegation\tdeletion\tinsertion\tsubstitution\trandom"]
    for index, (a, p, n, r) in enumerate(ROWS):
        lines.append(
            "\t".join(
                [str(index), a, p, n, a.replace("the ", "", 1), a + " today", "x " + a[2:], r]
            )
        )
    path.write_text("\n".join(lines) + "\n")
    return path
