"""Contradictions by opposite, only where the opposite denies what the sentence says of its subject.

"The price is high" and "The price is low" cannot both be true. "The castle is a modern building" and "a traditional
building" can, and "Shoes are included from returns" is no English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opencse.text.english.lexicon import word_class
from opencse.text.english.opposites import Opposite
from opencse.text.english.predicates import (
    AntonymSwap,
    NegatedAntonym,
    Predication,
    find_predications,
    predication_edits,
)
from opencse.text.syntax.tokens import Token

_QUALIFIED = word_class("qualified")
"""Words that qualify a statement: "somewhat open" and "somewhat closed" can both be true."""

_OTHER_SENSES = word_class("other senses")
"""Words whose opposite holds in one of several senses only, or leaves a third possibility: "a positive test"."""

_WITH_ANY_PREPOSITION = word_class("any preposition")
_COMPLEMENTARY = word_class("without third possibility")
"""Adjectives without a third possibility between them and their opposite; others are known by a negative prefix."""
_GRADUAL = word_class("with third possibility")
"""Adjectives whose prefixed opposite leaves a third possibility: neither happy nor unhappy."""
_NEGATIVE = ("un", "in", "im", "il", "ir", "dis", "non")
_ADJUNCTS = frozenset("in on at during after before until since under within because when while if without".split())
"""Words that begin a time, a place or a condition, which suits any predicate."""

_PREFIXED = re.compile(r"(?:un|in|im|il|ir|dis)(?=...)")
_FIXED_PREPOSITIONS = {"include": "in", "exclude": "in", "enable": "in", "absent": "in", "present": "at"}
_COORDINATED = ("and", "or", "nor", "but", "/")


@dataclass(frozen=True, kw_only=True)
class NegatedComplement(NegatedAntonym):
    """Negate the opposite of a predicate, only where there is no third possibility between the two.

    Who isn't deafening need not be silent, and what isn't new need not be old.
    """

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether one of the two words denies the other, by its form or by the list."""
        if not opposite.complementary or opposite.pos not in ("ADJ", "ADV"):
            return opposite.complementary
        a, b = sorted(opposite.pair, key=len)
        prefixed = a not in _GRADUAL and any(b == prefix + a for prefix in _NEGATIVE)
        return prefixed or "/".join(sorted(opposite.pair)) in _COMPLEMENTARY


@dataclass(frozen=True, kw_only=True)
class ExclusiveOpposite(AntonymSwap):
    """Replace a predicate by its opposite: an adjective, a noun or a verb that leaves no third possibility."""

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words whose opposite cannot be true of the same subject."""
        return [
            each.opposite
            for each in find_predications(text, tokens, hold_out=self.hold_out)
            if _excludes(text, tokens, each)
        ]


def _excludes(text: str, tokens: Sequence[Token], found: Predication) -> bool:
    opposite = found.opposite
    if not opposite.complementary or found.to is not None or opposite.place + 1 >= len(tokens):
        return False
    if set(opposite.pair) & _OTHER_SENSES or not _in_main_clause(tokens, opposite.place):
        return False
    around = [k for k in range(max(0, opposite.place - 3), min(len(tokens), opposite.place + 5)) if k != opposite.place]
    if any(tokens[k].text.lower() in _QUALIFIED for k in around):
        return False
    if tokens[opposite.place + 1].text.lower() in _COORDINATED:
        return False
    if opposite.pos == "ADJ" and tokens[opposite.place].relation == "amod" and not _is_prefixed(opposite.pair):
        return False  # "is a modern church": it may be a traditional one, too
    if not _suits_preposition(tokens, opposite):
        return False
    return predication_edits(text, tokens, found, swap=True, deny=True)[0] is not None


def _in_main_clause(tokens: Sequence[Token], place: int) -> bool:
    """Whether a word is the root, joined to it, or the adjective of a noun that is."""
    while tokens[place].relation in ("conj", "amod"):
        place = tokens[place].head
    return tokens[place].relation == "ROOT" or tokens[place].head == place


def _suits_preposition(tokens: Sequence[Token], opposite: Opposite) -> bool:
    """Whether the opposite can stand before the preposition that follows: not in "excluded from"."""
    after = opposite.place + 1 if opposite.particle is None else opposite.particle + 1
    following = tokens[after]
    if following.tag not in ("IN", "TO", "RP"):
        return True
    word, base = following.text.lower(), opposite.pair[0]
    if base in _WITH_ANY_PREPOSITION:
        return True
    if _FIXED_PREPOSITIONS.get(base) == word:
        return False
    return word in _ADJUNCTS or (_is_prefixed(opposite.pair) and word != "by")


def _is_prefixed(pair: tuple[str, str]) -> bool:
    """Whether one word is the other with a negative prefix: "stable", "unstable"."""
    shorter, longer = sorted(pair, key=len)
    prefix = _PREFIXED.match(longer)
    return prefix is not None and longer[prefix.end() :] == shorter
