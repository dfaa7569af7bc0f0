"""Test cases from a user's sentences and questions: contradictions and rewordings, made by rules.

A number or an opposite is exchanged only if the new sentence denies the old one. The opposite of a
question is one with another answer, which a semantic cache must not take for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.foundation.chunks import chunks
from opencse.text.documents import DocumentPassage
from opencse.text.english import asked
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

DENIED = "denied as a whole"
QUESTIONS = ("action", "other action", "order", "limit", "presence", "arguments")
"""Kinds of opposite questions."""

UNTRAINED = (DENIED, "other action")
"""Kinds that no training row of `debias`, or of the block that ships, was made with."""

KINDS = (*CONTRADICTIONS, DENIED, *QUESTIONS)
"""All kinds of contradictions, in the order of a report."""

REWORDING_KINDS = (*REWORDINGS, "asked otherwise", "in keywords")
"""All kinds of rewordings, in the order of a report."""

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
                if self._is_rewritten(text):
                    places.setdefault(text, (number, position))
        sentences = list(places)
        # In random order, because a limit may end the check before all are rewritten.
        random.Random(self.seed).shuffle(sentences)
        for chunk in chunks(sentences, _CHUNK):
            yield self._rewrite(chunk, places)

    def _is_rewritten(self, text: str) -> bool:
        """Whether a text is a sentence or a question of a length that the rules can read."""
        if not _MIN_WORDS <= len(text.split()) <= _MAX_WORDS:
            return False
        return self._asks(text) or self.pack.prose.fullmatch(text) is not None

    def _asks(self, text: str) -> bool:
        """Whether a text is a question that the rules can turn round, which know only English."""
        return self.pack.code == ENGLISH.code and asked.is_question(text)

    def _rewrite(
        self, chunk: Sequence[str], places: dict[str, tuple[int, int]]
    ) -> list[RewrittenSentence]:
        """Rewrite questions by their own rules, and all other sentences by those of grammar."""
        statements = [text for text in chunk if not self._asks(text)]
        rows = [SourceRow(id=i, text=text) for i, text in enumerate(statements)]
        views = {name: opened(rows) for name, opened in self._views.items()} if rows else {}
        row_of = {text: i for i, text in enumerate(statements)}
        rewritten = []
        for text in chunk:
            number, position = places[text]
            if text not in row_of:
                rewritten.append(self._turned(text, number, position))
                continue
            i = row_of[text]
            versions = {name: column[i].text for name, column in views.items()}
            rewritten.append(self._rewritten(text, number, position, versions))
        return rewritten

    def _turned(self, text: str, passage: int, position: int) -> RewrittenSentence:
        """Return a question with its opposites and rewordings."""
        # Seeded by the text, so that a question is turned alike whatever comes before it.
        rng = random.Random(f"{self.seed} {text}")
        return RewrittenSentence(
            passage=passage,
            position=position,
            text=text,
            contradictions=asked.opposite_questions(text, rng),
            rewordings=asked.question_rewordings(text),
        )

    def _rewritten(
        self, text: str, passage: int, position: int, versions: dict[str, str | None]
    ) -> RewrittenSentence:
        """Return a sentence with those of its versions that contradict or reword it."""
        # In some languages only an opposite whose negation rewords the sentence is sure to deny it.
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
        if self.pack.code == ENGLISH.code:
            denied = asked.deny(text, random.Random(f"{self.seed} {text}"))
            if denied is not None:
                contradictions[DENIED] = denied
        return RewrittenSentence(passage, position, text, contradictions, rewordings)

    def _fits(self, name: str, new: str, text: str) -> bool:
        """Return whether a rewriting contradicts or rewords a text by the language's rules."""
        # The rules may change white space alone.
        if new.split() == text.split():
            return False
        kind = _SPECS[name].kind
        if any(pattern.search(text) for pattern in self.pack.unfit.get(kind, ())):
            return False
        if name not in CONTRADICTIONS:
            return True
        # Words before the change, such as "perhaps", can leave open what the sentence claims.
        unchanged = _common_start(new, text)
        return not any(pattern.search(unchanged) for pattern in self.pack.leaves_open.get(kind, ()))


def _common_start(one: str, other: str) -> str:
    """Return the longest beginning that two texts share."""
    end = 0
    while end < min(len(one), len(other)) and one[end] == other[end]:
        end += 1
    return one[:end]
