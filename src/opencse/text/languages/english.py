"""The language pack of English: the kinds of views as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opencse.text.english.grammar_view import GrammarView
from opencse.text.english.opposites import opposed_adjectives, opposed_verbs
from opencse.text.english.statements import attribute_clause, is_predicate
from opencse.text.languages.pack import LanguagePack
from opencse.text.syntax import BUNDLED, Token
from opencse.text.views.registry import CONSTRUCTORS

_PROSE = re.compile(r"(?!.*\w\()[A-Z\d“\"'‘][\w\s,.'’‘“”\"()%$€£°&–—-]*[.!][\"”’)]?")
_POSSIBLE = re.compile(
    r"\b(?:allow\w*|enabl\w*|help\w*|permit\w*|lets?|letting|may|might|can|could) [^.,;]*$"
    r"|\b(?:if|when|whenever|whether|unless|once|until|while|suppose|let's) [^,;]*$",
    re.IGNORECASE,
)
"""The beginning of a sentence up to a word that stands for what is possible, permitted or a condition.

Its opposite may be true as well: "allows you to take control" and "to lose control".
"""
_SOME = re.compile(r"\b(?:may|might|some|sometimes|several|many|often|a lot)\b", re.IGNORECASE)
"""In the beginning of a sentence up to its negation: "some are" and "some are not" can both be true."""
_ONLY = re.compile(r"\b(?:only|solely|but|else)\b|\w.*\botherwise\b", re.IGNORECASE)
"""Words that a negation or an opposite leaves without sense: "is not sold only here" does not deny that it is sold."""
_BECAUSE = re.compile(r"\w.*\bbecause\b", re.IGNORECASE)
"""A reason after a statement: "is not cheap because it is old" may deny either."""
_DATED_EVENT = re.compile(r"\b(?:was|were|\w+ed)\b.*\b(?:in|on|since)\b(?: \w+){0,2} (?:1\d|20)\d\d\b", re.IGNORECASE)
"""Something that happened at a time: "was approved in 1986" says more than "was not rejected in 1986"."""


def _opposed_words(text: str) -> dict[str, str]:
    return opposed_adjectives(text) | opposed_verbs(text)


def _statement(text: str, tokens: Sequence[Token], word: str) -> str | None:
    if word.startswith("to ") or is_predicate(tokens, word):
        return text
    return attribute_clause(text, tokens, word)


ENGLISH = LanguagePack(
    code="en",
    name="English",
    rules={kind: spec for kind, spec in CONSTRUCTORS.items() if issubclass(spec, GrammarView)},
    syntax=BUNDLED,
    prose=_PROSE,
    leaves_open={
        "negation": (_SOME,),
        "antonym_swap": (_SOME, _POSSIBLE),
        "number_swap": (_POSSIBLE,),
    },
    unfit={"negation": (_ONLY, _BECAUSE), "antonym_swap": (_ONLY,), "negated_antonym": (_DATED_EVENT,)},
    opposed_words=_opposed_words,
    statement=_statement,
)
