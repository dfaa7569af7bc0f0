"""Kinds that rewrite a sentence by its grammar, and the trees that they read.

The parse leaves out brackets ("Ann (born 1970) is …") and irregular spacing, which mislead a small
parser.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from opencse.text.english.lexicon import LexiconTable, lexicon_bytes
from opencse.text.syntax import Edit, SpacyParser, Token, decapitalise, load_parser, match_case
from opencse.text.views.registry import (
    OpenedView,
    SourceRow,
    View,
    bundle_digest,
    row_random,
    with_error_rate,
)

Span = tuple[int, int]
"""Index of the first and of the last token of a phrase, both included."""
MAX_TOKENS = 150
"""Longest sentence whose phrases are searched: longer texts are rarely one sentence.

The time is quadratic.
"""

_ASIDE = re.compile(r"\s*(?:\([^()\[\]]*\)|\[[^()\[\]]*\])")
_INNER = (
    "det",
    "amod",
    "compound",
    "nummod",
    "flat",
    "poss",
    "nmod:poss",
    "fixed",
    "goeswith",
    "nn",
)
_ODD_SPACE = re.compile(r"^\s+|\s+$|\s{2,}|[^\S ]")


def parse_without_asides(parser: SpacyParser, texts: Sequence[str]) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens of each text outside brackets, with offsets in the original text."""
    cleaned = [_cleaned(text) for text in texts]
    parsed = parser.parse([text for text, _ in cleaned])
    for (_, places), tokens in zip(cleaned, parsed, strict=True):
        if places is None:
            yield tokens
            continue
        original = []
        for token in tokens:
            # A token on both sides of a removed bracket spans it.
            start = places[token.start]
            end = places[token.end - 1] + 1
            original.append(replace(token, start=start, end=end))
        yield tuple(original)


def _cleaned(text: str) -> tuple[str, list[int] | None]:
    """Return the text to parse, and the original offset of each character if any was removed."""
    cut = [match.span() for match in _ASIDE.finditer(text)]
    if not cut and not _ODD_SPACE.search(text):
        return text, None
    places: list[int] = []
    start = 0
    for first, end in [*cut, (len(text), len(text))]:
        for i in range(start, first):
            # Of several spaces, or those on both sides of a bracket, one is kept.
            if not text[i].isspace() or (places and not text[places[-1]].isspace()):
                places.append(i)
        start = end
    # A bracket at the end leaves a space before it.
    while places and text[places[-1]].isspace():
        places.pop()
    characters_kept = [" " if text[i].isspace() else text[i] for i in places]
    return "".join(characters_kept), places


def children(tokens: Sequence[Token], head: int, *relations: str) -> list[int]:
    """Return the direct dependents of a token, only those with some relations if any are named.

    A relation includes its subtypes.
    """
    dependents = [i for i, token in enumerate(tokens) if token.head == head != i]
    if not relations:
        return dependents
    return [i for i in dependents if base_relation(tokens[i]) in relations]


def subtree(tokens: Sequence[Token], head: int, *, closed: Sequence[str] = ()) -> set[int]:
    """Return the indices of a token and its descendants, but none below `closed` relations."""
    # Level by level, because tokens know their heads but not their dependents.
    places = {head}
    front = {head}
    while front:
        below = set()
        for i, token in enumerate(tokens):
            if token.head in front and base_relation(token) not in closed:
                below.add(i)
        front = below - places
        places |= front
    return places


def as_span(places: set[int]) -> Span | None:
    """Return the span of the given indices; None if they have a gap."""
    first = min(places)
    last = max(places)
    if last - first + 1 > len(places):
        return None
    return first, last


def noun_phrase(tokens: Sequence[Token], head: int, longest: int = 6) -> Span | None:
    """Return the base noun phrase of a noun: article, adjectives, compounds, nothing after it.

    None if these are not one span of at most `longest` tokens.
    """
    places = {head}
    for i in children(tokens, head):
        if tokens[i].relation in _INNER:
            places |= subtree(tokens, i)
    span = as_span(places)
    if span is None or span[1] - span[0] >= longest:
        return None
    return span


def characters(tokens: Sequence[Token], span: Span) -> tuple[int, int]:
    """Return the characters of a span of tokens: the first, and the one after the last."""
    return tokens[span[0]].start, tokens[span[1]].end


