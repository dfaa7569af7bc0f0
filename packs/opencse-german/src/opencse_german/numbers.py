"""German contradictions by number: another count, amount, day or year, if only one can be true."""

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
    """etwa ca. circa rund ungefähr mindestens höchstens maximal minimal bis zu über unter
    als fast knapp ab zwischen innerhalb binnen spätestens frühestens gut durchschnittlich
    je von alle nach vor""".split()
)
"""Words before a number that leave room for another."""
_LIMITS = frozenset(
    "bis zwischen innerhalb binnen spätestens frühestens mindestens höchstens maximal erst".split()
)
"""Words anywhere in the sentence that make a number a limit."""


class GermanNumberSwap(NumberSwap):
    """Change one exact number: "30 Tabletten", "am 3. Mai", "um 8 Uhr"."""

    tables = (NAMES,)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change one number."""
        words = {token.text.lower() for token in tokens}
        if words & (w.NEGATIVES | w.VAGUE | _LIMITS) or tokens[-1].text not in (".", "!"):
            return None, "no exact number"
        numbers = []
        for i in range(len(tokens) - 1):
            other = _other(tokens, i, rng)
            if other is not None:
                numbers.append((i, other))
        if not numbers:
            return None, "no number"
        i, new = rng.choice(numbers)
        token = tokens[i]
        edit = (token.start, token.end, match_case(new, token.text))
        return apply_edits(text, [edit]), "number"


def _other(tokens: Sequence[Token], i: int, rng: random.Random) -> str | None:
    """Return another number in the form of the one at index i; None if there is no exact one."""
    word = tokens[i].text
    later = tokens[i + 1].text
    before = [token.text.lower() for token in tokens[max(0, i - 2) : i]]
    if _DAY.fullmatch(word) and is_month(later):
        day = int(word[:-1])
        if day > 28 or not in_event(main_clause(tokens)):
            return None
        return f"{_drawn(day, 1, 28, rng)}."
    after_month = is_month(before[-1].title() if before else "")
    if _YEAR.fullmatch(word) and (not w.is_noun(later) or after_month):
        if not _dated(tokens, i):
            return None
        year = int(word)
        return str(_drawn(year, year - 20, min(year + 9, 2025), rng))
    if _INEXACT & set(before[-1:]) or before[-2:] == ["bis", "zu"]:
        return None
    if i:
        # "Version 3", "3 - 4"
        left = tokens[i - 1].text
        if w.is_noun(left) or left in ("–", "-", "/", "x", "§"):
            return None
    if not (w.is_noun(later) or later in w.UNITS):
        return None
    for series in _SERIES:
        if word.lower() in series:
            return rng.choice([other for other in series if other != word.lower()])
    decimal = _DECIMAL.fullmatch(word)
    if decimal:
        return decimal[1] + rng.choice([digit for digit in "123456789" if digit != decimal[2]])
    if _COUNT.fullmatch(word):
        return _other_count(word, later, rng)
    return None


def _other_count(word: str, unit: str, rng: random.Random) -> str | None:
    value = int(word.replace(".", ""))
    if value < 2:
        # The noun would have to change as well.
        return None
    low = max(2, value // 2)
    high = value + max(value // 2, 3)
    if unit == "Uhr":
        low = 6
        high = 22
    if unit in ("%", "Prozent"):
        high = min(high, 99)
    # Round numbers stay round: 1,500 becomes 1,800, not 1,732.
    step = 10 ** (len(str(value)) - len(str(value).rstrip("0")))
    if step > 1 and value > step:
        other = _drawn(value // step, max(1, low // step), max(high // step, 2), rng) * step
    else:
        other = _drawn(value, low, high, rng)
    if "." in word:
        return f"{other:,}".replace(",", ".")
    return str(other)


def _dated(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a year is the date of an event: "im Jahr 1998", "am 3. Mai 1998"."""
    named = i and (tokens[i - 1].text in ("Jahr", "Jahre") or is_month(tokens[i - 1].text))
    return bool(named) and in_event(main_clause(tokens))


def _drawn(value: int, low: int, high: int, rng: random.Random) -> int:
    """Draw an integer in [low, high] other than the value."""
    others = [other for other in range(low, max(high, low + 1) + 1) if other != value]
    return rng.choice(others)
