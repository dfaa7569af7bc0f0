"""Queries and documents, for models that encode the two differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class RoleText(str):
    """A text with its role in a search, which is another key than the same text with another role or none.

    A model without roles encodes it like any text.
    """

    __slots__ = ()
    role = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RoleText) and self.role == other.role and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.role, str(self)))

    def __str__(self) -> str:
        return str.__str__(self)


class Query(RoleText):
    """A text that searches."""

    __slots__ = ()
    role = "query"


class Document(RoleText):
    """A text that is searched."""

    __slots__ = ()
    role = "document"


def as_queries(texts: Sequence[str]) -> list[str]:
    """Return texts as queries."""
    return [Query(text) for text in texts]


def as_documents(texts: Sequence[str]) -> list[str]:
    """Return texts as documents."""
    return [Document(text) for text in texts]


def plain(text: str) -> str:
    """Return a text without its role."""
    return str(text) if isinstance(text, RoleText) else text


def encode_roles(encode: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> np.ndarray:
    """Return the vectors (n, d) of texts with and without roles.

    A function that knows no roles (without the attribute `reads_roles`) gets each plain text once.
    """
    if getattr(encode, "reads_roles", False):
        return np.asarray(encode(tuple(texts)))
    places: dict[str, int] = {}
    rows = [places.setdefault(plain(text), len(places)) for text in texts]
    vectors = np.asarray(encode(tuple(places)))
    return vectors if len(places) == len(rows) else vectors[rows]
