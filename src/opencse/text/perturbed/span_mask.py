"""Masked spans: a sentence with some consecutive words masked, for the triplets of ArcCSE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, row_random, with_error_rate

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class SpanMask(ConstructorSpec):
    """Mask a span of consecutive words.

    All spans of a row lie around the same place, so a column with a larger share masks all words that a column with a
    smaller share masks. Source: Zhang et al., ArcCSE (ACL 2022), §3.3.

    Attributes:
        share: Share of the words that are masked (ArcCSE: 0.2 and 0.4); at least one word is.
        token: The mask token of the encoder to be trained.
        min_words: Shorter sentences give null, as too little would remain.

    Example:
        [build.part]
        kind = "span_mask"
        share = 0.2
    """

    kind: ClassVar[str] = "span_mask"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    share: float
    token: str = "[MASK]"
    min_words: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1, not {self.share} (ArcCSE: 0.2 and 0.4)")
        if self.min_words < 2:
            raise ValueError("min_words must be at least 2")

    def open(self, *, seed: int = 0, workers: int = 1) -> SpanMasker:
        """Return the constructor; there is nothing to load."""
        return SpanMasker(self, seed)


class SpanMasker:
    """An opened `SpanMask`."""

    digest = ""

    def __init__(self, spec: SpanMask, seed: int) -> None:
        self._spec, self._seed = spec, seed

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Mask a span of each row's text."""
        return with_error_rate(rows, [self._masked(row) for row in rows])

    def _masked(self, row: SourceRow) -> tuple[str | None, str]:
        words = list(_WORD.finditer(row.text))
        if len(words) < self._spec.min_words:
            return None, "too short"
        count = min(max(round(self._spec.share * len(words)), 1), len(words) - 1)
        # The same relative place for all shares, so that the spans are nested.
        place = row_random(self._seed, self._spec.kind, row).random()
        start = int(place * (len(words) - count + 1))
        out, end = [], 0
        for i, word in enumerate(words):
            shown = self._spec.token if start <= i < start + count else word.group()
            out.append(row.text[end : word.start()] + shown)
            end = word.end()
        return "".join(out) + row.text[end:], "masked"
