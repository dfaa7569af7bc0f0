"""Perturbations: random words deleted or masked, other sentences of the corpus, and passages."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from typing import TYPE_CHECKING, Any, ClassVar

from opencse.foundation.workers import Engine
from opencse.text.views.registry import (
    OpenedView,
    SentenceStore,
    SourceRow,
    View,
    ViewText,
    row_random,
    with_error_rate,
)

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone


Changed = tuple[str | None, str]
"""The changed text, or None, and the rule or the reason."""
_WORD = re.compile(r"\S+")
# Words of the other sentences of a passage, at most.
_PASSAGE_WORDS = 120
# Shorter sentences are not masked, because too little would remain.
_FEWEST_WORDS = 10


class _RandomChange(View):
    """A kind that changes each row with its own random generator."""

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; there is nothing to load."""

        def build(rows: Sequence[SourceRow]) -> list[ViewText]:
            results = []
            for row in rows:
                rng = row_random(seed, self.kind, row)
                results.append(self.changed(row, rows, rng))
            return with_error_rate(rows, results)

        return OpenedView(build=build)

    def changed(self, row: SourceRow, rows: Sequence[SourceRow], rng: random.Random) -> Changed:
        """Change one row's text; `rows` are those that are built together."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Deletion(_RandomChange):
    """Remove random words.

    Source: Shi et al., OssCSE (EMNLP 2023), §3.2, which removes one.

    Attributes:
        share: Share of the words, at least one (DiffCSE Appendix B: 0.15); 0 for one word.

    Example:
        [build.shorter]
        kind = "deletion"

        >>> Deletion().preview("The bakery sells bread.")
        ['The sells bread.']
    """

    kind = "deletion"

    share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError("share must be at least 0 and below 1 (DiffCSE: 0.15)")

    def changed(self, row: SourceRow, rows: Sequence[SourceRow], rng: random.Random) -> Changed:
        """Remove some words, each with the space before it."""
        words = re.findall(r"\s*\S+", row.text)
        count = max(1, round(self.share * len(words)))
        if len(words) <= count:
            return None, "too short"
        chosen = set(rng.sample(range(len(words)), count))
        end = row.text[len(row.text.rstrip()) :]
        kept = [word for i, word in enumerate(words) if i not in chosen]
        text = "".join(kept) + end
        if 0 in chosen:
            # The new first word keeps the space that stood before it.
            text = text.lstrip()
        return text, "deleted"


@dataclass(frozen=True, kw_only=True)
class SpanMask(_RandomChange):
    """Mask a span of consecutive words.

    All spans of a row lie around the same place, so a column with a larger share masks all words
    that a column with a smaller share masks. Source: Zhang et al., ArcCSE (ACL 2022), §3.3.

    Attributes:
        share: Share of the words that are masked (ArcCSE: 0.2 and 0.4); at least one word is.
        token: The mask token of the encoder to be trained.

    Example:
        [build.part]
        kind = "span_mask"
        share = 0.2

        >>> SpanMask(share=0.4).preview("The old bakery in our street sells fresh bread every day.")
        ['The old bakery in [MASK] [MASK] [MASK] [MASK] bread every day.']
    """

    kind = "span_mask"

    share: float
    token: str = "[MASK]"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(
                f"share must lie between 0 and 1, not {self.share} (ArcCSE: 0.2 and 0.4)"
            )

    def changed(self, row: SourceRow, rows: Sequence[SourceRow], rng: random.Random) -> Changed:
        """Mask a span."""
        words = len(row.text.split())
        if words < _FEWEST_WORDS:
            return None, "too short"
        count = min(max(round(self.share * words), 1), words - 1)
        # The same relative place for all shares, so that the spans are nested.
        start = int(rng.random() * (words - count + 1))
        masked = range(start, start + count)
        numbers = count_up()

        def masked_or_same(word: re.Match[str]) -> str:
            return self.token if next(numbers) in masked else word[0]

        return _WORD.sub(masked_or_same, row.text), "masked"


class RandomSentence(_RandomChange):
    """Draw another sentence at random from the rows that are built together (OssCSE §3.2).

    Copies of the sentence are never drawn.

    Example:
        [build.other]
        kind = "random"

        >>> RandomSentence().preview("It rains.", "We swim.")
        ['We swim.', 'It rains.']
    """

    kind = "random"

    def changed(self, row: SourceRow, rows: Sequence[SourceRow], rng: random.Random) -> Changed:
        """Draw another row's text."""
        own = row.text.lower().split()
        others = [other for other in rows if other.id != row.id]
        chosen = rng.choice(others) if others else row
        # Drawing first and looking for copies only then is faster: copies are rare.
        if chosen.text.lower().split() == own:
            others = [other for other in others if other.text.lower().split() != own]
            chosen = rng.choice(others) if others else row
        if not others:
            return None, "no other row"
        return chosen.text, f"row {chosen.id}"


