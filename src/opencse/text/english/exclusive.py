"""Numbers and opposites that exclude each other: rules that change a sentence only where both cannot be true.

`opencse check` contradicts and rewords with these; the training's rules, of which they are narrower
forms, may be wrong now and then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opencse.text.english.claims import NumberSwap
from opencse.text.english.lexicon import word_class
from opencse.text.english.one_word import AntonymSwap
from opencse.text.english.opposites import Opposite
from opencse.text.english.predicates import (
    NegatedAntonym,
    Predication,
    find_predications,
    predication_edits,
)
from opencse.text.syntax import Token

_AMOUNT = re.compile(r"(?!(?:1\d|20)\d\d$)(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*|[a-z]+)")
"""No years, no decimals, which are often versions, and no ordinals, which say which one is meant."""

_COUNT = re.compile(r"[1-9]\d{0,3}")  # in digits

_INEXACT = word_class("inexact") | {"from", "between"}

_NOT_BESIDE = frozenset(
    "and or & through to the these those both all its his her their our your my".split()
)
"""Words beside a number that is one of several, or known: "2 and 3 workers", "the two sides"."""

_NUMBERED = word_class("numbered")
"""Nouns whose number says which one is meant."""

_FINITE = ("VBD", "VBZ", "VBP", "MD")

_QUALIFIED = word_class("qualified")
"""Words that qualify a statement: "somewhat open" and "somewhat closed" can both be true."""

_OTHER_SENSES = word_class("other senses")
"""Words whose opposite holds in one of several senses only, or leaves a third possibility: "a positive test"."""

_WITH_ANY_PREPOSITION = word_class("any preposition")

_COMPLEMENTARY = word_class("without third possibility")
"""Adjectives without a third possibility between them and their opposite; others are known by a negative prefix."""

_GRADUAL = word_class("with third possibility")
"""Adjectives whose prefixed opposite leaves a third possibility: neither happy nor unhappy."""

_NEGATIVE = ("un", "in", "im", "il", "ir", "dis")

_ADJUNCTS = frozenset(
    "in on at during after before until since under within because when while if without".split()
)
"""Words that begin a time, a place or a condition, which suits any predicate."""

_FIXED_PREPOSITIONS = {
    "include": "in",
    "exclude": "in",
    "enable": "in",
    "absent": "in",
    "present": "at",
}
_COORDINATED = ("and", "or", "nor", "but", "/")


class CountSwap(NumberSwap):
    """Change one number of up to four digits before a word in small letters: "12 salles".

    It holds for any language with spaces between words.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the counts."""
        pairs = [
            (i, tokens[i + 1].text) for i in super().candidates(text, tokens) if i + 1 < len(tokens)
        ]
        return [
            i
            for i, after in pairs
            if _COUNT.fullmatch(tokens[i].text) and after.isalpha() and after.islower()
        ]


class ExclusiveNumberSwap(NumberSwap):
    """Change one number that says how many there are of something, and no more or less.

    "It runs on Python 2" and "on Python 4" can both be true, and so can "more than 200" and "more
    than 190".
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers of which only one can be true."""
        stated = any(token.tag in _FINITE for token in tokens)
        return [i for i in super().candidates(text, tokens) if stated and _is_exact(tokens, i)]


def _is_exact(tokens: Sequence[Token], i: int) -> bool:
    """Whether a number is the exact count of a plural noun: not in "the sum of two numbers", one of many sums."""
    before, beside = tokens[max(0, i - 3) : i], [*tokens[max(0, i - 1) : i], *tokens[i + 1 : i + 2]]
    noun = tokens[tokens[i].head]
    if (
        not _AMOUNT.fullmatch(tokens[i].text.lower())
        or tokens[i].tag != "CD"
        or noun.tag not in ("NNS", "NNPS")
    ):
        return False
    if any(token.text.lower() in _INEXACT for token in before) or any(
        t.text.lower() in _NOT_BESIDE for t in beside
    ):
        return False
    of_subject = noun.relation.startswith("nmod") and tokens[noun.head].relation.startswith("nsubj")
    return not of_subject and not any(token.lemma.lower() in _NUMBERED for token in before[-1:])


class NegatedComplement(NegatedAntonym):
    """Negate the opposite of a predicate, only where there is no third possibility between the two.

    Who isn't deafening need not be silent, and what isn't new need not be old.
    """

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether one of the two words denies the other, by its form or by the list."""
        if not opposite.complementary or opposite.pos not in ("ADJ", "ADV"):
            return opposite.complementary
        prefixed = min(opposite.pair, key=len) not in _GRADUAL and _is_prefixed(
            opposite.pair, (*_NEGATIVE, "non")
        )
        return prefixed or "/".join(sorted(opposite.pair)) in _COMPLEMENTARY


class ExclusiveOpposite(AntonymSwap):
    """Replace a predicate by its opposite: an adjective, a noun or a verb that leaves no third possibility.

    "The price is high" and "The price is low" cannot both be true. "The castle is a modern
    building" and "a traditional building" can, and "Shoes are included from returns" is no English.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words whose opposite cannot be true of the same subject."""
        predications = find_predications(text, tokens)
        return [
            predication.opposite
            for predication in predications
            if _excludes_opposite(text, tokens, predication)
        ]


def _excludes_opposite(text: str, tokens: Sequence[Token], predication: Predication) -> bool:
    opposite = predication.opposite
    place = opposite.place
    if not opposite.complementary or predication.to is not None or place + 1 >= len(tokens):
        return False
    if set(opposite.pair) & _OTHER_SENSES or not _in_main_clause(tokens, place):
        return False
    around = [*tokens[max(0, place - 3) : place], *tokens[place + 1 : place + 5]]
    if (
        any(token.text.lower() in _QUALIFIED for token in around)
        or tokens[place + 1].text.lower() in _COORDINATED
    ):
        return False
    if (
        opposite.pos == "ADJ"
        and tokens[place].relation == "amod"
        and not _is_prefixed(opposite.pair)
    ):
        return False  # "is a modern church": it may be a traditional one, too
    return (
        _suits_preposition(tokens, opposite)
        and predication_edits(text, tokens, predication, swap=True, deny=True)[0] is not None
    )


def _in_main_clause(tokens: Sequence[Token], place: int) -> bool:
    """Whether a word is the root, joined to it, or the adjective of a noun that is."""
    while tokens[place].relation in ("conj", "amod"):
        place = tokens[place].head
    return tokens[place].relation == "ROOT" or tokens[place].head == place


def _suits_preposition(tokens: Sequence[Token], opposite: Opposite) -> bool:
    """Whether the opposite can stand before the preposition that follows, if one does: not in "excluded from"."""
    after = (opposite.place if opposite.particle is None else opposite.particle) + 1
    if after >= len(tokens) or tokens[after].tag not in ("IN", "TO", "RP"):
        return True
    word, base = tokens[after].text.lower(), opposite.pair[0]
    if base in _WITH_ANY_PREPOSITION:
        return True
    fixed = _FIXED_PREPOSITIONS.get(base) == word
    return not fixed and (word in _ADJUNCTS or (_is_prefixed(opposite.pair) and word != "by"))


def _is_prefixed(pair: tuple[str, str], prefixes: Sequence[str] = _NEGATIVE) -> bool:
    """Whether one word is the other with a negative prefix: "stable", "unstable"."""
    shorter, longer = sorted(pair, key=len)
    return any(longer == prefix + shorter for prefix in prefixes)
