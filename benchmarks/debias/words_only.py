"""Two scores that need no model beyond the cosine, next to which a meaning block has to earn its place.

words        cosine − 1 if exactly one of the texts is negative, or if they differ by a listed antonym,
             but not if both: "isn't cold" may say what "hot" says
words, near  cosine − 0.55 · max(0, 5 cosine − 4) in the same cases: only texts that are nearly alike

Negative words and antonyms are those of the package's lists.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from opencse.text.english.lexicon import lexicon_rows, opposites, word_class

NEGATIVE = word_class("negative words") | {"without", "cannot"}
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?")
SIZE = 0.55


@cache
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case; "isn't" stays one word."""
    return frozenset(_WORD.findall(text.lower()))


def is_negative(words: frozenset[str]) -> bool:
    """Return whether one of the words is negative."""
    return any(word in NEGATIVE or word.endswith(("n't", "n’t")) for word in words)


def listed_antonyms() -> dict[str, frozenset[str]]:
    """Return the antonyms of each word in the lists of the package."""
    found = collections.defaultdict[str, set[str]](set)
    for word, other, _ in lexicon_rows("antonyms"):
        found[word].add(other)
        found[other].add(word)
    for (word, _), other in opposites().items():
        found[word].add(other)
        found[other].add(word)
    return {word: frozenset(others) for word, others in found.items()}


ANTONYMS = listed_antonyms()


def differ(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two texts differ in one way: one of them is negative, or has an antonym of the other."""
    one_is_negative = is_negative(first) != is_negative(second)
    lost = first - second
    new = second - first
    antonyms = any(not ANTONYMS.get(word, frozenset()).isdisjoint(new) for word in lost)
    return one_is_negative != antonyms


def flags(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Return for n pairs of texts whether they differ, (n,)."""
    pairs = zip(map(words_of, first), map(words_of, second), strict=True)
    return np.array([differ(one, other) for one, other in pairs])


def words_score(cosines: np.ndarray, flagged: np.ndarray) -> np.ndarray:
    """Return cosine − 1 where a pair differs."""
    return cosines - flagged


def near_score(cosines: np.ndarray, flagged: np.ndarray) -> np.ndarray:
    """Return the cosine, lowered where a pair differs and is nearly alike."""
    return cosines - SIZE * flagged * np.maximum(0, 5 * cosines - 4)
