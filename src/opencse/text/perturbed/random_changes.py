"""Random changes: word repetition (ESimCSE), word deletion, and another sentence (OssCSE §3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from opencse.text.views.constructor import UNIT, BuiltView, ConstructorSpec, SourceRow, row_random, with_error_rate

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class WordRepetition(ConstructorSpec):
    """Repeat random words in place; their number is uniform in [0, max(2, share x words)].

    Source: Wu et al., ESimCSE (COLING 2022), §3.1.

    Attributes:
        share: Maximum share of the words that are repeated, ESimCSE's `dup_rate`.

    Example:
        [build.repeated]
        kind = "word_repetition"
    """

    kind: ClassVar[str] = "word_repetition"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    share: float = 0.32

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie in [0, 1], not {self.share} (ESimCSE: 0.32)")

    def open(self, *, seed: int = 0, workers: int = 1) -> RandomChange:
        """Return the constructor; there is nothing to load."""
        return RandomChange(lambda row, rows: self._repeated(row, seed))

    def _repeated(self, row: SourceRow, seed: int) -> tuple[str | None, str]:
        words = list(_WORD.finditer(row.text))
        if not words:
            return None, "empty"
        rng = row_random(seed, self.kind, row)
        count = min(rng.randint(0, max(2, int(self.share * len(words)))), len(words))
        chosen = set(rng.sample(range(len(words)), count))
        out, place = [], 0
        for i, word in enumerate(words):
            out.append(row.text[place : word.end()] + (" " + word.group() if i in chosen else ""))
            place = word.end()
        return "".join(out) + row.text[place:], "repeated" if count else "unchanged"


@dataclass(frozen=True, kw_only=True)
class Deletion(ConstructorSpec):
    """Remove random words.

    Source: Shi et al., OssCSE (EMNLP 2023), §3.2, which removes one.

    Attributes:
        words: Number of words, if there is no share.
        share: Share of the words, at least one (DiffCSE Appendix B: 0.15); 0 for a fixed number.

    Example:
        [build.shorter]
        kind = "deletion"
    """

    kind: ClassVar[str] = "deletion"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    words: int = 1
    share: float = 0.0

    def __post_init__(self) -> None:
        if self.words < 1 or not 0 <= self.share < 1:
            raise ValueError("words must be at least 1 (OssCSE: 1), and share at least 0 and below 1 (DiffCSE: 0.15)")

    def open(self, *, seed: int = 0, workers: int = 1) -> RandomChange:
        """Return the constructor; there is nothing to load."""
        return RandomChange(lambda row, rows: self._deleted(row, seed))

    def _deleted(self, row: SourceRow, seed: int) -> tuple[str | None, str]:
        words = list(_WORD.finditer(row.text))
        count = max(1, round(self.share * len(words))) if self.share else self.words
        if len(words) <= count:
            return None, "too short"
        chosen = set(row_random(seed, self.kind, row).sample(range(len(words)), count))
        starts = [0, *(word.end() for word in words[:-1])]  # each word goes with the space before it
        kept = [
            row.text[start : word.end()]
            for i, (start, word) in enumerate(zip(starts, words, strict=True))
            if i not in chosen
        ]
        text = "".join(kept) + row.text[words[-1].end() :]
        return (text.lstrip() if 0 in chosen else text), "deleted"


@dataclass(frozen=True, kw_only=True)
class RandomSentence(ConstructorSpec):
    """Draw another sentence at random from the rows that are built together (OssCSE §3.2), excluding copies.

    Example:
        [build.other]
        kind = "random"
    """

    kind: ClassVar[str] = "random"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    def open(self, *, seed: int = 0, workers: int = 1) -> RandomChange:
        """Return the constructor; there is nothing to load."""
        return RandomChange(lambda row, rows: self._other(row, rows, seed))

    def _other(self, row: SourceRow, rows: Sequence[SourceRow], seed: int) -> tuple[str | None, str]:
        own, rng = _words(row.text), row_random(seed, self.kind, row)
        others = [other for other in rows if other.id != row.id]
        if others and _words((chosen := rng.choice(others)).text) != own:
            return chosen.text, f"row {chosen.id}"
        others = [other for other in others if _words(other.text) != own]  # rarely needed: copies are few
        if not others:
            return None, "no other row"
        chosen = rng.choice(others)
        return chosen.text, f"row {chosen.id}"


@lru_cache(maxsize=2 * UNIT)
def _words(text: str) -> tuple[str, ...]:
    """Return the lower-cased words of a text, to find copies; cached because each row is compared with all others."""
    return tuple(text.lower().split())


class RandomChange:
    """An opened `WordRepetition`, `Deletion` or `RandomSentence`.

    Args:
        change: Maps a row and the rows that are built with it to a text, or None, and the rule.
    """

    digest = ""

    def __init__(self, change: Callable[[SourceRow, Sequence[SourceRow]], tuple[str | None, str]]) -> None:
        self._change = change

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Change each row's text."""
        return with_error_rate(rows, [self._change(row, rows) for row in rows])
