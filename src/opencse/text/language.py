"""Language identification by stop words."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from functools import cache

LANGUAGES = {
    "da": "Danish",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "sv": "Swedish",
    "tr": "Turkish",
}
"""The languages that are recognised, by code."""

ENOUGH_TEXTS = 500
"""Sentences of a corpus by which its language is recognised."""

_MIN_SHARE = 0.15  # of stop words; a text with fewer is in another language, or is no prose
_WORD = re.compile(r"[^\W\d_]{2,}(?:['’][^\W\d_]+)?")


def likely_language(texts: Iterable[str]) -> str | None:
    """Return the code of the language whose stop words (spaCy's lists) make up most of the words.

    Args:
        texts: Some sentences; a hundred words are enough.

    Returns:
        One of `LANGUAGES`, or None if no language's stop words make up 15 % of the words.
    """
    words = [word.lower() for text in texts for word in _WORD.findall(text)]
    if not words:
        return None
    shares = {code: sum(word in _stop_words(code) for word in words) / len(words) for code in LANGUAGES}
    code, share = max(shares.items(), key=lambda item: item[1])
    return code if share >= _MIN_SHARE else None


@cache
def _stop_words(code: str) -> frozenset[str]:
    return frozenset(importlib.import_module(f"spacy.lang.{code}.stop_words").STOP_WORDS)
