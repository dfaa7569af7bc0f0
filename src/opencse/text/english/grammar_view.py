"""The base of all kinds that rewrite a sentence by its grammar: parsing, the generator of each row, and the scores."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.lexicon import LexiconTable, lexicon_bytes
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax.tokens import Token
from opencse.text.views.constructor import (
    BuiltView,
    ConstructorSpec,
    SourceRow,
    bundle_digest,
    row_random,
    with_error_rate,
)

Rewrite = tuple[str | None, str]
"""The new sentence, or None if no rule applies, and the rule that was applied, or the reason why none was."""


@dataclass(frozen=True, kw_only=True)
class GrammarView(ConstructorSpec):
    """A kind of view that rewrites each sentence by its grammar; a subclass implements `rewrite`.

    Class attributes:
        tables: Word lists that the output depends on.
        random_stream: Name under which the generators of the rows are seeded; by default the kind.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}
    tables: ClassVar[tuple[LexiconTable, ...]] = ()
    random_stream: ClassVar[str] = ""

    syntax: str = "syntax"

    @property
    def skips_asides(self) -> bool:
        """Whether brackets are left out of the parse ("Ann (born 1970) is …")."""
        return True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Rewrite one sentence; the result depends on the arguments and on the options of this kind alone.

        Args:
            text: The sentence.
            tokens: Its tokens, at least one.
            rng: The generator of the row.
        """
        raise NotImplementedError

    def open(self, *, seed: int = 0, workers: int = 1) -> GrammarRewriter:
        """Load the parser."""
        return GrammarRewriter(self, seed=seed)


class GrammarRewriter:
    """The opened form of any `GrammarView`: rows in, views with match error rates out.

    Args:
        spec: The kind and its options.
        seed: Seed of the generators of all rows.
    """

    def __init__(self, spec: GrammarView, *, seed: int = 0) -> None:
        from opencse.text.syntax import load_parser

        self._spec, self._seed = spec, seed
        self._parser = load_parser(spec.syntax)
        self.digest = bundle_digest(self._parser.digest, lexicon_bytes(*spec.tables))

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Rewrite each row's text."""
        texts = [row.text for row in rows]
        parsed = parse_without_asides(self._parser, texts) if self._spec.skips_asides else self._parser.parse(texts)
        return with_error_rate(rows, [self._rewrite(row, tokens) for row, tokens in zip(rows, parsed, strict=True)])

    def _rewrite(self, row: SourceRow, tokens: Sequence[Token]) -> Rewrite:
        if not tokens:
            return None, "empty"
        return self._spec.rewrite(row.text, tokens, row_random(self._seed, self._stream, row))

    @property
    def _stream(self) -> str:
        return self._spec.random_stream or self._spec.kind


@dataclass(frozen=True, kw_only=True)
class GrammarColumns(ConstructorSpec):
    """A kind of several views that turn on the same place of a sentence; a subclass implements `rewrite`.

    Class attributes:
        parts: Endings of the columns: `[build.NAME]` builds NAME_PART for each.
        tables: Word lists that the output depends on.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}
    parts: ClassVar[tuple[str, ...]]
    tables: ClassVar[tuple[LexiconTable, ...]] = ()

    syntax: str = "syntax"

    def columns(self, name: str) -> tuple[str, ...]:
        """Return one column for each part."""
        return tuple(f"{name}_{part}" for part in self.parts)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Rewrite one sentence, once for each part; arguments as in `GrammarView.rewrite`."""
        raise NotImplementedError

    def open(self, *, seed: int = 0, workers: int = 1) -> ColumnsRewriter:
        """Load the parser."""
        return ColumnsRewriter(self, seed=seed)


class ColumnsRewriter:
    """The opened form of any `GrammarColumns`: rows in, one view of each part out.

    Args:
        spec: The kind and its options.
        seed: Seed of the generators of all rows.
    """

    def __init__(self, spec: GrammarColumns, *, seed: int = 0) -> None:
        from opencse.text.syntax import load_parser

        self._spec, self._seed = spec, seed
        self._parser = load_parser(spec.syntax)
        self.digest = bundle_digest(self._parser.digest, lexicon_bytes(*spec.tables))

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Rewrite each row's text."""
        parsed = parse_without_asides(self._parser, [row.text for row in rows])
        rewritten = [self._rewrite(row, tokens) for row, tokens in zip(rows, parsed, strict=True)]
        columns = [with_error_rate(rows, [each[k] for each in rewritten]) for k in range(len(self._spec.parts))]
        return [list(views) for views in zip(*columns, strict=True)]

    def _rewrite(self, row: SourceRow, tokens: Sequence[Token]) -> list[Rewrite]:
        if not tokens:
            return [(None, "empty")] * len(self._spec.parts)
        return self._spec.rewrite(row.text, tokens, row_random(self._seed, self._spec.kind, row))
