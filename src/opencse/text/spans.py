"""Spans of a document: long anchors, and shorter positives on or around them (DeCLUTR)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.foundation.numbers import check_least
from opencse.text.views.registry import OpenedView, SourceRow, View, ViewText, row_seed


@dataclass(frozen=True, kw_only=True)
class DocumentSpans(View):
    """Draw spans of words from a document, which is the text of one row.

    Anchors are long (their lengths follow a Beta(4, 2) distribution), and the positives of an
    anchor are short (Beta(2, 4)) and overlap with it or touch it. Anchors of one document do not
    overlap each other. Source: Giorgi et al., DeCLUTR (ACL 2021), §3.1 and its code, which counts
    tokens where this counts words.

    `[build.span]` builds the columns `span_1` for the first anchor, `span_1_1` and `span_1_2` for
    its positives, and so on.

    Attributes:
        anchors: Number of anchors.
        positives: Number of positives of each anchor.
        shortest: Fewest words of a span.
        longest: Most words of a span. A document needs at least `2 × anchors × longest` words.

    Example:
        [build.span]
        kind = "document_spans"

        >>> spans = DocumentSpans(anchors=1, positives=1, shortest=1, longest=2)
        >>> spans.columns("span")
        ('span_1', 'span_1_1')
        >>> [len(text.split()) <= 2 for text in spans.preview("one two three four five")[0]]
        [True, True]
    """

    kind = "document_spans"

    anchors: int = 2
    positives: int = 2
    shortest: int = 16
    longest: int = 256

    def __post_init__(self) -> None:
        check_least(self, 1, "anchors", "positives", "shortest")
        if self.longest < self.shortest:
            raise ValueError(f"longest is {self.longest}, less than shortest ({self.shortest})")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return the column of each anchor, followed by those of its positives."""
        columns = []
        for anchor in range(1, self.anchors + 1):
            columns.append(f"{name}_{anchor}")
            for positive in range(1, self.positives + 1):
                columns.append(f"{name}_{anchor}_{positive}")
        return tuple(columns)

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; there is nothing to load."""

        def build(rows: Sequence[SourceRow]) -> list[list[ViewText]]:
            return [
                self._spans(row, np.random.default_rng(row_seed(seed, self.kind, row)))
                for row in rows
            ]

        return OpenedView(build=build)

    def _spans(self, row: SourceRow, rng: np.random.Generator) -> list[ViewText]:
        words = row.text.split()
        if len(words) < 2 * self.anchors * self.longest:
            missing = ViewText(text=None, rule="document too short")
            return [missing] * len(self.columns("span"))

        texts: list[Sequence[str]] = []
        # Anchors start in slots of the longest span; a chosen slot takes its neighbours along, so
        # that no two anchors overlap.
        free = list(range(0, len(words) - self.longest + 1, self.longest))
        for left in range(self.anchors, 0, -1):
            place = self._slot(free, left, rng)
            # Anchors tend to be long, their positives short, as in DeCLUTR.
            length = self._length(rng.beta(4, 2))
            start = free[place] + int(rng.integers(self.longest - length + 1))
            end = start + length
            del free[max(0, place - 1) : place + 2]
            texts.append(words[start:end])
            for _ in range(self.positives):
                texts.append(self._positive(words, start, end, rng))
        return [ViewText(text=" ".join(text), rule=f"{len(text)} words") for text in texts]

    def _slot(self, free: Sequence[int], left: int, rng: np.random.Generator) -> int:
        """Return the place of a slot; at the edge, if the rest would not be enough for all anchors."""
        if len(free) // left < left:
            return int(rng.choice([0, len(free) - 1]))
        return int(rng.integers(len(free)))

    def _positive(
        self, words: Sequence[str], start: int, end: int, rng: np.random.Generator
    ) -> Sequence[str]:
        """Return a span that overlaps an anchor, lies within it or is next to it."""
        length = self._length(rng.beta(2, 4))
        first = max(0, start - length)
        last = min(end, len(words) - length)
        begin = int(rng.integers(first, last + 1))
        return words[begin : begin + length]

    def _length(self, share: float) -> int:
        return int(share * (self.longest - self.shortest) + self.shortest)
