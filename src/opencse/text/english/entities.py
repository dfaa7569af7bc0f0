"""Contradictions by a name or a number: one becomes another of the same kind, and hardly a word differs."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import ClassVar

from opencse.text.english.lexicon import LexiconTable, article_edits, lexicon_rows, names
from opencse.text.english.parse import GrammarView, Rewrite, replaced, word_at
from opencse.text.syntax import Edit, Token, apply_edits

_LONG_MONTHS = ("January", "July", "August", "October", "December")
_PLACES = "Town City Street Road Avenue Park County School College House Island River Lake Bay Square Hall".split()
_SERIES = [words.split() for name, words in lexicon_rows("classes") if name.startswith("number words")]
_NUMERAL = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$")
_ORDINAL = re.compile(r"(\d+)(st|nd|rd|th)$")
_GLUE = "-–—/:.,'’°"


class EntitySwap(GrammarView):
    """Change one name to another of its kind: a country, a nationality, a city, a first name, a month, a weekday, ...

    The names come from a list that ships with the library (`assets/lexicon/names.tsv`), so the kind is certain. Null
    if the sentence has no name from the list.

    Example:
        [build.entity]
        kind = "entity_swap"

        >>> EntitySwap().preview("She moved to Chile.")
        ['She moved to Japan.']
    """

    kind = "entity_swap"
    tables: ClassVar[tuple[LexiconTable, ...]] = ("names",)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change one name, drawn at random, wherever it occurs in the sentence."""
        candidates = self.candidates(text, tokens)
        if not candidates:
            return None, "no name"
        place, kind = rng.choice(candidates)
        new = rng.choice(self.replacements(text, tokens, place, kind))
        edits: list[Edit] = []
        for i, token in enumerate(tokens):  # a name that stayed in one place would be a second name
            if token.text == tokens[place].text and _stands_alone(text, token):
                edits += [(token.start, token.end, new), *article_edits(text, tokens, i, new)]
        return apply_edits(text, edits), kind

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
        """Return the names that may be changed: their places and kinds."""
        kinds = [(i, names().get(token.text)) for i, token in enumerate(tokens)]
        return [(i, kind) for i, kind in kinds if kind is not None and not _part_of_name(text, tokens, i, kind)]

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the names of a kind that the sentence does not have and that fit next to a day of the month."""
        others = [name for name, other in names().items() if other == kind and name not in text]
        if kind == "month":  # "June 30" cannot become "February 30"
            neighbours = [k for k in (place - 1, place + 1) if 0 <= k < len(tokens)]
            late = any(tokens[k].text in ("29", "30", "31") for k in neighbours)
            return [name for name in others if not late or name in _LONG_MONTHS] or others
        return others


def _stands_alone(text: str, token: Token) -> bool:
    """Whether no hyphen or slash joins a token to another word."""
    around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
    return not any(mark in "-–/" for mark in around)


def _part_of_name(text: str, tokens: Sequence[Token], i: int, kind: str) -> bool:
    """Whether a word stands within a longer name ("the Paris Review", "New England", "Lake Victoria")."""
    token = tokens[i]
    before, after = (
        0 < k < len(tokens) and tokens[k].text[:1].isupper() and tokens[k].tag != "PRP" for k in (i - 1, i + 1)
    )
    if not _stands_alone(text, token) or (i + 1 < len(tokens) and tokens[i + 1].text in _PLACES):
        return True
    if kind in ("man", "woman"):  # "Peter Smith": first names only
        return (before and tokens[i - 1].tag in ("NNP", "NNPS")) or text[token.end : token.end + 2] in ("'s", "’s")
    if kind in ("month", "weekday"):
        return token.tag not in ("NNP", "NNPS", "NN")
    if kind == "nationality":
        return after or (before and tokens[i - 1].pos == "PROPN")
    of_name = i > 2 and tokens[i - 1].text in ("of", "the", "and", "de") and tokens[i - 2].text[:1].isupper()
    listed = i + 2 < len(tokens) and tokens[i + 1].text == "," and tokens[i + 2].text[:1].isupper()
    return before or after or of_name or (listed and kind == "city")  # "Paris, Texas" stays a pair of places


class NumberSwap(GrammarView):
    """Change one number, year, amount or ordinal to another of similar size. Null if the sentence has none.

    Example:
        [build.number]
        kind = "number_swap"

        >>> NumberSwap().preview("The museum opened in 1990.")
        ['The museum opened in 1980.']
    """

    kind = "number_swap"
    tables: ClassVar[tuple[LexiconTable, ...]] = ("names",)

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change the first number, in random order, that has another."""
        places = self.candidates(text, tokens)
        rng.shuffle(places)
        for i in places:
            token = tokens[i]
            new, rule = _other_number(text, tokens, i, rng)
            if new is not None and new != token.text:
                return apply_edits(text, [replaced(token, new), *article_edits(text, tokens, i, new)]), rule
        return None, "no number"

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers that may be changed."""
        return [i for i in range(len(tokens)) if _is_number(text, tokens, i)]


def _is_number(text: str, tokens: Sequence[Token], i: int) -> bool:
    token, word = tokens[i], tokens[i].text.lower()
    before, after = text[max(token.start - 1, 0) : token.start], text[token.end : token.end + 2]
    if (before and before in _GLUE) or (after and after[0] in _GLUE and after[1:].isalnum()):
        return False  # "3-2", "10:30", "1988–89", "Mark-2"
    named = i and tokens[i - 1].tag in ("NNP", "NNPS") and not _is_month(tokens[i - 1])
    if named and token.relation not in ("nummod", "obl"):
        return False  # "Apollo 11"
    return bool(_NUMERAL.match(word) or _ORDINAL.match(word)) or any(word in series for series in _SERIES)


def _is_month(token: Token) -> bool:
    return names().get(token.text, "") == "month"


def _other_number(text: str, tokens: Sequence[Token], i: int, rng: random.Random) -> tuple[str | None, str]:
    """Return another number in the form of the one at index i, None if there is none, and the rule."""
    word = tokens[i].text.lower()
    series = next((series for series in _SERIES if word in series), None)
    if word == "second" and tokens[i].tag != "JJ":
        return None, "no number"
    if series is not None:
        return rng.choice([other for other in series if other != word]), "number word"
    if ordinal := _ORDINAL.match(word):
        value = int(ordinal[1])
        low, high = (max(value - 6, 1), min(value + 6, 21)) if value <= 21 else (value // 2, value * 2)
        other = _drawn(value, low, high, rng)
        ending = "th" if other % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(other % 10, "th")
        return f"{other}{ending}", "ordinal"
    early = i and word_at(tokens, i - 1) == "in" and tokens[i].relation == "obl"  # "in 785"
    if re.fullmatch(r"1[0-9]{3}|20[0-4][0-9]" + "|[1-9][0-9]{2}" * bool(early), word) and not _counts(tokens, i):
        return _other_year(text, int(word), rng), "year"
    return _other_amount(tokens, i, rng), "number"


def _counts(tokens: Sequence[Token], i: int) -> bool:
    """Whether a numeral counts what follows it ("2000 soldiers"; but "the 2010 meeting")."""
    return tokens[i].relation == "nummod" and tokens[i].head > i and tokens[tokens[i].head].tag in ("NNS", "NNPS")


def _other_year(text: str, year: int, rng: random.Random) -> str | None:
    """Return another year, at most 40 away, that keeps its order among the other years of the sentence."""
    years = [int(y) for y in re.findall(r"(?<!\d)(?:1\d{3}|20[0-4]\d)(?!\d)", text)]
    low = max([y for y in years if y < year], default=year - 40) + 1
    high = min([y for y in years if y > year], default=min(year + 40, 2025)) - 1
    others = [y for y in range(max(low, year - 40), min(high, year + 40) + 1) if abs(y - year) > 1]
    return str(rng.choice(others)) if others else None


def _other_amount(tokens: Sequence[Token], i: int, rng: random.Random) -> str | None:
    """Return another amount: a day of the month, a percentage up to 99, or up to half as much more or less."""
    whole, dot, decimals = tokens[i].text.partition(".")
    value = int(whole.replace(",", ""))
    neighbours = [tokens[k] for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    if value <= 31 and any(map(_is_month, neighbours)):
        return str(_drawn(value, 1, 28, rng))
    percent = any(token.text.lower() in ("%", "percent", "per") for token in neighbours)
    if value <= 1 and not decimals:
        return None  # the noun would have to change too
    high = min(value * 2 + 2, 99) if percent and value <= 99 else value + max(value // 2, 3)
    other = _drawn(value, max(2, value // 2), max(high, 3), rng)
    zeros = len(whole.replace(",", "")) - len(whole.replace(",", "").rstrip("0"))
    if zeros and value >= 20:  # a round number stays round
        step = 10**zeros if value >= 4 * 10**zeros else 10 ** max(zeros - 1, 1)
        other = max(step, other // step * step)
        other = other + step if other == value else other
    if percent and other > 99:
        return None
    new = f"{other:,}" if "," in whole else str(other)
    return f"{new}.{''.join(rng.choice('123456789') for _ in decimals)}" if dot else new


def _drawn(value: int, low: int, high: int, rng: random.Random) -> int:
    """Draw an integer in [low, high] other than the value."""
    other = rng.randint(low, max(high - 1, low))
    return other + 1 if other >= value else other
