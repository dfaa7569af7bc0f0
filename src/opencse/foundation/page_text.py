"""Text of strangers as a page can show it."""

from __future__ import annotations

import unicodedata

# Invisible characters that join others: some scripts and emoji need them.
_JOINERS = "\u200c\u200d"


def shown(text: object, limit: int = 240) -> str:
    """Return a text as a page can show it; the template escapes it.

    Longer texts are cut at `limit` characters, with their length noted. Line breaks and tabs become
    spaces. Control characters, overrides of the reading direction, lone surrogates and the like are
    spelled out, as ⟨U+202E⟩.

    Args:
        text: Any value.
        limit: Maximum number of characters.
    """
    whole = str(text)
    visible = "".join(map(_visible, whole[:limit]))
    if len(whole) > limit:
        visible += f"… ({len(whole):,} characters)"
    return visible


def _visible(character: str) -> str:
    if character in "\t\n\r\v\f\x85\u2028\u2029":
        return " "
    if character not in _JOINERS and unicodedata.category(character) in (
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
    ):
        return f"⟨U+{ord(character):04X}⟩"
    return character
