"""Numbers and opposites that exclude each other: rules for cases where both cannot be true.

`opencse check` contradicts and rewords with these. The training rules are broader, and may be wrong
now and then.
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

# No years, no decimals, which are often versions, and no ordinals, which name one of several.
_AMOUNT = re.compile(r"(?!(?:1\d|20)\d\d$)(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*|[a-z]+)")

# A count in digits.
_COUNT = re.compile(r"[1-9]\d{0,3}")

_INEXACT = word_class("inexact") | {"from", "between"}

# Next to these, a number is one of several, or known: "2 and 3 workers", "the two sides".
_NOT_BESIDE = frozenset(
    "and or & through to the these those both all its his her their our your my".split()
)

# Nouns whose number identifies one of them.
_NUMBERED = word_class("numbered")

_FINITE = ("VBD", "VBZ", "VBP", "MD")

# Words that qualify a statement: "somewhat open" and "somewhat closed" can both be true.
_QUALIFIED = word_class("qualified")

# Words whose opposite holds in one sense only, or leaves a third possibility.
_OTHER_SENSES = word_class("other senses")

_WITH_ANY_PREPOSITION = word_class("any preposition")

# Adjectives without a third possibility; others are recognized by a negative prefix.
_COMPLEMENTARY = word_class("without third possibility")

# Adjectives whose prefixed opposite leaves a third possibility: neither happy nor unhappy.
_GRADUAL = word_class("with third possibility")

_NEGATIVE = ("un", "in", "im", "il", "ir", "dis")

# Words that begin a time, a place or a condition, which suits any predicate.
_ADJUNCTS = frozenset(
    "in on at during after before until since under within because when while if without".split()
)

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
        counts = []
        for i in super().candidates(text, tokens):
            if i + 1 == len(tokens) or not _COUNT.fullmatch(tokens[i].text):
                continue
            after = tokens[i + 1].text
            if after.isalpha() and after.islower():
                counts.append(i)
        return counts


class ExclusiveNumberSwap(NumberSwap):
    """Change one number that counts something, no more and no less.

    "It runs on Python 2" and "on Python 4" can both be true, and so can "more than 200" and "more
    than 190".
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers of which only one can be true."""
        if not any(token.tag in _FINITE for token in tokens):
            return []
        return [i for i in super().candidates(text, tokens) if _is_exact(tokens, i)]


def _is_exact(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a number is the exact count of a plural noun.

    It is not in "the sum of two numbers", which is one of many sums.
    """
    number = tokens[i]
    noun = tokens[number.head]
    if number.tag != "CD" or noun.tag not in ("NNS", "NNPS"):
        return False
    if not _AMOUNT.fullmatch(number.text.lower()):
        return False
    before = tokens[max(0, i - 3) : i]
    if any(token.text.lower() in _INEXACT for token in before):
        return False
    neighbours = [*before[-1:], *tokens[i + 1 : i + 2]]
    if any(token.text.lower() in _NOT_BESIDE for token in neighbours):
        return False
    if any(token.lemma.lower() in _NUMBERED for token in before[-1:]):
        return False
    of_subject = noun.relation.startswith("nmod") and tokens[noun.head].relation.startswith("nsubj")
    return not of_subject


class NegatedComplement(NegatedAntonym):
    """Negate the opposite of a predicate, only if there is no third possibility between the two.

    Who isn't deafening need not be silent, and what isn't new need not be old.
    """

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether one of the two words denies the other, by its form or by the list."""
        if not opposite.complementary or opposite.pos not in ("ADJ", "ADV"):
            return opposite.complementary
        gradual = min(opposite.pair, key=len) in _GRADUAL
        if not gradual and _is_prefixed(opposite.pair, (*_NEGATIVE, "non")):
            return True
        return "/".join(sorted(opposite.pair)) in _COMPLEMENTARY


class ExclusiveOpposite(AntonymSwap):
    """Replace a predicate by its opposite, only if there is no third possibility between the two.

    "The price is high" and "The price is low" cannot both be true. "The castle is a modern
    building" and "a traditional building" can, and "Shoes are included from returns" is no English.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words whose opposite cannot be true of the same subject."""
        exclusive = []
        for predication in find_predications(text, tokens):
            if _excludes_opposite(text, tokens, predication):
                exclusive.append(predication.opposite)
        return exclusive


def _excludes_opposite(text: str, tokens: Sequence[Token], predication: Predication) -> bool:
    opposite = predication.opposite
    place = opposite.place
    if not opposite.complementary or predication.to is not None or place + 1 >= len(tokens):
        return False
    if set(opposite.pair) & _OTHER_SENSES or not _in_main_clause(tokens, place):
        return False
    around = [*tokens[max(0, place - 3) : place], *tokens[place + 1 : place + 5]]
    if any(token.text.lower() in _QUALIFIED for token in around):
        return False
    if tokens[place + 1].text.lower() in _COORDINATED:
        return False
    is_attribute = opposite.pos == "ADJ" and tokens[place].relation == "amod"
    if is_attribute and not _is_prefixed(opposite.pair):
        # "is a modern church": it may be a traditional one as well.
        return False
    if not _suits_preposition(tokens, opposite):
        return False
    edits, _ = predication_edits(text, tokens, predication, swap=True, deny=True)
    return edits is not None


def _in_main_clause(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a word is the root, joined to it, or the adjective of a noun that is."""
    while tokens[place].relation in ("conj", "amod"):
        place = tokens[place].head
    return tokens[place].relation == "ROOT" or tokens[place].head == place


def _suits_preposition(tokens: Sequence[Token], opposite: Opposite) -> bool:
    """Return whether the opposite can stand before the preposition that follows, if one does."""
    last = opposite.place if opposite.particle is None else opposite.particle
    after = last + 1
    if after >= len(tokens) or tokens[after].tag not in ("IN", "TO", "RP"):
        return True
    word = tokens[after].text.lower()
    base = opposite.pair[0]
    if base in _WITH_ANY_PREPOSITION:
        return True
    if _FIXED_PREPOSITIONS.get(base) == word:
        return False
    return word in _ADJUNCTS or (_is_prefixed(opposite.pair) and word != "by")


def _is_prefixed(pair: tuple[str, str], prefixes: Sequence[str] = _NEGATIVE) -> bool:
    """Return whether one word is the other with a negative prefix: "stable", "unstable"."""
    shorter, longer = sorted(pair, key=len)
    return any(longer == prefix + shorter for prefix in prefixes)
