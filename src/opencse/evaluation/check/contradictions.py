"""Test cases from a user's own sentences: each with a contradiction and a rewording, made by grammar rules."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opencse.evaluation.check.exclusive_swaps import (
    ExclusiveNameSwap,
    ExclusiveNumberSwap,
    ExclusiveOpposite,
    NegatedComplement,
)
from opencse.text.documents import DocumentPassage
from opencse.text.english.negation import Negation
from opencse.text.english.order import Reordering
from opencse.text.english.transitive import Passive
from opencse.text.languages import ENGLISH, LanguagePack
from opencse.text.views.constructor import ConstructorSpec, SourceRow

CONTRADICTIONS: dict[str, ConstructorSpec] = {
    "negation": Negation(),
    "opposite": ExclusiveOpposite(predicate_first=True),
    "number": ExclusiveNumberSwap(),
    "name": ExclusiveNameSwap(),
}
"""Rewritings that contradict a sentence, by their names in a report."""

REWORDINGS: dict[str, ConstructorSpec] = {
    "negated opposite": NegatedComplement(),
    "passive": Passive(),
    "reordered": Reordering(),
}
"""Rewritings that keep the meaning of a sentence, by their names in a report."""

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
    """The constructors of `CONTRADICTIONS` and `REWORDINGS` for one language, opened once.

    Args:
        seed: Seed of the choices that a rule leaves open.
        pack: Rules of the language of the texts.
    """

    def __init__(self, seed: int = 0, pack: LanguagePack = ENGLISH) -> None:
        self.pack = pack
        self._contradictions, self._rewordings = (
            {name: spec.open(seed=seed) for name, spec in pack.localise(specs).items()}
            for specs in (CONTRADICTIONS, REWORDINGS)
        )

    def __call__(
        self, positions: Sequence[tuple[int, int]], passages: Sequence[DocumentPassage]
    ) -> list[RewrittenSentence]:
        """Rewrite the sentences at (passage, position) in every way that applies."""
        texts = [passages[p].sentences[s] for p, s in positions]
        rows = [SourceRow(id=i, text=text) for i, text in enumerate(texts)]
        contradictions, rewordings = (
            [{name: views[i].text for name, views in built.items()} for i in range(len(texts))]
            for built in (
                {name: constructor(rows) for name, constructor in constructors.items()}
                for constructors in (self._contradictions, self._rewordings)
            )
        )
        for text, contradicted, reworded in zip(texts, contradictions, rewordings, strict=True):
            if self.pack.opposites_reworded and reworded["negated opposite"] is None:
                contradicted["opposite"] = None
            for name, new in contradicted.items():
                kind, start = CONTRADICTIONS[name].kind, _unchanged(new or "", text)
                open_start = any(each.search(start) for each in self.pack.leaves_open.get(kind, ()))
                if open_start or self._unfit(kind, text):
                    contradicted[name] = None
            for name in reworded:
                if self._unfit(REWORDINGS[name].kind, text):
                    reworded[name] = None
        return [
            RewrittenSentence(passage, position, text, _changed(contradictions[i], text), _changed(rewordings[i], text))
            for i, ((passage, position), text) in enumerate(zip(positions, texts, strict=True))
        ]

    def _unfit(self, kind: str, text: str) -> bool:
        return any(each.search(text) for each in self.pack.unfit.get(kind, ()))


def rewrite_sentences(
    passages: Sequence[DocumentPassage], rewriter: SentenceRewriter, *, seed: int = 0
) -> Iterator[list[RewrittenSentence]]:
    """Yield the distinct sentences of the passages in random order, rewritten, in chunks of a few hundred.

    Args:
        passages: The user's texts.
        rewriter: Rewrites them.
        seed: Seed of the order.
    """
    first_position: dict[str, tuple[int, int]] = {}
    for number, passage in enumerate(passages):
        for position, text in enumerate(passage.sentences):
            if _MIN_WORDS <= len(text.split()) <= _MAX_WORDS and rewriter.pack.prose.fullmatch(text):
                first_position.setdefault(text, (number, position))
    positions = list(first_position.values())
    random.Random(seed).shuffle(positions)
    for start in range(0, len(positions), _CHUNK):
        yield rewriter(positions[start : start + _CHUNK], passages)


def replace_sentence(passage: DocumentPassage, position: int, text: str) -> str:
    """Return the text of a passage with one of its sentences replaced."""
    return " ".join([*passage.sentences[:position], text, *passage.sentences[position + 1 :]])


def _unchanged(rewritten: str, text: str) -> str:
    """Return what stands before the first change."""
    length = next((i for i, (a, b) in enumerate(zip(rewritten, text, strict=False)) if a != b), len(rewritten))
    return text[:length]


def _changed(rewritten: Mapping[str, str | None], text: str) -> dict[str, str]:
    """Return the rewritten sentences that differ from the text."""
    return {name: new for name, new in rewritten.items() if new is not None and new.split() != text.split()}
