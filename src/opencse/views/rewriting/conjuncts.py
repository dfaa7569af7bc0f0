"""Coordinated phrases whose order says nothing: "the cats and the dogs", "Anna, Ben and Carl"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from opencse.syntax.tokens import Token
from opencse.views.rewriting.phrases import Span, as_span, exchanged, subtree

_CLASSES = {"NN": "noun", "NNS": "noun", "NNP": "name", "NNPS": "name", "JJ": "adjective"}
_PARTS = ("det", "amod", "compound", "flat", "nummod")
_SHARED = ("both", "either", "neither")
# Words that speak of the order.
_ORDERED = frozenset("respectively former latter first second last then vice".split())
_MOST = 6


def turned(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the sentence with the first and the last of some conjuncts in each other's place.

    Nouns, names and adjectives; only where no modifier could belong to both, and none points back at the first.
    """
    if any(token.text.lower() in _ORDERED for token in tokens):
        return
    conjuncts: dict[int, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.relation == "conj" and token.head < i:
            conjuncts.setdefault(token.head, [token.head]).append(i)
    for members in conjuncts.values():
        spans = _spans(tokens, members)
        new = exchanged(text, tokens, spans[0], spans[-1]) if spans else None
        if new is None or spans is None or not _article_fits(tokens, spans[0][0], spans[-1][0]):
            continue
        start, end = tokens[spans[0][0]].start, tokens[spans[-1][1]].end
        if "(" not in text[start:end] + text[end:].lstrip()[:1]:  # else what is in it would stay behind
            yield new


def _spans(tokens: Sequence[Token], members: Sequence[int]) -> list[Span] | None:
    """The conjuncts as runs with nothing but commas and the conjunction between; None where that is not so."""
    kind = _CLASSES.get(tokens[members[0]].tag)
    if kind is None or len(members) > _MOST or any(_CLASSES.get(tokens[i].tag) != kind for i in members):
        return None
    phrases = [_phrase(tokens, i, first=i == members[0], end=members[-1]) for i in members]
    if any(phrase is None for phrase in phrases):
        return None
    spans = [phrase for phrase in phrases if phrase is not None]
    bare = [span[0] == span[1] for span in spans]
    if not all(bare) and kind != "name":
        opened = [tokens[span[0]].tag == "DT" for span in spans]
        if not bare[0] and all(bare[1:]) and opened[0] and spans[0][1] - spans[0][0] == 1:
            if tokens[spans[0][0]].text.lower() in ("a", "an"):
                return None
            spans[0] = (members[0], members[0])  # "the cats and dogs": the article is everyone's
        elif not all(opened):
            return None  # "old men and women"
    if kind == "name" and len({span[1] - span[0] for span in spans}) > 1:
        return None  # "Anna and Ben Smith"
    if kind == "name" and len(spans) == 2 and not _before_names(tokens, spans[0][0]):
        return None  # it may be one name
    between = [range(one[1] + 1, other[0]) for one, other in pairwise(spans)]
    plain = all(tokens[i].text == "," or tokens[i].relation == "cc" for gap in between for i in gap)
    closed = bool(between[-1]) and tokens[between[-1][-1]].text.lower() in ("and", "or")
    return spans if plain and closed and _ends(tokens, spans[-1][1], kind) else None


def _phrase(tokens: Sequence[Token], head: int, *, first: bool, end: int) -> Span | None:
    """A conjunct with its article, adjectives and the parts of a name; None where it has anything else."""
    places = {head}
    for i, token in enumerate(tokens):
        if token.head != head or i == head or token.relation in ("cc", "conj", "punct", "case", "cc:preconj", "cop"):
            continue
        if first and (i > end or token.relation in ("nsubj", "aux", "advmod") or _shared(token)):
            continue  # it belongs to all of them, or to the clause
        if token.relation not in _PARTS:
            return None
        places |= subtree(tokens, i)
    return as_span(places)


def _shared(token: Token) -> bool:
    return token.text.lower() in _SHARED or token.tag == "PRP$"


def _before_names(tokens: Sequence[Token], first: int) -> bool:
    return first > 0 and tokens[first - 1].tag in ("IN", "VBD", "VBZ", "VBP", "TO")


def _article_fits(tokens: Sequence[Token], old: int, new: int) -> bool:
    """Whether an article before the first place may stay as it is."""
    before = tokens[old - 1].text.lower() if old else ""
    vowels = [tokens[i].text[:1].lower() in "aeiou" for i in (old, new)]
    return before not in ("a", "an") or vowels[0] == vowels[1]


def _ends(tokens: Sequence[Token], last: int, kind: str) -> bool:
    """Whether the word after the conjuncts cannot be one more part of the last of them alone."""
    if last + 1 >= len(tokens):
        return True
    after = tokens[last + 1]
    if after.tag in ("NN", "NNS"):
        return kind == "adjective"
    apart = after.text.lower() != "of" and not last - 3 <= tokens[after.head].head <= last
    return after.tag in (".", ",", "VBD", "VBZ", "VBP", "MD", "RB", "TO", "WDT", "CC") or (after.tag == "IN" and apart)
