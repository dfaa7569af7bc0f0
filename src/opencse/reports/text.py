"""Foreign text made fit to be shown: clipped, and with nothing in it that could turn the page around it."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # without these some scripts and emoji fall apart


def shown(text: object, limit: int = 240) -> str:
    """Return a text as a page may show it; escaping is the template's task.

    Longer texts are cut at `limit` characters, and say how long they are. Line breaks and tabs become spaces. Control
    characters, overrides of the reading direction, lone surrogates and the like are spelled out, as ⟨U+202E⟩.

    Args:
        text: Any value.
        limit: Characters kept.
    """
    whole = str(text)
    kept = "".join(map(_visible, whole[:limit]))
    return kept if len(whole) <= limit else f"{kept}… ({len(whole):,} characters)"


def short(text: str, limit: int = 26) -> str:
    """Return a name for a figure, where there is no room: cut at `limit` characters, and safe as `shown` makes it."""
    return shown(text if len(text) <= limit else text[: limit - 1] + "…")[: 2 * limit]


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    if character not in _JOINERS and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return f"⟨U+{ord(character):04X}⟩"
    return character
