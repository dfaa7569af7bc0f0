"""Edits of a sentence by character offsets: everything else keeps its spacing and its case."""

from __future__ import annotations

from collections.abc import Iterable

Edit = tuple[int, int, str]
"""Replace the characters from start to end (exclusive) by a string."""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits done; they must not overlap."""
    out, place = [], 0
    for start, end, new in sorted(edits):
        if start < place:
            raise ValueError(f"edits overlap at character {start}")
        out += [text[place:start], new]
        place = end
    return "".join([*out, text[place:]])


def like(word: str, model: str) -> str:
    """Give a word the case of another: all capitals, a first capital, or none."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def decapitalised(word: str) -> str:
    """Take a first capital away where it stood there for the start of the sentence."""
    return word if word.isupper() or word.startswith("I'") else word[:1].lower() + word[1:]
