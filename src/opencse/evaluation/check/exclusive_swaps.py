"""Contradictions by name, number or opposite, only where the new sentence denies what the sentence says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.text.english.antonym_swap import AntonymSwap
from opencse.text.english.entities import EntitySwap, NumberSwap
from opencse.text.english.lexicon import names, word_class
from opencse.text.english.opposites import Opposite
from opencse.text.english.predicates import (
    NegatedAntonym,
    Predication,
    find_predications,
    predication_edits,
)
from opencse.text.syntax import Token

_ONCE = word_class("once")
"""Verbs of what happens to the same person or thing once, so that it has one date."""

_AT_ONE_PLACE = frozenset("base bear bury die headquarter locate situate".split())
_PLACES = word_class("at one place")
"""Nouns for what stands in one place."""

_OVERLAPPING = (
    frozenset(("British", "English", "Scottish", "Welsh", "Irish")),
    frozenset(("England", "Scotland", "Wales", "Ireland")),
    frozenset(("Czech", "Slovak")),
    frozenset(("Dutch", "Belgian")),
)
"""Names of which two can be true of the same."""

_DENIALS = frozenset("not n't n’t never no none nor neither without hardly rarely seldom few or".split())
_DEFINITE = frozenset("the this that its his her their our my".split())

_YEAR = re.compile(r"1\d{3}|20\d\d")
_AMOUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\d+|[a-z]+")
"""No decimals, which are often versions, and no ordinals, which say which one is meant."""

_INEXACT = word_class("inexact")
_NUMBERED = word_class("numbered")
"""Nouns whose number says which one is meant."""

_KNOWN = frozenset("the these those both all its his her their our your my".split())
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
_ADJUNCTS = frozenset("in on at during after before until since under within because when while if without".split())
"""Words that begin a time, a place or a condition, which suits any predicate."""

_FIXED_PREPOSITIONS = {"include": "in", "exclude": "in", "enable": "in", "absent": "in", "present": "at"}
_COORDINATED = ("and", "or", "nor", "but", "/")


@dataclass(frozen=True, kw_only=True)
class ExclusiveNameSwap(EntitySwap):
    """Change one name to another that cannot be true as well: a date, a place of birth, a nationality.

    "Beer production started in Japan" and "in Egypt" can both be true; "She was born in Japan" and "in Egypt" cannot.

    Of a sentence about one person or thing: the month in the date of an event that happens once, the country, state or
    city in which it lies, was born or died, and the nationality in what it is.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
        """Return the names of which only one can be true."""
        return [(i, kind) for i, kind in super().candidates(text, tokens) if _excludes_names(tokens, i, kind)]

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the names that cannot be true together with the name at a place."""
        overlapping = next((group for group in _OVERLAPPING if tokens[place].text in group), frozenset())
        return [name for name in super().replacements(text, tokens, place, kind) if name not in overlapping]


def _excludes_names(tokens: Sequence[Token], i: int, kind: str) -> bool:
    """Whether the sentence leaves room for one name of the kind at a token."""
    if any(token.text.lower() in _DENIALS for token in tokens) or _listed(tokens, i) or not has_one_subject(tokens):
        return False
    if kind == "month":
        return in_date_of_one_event(tokens, i)
    if kind in ("country", "city", "state"):
        return _lies(tokens, i)
    return kind == "nationality" and _is_of(tokens, i)


def in_date_of_one_event(tokens: Sequence[Token], i: int) -> bool:
    """Whether a month, a day or a year belongs to the date of an event that happens once to its subject."""
    start = i
    while start and (tokens[start - 1].tag == "CD" or names().get(tokens[start - 1].text) == "month"):
        start -= 1
    if start == 0 or tokens[start - 1].text.lower() not in ("in", "on"):
        return False
    if (
        names().get(tokens[i].text) == "month"
        and start == i
        and tokens[i + 1].tag != "CD"
        and tokens[i + 1].text != ","
    ):
        return False  # "in May": of any year
    verb = next((token for token in _heads(tokens, i) if token.pos == "VERB"), None)
    if verb is None or verb.lemma not in _ONCE or verb.tag not in ("VBD", "VBN") or _has_open_object(tokens, verb):
        return False
    if verb.relation.startswith("acl"):  # "the film, released in May 2001, ..."
        return tokens[verb.head].tag in ("NN", "NNP")
    return verb.relation in ("ROOT", "conj")


def _has_open_object(tokens: Sequence[Token], verb: Token) -> bool:
    """Whether a verb has an indefinite object: "published a book in May 2001" happens more than once."""
    objects = [child for child in _children(tokens, verb) if child.relation in ("obj", "dobj")]
    return any(
        each.tag in ("NN", "NNS") and not any(child.text.lower() in _DEFINITE for child in _children(tokens, each))
        for each in objects
    )


def _lies(tokens: Sequence[Token], i: int) -> bool:
    """Whether a place is the one in which the subject lies, was born or died."""
    if i == 0 or not (tokens[i - 1].text == "in" or tokens[i - 1].text == ",") or tokens[i + 1].text in ("'s", "’s"):
        return False
    if tokens[i - 1].text == "," and not any(token.text in ("in", "of") for token in tokens[max(0, i - 5) : i]):
        return False
    for token in _heads(tokens, i):
        if token.pos == "VERB":
            return token.relation == "ROOT" and token.lemma in _AT_ONE_PLACE
        if token.relation == "ROOT":
            return token.lemma in _PLACES and _has_copula(tokens, token)
        if token.pos not in ("PROPN", "NUM") and token.lemma not in _PLACES:
            return False  # "died during the epidemic in Japan"
    return False


def _is_of(tokens: Sequence[Token], i: int) -> bool:
    """Whether a nationality belongs to what the subject is: "was an American artist"."""
    root = tokens[tokens[i].head]
    if root.relation != "ROOT" or root.pos != "NOUN" or tokens[i].relation != "amod" or not _has_copula(tokens, root):
        return False
    if tokens[i + 1].text == "football":  # the game
        return False
    return any(child.text.lower() in ("a", "an") for child in _children(tokens, root))


def has_one_subject(tokens: Sequence[Token]) -> bool:
    """Whether the main clause is about one definite person or thing."""
    for token in tokens:
        if not token.relation.startswith("nsubj") or tokens[token.head].relation != "ROOT":
            continue
        if any(child.relation == "conj" for child in _children(tokens, token)):
            return False
        if token.tag == "NNP":
            return True
        if token.tag == "PRP":
            return token.text.lower() in ("he", "she", "it")
        return token.tag == "NN" and any(child.text.lower() in _DEFINITE for child in _children(tokens, token))
    return False


def _listed(tokens: Sequence[Token], i: int) -> bool:
    """Whether a name stands beside another of a list: "Greek and Roman"."""
    around = [tokens[k].text for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    return any(word in ("and", "or", "/", "&", "–", "-", "to") for word in around)


def _heads(tokens: Sequence[Token], i: int) -> Iterator[Token]:
    """Yield the governors of a token up to the root."""
    for _ in range(6):
        if tokens[i].relation == "ROOT":
            return
        i = tokens[i].head
        yield tokens[i]


def _children(tokens: Sequence[Token], parent: Token) -> list[Token]:
    return [token for token in tokens if tokens[token.head] is parent and token is not parent]


def _has_copula(tokens: Sequence[Token], noun: Token) -> bool:
    return any(child.relation == "cop" for child in _children(tokens, noun))


@dataclass(frozen=True, kw_only=True)
class ExclusiveNumberSwap(NumberSwap):
    """Change one number that counts things exactly, or the date of an event that happens once.

    "It runs on Python 2" and "on Python 4" can both be true, and so can "more than 200" and "more than 190".
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers of which only one can be true."""
        if not any(token.tag in _FINITE for token in tokens):
            return []  # no statement
        return [i for i in super().candidates(text, tokens) if _is_exact(tokens, i)]


def _is_exact(tokens: Sequence[Token], i: int) -> bool:
    around = [tokens[k] for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    word = tokens[i].text.lower()
    if word.startswith("0") or any(each.text in ("and", "or", "&", "through") for each in around):
        return False
    if any(each.text.lower() in ("from", "to", "between") for each in tokens[max(0, i - 2) : i + 4]):
        return False  # "fell from 26 % to 19 %"
    if any(names().get(each.text) == "month" for each in around) or _YEAR.fullmatch(word):
        return has_one_subject(tokens) and in_date_of_one_event(tokens, i)
    return bool(_AMOUNT.fullmatch(word)) and tokens[i].tag == "CD" and _counts(tokens, i)


def _counts(tokens: Sequence[Token], i: int) -> bool:
    """Whether a number says how many there are of its plural noun, and no more or less.

    "The two sides" are known to be two, and "the sum of two numbers" is one of many sums.
    """
    before = [token.text.lower() for token in tokens[max(0, i - 3) : i]]
    if _INEXACT.intersection(before) or (i and tokens[i - 1].lemma.lower() in _NUMBERED):
        return False
    if i and tokens[i - 1].text.lower() in _KNOWN:
        return False
    noun = tokens[tokens[i].head]
    if noun.tag not in ("NNS", "NNPS") and noun.text != "%":
        return False
    whole = tokens[noun.head]
    return not (noun.relation.startswith("nmod") and whole.relation.startswith("nsubj"))


@dataclass(frozen=True, kw_only=True)
class NegatedComplement(NegatedAntonym):
    """Negate the opposite of a predicate, only where there is no third possibility between the two.

    Who isn't deafening need not be silent, and what isn't new need not be old.
    """

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether one of the two words denies the other, by its form or by the list."""
        if not opposite.complementary or opposite.pos not in ("ADJ", "ADV"):
            return opposite.complementary
        prefixed = min(opposite.pair, key=len) not in _GRADUAL and _is_prefixed(opposite.pair, (*_NEGATIVE, "non"))
        return prefixed or "/".join(sorted(opposite.pair)) in _COMPLEMENTARY


@dataclass(frozen=True, kw_only=True)
class ExclusiveOpposite(AntonymSwap):
    """Replace a predicate by its opposite: an adjective, a noun or a verb that leaves no third possibility.

    "The price is high" and "The price is low" cannot both be true. "The castle is a modern building" and "a traditional
    building" can, and "Shoes are included from returns" is no English.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words whose opposite cannot be true of the same subject."""
        return [
            each.opposite
            for each in find_predications(text, tokens, hold_out=self.hold_out)
            if _excludes_opposite(text, tokens, each)
        ]


def _excludes_opposite(text: str, tokens: Sequence[Token], found: Predication) -> bool:
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


def _is_prefixed(pair: tuple[str, str], prefixes: Sequence[str] = _NEGATIVE) -> bool:
    """Whether one word is the other with a negative prefix: "stable", "unstable"."""
    shorter, longer = sorted(pair, key=len)
    return any(longer == prefix + shorter for prefix in prefixes)
