"""Parsing without brackets ("Ann (born 1970) is …") and irregular spacing, which mislead a small parser; its trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opencse.text.syntax import SpacyParser, Token
from opencse.text.views.text_edits import Edit, decapitalise, match_case

Span = tuple[int, int]
"""Index of the first and of the last token of a phrase, both included."""
MAX_TOKENS = 150
"""Longest sentence whose phrases are searched: longer texts are rarely one sentence, and the time is quadratic."""

_ASIDE = re.compile(r"\s*(?:\([^()\[\]]*\)|\[[^()\[\]]*\])")
_INNER = ("det", "amod", "compound", "nummod", "flat", "poss", "nmod:poss", "fixed", "goeswith", "nn")
_ODD_SPACE = re.compile(r"^\s+|\s+$|\s{2,}|[^\S ]")


def parse_without_asides(parser: SpacyParser, texts: Sequence[str]) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens of each of n texts that are outside brackets, with their offsets in the original text."""
    cleaned = [_cleaned(text) for text in texts]
    for (_, places), tokens in zip(cleaned, parser.parse([text for text, _ in cleaned]), strict=True):
        if places is None:
            yield tokens
        else:  # a token on both sides of a removed bracket spans it
            yield tuple(replace(t, start=places[t.start], end=places[t.end - 1] + 1) for t in tokens)


def _cleaned(text: str) -> tuple[str, list[int] | None]:
    """Return the text to parse and the original offset of each of its characters; None if nothing was removed."""
    cut = [match.span() for match in _ASIDE.finditer(text)]
    if not cut and not _ODD_SPACE.search(text):
        return text, None
    places: list[int] = []
    start = 0
    for first, end in [*cut, (len(text), len(text))]:
        for i in range(start, first):
            if not text[i].isspace() or (places and not text[places[-1]].isspace()):
                places.append(i)
        start = end
    while places and text[places[-1]].isspace():
        places.pop()
    return "".join(" " if text[i].isspace() else text[i] for i in places), places


def children(tokens: Sequence[Token], head: int, *relations: str) -> list[int]:
    """Return the direct dependents of a token with one of some relations or their subtypes; all if none is named."""
    dependents = [i for i, token in enumerate(tokens) if token.head == head != i]
    return [i for i in dependents if base_relation(tokens[i]) in relations] if relations else dependents


def subtree(tokens: Sequence[Token], head: int, *, closed: Sequence[str] = ()) -> set[int]:
    """Return the indices of a token and of all that depend on it, without going below the relations in `closed`."""
    places, front = {head}, {head}
    while front:
        front = {i for i, t in enumerate(tokens) if t.head in front and base_relation(t) not in closed} - places
        places |= front
    return places


def as_span(places: set[int]) -> Span | None:
    """Return the span of the given indices; None if they have a gap."""
    first, last = min(places), max(places)
    return (first, last) if last - first + 1 == len(places) else None


def noun_phrase(tokens: Sequence[Token], head: int, longest: int = 6) -> Span | None:
    """Return the base noun phrase of a noun: its article, adjectives and compounds, but not what follows it.

    None if these are not one span of at most `longest` tokens.
    """
    inner = [i for i in children(tokens, head) if tokens[i].relation in _INNER]
    span = as_span({head}.union(*(subtree(tokens, i) for i in inner)))
    return span if span and span[1] - span[0] < longest else None


def characters(tokens: Sequence[Token], span: Span) -> tuple[int, int]:
    """Return the characters of a span of tokens: the first, and the one after the last."""
    return tokens[span[0]].start, tokens[span[1]].end


def text_of(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the characters of a span of tokens."""
    return text[slice(*characters(tokens, span))]


def recased(piece: str, first: Token, *, was_first: bool, is_first: bool = False) -> str:
    """Return a moved phrase with the capital letter that its new place needs; `first` is its first token."""
    if is_first:
        return capitalised(piece)
    named = first.pos == "PROPN" or first.tag in ("NNP", "NNPS")
    return decapitalise(piece) if was_first and not named else piece


def capitalised(piece: str) -> str:
    """Return a phrase that opens a sentence."""
    return piece[:1].upper() + piece[1:]


def base_relation(token: Token) -> str:
    """Return a token's relation without its subtype: "nsubj" for "nsubj:pass"."""
    return token.relation.split(":")[0]


def word_at(tokens: Sequence[Token], i: int) -> str:
    """Return a word of the sentence in lower case; "" outside of it."""
    return tokens[i].text.lower() if 0 <= i < len(tokens) else ""


def is_question(text: str) -> bool:
    """Whether a sentence ends with a question mark, perhaps within quotes or brackets."""
    return text.rstrip(" \"'”’)").endswith("?")


def replaced(token: Token, word: str) -> Edit:
    """Return the edit that puts a word in the place of a token, in its case."""
    return token.start, token.end, match_case(word, token.text)
