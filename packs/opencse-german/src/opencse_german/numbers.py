"""German contradictions by number: another count, amount, day or year, where only one can be true."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from opencse.text.english.claims import NumberSwap
from opencse.text.english.parse import Rewrite
from opencse.text.syntax import Token, apply_edits, match_case
from opencse_german import words as w
from opencse_german.clause import main_clause
from opencse_german.events import in_event, is_month
from opencse_german.lexicon import NAMES

_SERIES = (
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(),
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(),
)
_COUNT = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d{0,5}")
_DECIMAL = re.compile(r"(\d+,\d*)(\d)")
_DAY = re.compile(r"[1-9]\d?\.")
_YEAR = re.compile(r"1\d{3}|20\d\d")
_INEXACT = frozenset(
    """etwa ca. circa rund ungefähr mindestens höchstens maximal minimal bis zu über unter als fast knapp ab zwischen
    innerhalb binnen spätestens frühestens gut durchschnittlich je von alle nach vor""".split()
)
"""Words before a number that leave room for another."""
_LIMITS = frozenset(
    "bis zwischen innerhalb binnen spätestens frühestens mindestens höchstens maximal erst".split()
)
"""Words anywhere in the sentence that make a number a limit."""


class GermanNumberSwap(NumberSwap):
    """Change one number that says exactly how many, how much or when: "30 Tabletten", "am 3. Mai", "um 8 Uhr"."""

    tables = (NAMES,)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change one number."""
        words = {token.text.lower() for token in tokens}
        if words & (w.NEGATIVES | w.VAGUE | _LIMITS) or tokens[-1].text not in (".", "!"):
            return None, "no exact number"
        numbers = [
            (i, new) for i in range(len(tokens) - 1) if (new := _other(tokens, i, rng)) is not None
        ]
        if not numbers:
            return None, "no number"
        i, new = rng.choice(numbers)
        return apply_edits(
            text, [(tokens[i].start, tokens[i].end, match_case(new, tokens[i].text))]
        ), "number"


def _other(tokens: Sequence[Token], i: int, rng: random.Random) -> str | None:
    """Return another number in the form of the one at index i; None if it is none, or not exact."""
    word, later = tokens[i].text, tokens[i + 1].text
    before = [token.text.lower() for token in tokens[max(0, i - 2) : i]]
    if _DAY.fullmatch(word) and is_month(later):
        day = int(word[:-1])
        return (
            f"{_drawn(day, 1, 28, rng)}." if day <= 28 and in_event(main_clause(tokens)) else None
        )
    if _YEAR.fullmatch(word) and (
        not w.is_noun(later) or is_month(before[-1].title() if before else "")
    ):
        return (
            str(_drawn(int(word), int(word) - 20, min(int(word) + 9, 2025), rng))
            if _dated(tokens, i)
            else None
        )
    if _INEXACT & set(before[-1:]) or (len(before) > 1 and before[-2:] == ["bis", "zu"]):
        return None
    if i and (w.is_noun(tokens[i - 1].text) or tokens[i - 1].text in ("–", "-", "/", "x", "§")):
        return None  # "Version 3", "3 - 4"
    if not (w.is_noun(later) or later in w.UNITS):
        return None
    for series in _SERIES:
        if word.lower() in series:
            return rng.choice([other for other in series if other != word.lower()])
    if decimal := _DECIMAL.fullmatch(word):
        return decimal[1] + rng.choice([digit for digit in "123456789" if digit != decimal[2]])
    return _other_count(word, later, rng) if _COUNT.fullmatch(word) else None


def _other_count(word: str, unit: str, rng: random.Random) -> str | None:
    value = int(word.replace(".", ""))
    if value < 2:
        return None  # the noun would have to change too
    low, high = max(2, value // 2), value + max(value // 2, 3)
    if unit == "Uhr":
        low, high = 6, 22
    if unit in ("%", "Prozent"):
        high = min(high, 99)
    step = 10 ** (len(str(value)) - len(str(value).rstrip("0")))
    if step > 1 and value > step:
        other = _drawn(value // step, max(1, low // step), max(high // step, 2), rng) * step
    else:
        other = _drawn(value, low, high, rng)
    return f"{other:,}".replace(",", ".") if "." in word else str(other)


def _dated(tokens: Sequence[Token], i: int) -> bool:
    """Whether a year is the date of an event: "im Jahr 1998", "am 3. Mai 1998"."""
    named = i and (tokens[i - 1].text in ("Jahr", "Jahre") or is_month(tokens[i - 1].text))
    return bool(named) and in_event(main_clause(tokens))


def _drawn(value: int, low: int, high: int, rng: random.Random) -> int:
    """Draw an integer in [low, high] other than the value."""
    return rng.choice([other for other in range(low, max(high, low + 1) + 1) if other != value])
