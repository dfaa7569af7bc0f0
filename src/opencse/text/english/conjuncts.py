"""Conjuncts whose order does not matter: "the cats and the dogs", "Anna, Ben and Carl"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from opencse.text.english.articles import indefinite_article
from opencse.text.english.phrases import Span, as_span, exchange_phrases, subtree
from opencse.text.syntax.tokens import Token

_CLASSES = {"NN": "noun", "NNS": "noun", "NNP": "name", "NNPS": "name", "JJ": "adjective"}
_PARTS = ("det", "amod", "compound", "flat", "nummod")
_SHARED = ("both", "either", "neither")
# Words that refer to the order.
_ORDERED = frozenset("respectively former latter first second last then vice".split())
_MAX_CONJUNCTS = 6


def exchanged_conjuncts(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the sentence with the first and the last of its conjuncts exchanged, for each coordination.

    Conjuncts are nouns, names or adjectives. Those that may share a modifier, and sentences that refer to the order
    ("respectively"), are left out.
    """
    if any(token.text.lower() in _ORDERED for token in tokens):
        return
    conjuncts: dict[int, list[int]] = {}
    for i, token in enumerate(tokens):
        if token.relation == "conj" and token.head < i:
            conjuncts.setdefault(token.head, [token.head]).append(i)
    for members in conjuncts.values():
        spans = _spans(tokens, members)
        new = exchange_phrases(text, tokens, spans[0], spans[-1]) if spans else None
        if new is None or spans is None or not _article_fits(tokens, spans[0][0], spans[-1][0]):
            continue
        start, end = tokens[spans[0][0]].start, tokens[spans[-1][1]].end
        if "(" not in text[start:end] + text[end:].lstrip()[:1]:  # else its content would stay behind
            yield new


def _spans(tokens: Sequence[Token], members: Sequence[int]) -> list[Span] | None:
    """Return the conjuncts as spans with only commas and the conjunction between them; None if there is more."""
    kind = _CLASSES.get(tokens[members[0]].tag)
    if kind is None or len(members) > _MAX_CONJUNCTS or any(_CLASSES.get(tokens[i].tag) != kind for i in members):
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
            spans[0] = (members[0], members[0])  # "the cats and dogs": they share the article
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
    """Return a conjunct with its article, its adjectives and the parts of a name; None if it has other dependents."""
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
    """Whether a word before the first conjunct belongs to all of them: "both", "their"."""
    return token.text.lower() in _SHARED or token.tag == "PRP$"


def _before_names(tokens: Sequence[Token], first: int) -> bool:
    """Whether a preposition or a verb stands before the first name, so that both names are not one."""
    return first > 0 and tokens[first - 1].tag in ("IN", "VBD", "VBZ", "VBP", "TO")


def _article_fits(tokens: Sequence[Token], old: int, new: int) -> bool:
    """Whether an article before the first conjunct stays correct before the last one."""
    before = tokens[old - 1].text.lower() if old else ""
    return before not in ("a", "an") or before == indefinite_article(tokens[new].text)


def _ends(tokens: Sequence[Token], last: int, kind: str) -> bool:
    """Whether the word after the conjuncts cannot belong to the last of them alone."""
    if last + 1 >= len(tokens):
        return True
    after = tokens[last + 1]
    if after.tag in ("NN", "NNS"):
        return kind == "adjective"
    apart = after.text.lower() != "of" and not last - 3 <= tokens[after.head].head <= last
    return after.tag in (".", ",", "VBD", "VBZ", "VBP", "MD", "RB", "TO", "WDT", "CC") or (after.tag == "IN" and apart)
