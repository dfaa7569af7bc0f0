"""A parser that remembers what it parsed last: several constructors ask for the same sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opencse.syntax.tokens import Parser, Token

_KEPT = 4096  # sentences, some tens of megabytes


class Recent:
    """A `Parser` in front of another one.

    Args:
        parser: Parses what is not remembered.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._known: dict[str, tuple[Token, ...]] = {}

    @property
    def digest(self) -> str:
        """That of the parser behind."""
        return self._parser.digest

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text."""
        wanted = list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._known]
        if len(self._known) + len(new) > _KEPT:
            self._known = {text: self._known[text] for text in wanted if text in self._known}
        self._known.update(zip(new, self._parser.parse(new), strict=True))
        return iter([self._known[text] for text in wanted])
