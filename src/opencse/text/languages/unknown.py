"""The rules for languages that have no pack: a count in digits becomes another, whatever the words around it mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opencse.text.english.numbers import NumberSwap
from opencse.text.languages.pack import LanguagePack
from opencse.text.syntax.tokens import Token

_COUNT = re.compile(r"[1-9]\d{0,3}")


@dataclass(frozen=True, kw_only=True)
class CountSwap(NumberSwap):
    """Change one number of up to four digits before a word in small letters: "12 salles"."""

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the counts."""
        numbers = super().candidates(text, tokens)
        return [i for i in numbers if _COUNT.fullmatch(tokens[i].text) and _before_word(tokens, i)]


def _before_word(tokens: Sequence[Token], i: int) -> bool:
    return i + 1 < len(tokens) and tokens[i + 1].text.isalpha() and tokens[i + 1].text.islower()


def unknown_language(code: str, name: str) -> LanguagePack:
    """Return the rules that hold for any language with spaces between words."""
    return LanguagePack(code=code, name=name, rules={CountSwap.kind: CountSwap}, syntax="blank:xx")
