"""Contradictions by name, only where one name excludes another: a date, a place of birth, a nationality.

"Beer production started in Japan" and "in Egypt" can both be true; "She was born in Japan" and "in Egypt" cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.text.english.lexicon import names, word_class
from opencse.text.english.names import EntitySwap
from opencse.text.syntax.tokens import Token

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


@dataclass(frozen=True, kw_only=True)
class ExclusiveNameSwap(EntitySwap):
    """Change one name to another that cannot be true as well.

    Of a sentence about one person or thing: the month in the date of an event that happens once, the country, state or
    city in which it lies, was born or died, and the nationality in what it is.
    """

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
        """Return the names of which only one can be true."""
        return [(i, kind) for i, kind in super().candidates(text, tokens) if _excludes(tokens, i, kind)]

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the names that cannot be true together with the name at a place."""
        overlapping = next((group for group in _OVERLAPPING if tokens[place].text in group), frozenset())
        return [name for name in super().replacements(text, tokens, place, kind) if name not in overlapping]


def _excludes(tokens: Sequence[Token], i: int, kind: str) -> bool:
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
