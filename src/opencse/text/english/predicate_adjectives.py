"""Predicate adjectives and nouns whose negated opposite means the same: "is safe", "is not dangerous"."""

from __future__ import annotations

from collections.abc import Sequence

from opencse.text.english.clause import NEGATIVE, NOT
from opencse.text.english.negation_rules import SENTENTIAL
from opencse.text.english.opposites import Opposite
from opencse.text.syntax.tokens import Token

_GOVERNING = frozenset(
    """responsible famous safe known unknown rich poor free different full true vulnerable armed clear
    subject""".split()
)
_PREDICATES = (("ADJ", "JJ"), ("NOUN", "NN"), ("NOUN", "NNS"))
_ATTRIBUTES = ("amod", "compound", "nummod", "appos")
_COPULAS = ("is", "are", "was", "were")  # those that "n't" can follow


def find_copula(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the form of be that links an adjective or a noun to its subject.

    None if the word is no such predicate, if anything but "not", an adverb or an article stands between, or if the
    word and its opposite leave a third possibility.
    """
    head = _described(tokens, opposite)
    if head is None:
        return None
    place = opposite.place
    described = {place, head}
    if any(shares_predicate(tokens, each) for each in described):
        return None
    governs_more = tokens[place].text.lower() in _GOVERNING and place + 1 < len(tokens)
    if governs_more and tokens[place + 1].tag in ("IN", "TO"):
        return None
    copula = place - 1
    noun = opposite.pos == "NOUN"
    if (head != place or noun) and tokens[copula].text.lower() in ("a", "an"):
        copula -= 1
    elif (head != place or noun) and tokens[head].tag != "NNS":
        return None
    while copula > 0 and tokens[copula].text.lower() in (*NOT, *SENTENTIAL):
        copula -= 1
    return copula if _links(tokens, copula, head) else None


def shares_predicate(tokens: Sequence[Token], i: int) -> bool:
    """Whether a word is coordinated with another that has no subject of its own: "safe and clean"."""
    joined = [k for k, t in enumerate(tokens) if t.head == i and k != i and t.relation == "conj"]
    return any(not any(t.head == k and t.relation.startswith("nsubj") for t in tokens) for k in joined)


def _described(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the predicate: the word, or the noun that an adjective is the only attribute of."""
    word, place = tokens[opposite.place], opposite.place
    if not opposite.complementary or (opposite.pos, word.tag) not in _PREDICATES:
        return None
    if opposite.pos == "NOUN":
        described = any(t.head == place and t.relation.split(":")[0] in _ATTRIBUTES for t in tokens)
        return None if described else place
    if word.relation != "amod":
        return place
    head = word.head
    if tokens[head].tag not in ("NN", "NNS") or head != place + 1:
        return None
    others = [token for token in tokens if token.head == head and token is not word]
    if any(token.relation in ("nmod:poss", *_ATTRIBUTES) for token in others):
        return None
    return head


def _links(tokens: Sequence[Token], copula: int, head: int) -> bool:
    """Whether a token is the copula of a predicate, in a statement without other negative words."""
    if copula <= 0 or tokens[copula].text.lower() not in _COPULAS or any(token.text == "?" for token in tokens):
        return False
    depends = tokens[copula].head == head and tokens[copula].relation == "cop"
    governs = tokens[head].head == copula and tokens[head].relation in ("acomp", "attr")
    negative = any(t.text.lower() in NEGATIVE - set(NOT) and t.head in (head, copula) for t in tokens)
    return (depends or governs) and not negative
