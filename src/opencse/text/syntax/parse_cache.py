"""A cache of recent parses, as several constructors parse the same sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opencse.text.syntax.tokens import Parser, Token

_KEPT = 4096  # sentences, some tens of megabytes


class CachedParser:
    """A `Parser` that keeps the most recent parses of another one.

    Args:
        parser: Parses the texts that are not in the cache.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._known: dict[str, tuple[Token, ...]] = {}

    @property
    def digest(self) -> str:
        """Hash of the other parser."""
        return self._parser.digest

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text, in order."""
        wanted = list(texts)
        new = [text for text in dict.fromkeys(wanted) if text not in self._known]
        if len(self._known) + len(new) > _KEPT:
            self._known = {text: self._known[text] for text in wanted if text in self._known}
        self._known.update(zip(new, self._parser.parse(new), strict=True))
        return iter([self._known[text] for text in wanted])