def text_of(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the characters of a span of tokens."""
    start, end = characters(tokens, span)
    return text[start:end]


def text_with_aside(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return the characters of a span of tokens, with brackets that follow it directly."""
    start, end = characters(tokens, span)
    while aside := _ASIDE.match(text, end):
        end = aside.end()
    return text[start:end]


def asides(text: str) -> list[str]:
    """Return the brackets of a text in alphabetical order, which a change of order must keep."""
    return sorted(found.strip() for found in _ASIDE.findall(text))


def recased(piece: str, first: Token, *, was_first: bool, is_first: bool = False) -> str:
    """Return a moved phrase with the capital letter that its new place needs.

    `first` is its first token.
    """
    if is_first:
        return capitalised(piece)
    named = first.pos == "PROPN" or first.tag in ("NNP", "NNPS")
    if was_first and not named:
        return decapitalise(piece)
    return piece


def capitalised(piece: str) -> str:
    """Return a phrase that opens a sentence."""
    return piece[:1].upper() + piece[1:]


def base_relation(token: Token) -> str:
    """Return a token's relation without its subtype: "nsubj" for "nsubj:pass"."""
    return token.relation.split(":")[0]


def word_at(tokens: Sequence[Token], i: int) -> str:
    """Return a word of the sentence in lower case; "" outside of it."""
    if not 0 <= i < len(tokens):
        return ""
    return tokens[i].text.lower()


def is_question(text: str) -> bool:
    """Return whether a sentence ends with a question mark, perhaps within quotes or brackets."""
    return text.rstrip(" \"'”’)").endswith("?")


def replaced(token: Token, word: str) -> Edit:
    """Return the edit that replaces a token by a word in its case."""
    return token.start, token.end, match_case(word, token.text)


Rewrite = tuple[str | None, str]
"""The new sentence and the applied rule; or None and the reason why no rule applies."""


@dataclass(frozen=True, kw_only=True)
class GrammarView(View):
    """A kind of view that rewrites each sentence by its grammar; a subclass implements `rewrite`.

    Class attributes:
        parts: Endings of the columns, if it rewrites a sentence in several ways: `[build.NAME]`
            builds NAME_PART.
        tables: Word lists that the output depends on.
        random_stream: Name under which the generators of the rows are seeded; by default the kind.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}
    parts: ClassVar[tuple[str, ...]] = ()
    tables: ClassVar[tuple[LexiconTable, ...]] = ()
    random_stream: ClassVar[str] = ""

    syntax: str = "syntax"

    @property
    def skips_asides(self) -> bool:
        """Whether brackets are left out of the parse ("Ann (born 1970) is …")."""
        return True

    def columns(self, name: str) -> tuple[str, ...]:
        """Return one column for each part."""
        if not self.parts:
            return (name,)
        return tuple(f"{name}_{part}" for part in self.parts)

    def rewrite(
        self, text: str, tokens: Sequence[Token], rng: random.Random
    ) -> Rewrite | list[Rewrite]:
        """Rewrite one sentence, once for each part.

        The result depends only on the arguments and the options.

        Args:
            text: The sentence.
            tokens: Its tokens, at least one.
            rng: The generator of the row.
        """
        raise NotImplementedError

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Load the parser."""
        parser = load_parser(self.syntax)
        digest = bundle_digest(parser.digest, lexicon_bytes(*self.tables))
        return OpenedView(build=partial(self._views, parser=parser, seed=seed), digest=digest)

    def _views(self, rows: Sequence[SourceRow], parser: SpacyParser, seed: int) -> list[Any]:
        """Rewrite each row's text: one view for each row, or a list with one for each part."""
        if not rows:
            return []
        texts = [row.text for row in rows]
        parsed = parse_without_asides(parser, texts) if self.skips_asides else parser.parse(texts)
        # Views that share a stream make the same choices, such as of a contraction, in a row.
        stream = self.random_stream or self.kind
        rewritten: list[Sequence[Rewrite]] = []
        for row, tokens in zip(rows, parsed, strict=True):
            new: Rewrite | list[Rewrite] = [(None, "empty")] * max(len(self.parts), 1)
            if tokens:
                new = self.rewrite(row.text, tokens, row_random(seed, stream, row))
            rewritten.append(new if isinstance(new, list) else [new])
        columns = [with_error_rate(rows, column) for column in zip(*rewritten, strict=True)]
        if not self.parts:
            return columns[0]
        return [list(views) for views in zip(*columns, strict=True)]