class NextSentence(View):
    """Take the next sentence of the corpus, which must be in document order (DiffCSE, Table 4).

    The last sentence of the corpus gives null; the last sentence of a document gets the first one
    of the next document.

    Example:
        [build.next]
        kind = "next_sentence"

        >>> NextSentence().preview("It rains.", "We swim.")
        ['We swim.', None]
    """

    kind = "next_sentence"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    def prepare(
        self, sentences: SentenceStore, engine: Engine, models: Mapping[str, Backbone]
    ) -> SentenceStore:
        """Return the sentences of the complete corpus."""
        return sentences

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; there is nothing to load."""

        def build(rows: Sequence[SourceRow]) -> list[ViewText]:
            results: list[Changed] = []
            for row in rows:
                following = row.id + 1
                texts = prepared.range(following, following + 1)
                if texts:
                    results.append((texts[0], f"row {following}"))
                else:
                    results.append((None, "last row"))
            return with_error_rate(rows, results)

        return OpenedView(build=build)


@dataclass(frozen=True, kw_only=True)
class Passage(View):
    """Put a sentence among other sentences, those of some columns.

    A passage has three to five sentences. Of the others, which have at most 120 words, those
    farthest from the sentence are dropped. With `of`, a view of the sentence takes its place. All
    passages of a row have the same other sentences in the same order, so the passage of a sentence
    and that of its negation differ in one sentence only.

    Attributes:
        around: Columns built earlier that hold the other sentences, such as mined neighbours.

    Example:
        [build.related]
        kind = "hard_negatives"
        model = "backbone"

        [build.passage]
        kind = "passage"
        around = ["related_1", "related_2"]

        >>> Passage(around=()).preview("It rains.")
        [None]
    """

    kind = "passage"
    scores: ClassVar[Mapping[str, str]] = {"position": "int"}

    around: tuple[str, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the other sentences."""
        return self.around

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; there is nothing to load."""

        def build(rows: Sequence[SourceRow]) -> list[ViewText]:
            return [self._passage(row, row_random(seed, self.kind, row)) for row in rows]

        return OpenedView(build=build)

    def _passage(self, row: SourceRow, rng: random.Random) -> ViewText:
        """Put a row's text among its other sentences, at a random place."""
        count = rng.randint(2, 4)
        others = []
        for column in self.around:
            text = row.views[column]
            if text:
                others.append(text)
        others = others[:count]
        place = rng.randint(0, len(others))
        if not others:
            return ViewText(text=None, rule="no other sentences", scores={"position": None})
        before = others[:place]
        after = others[place:]
        while sum(len(text.split()) for text in before + after) > _PASSAGE_WORDS:
            # Drop the farthest sentence.
            if len(before) >= len(after):
                before = before[1:]
            else:
                after = after[:-1]
        parts = [part.strip() for part in (*before, row.text, *after)]
        return ViewText(
            text=" ".join(parts),
            rule=f"{len(parts)} sentences",
            scores={"position": len(before)},
        )
