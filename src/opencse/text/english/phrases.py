"""Phrases of a parsed sentence: subtrees, base noun phrases, and the exchange of two phrases."""

from __future__ import annotations

from collections.abc import Sequence

from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import apply_edits, decapitalise

Span = tuple[int, int]
"""Index of the first and of the last token of a phrase, both included."""

MAX_TOKENS = 150
"""Longest sentence whose phrases are searched: longer texts are rarely one sentence, and the time is quadratic."""

_INNER = ("det", "amod", "compound", "nummod", "flat", "poss", "nmod:poss", "fixed", "goeswith", "nn")


def subtree(tokens: Sequence[Token], head: int) -> set[int]:
    """Return the indices of a token and of all its direct and indirect dependents."""
    found, front = {head}, {head}
    while front:
        front = {i for i, token in enumerate(tokens) if token.head in front and i not in found}
        found |= front
    return found


def as_span(places: set[int]) -> Span | None:
    """Return the span of the given indices; None if they have a gap."""
    first, last = min(places), max(places)
    return (first, last) if last - first + 1 == len(places) else None


def noun_phrase(tokens: Sequence[Token], head: int, longest: int = 6) -> Span | None:
    """Return the base noun phrase of a noun: its article, adjectives and compounds, but not what follows it.

    None if these are not one span of at most `longest` tokens.
    """
    places = {head}
    for i, token in enumerate(tokens):
        if token.head == head and i != head and token.relation in _INNER:
            places |= subtree(tokens, i)
    span = as_span(places)
    return span if span and span[1] - span[0] < longest else None


def text_of(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the characters of a span of tokens."""
    return text[tokens[span[0]].start : tokens[span[1]].end]


def recased(piece: str, first: Token, *, was_first: bool, is_first: bool) -> str:
    """Return a moved phrase with the capital letter that its new place needs.

    Args:
        piece: The phrase.
        first: Its first token.
        was_first: Whether it opened the sentence.
        is_first: Whether it opens the sentence now.
    """
    if is_first:
        return piece[:1].upper() + piece[1:]
    if was_first and first.pos != "PROPN" and first.tag not in ("NNP", "NNPS"):
        return decapitalise(piece)
    return piece


def exchange_phrases(text: str, tokens: Sequence[Token], one: Span, other: Span) -> str | None:
    """Return the text with two phrases exchanged; None if they overlap or read alike.

    None as well if one is part of a word: "re-election or exile" must not become "re-exile or election".
    """
    left, right = sorted((one, other))
    if left[1] >= right[0]:
        return None
    edges = [at for s in (left, right) for at in (tokens[s[0]].start - 1, tokens[s[1]].end)]
    if any(text[at : at + 1] in ("-", "/") for at in edges):
        return None
    before, after = text_of(text, tokens, left), text_of(text, tokens, right)
    if before.lower() == after.lower():
        return None
    at_start = left[0] == 0
    before = recased(before, tokens[left[0]], was_first=at_start, is_first=False)
    after = recased(after, tokens[right[0]], was_first=False, is_first=at_start)
    spans = [(tokens[s[0]].start, tokens[s[1]].end) for s in (left, right)]
    return apply_edits(text, [(*spans[0], after), (*spans[1], before)])
