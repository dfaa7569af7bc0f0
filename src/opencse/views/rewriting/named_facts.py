"""Contradictions by another number or name: hardly a word differs, yet the sentence is no longer true."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from opencse.syntax.tokens import Token
from opencse.views.constructor import ConstructorSpec
from opencse.views.rewriting.edits import Edit, apply, like
from opencse.views.rewriting.grammar_view import Made, Rewriter

_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_SERIES = (_WORDS, _TENS, _ORDINALS, "twice thrice".split(), "million billion trillion".split())
_LONG_MONTHS = ("January", "July", "August", "October", "December")
_PLACES = "Town City Street Road Avenue Park County School College House Island River Lake Bay Square Hall".split()
_NUMERAL = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$")
_ORDINAL = re.compile(r"(\d+)(st|nd|rd|th)$")
_GLUE = "-–—/:.,'’°"


@dataclass(frozen=True, kw_only=True)
class NumberSwap(ConstructorSpec):
    """Change one number, year, amount or ordinal to another of like size.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "number_swap"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser."""
        return Rewriter(self.syntax, _other_number, seed=seed, kind=self.kind)


@dataclass(frozen=True, kw_only=True)
class EntitySwap(ConstructorSpec):
    """Change one name to another of its kind: a country, a nationality, a city, a first name, a month, a weekday, ...

    The names come from a list that ships with the library (`assets/lexicon/names.tsv`), so that a kind is certain.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "entity_swap"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser and the names."""
        return Rewriter(self.syntax, _other_name, seed=seed, kind=self.kind, data=names_path().read_bytes())


def names_path() -> Path:
    """Return the bundled list of names."""
    return Path(__file__).parents[2] / "assets" / "lexicon" / "names.tsv"


def _other_number(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
    places = [i for i, token in enumerate(tokens) if _is_number(text, tokens, i)]
    chance.shuffle(places)
    for i in places:
        token = tokens[i]
        new, rule = _changed(text, tokens, i, chance)
        if new is not None and new != token.text:
            edits: list[Edit] = [(token.start, token.end, like(new, token.text))]
            return apply(text, [*edits, *_article(tokens, i, new)]), rule
    return None, "no number"


def _is_number(text: str, tokens: Sequence[Token], i: int) -> bool:
    token = tokens[i]
    before, after = text[max(token.start - 1, 0) : token.start], text[token.end : token.end + 2]
    if (before in _GLUE and before and token.start) or (after[:1] in _GLUE and after[1:].isalnum() and after):
        return False  # "3-2", "10:30", "1988–89", "Mark-2"
    if (
        i
        and tokens[i - 1].tag in ("NNP", "NNPS")
        and token.relation not in ("nummod", "obl")
        and not _is_month(tokens[i - 1])
    ):
        return False  # "Apollo 11"
    word = token.text.lower()
    return bool(_NUMERAL.match(word) or _ORDINAL.match(word)) or any(word in series for series in _SERIES)


def _is_month(token: Token) -> bool:
    return _names().get(token.text, "") == "month"


def _changed(text: str, tokens: Sequence[Token], i: int, chance: random.Random) -> tuple[str | None, str]:
    word = tokens[i].text.lower()
    for series in _SERIES:
        if word in series:
            if word == "second" and tokens[i].tag not in ("JJ",):
                return None, "no number"
            return chance.choice([other for other in series if other != word]), "number word"
    ordinal = _ORDINAL.match(word)
    if ordinal:
        value = int(ordinal[1])
        low, high = (max(value - 6, 1), min(value + 6, 21)) if value <= 21 else (value // 2, value * 2)
        other = _drawn(value, low, high, chance)
        return f"{other}{_suffix(other)}", "ordinal"
    early = i and tokens[i - 1].text.lower() == "in" and tokens[i].relation == "obl"  # "in 785"
    if re.fullmatch(r"1[0-9]{3}|20[0-4][0-9]" + "|[1-9][0-9]{2}" * bool(early), word) and not _counts(tokens, i):
        return _other_year(text, int(word), chance), "year"
    return _other_amount(tokens, i, chance), "number"


def _counts(tokens: Sequence[Token], i: int) -> bool:
    """Whether a numeral counts what follows it ("2000 soldiers"; but "the 2010 meeting")."""
    return tokens[i].relation == "nummod" and tokens[i].head > i and tokens[tokens[i].head].tag in ("NNS", "NNPS")


def _other_year(text: str, year: int, chance: random.Random) -> str | None:
    """Another year that keeps its order among the other years of the sentence."""
    years = [int(y) for y in re.findall(r"(?<!\d)(?:1\d{3}|20[0-4]\d)(?!\d)", text)]
    low = max([y for y in years if y < year], default=year - 40) + 1
    high = min([y for y in years if y > year], default=min(year + 40, 2025)) - 1
    others = [y for y in range(max(low, year - 40), min(high, year + 40) + 1) if abs(y - year) > 1]
    return str(chance.choice(others)) if others else None


def _other_amount(tokens: Sequence[Token], i: int, chance: random.Random) -> str | None:
    word = tokens[i].text
    whole, dot, decimals = word.partition(".")
    value = int(whole.replace(",", ""))
    near = [tokens[k].text.lower() for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    if any(_is_month(tokens[k]) for k in (i - 1, i + 1) if 0 <= k < len(tokens)) and value <= 31:
        return str(_drawn(value, 1, 28, chance))
    percent = any(unit in ("%", "percent", "per") for unit in near)
    if value <= 1 and not decimals:
        return None  # the noun would have to change too
    high = min(value * 2 + 2, 99) if percent and value <= 99 else value + max(value // 2, 3)
    other = _drawn(value, max(2, value // 2), max(high, 3), chance)
    zeros = len(whole.replace(",", "")) - len(whole.replace(",", "").rstrip("0"))
    if zeros and value >= 20:  # a round number stays round
        step = 10**zeros if value >= 4 * 10**zeros else 10 ** max(zeros - 1, 1)
        other = max(step, other // step * step)
        other = other + step if other == value else other
    if percent and other > 99:
        return None
    new = f"{other:,}" if "," in whole else str(other)
    return f"{new}.{''.join(chance.choice('123456789') for _ in decimals)}" if dot else new


def _drawn(value: int, low: int, high: int, chance: random.Random) -> int:
    other = chance.randint(low, max(high - 1, low))
    return other + 1 if other >= value else other


def _suffix(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def _article(tokens: Sequence[Token], i: int, new: str) -> list[Edit]:
    """Mend "a" or "an" before the new word ("an eighth", "a ninth", "an 11th")."""
    before = tokens[i - 1] if i else None
    if before is None or before.text.lower() not in ("a", "an"):
        return []
    article = "an" if re.match(r"[aeio](?!ne)|8|11(?!\d)|18(?!\d)", new) else "a"
    return [] if article == before.text.lower() else [(before.start, before.end, like(article, before.text))]


@cache
def _names() -> dict[str, str]:
    """Kind by name."""
    lines = names_path().read_text(encoding="utf-8").split("\n")[1:]
    return dict(line.split("\t") for line in lines if line)


@cache
def _of_kind(kind: str) -> tuple[str, ...]:
    return tuple(name for name, other in _names().items() if other == kind)


def _other_name(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
    found = []
    for i, token in enumerate(tokens):
        kind = _names().get(token.text)
        if kind is not None and not _part_of_name(text, tokens, i, kind):
            found.append((i, kind))
    if not found:
        return None, "no name"
    i, kind = chance.choice(found)
    name = tokens[i].text
    others = [other for other in _of_kind(kind) if other not in text]
    if kind == "month":  # "June 30" cannot become "February 30"
        long = [k for k in (i - 1, i + 1) if 0 <= k < len(tokens) and tokens[k].text in ("29", "30", "31")]
        others = [other for other in others if not long or other in _LONG_MONTHS] or others
    new = chance.choice(others)
    # A name that occurs more than once changes everywhere, or it would be two.
    edits: list[Edit] = []
    for k, token in enumerate(tokens):
        if token.text == name and _glue_free(text, token):
            before = tokens[k - 1] if k else None
            edits.append((token.start, token.end, new))
            if before is not None and before.text.lower() in ("a", "an"):
                article = "an" if new[0] in "AEIO" else "a"
                if article != before.text.lower():
                    edits.append((before.start, before.end, like(article, before.text)))
    return apply(text, edits), kind


def _glue_free(text: str, token: Token) -> bool:
    around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
    return not any(mark in "-–/" for mark in around)


def _part_of_name(text: str, tokens: Sequence[Token], i: int, kind: str) -> bool:
    """Whether a word stands within a longer name ("the Paris Review", "New England", "Lake Victoria")."""
    token = tokens[i]
    if not _glue_free(text, token):
        return True
    capital = [
        0 <= k < len(tokens) and tokens[k].text[:1].isupper() and k > 0 and tokens[k].tag != "PRP"
        for k in (i - 1, i + 1)
    ]
    if i + 1 < len(tokens) and tokens[i + 1].text in _PLACES:
        return True
    if kind in ("man", "woman"):  # "Peter Smith": first names only
        return (capital[0] and tokens[i - 1].tag in ("NNP", "NNPS")) or text[token.end : token.end + 2] in ("'s", "’s")
    if kind in ("month", "weekday"):
        return token.tag not in ("NNP", "NNPS", "NN")
    if kind == "nationality":
        return capital[1] or (capital[0] and tokens[i - 1].pos == "PROPN")
    of_name = i > 1 and tokens[i - 1].text in ("of", "the", "and", "de") and tokens[i - 2].text[:1].isupper() and i > 2
    comma = i + 2 < len(tokens) and tokens[i + 1].text == ","  # "Paris, Texas" stays a pair of places
    return capital[0] or capital[1] or of_name or (comma and tokens[i + 2].text[:1].isupper() and kind == "city")
