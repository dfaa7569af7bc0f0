"""Test cases from a user's sentences: a contradiction and a rewording of each, by grammar rules.

A number or an opposite is exchanged only if the new sentence denies the old one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.text.corpus import chunks
from opencse.text.documents import DocumentPassage
from opencse.text.english.exclusive import ExclusiveNumberSwap, ExclusiveOpposite, NegatedComplement
from opencse.text.english.negation import Negation
from opencse.text.english.order import Reordering
from opencse.text.english.transitive import Passive
from opencse.text.languages import ENGLISH, ChosenLanguage
from opencse.text.views.registry import SourceRow, View

CONTRADICTIONS: dict[str, View] = {
    "negation": Negation(),
    "opposite": ExclusiveOpposite(predicate_first=True),
    "number": ExclusiveNumberSwap(),
}
"""Rewritings that contradict a sentence, by their names in a report."""

REWORDINGS: dict[str, View] = {
    "negated opposite": NegatedComplement(),
    "passive": Passive(),
    "reordered": Reordering(),
}
"""Rewritings that keep the meaning of a sentence, by their names in a report."""

_SPECS = CONTRADICTIONS | REWORDINGS
_CHUNK = 256
# Words of a sentence that is rewritten.
_MIN_WORDS = 4
_MAX_WORDS = 30


@dataclass(frozen=True, slots=True)
class RewrittenSentence:
    """A sentence of a passage with its contradictions and rewordings.

    Attributes:
        passage: Index of its passage.
        position: Index of the sentence within the passage.
        text: The sentence.
        contradictions: Sentences that contradict it, by kind.
        rewordings: Sentences with the same meaning, by kind.
    """

    passage: int
    position: int
    text: str
    contradictions: dict[str, str]
    rewordings: dict[str, str]


class SentenceRewriter:
    """The views of `CONTRADICTIONS` and `REWORDINGS` for one language, opened once.

    Args:
        seed: Seed of the order of the sentences, and of the choices that a rule leaves open.
        language: Language of the texts, with its rules; by default English.
    """

    def __init__(self, seed: int = 0, language: ChosenLanguage | None = None) -> None:
        self.seed = seed
        if language is None:
            language = ChosenLanguage(pack=ENGLISH, found=ENGLISH.code, asked=False)
        self.language = language
        self.pack = self.language.pack
        self._views = {
            name: spec.open(seed=seed) for name, spec in self.pack.localise(_SPECS).items()
        }

    def __call__(self, passages: Sequence[DocumentPassage]) -> Iterator[list[RewrittenSentence]]:
        """Yield the distinct sentences in random order, rewritten in every way, in chunks."""
        places: dict[str, tuple[int, int]] = {}
        for number, passage in enumerate(passages):
            for position, text in enumerate(passage.sentences):
                fitting_length = _MIN_WORDS <= len(text.split()) <= _MAX_WORDS
                if fitting_length and self.pack.prose.fullmatch(text):
                    places.setdefault(text, (number, position))
        sentences = list(places)
        random.Random(self.seed).shuffle(sentences)
        for chunk in chunks(sentences, _CHUNK):
            rows = [SourceRow(id=i, text=text) for i, text in enumerate(chunk)]
            views = {name: opened(rows) for name, opened in self._views.items()}
            rewritten = []
            for i, text in enumerate(chunk):
                versions = {name: column[i].text for name, column in views.items()}
                number, position = places[text]
                rewritten.append(self._rewritten(text, number, position, versions))
            yield rewritten

    def _rewritten(
        self, text: str, passage: int, position: int, versions: dict[str, str | None]
    ) -> RewrittenSentence:
        """Return a sentence with those of its versions that contradict or reword it."""
        if self.pack.opposites_reworded and versions.get("negated opposite") is None:
            versions.pop("opposite", None)
        contradictions = {}
        rewordings = {}
        for name, new in versions.items():
            if new is None or not self._fits(name, new, text):
                continue
            if name in CONTRADICTIONS:
                contradictions[name] = new
            else:
                rewordings[name] = new
        return RewrittenSentence(passage, position, text, contradictions, rewordings)

    def _fits(self, name: str, new: str, text: str) -> bool:
        """Return whether a rewriting contradicts or rewords a text by the language's rules."""
        if new.split() == text.split():
            return False
        kind = _SPECS[name].kind
        if any(pattern.search(text) for pattern in self.pack.unfit.get(kind, ())):
            return False
        if name not in CONTRADICTIONS:
            return True
        unchanged = _common_start(new, text)
        return not any(pattern.search(unchanged) for pattern in self.pack.leaves_open.get(kind, ()))


def _common_start(one: str, other: str) -> str:
    """Return the longest beginning that two texts share."""
    end = 0
    while end < min(len(one), len(other)) and one[end] == other[end]:
        end += 1
    return one[:end]
