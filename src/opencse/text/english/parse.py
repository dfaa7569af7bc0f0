"""Parsing without brackets ("Ann (born 1970) is …") and irregular spacing, which mislead a small parser; its trees."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opencse.text.syntax.tokens import Parser, Token
from opencse.text.views.text_edits import Edit, match_case

_ASIDE = re.compile(r"\s*(?:\([^()\[\]]*\)|\[[^()\[\]]*\])")
_ODD_SPACE = re.compile(r"^\s+|\s+$|\s{2,}|[^\S ]")


def parse_without_asides(parser: Parser, texts: Sequence[str]) -> Iterator[tuple[Token, ...]]:
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
