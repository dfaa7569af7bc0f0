"""Which English sentences can be contradicted: prose without words that leave both true."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opencse.text.english.clause import attribute_clause
from opencse.text.syntax import Token

PROSE = re.compile(r"(?!.*\w\()[A-Z\d“\"'‘][\w\s,.'’‘“”\"()%$€£°&–—-]*[.!][\"”’)]?")
"""A sentence of prose, without calls of functions."""
POSSIBLE = re.compile(
    r"\b(?:allow\w*|enabl\w*|help\w*|permit\w*|lets?|letting|may|might|can|could) [^.,;]*$"
    r"|\b(?:if|when|whenever|whether|unless|once|until|while|suppose|let's) [^,;]*$",
    re.IGNORECASE,
)
"""The beginning of a sentence up to a word of possibility, permission or condition.

Its opposite may be true as well: "allows you to take control" and "to lose control".
"""
SOME = re.compile(r"\b(?:may|might|some|sometimes|several|many|often|a lot)\b", re.IGNORECASE)
"""Before a negation these leave both versions true: "some are" and "some are not"."""
ONLY = re.compile(r"\b(?:only|solely|but|else)\b|\w.*\botherwise\b", re.IGNORECASE)
"""Words that a negation or an opposite does not deny: "is not sold only here" means it is sold."""
BECAUSE = re.compile(r"\w.*\bbecause\b", re.IGNORECASE)
"""A reason after a statement: "is not cheap because it is old" may deny either."""
DATED_EVENT = re.compile(
    r"\b(?:was|were|\w+ed)\b.*\b(?:in|on|since)\b(?: \w+){0,2} (?:1\d|20)\d\d\b", re.IGNORECASE
)
"""A dated event: "was approved in 1986" implies more than "was not rejected in 1986"."""


def statement(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a text whose predicate is `word`, or a sentence made from the text in which it is."""
    # "is dirty"
    is_predicate = any(
        tokens[token.head].text.lower() == word for token in tokens if token.relation == "cop"
    )
    if word.startswith("to ") or is_predicate:
        return text
    return attribute_clause(text, tokens, word)
