"""Parsing a sentence without what stands in brackets: "Ann (born 1970) is ..." confuses a small parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opencse.syntax.tokens import Parser, Token

_ASIDE = re.compile(r"\s*(?:\([^()\[\]]*\)|\[[^()\[\]]*\])")


def parse_without_asides(parser: Parser, texts: Sequence[str]) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens of each text that stand outside brackets, with their offsets in the whole text."""
    spans = [[match.span() for match in _ASIDE.finditer(text)] for text in texts]
    for text, cut, tokens in zip(texts, spans, parser.parse(map(_without, texts, spans)), strict=True):
        yield tokens if not cut else tuple(_moved(tokens, cut, len(text)))


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _moved(tokens: Sequence[Token], spans: Sequence[tuple[int, int]], size: int) -> Iterator[Token]:
    """Shift tokens to where they stand with the brackets in; one that the cut glued together ends where it ended."""
    places = [i for i in range(size) if not any(start <= i < end for start, end in spans)]
    for token in tokens:
        yield replace(token, start=places[token.start], end=places[token.end - 1] + 1)
