"""Contradictions by number, only where the number says exactly how many, how much or when.

"It runs on Python 2" and "on Python 4" can both be true, and so can "more than 200" and "more than 190".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opencse.evaluation.probes.exclusive_names import has_one_subject, in_date_of_one_event
from opencse.text.english.lexicon import names, word_class
from opencse.text.english.numbers import NumberSwap
from opencse.text.syntax.tokens import Token

_YEAR = re.compile(r"1\d{3}|20\d\d")
_AMOUNT = re.compile(r"\d{1,3}(?:,\d{3})+|\d+|[a-z]+")
"""No decimals, which are often versions, and no ordinals, which say which one is meant."""

_INEXACT = word_class("inexact")
_NUMBERED = word_class("numbered")
"""Nouns whose number says which one is meant."""

_KNOWN = frozenset("the these those both all its his her their our your my".split())
_FINITE = ("VBD", "VBZ", "VBP", "MD")


@dataclass(frozen=True, kw_only=True)
class ExclusiveNumberSwap(NumberSwap):
    """Change one number that counts things exactly, or the date of an event that happens once."""

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers of which only one can be true."""
        if not any(token.tag in _FINITE for token in tokens):
            return []  # no statement
        return [i for i in super().candidates(text, tokens) if _is_exact(tokens, i)]


def _is_exact(tokens: Sequence[Token], i: int) -> bool:
    around = [tokens[k] for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    word = tokens[i].text.lower()
    if word.startswith("0") or any(each.text in ("and", "or", "&", "through") for each in around):
        return False
    if any(each.text.lower() in ("from", "to", "between") for each in tokens[max(0, i - 2) : i + 4]):
        return False  # "fell from 26 % to 19 %"
    if any(names().get(each.text) == "month" for each in around) or _YEAR.fullmatch(word):
        return has_one_subject(tokens) and in_date_of_one_event(tokens, i)
    return bool(_AMOUNT.fullmatch(word)) and tokens[i].tag == "CD" and _counts(tokens, i)


def _counts(tokens: Sequence[Token], i: int) -> bool:
    """Whether a number says how many there are of its plural noun, and no more or less.

    "The two sides" are known to be two, and "the sum of two numbers" is one of many sums.
    """
    before = [token.text.lower() for token in tokens[max(0, i - 3) : i]]
    if _INEXACT.intersection(before) or (i and tokens[i - 1].lemma.lower() in _NUMBERED):
        return False
    if i and tokens[i - 1].text.lower() in _KNOWN:
        return False
    noun = tokens[tokens[i].head]
    if noun.tag not in ("NNS", "NNPS") and noun.text != "%":
        return False
    whole = tokens[noun.head]
    return not (noun.relation.startswith("nmod") and whole.relation.startswith("nsubj"))
