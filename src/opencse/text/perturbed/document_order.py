"""Neighbouring sentences of a corpus in document order: the next one, and a passage around a sentence."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from opencse.text.views.constructor import (
    BuiltView,
    ConstructorSpec,
    FunctionConstructor,
    SourceRow,
    row_random,
    with_error_rate,
)
from opencse.text.views.sentence_store import CorpusAccess, SentenceStore


@dataclass(frozen=True, kw_only=True)
class NextSentence(ConstructorSpec):
    """Take the next sentence of the corpus, which must list its sentences in document order (DiffCSE, Table 4).

    The last sentence of the corpus gives null; the last sentence of a document gets the first one of the next document.

    Example:
        [build.next]
        kind = "next_sentence"

        >>> NextSentence().preview("It rains.", "We swim.")
        ['We swim.', None]
    """

    kind: ClassVar[str] = "next_sentence"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    def prepare(self, corpus: CorpusAccess) -> SentenceStore:
        """Return the sentences of the whole corpus."""
        return corpus.sentences

    def open(self, *, seed: int = 0, prepared: Any = None) -> FunctionConstructor:
        """Return the constructor; there is nothing to load."""
        return FunctionConstructor(build=partial(_next_sentences, corpus=prepared))


def _next_sentences(rows: Sequence[SourceRow], corpus: SentenceStore) -> list[BuiltView]:
    numbers = [row.id + 1 for row in rows]
    sentences = [(corpus.range(i, i + 1)[0], f"row {i}") if i < len(corpus) else (None, "last row") for i in numbers]
    return with_error_rate(rows, sentences)


@dataclass(frozen=True, kw_only=True)
class Passage(ConstructorSpec):
    """Put a sentence among other sentences, those of some columns.

    With `of`, a view of the sentence takes its place. All passages of a row have the same other sentences in the same
    order, so the passage of a sentence and that of its negation differ in one sentence only.

    Attributes:
        around: Columns built earlier that hold the other sentences, such as mined neighbours.
        sentences: Minimum and maximum number of sentences; each row draws its own number.
        words: Maximum number of words of the other sentences; those farthest from the sentence are dropped.

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

    kind: ClassVar[str] = "passage"
    scores: ClassVar[Mapping[str, str]] = {"position": "int"}

    around: tuple[str, ...]
    sentences: tuple[int, int] = (3, 5)
    words: int = 120

    def __post_init__(self) -> None:
        if not 1 <= self.sentences[0] <= self.sentences[1]:
            raise ValueError(f"sentences must be (minimum, maximum) with 1 <= minimum <= maximum, not {self.sentences}")

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the other sentences."""
        return self.around

    def open(self, *, seed: int = 0, prepared: Any = None) -> FunctionConstructor:
        """Return the constructor; there is nothing to load."""
        return FunctionConstructor(
            build=lambda rows: [self._passage(row, row_random(seed, self.kind, row)) for row in rows]
        )

    def _passage(self, row: SourceRow, rng: random.Random) -> BuiltView:
        others = rng.randint(*self.sentences) - 1
        texts = [text for column in self.around if (text := row.views[column])][:others]
        place = rng.randint(0, len(texts))
        before, after = texts[:place], texts[place:]
        if not before and not after:
            return BuiltView(text=None, rule="no other sentences", scores={"position": None})
        while sum(len(text.split()) for text in (*before, *after)) > self.words and before + after:
            if len(before) >= len(after):
                before = before[1:]
            else:
                after = after[:-1]
        text = " ".join(part.strip() for part in (*before, row.text, *after))
        return BuiltView(text=text, rule=f"{len(before) + 1 + len(after)} sentences", scores={"position": len(before)})
