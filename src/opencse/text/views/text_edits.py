"""Edits of a sentence by character offsets; everything else keeps its spacing and its case."""

from __future__ import annotations

from collections.abc import Iterable

Edit = tuple[int, int, str]
"""Replace the characters from start to end (exclusive) by a string."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits applied.

    Raises:
        ValueError: Two edits overlap.
    """
    pieces, place = [], 0
    for start, end, new in sorted(edits):
        if start < place:
            raise ValueError(f"edits overlap at character {start}")
        pieces += [text[place:start], new]
        place = end
    return "".join([*pieces, text[place:]])


def match_case(word: str, model: str) -> str:
    """Return a word in the case of another: all capitals, a first capital, or unchanged."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def decapitalise(word: str) -> str:
    """Return a word that opened a sentence without its capital; acronyms and "I'…" keep theirs."""
    return word if word.isupper() or word.startswith("I'") else word[:1].lower() + word[1:]
