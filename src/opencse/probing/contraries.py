"""Test cases from a user's own sentences: each with one that says the contrary, and one that says the same."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opencse.data.documents import Passage
from opencse.views import (
    AntonymSwap,
    EntitySwap,
    NegatedAntonym,
    Negation,
    NumberSwap,
    Passive,
    Reordering,
    RoleSwap,
    SourceRow,
)
from opencse.views.rewriting.grammar_view import GrammarView

CONTRARIES: dict[str, GrammarView] = {
    "negation": Negation(),
    "opposite": AntonymSwap(predicate_first=True),
    "number": NumberSwap(),
    "name": EntitySwap(),
    "roles": RoleSwap(),
}
"""What makes a sentence say something else, by the name that a report gives it."""

REWORDINGS: dict[str, GrammarView] = {
    "opposite denied": NegatedAntonym(),
    "other voice": Passive(),
    "other order": Reordering(),
}
"""What rewords a sentence without changing what it says."""

_CHUNK = 256
_SHORTEST, _LONGEST = 4, 30  # words of a sentence that is rewritten
_PLAIN = re.compile(r"[A-Z\d“\"'‘][\w\s,.'’‘“”\"()%$€£°&–—-]*[.!][\"”’)]?")
"""A sentence of prose: no markup, formula, path, list or question."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage, and what the rewriting made of it.

    Attributes:
        passage: Number of its passage.
        place: Its number within the passage.
        text: The sentence.
        contraries: Sentences that contradict it, by kind.
        rewordings: Sentences that say the same, by kind.
    """

    passage: int
    place: int
    text: str
    contraries: dict[str, str]
    rewordings: dict[str, str]


class Rewriting:
    """The constructors of `CONTRARIES` and `REWORDINGS`, opened once.

    Args:
        seed: Decides where a rule has a choice.
    """

    def __init__(self, seed: int = 0) -> None:
        self._contraries = {name: spec.open(seed=seed) for name, spec in CONTRARIES.items()}
        self._rewordings = {name: spec.open(seed=seed) for name, spec in REWORDINGS.items()}

    def __call__(self, places: Sequence[tuple[int, int]], passages: Sequence[Passage]) -> list[Sentence]:
        """Rewrite the sentences at (passage, place) in every way that applies."""
        texts = [passages[p].sentences[s] for p, s in places]
        rows = [SourceRow(id=i, text=text) for i, text in enumerate(texts)]
        contraries, rewordings = (
            [{name: views[i].text for name, views in made.items()} for i in range(len(texts))]
            for made in (
                {name: one(rows) for name, one in each.items()} for each in (self._contraries, self._rewordings)
            )
        )
        for contrary, reworded in zip(contraries, rewordings, strict=True):
            # Of 40 opposites anywhere in a sentence 12 were no contradiction ("modern" scanners, "traditional" ones);
            # where the opposite can be denied, a word is said outright, in its usual sense.
            if reworded["opposite denied"] is None:
                contrary["opposite"] = None
        return [
            Sentence(passage, place, text, _others(contraries[i], text), _others(rewordings[i], text))
            for i, ((passage, place), text) in enumerate(zip(places, texts, strict=True))
        ]


def rewritten(passages: Sequence[Passage], rewriting: Rewriting, *, seed: int = 0) -> Iterator[list[Sentence]]:
    """Yield the sentences of the passages in random order, rewritten, some hundreds at a time; none twice.

    Args:
        passages: The user's texts.
        rewriting: Does it.
        seed: Of the order.
    """
    found: dict[str, tuple[int, int]] = {}
    for number, passage in enumerate(passages):
        for place, text in enumerate(passage.sentences):
            if _SHORTEST <= len(text.split()) <= _LONGEST and _PLAIN.fullmatch(text):
                found.setdefault(text, (number, place))
    places = list(found.values())
    random.Random(seed).shuffle(places)
    for start in range(0, len(places), _CHUNK):
        yield rewriting(places[start : start + _CHUNK], passages)


def replaced(passage: Passage, place: int, text: str) -> str:
    """Return the text of a passage with one of its sentences replaced."""
    return " ".join([*passage.sentences[:place], text, *passage.sentences[place + 1 :]])


def _others(made: Mapping[str, str | None], text: str) -> dict[str, str]:
    """Return the sentences that were made and differ from the text."""
    return {name: new for name, new in made.items() if new is not None and new.split() != text.split()}
