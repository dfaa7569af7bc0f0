"""Predicate adjectives whose negated opposite means the same: "is safe", "is not dangerous"."""

from __future__ import annotations

from collections.abc import Sequence

from opencse.syntax.tokens import Token
from opencse.views.rewriting.clause import NEGATIVE, NOT
from opencse.views.rewriting.negation_rules import SENTENTIAL
from opencse.views.rewriting.opposites import Opposite

# Opposites that leave a third possibility: a thing that is not black need not be white.
_NOT_COMPLEMENTARY = frozenset(
    """northern southern eastern western northeastern southwestern northwestern southeastern black white first last next
    previous national international former current upper lower inner outer vertical horizontal many few""".split()
)
_GOVERNING = frozenset("responsible famous safe known unknown rich poor free different full true".split())
_COPULAS = ("is", "are", "was", "were")  # those that "n't" can follow


def find_copula(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the form of be that links an adjective to its subject.

    None if the word is no such adjective, if anything but "not", an adverb or an article stands between, or if the
    adjective and its opposite leave a third possibility.
    """
    head = _described(tokens, opposite)
    if head is None:
        return None
    place = opposite.place
    described = {place, head}
    if any(t.head in described and t.relation.split(":")[0] in ("conj", "cc") for t in tokens):
        return None
    governs_more = tokens[place].text.lower() in _GOVERNING and place + 1 < len(tokens)
    if governs_more and tokens[place + 1].tag in ("IN", "TO"):
        return None
    copula = place - 1
    if head != place and tokens[copula].text.lower() in ("a", "an"):
        copula -= 1
    elif head != place and tokens[head].tag != "NNS":
        return None
    while copula > 0 and tokens[copula].text.lower() in (*NOT, *SENTENTIAL):
        copula -= 1
    return copula if _links(tokens, copula, head) else None


def _described(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the predicate: the adjective, or the noun that it is the only attribute of."""
    word, place = tokens[opposite.place], opposite.place
    if opposite.pos != "ADJ" or word.text.lower() in _NOT_COMPLEMENTARY or word.tag != "JJ":
        return None
    if word.relation != "amod":
        return place
    head = word.head
    if tokens[head].tag not in ("NN", "NNS") or head != place + 1:
        return None
    others = [token for token in tokens if token.head == head and token is not word]
    if any(token.relation in ("amod", "compound", "nmod:poss", "nummod", "appos") for token in others):
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
