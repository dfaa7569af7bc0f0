"""The interface of parsers: tokens with offsets, tags, heads and relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a sentence.

    Attributes:
        text: The token as it is written.
        start: Offset of its first character in the sentence.
        end: Offset of the character after its last.
        lemma: Its dictionary form.
        tag: Fine tag (Penn Treebank: VBZ, NN, ...).
        pos: Coarse tag (Universal Dependencies: VERB, NOUN, ...).
        head: Index of its head; its own index for a root.
        relation: Relation to its head, by Universal Dependencies or the scheme that the pipeline was trained with.
    """

    text: str
    start: int
    end: int
    lemma: str
    tag: str
    pos: str
    head: int
    relation: str


class Parser(Protocol):
    """A parser: texts in, tokens out, in order."""

    @property
    def digest(self) -> str:
        """A hash of the model, which is recorded with everything that is built with it."""
        ...

    def parse(self, texts: Iterable[str]) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens of each text; none for an empty one."""
        ...
