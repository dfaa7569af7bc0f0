"""Test cases from a user's own sentences: each with a contradiction and a rewording, made by grammar rules.

A number or an opposite is exchanged only where the new sentence denies what the sentence says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

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
_MIN_WORDS, _MAX_WORDS = 4, 30  # of a sentence that is rewritten


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
        self.seed, self.language = (
            seed,
            language or ChosenLanguage(pack=ENGLISH, found=ENGLISH.code, asked=False),
        )
        self.pack = self.language.pack
        self._views = {
            name: spec.open(seed=seed) for name, spec in self.pack.localise(_SPECS).items()
        }

    def __call__(self, passages: Sequence[DocumentPassage]) -> Iterator[list[RewrittenSentence]]:
        """Yield the distinct sentences of passages in random order, rewritten in every way that applies, in chunks."""
        places: dict[str, tuple[int, int]] = {}
        for number, passage in enumerate(passages):
            for position, text in enumerate(passage.sentences):
                if _MIN_WORDS <= len(text.split()) <= _MAX_WORDS and self.pack.prose.fullmatch(
                    text
                ):
                    places.setdefault(text, (number, position))
        sentences = list(places)
        random.Random(self.seed).shuffle(sentences)
        for chunk in chunks(sentences, _CHUNK):
            rows = [SourceRow(id=i, text=text) for i, text in enumerate(chunk)]
            views = {name: opened(rows) for name, opened in self._views.items()}
            yield [
                self._rewritten(
                    text, *places[text], {name: column[i].text for name, column in views.items()}
                )
                for i, text in enumerate(chunk)
            ]

    def _rewritten(
        self, text: str, passage: int, position: int, versions: dict[str, str | None]
    ) -> RewrittenSentence:
        if self.pack.opposites_reworded and versions.get("negated opposite") is None:
            versions.pop("opposite", None)
        fitting = {
            name: new
            for name, new in versions.items()
            if new is not None and self._fits(name, new, text)
        }
        contradictions, rewordings = (
            {name: new for name, new in fitting.items() if name in specs}
            for specs in (CONTRADICTIONS, REWORDINGS)
        )
        return RewrittenSentence(passage, position, text, contradictions, rewordings)

    def _fits(self, name: str, new: str, text: str) -> bool:
        """Return whether a rewriting changes a text, and contradicts or rewords it as far as the language knows."""
        kind, same = (
            _SPECS[name].kind,
            takewhile(lambda pair: pair[0] == pair[1], zip(new, text, strict=False)),
        )
        unchanged = "".join(letter for letter, _ in same)
        unfit = any(pattern.search(text) for pattern in self.pack.unfit.get(kind, ()))
        leaves_open = any(
            pattern.search(unchanged) for pattern in self.pack.leaves_open.get(kind, ())
        )
        return new.split() != text.split() and not (
            unfit or (leaves_open and name in CONTRADICTIONS)
        )
