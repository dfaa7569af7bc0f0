"""The base of all kinds that rewrite a sentence by its grammar: parsing, the generator of each row, and the scores."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from opencse.text.english.lexicon import LexiconTable, lexicon_bytes
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import Token
from opencse.text.views.constructor import ConstructorSpec, SourceRow, bundle_digest, row_random, with_error_rate

Rewrite = tuple[str | None, str]
"""The new sentence, or None if no rule applies, and the rule that was applied, or the reason why none was."""


@dataclass(frozen=True, kw_only=True)
class GrammarView(ConstructorSpec):
    """A kind of view that rewrites each sentence by its grammar; a subclass implements `rewrite`.

    Class attributes:
        parts: Endings of the columns, if it rewrites a sentence in several ways: `[build.NAME]` builds NAME_PART.
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
        return tuple(f"{name}_{part}" for part in self.parts) or (name,)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite | list[Rewrite]:
        """Rewrite one sentence, once for each part; the result depends on the arguments and the options alone.

        Args:
            text: The sentence.
            tokens: Its tokens, at least one.
            rng: The generator of the row.
        """
        raise NotImplementedError

    def open(self, *, seed: int = 0, prepared: Any = None) -> GrammarRewriter:
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

    def __call__(self, rows: Sequence[SourceRow]) -> list[Any]:
        """Rewrite each row's text: one view for each row, or a list with one for each part."""
        texts = [row.text for row in rows]
        parsed = parse_without_asides(self._parser, texts) if self._spec.skips_asides else self._parser.parse(texts)
        rewritten = [self._rewrite(row, tokens) for row, tokens in zip(rows, parsed, strict=True)]
        columns = [with_error_rate(rows, column) for column in zip(*rewritten, strict=True)]
        return [list(views) for views in zip(*columns, strict=True)] if self._spec.parts else columns[0] if rows else []

    def _rewrite(self, row: SourceRow, tokens: Sequence[Token]) -> list[Rewrite]:
        spec = self._spec
        if not tokens:
            return [(None, "empty")] * max(len(spec.parts), 1)
        rewritten = spec.rewrite(row.text, tokens, row_random(self._seed, spec.random_stream or spec.kind, row))
        return rewritten if isinstance(rewritten, list) else [rewritten]
