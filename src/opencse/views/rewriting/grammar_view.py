"""What the constructors share that make one sentence from another by its grammar alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from opencse.syntax.asides import parse_without_asides
from opencse.syntax.tokens import Token
from opencse.views.constructor import Row, View, bundle_digest, row_random, with_error_rate

Made = tuple[str | None, str]
"""The new sentence, or None, and the rule: what was done, or why nothing."""


class Rewriter:
    """A parser and a function that makes one sentence from another by its grammar.

    Args:
        syntax: Which pipeline parses.
        make: From text, tokens and the row's generator to the new sentence, or None, and the rule.
        seed: The source of chance.
        kind: Name of the constructor.
        data: Tables that the output depends on.
    """

    def __init__(
        self,
        syntax: str,
        make: Callable[[str, Sequence[Token], random.Random], Made],
        *,
        seed: int,
        kind: str,
        data: bytes = b"",
    ) -> None:
        from opencse.syntax import load_parser

        self._parser = load_parser(syntax)
        self._make, self._seed, self._kind = make, seed, kind
        self.digest = bundle_digest(self._parser.digest, data)

    def __call__(self, rows: Sequence[Row]) -> list[View]:
        """Rewrite each row's text."""
        parsed = parse_without_asides(self._parser, [row.text for row in rows])
        return with_error_rate(rows, [self._one(row, tokens) for row, tokens in zip(rows, parsed, strict=True)])

    def _one(self, row: Row, tokens: Sequence[Token]) -> Made:
        if not tokens:
            return None, "empty"
        return self._make(row.text, tokens, row_random(self._seed, self._kind, row))
