"""Which English sentences a rewriting can contradict: prose, without words that leave both versions true."""

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
"""The beginning of a sentence up to a word that stands for what is possible, permitted or a condition.

Its opposite may be true as well: "allows you to take control" and "to lose control".
"""
SOME = re.compile(r"\b(?:may|might|some|sometimes|several|many|often|a lot)\b", re.IGNORECASE)
"""In the beginning of a sentence up to its negation: "some are" and "some are not" can both be true."""
ONLY = re.compile(r"\b(?:only|solely|but|else)\b|\w.*\botherwise\b", re.IGNORECASE)
"""Words that a negation or an opposite leaves without sense: "is not sold only here" does not deny that it is sold."""
BECAUSE = re.compile(r"\w.*\bbecause\b", re.IGNORECASE)
"""A reason after a statement: "is not cheap because it is old" may deny either."""
DATED_EVENT = re.compile(
    r"\b(?:was|were|\w+ed)\b.*\b(?:in|on|since)\b(?: \w+){0,2} (?:1\d|20)\d\d\b", re.IGNORECASE
)
"""Something that happened at a time: "was approved in 1986" says more than "was not rejected in 1986"."""


def statement(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a text whose predicate a word is, or a sentence made of the text in which it is; None if there is none."""
    is_predicate = any(
        tokens[t.head].text.lower() == word for t in tokens if t.relation == "cop"
    )  # "is dirty"
    if word.startswith("to ") or is_predicate:
        return text
    return attribute_clause(text, tokens, word)
