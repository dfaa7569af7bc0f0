"""One expression of a sentence replaced: a claim by a table, a name or a number by its kind."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar, NamedTuple

from opencse.text.english.lexicon import LexiconTable, article_edits, lexicon_rows, names
from opencse.text.english.parse import GrammarView, Rewrite, base_relation, replaced, word_at
from opencse.text.syntax import Edit, Token, apply_edits, match_case

_SMALL = "two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!,?\d)|\d+(?:\.\d+)?|" + "|".join(
    f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in _SMALL
)
# Patterns of an expression's places; {g} is a noun of `hyponyms.tsv`, and {s} a narrower one.
_PLACES = {
    "n": f"{_NUMBER}|twenty|thirty|forty|fifty|a hundred|a thousand",
    "y": r"(?:1[5-9]|20)\d\d",
    "adj": "[a-z]{3,}",
    "a": "an?",
}
# Tags of what {adj} stands for: words with degrees ("more advanced than").
_DEGREES = ("JJ", "RB", "VBN", "VBG")
# Tags of words after which "not as … as" cannot stand: "a bit larger than".
_MODIFIERS = ("RB", "RBR", "NN", "NNS", "CD")


class Claim(GrammarView):
    """Rewrite an expression that decides what a sentence claims, by a table.

    The columns of `[build.NAME]` are, for "At least ten people came on Monday.":

    - `NAME_reworded`: "No fewer than ten people came on Monday." It means the same, or follows from
      the sentence.
    - `NAME_opposed`: "At most ten people came on Monday." It contradicts the sentence.
    - `NAME_opposed_reworded`: "Ten or fewer people came on Monday." It means the same as
      `NAME_opposed`.
    - `NAME_exchanged`: "At least ten people came on Friday." Another day, amount or direction.

    One expression is rewritten; the columns for which the table has nothing are null. The kinds of
    expressions are quantifiers, comparatives, conditions, modality, time, presence, entailment ("no
    dogs" entails "no poodles"), the calendar and amounts with units.

    Example:
        [build.claim]
        kind = "claim"

        >>> Claim().preview("The soup contains nuts.")
        [['The soup includes nuts.', 'The soup is free of nuts.', 'The soup lacks nuts.', None]]
    """

    kind = "claim"
    parts = ("reworded", "opposed", "opposed_reworded", "exchanged")
    tables = ("claims", "units", "hyponyms")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Rewrite one expression.

        A kind is drawn first, so that frequent kinds do not crowd out the others.
        """
        matches = [*_matches(text, tokens), *_amounts(text, tokens)]
        if not matches:
            return [(None, "no claim")] * len(self.parts)
        kind = rng.choice(sorted({match.kind for match in matches}))
        matches = [match for match in matches if match.kind == kind]
        # "one of the largest" before "the largest"
        longest = max(match.end - match.start for match in matches)
        match = rng.choice([match for match in matches if match.end - match.start == longest])
        new = match.rewritten(rng)
        old = text[match.start : match.end]
        views: list[Rewrite] = []
        for part in self.parts:
            view = None
            if part in new:
                edit = (match.start, match.end, match_case(new[part], old))
                view = apply_edits(text, [edit])
            views.append((view, kind))
        return views


Sides = Mapping[str, Sequence[str]]
"""Replacements of an expression: those of the "same" meaning, "opposed", and "neither"."""


class _Line(NamedTuple):
    """An expression of `claims.tsv` that may be replaced, with the rest of its line.

    `needs` has tags or relations of which the first token must have one, if there are any, and
    `not_after` matches the words that must not precede it.
    """

    kind: str
    pattern: re.Pattern[str]
    needs: frozenset[str]
    not_after: re.Pattern[str]
    sides: Sides


class _Match(NamedTuple):
    """An expression in a sentence from `start` to `end`, and its possible replacements."""

    kind: str
    start: int
    end: int
    sides: Sides

    def rewritten(self, rng: random.Random) -> dict[str, str]:
        """Draw a text for each column that has one."""
        opposed = rng.sample(self.sides["opposed"], min(2, len(self.sides["opposed"])))
        new = dict(zip(("opposed", "opposed_reworded"), opposed, strict=False))
        if self.sides["same"]:
            new["reworded"] = rng.choice(self.sides["same"])
        if self.sides["neither"]:
            new["exchanged"] = rng.choice(self.sides["neither"])
        return new


def _matches(text: str, tokens: Sequence[Token]) -> Iterator[_Match]:
    """Yield the expressions of the table in a sentence."""
    for i, token in enumerate(tokens):
        if token.text[0].isupper() and any(before.text[0].isalnum() for before in tokens[:i]):
            # "May", or a title: "The Best of Both Worlds".
            continue
        for line in (*_lines().get(token.text.lower(), ()), *_lines()[""]):
            match = line.pattern.match(text, token.start)
            if match is None or line.not_after.fullmatch(word_at(tokens, i - 1)):
                continue
            if line.needs and not line.needs & {token.tag, base_relation(token)}:
                continue
            values = {name: value for name, value in match.groupdict().items() if value}
            if "adj" in values and not _has_degrees(tokens, match.start("adj")):
                continue
            modified = i > 0 and tokens[i - 1].tag in _MODIFIERS
            sides: dict[str, list[str]] = {}
            for side, expressions in line.sides.items():
                sides[side] = []
                for form in expressions:
                    if not (modified and form.startswith("not ")):
                        sides[side] += _filled(form, values)
            yield _Match(line.kind, match.start(), match.end(), sides)


def _has_degrees(tokens: Sequence[Token], start: int) -> bool:
    """Return whether the token at an offset is a word with degrees."""
    return any(token.start == start and token.tag in _DEGREES for token in tokens)


def _filled(expression: str, values: Mapping[str, str]) -> list[str]:
    """Return an expression with the values of its places; several if it has a narrower noun."""
    if "{s}" not in expression:
        return [expression.format(**values)]
    narrower = _narrower()[values["g"].lower()]
    return [expression.format(**values, s=noun) for noun in narrower]


@cache
def _lines() -> dict[str, list[_Line]]:
    """Return the expressions of `claims.tsv` by their first word; "" if they begin with a place."""
    lines: dict[str, list[_Line]] = {"": []}
    for kind, needs, left, right, neither, not_after, not_before in lexicon_rows("claims"):
        left_side = left.split(" / ")
        right_side = right.split(" / ") if right else []
        for side, opposite in ((left_side, right_side), (right_side, left_side)):
            for expression in side:
                if expression.startswith("~"):
                    # It is a replacement, but never replaced.
                    continue
                others = [new.lstrip("~") for new in side if new != expression]
                written: dict[str, Sequence[str]] = {
                    "same": others,
                    "opposed": [new.lstrip("~") for new in opposite],
                    "neither": [neither] if neither else [],
                }
                if not right:
                    # A list of things that exclude each other.
                    written["same"] = []
                    written["neither"] = [neither] if neither else others
                line = _Line(
                    kind=kind,
                    pattern=_pattern(expression, not_before),
                    needs=frozenset(needs.split()),
                    # Without words to exclude, a pattern that matches nothing.
                    not_after=re.compile("|".join(not_after.split()) or "(?!)"),
                    sides=written,
                )
                first = expression.lower().split()[0]
                if first.startswith("{"):
                    first = ""
                lines.setdefault(first, []).append(line)
    return lines


def _pattern(expression: str, not_before: str) -> re.Pattern[str]:
    """Return the pattern of an expression, whose first letter may be a capital."""
    places = {**_PLACES, "g": "|".join(_narrower())}
    first = expression[0]
    start = f"[{first}{first.upper()}]" if first.islower() else re.escape(first)
    escaped = start + re.escape(expression[1:])
    body = re.sub(r"\\{(\w+)\\}", lambda place: f"(?P<{place[1]}>{places[place[1]]})", escaped)
    ahead = rf"(?! (?:{'|'.join(not_before.split())})\b)" if not_before else ""
    return re.compile(rf"(?<![\w'’-]){body}(?![\w'’-]){ahead}")


@cache
def _narrower() -> dict[str, tuple[str, ...]]:
    """Return narrower nouns by noun: "poodles", "terriers" and "beagles" for "dogs"."""
    return {noun: tuple(narrower.split(" / ")) for noun, narrower in lexicon_rows("hyponyms")}


def _amounts(text: str, tokens: Sequence[Token]) -> Iterator[_Match]:
    """Yield the amounts with a unit: in another unit, and as another amount."""
    pattern, table = _units()
    for match in pattern.finditer(text):
        unit_names, factor, smaller = table[match["unit"]]
        number = match["number"]
        unit = match["unit"]
        if number[0].isdigit():
            amount = float(number.replace(",", ""))
        else:
            amount = _SMALL.index(number.lower()) + 2.0
        others = _other_amounts(amount, is_share=not smaller)
        same = [f"{amount:,.10g} {name}" for name in unit_names if name != unit]
        neither = [f"{other:,.10g} {unit}" for other in others]
        if smaller:
            same.append(f"{amount * factor:,.10g} {smaller}")
            neither += [f"{other * factor:,.10g} {smaller}" for other in others]
        sides = {"same": same, "opposed": [], "neither": neither}
        yield _Match("amount", match.start(), match.end(), sides)


def _other_amounts(amount: float, *, is_share: bool) -> list[float]:
    """Return amounts of similar size; a share, such as a percentage, stays below 100."""
    if is_share:
        others = [amount + 13, amount + 37, amount / 2, amount / 3]
        others = [other for other in others if other < 100]
    elif amount <= 4:
        others = [amount + n for n in (2, 3, 5, 9)]
    else:
        others = [amount * factor for factor in (0.25, 0.5, 2, 3, 10)]
    if amount.is_integer():
        others = [max(round(other), 2) for other in others]
    return [other for other in others if other != amount]


@cache
def _units() -> tuple[re.Pattern[str], Mapping[str, tuple[list[str], int, str]]]:
    """Return the pattern of an amount with a unit, and the row of the table by unit.

    A row has the names of the unit, and a smaller unit with the factor.
    """
    table = {}
    for listed, factor, smaller in lexicon_rows("units"):
        unit_names = listed.split(", ")
        for name in unit_names:
            table[name] = (unit_names, int(factor or 1), smaller)
    before = r"(?<![\w.,:/$£€–-])"
    after = r"(?![\w/²³'’-]| (?:and )?\d)"
    pattern = rf"{before}(?P<number>{_NUMBER}) (?P<unit>{'|'.join(table)}){after}"
    return re.compile(pattern), table


_LONG_MONTHS = ("January", "July", "August", "October", "December")
_IN_PLACES = (
    "Town City Street Road Avenue Park County School College House Island River Lake Bay Square "
    "Hall".split()
)
_SERIES = [
    words.split() for name, words in lexicon_rows("classes") if name.startswith("number words")
]
_NUMERAL = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$")
_ORDINAL = re.compile(r"(\d+)(st|nd|rd|th)$")
_GLUE = "-–—/:.,'’°"


class EntitySwap(GrammarView):
    """Change one name to another of its kind: a country, a city, a first name, a month, ...

    The names come from a list that ships with the library (`assets/lexicon/names.tsv`), so the kind
    is certain. Null if the sentence has no name from the list.

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
        for i, token in enumerate(tokens):
            # A name that stayed in one place would be a second name.
            if token.text == tokens[place].text and _stands_alone(text, token):
                edits.append((token.start, token.end, new))
                edits += article_edits(text, tokens, i, new)
        return apply_edits(text, edits), kind

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
        """Return the names that may be changed: their places and kinds."""
        candidates = []
        for i, token in enumerate(tokens):
            kind = names().get(token.text)
            if kind is not None and not _part_of_name(text, tokens, i, kind):
                candidates.append((i, kind))
        return candidates

    def replacements(self, text: str, tokens: Sequence[Token], place: int, kind: str) -> list[str]:
        """Return the other names of a kind that fit next to a day of the month."""
        others = [
            name for name, its_kind in names().items() if its_kind == kind and name not in text
        ]
        neighbours = [k for k in (place - 1, place + 1) if 0 <= k < len(tokens)]
        late = any(tokens[k].text in ("29", "30", "31") for k in neighbours)
        if kind == "month" and late:
            # "June 30" cannot become "February 30".
            return [name for name in others if name in _LONG_MONTHS] or others
        return others


def _stands_alone(text: str, token: Token) -> bool:
    """Return whether no hyphen or slash joins a token to another word."""
    around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
    return not any(mark in "-–/" for mark in around)


def _part_of_name(text: str, tokens: Sequence[Token], i: int, kind: str) -> bool:
    """Return whether a word stands within a longer name ("the Paris Review", "Lake Victoria")."""
    token = tokens[i]
    before = _is_capitalised(tokens, i - 1)
    after = _is_capitalised(tokens, i + 1)
    next_word = tokens[i + 1].text if i + 1 < len(tokens) else ""
    if not _stands_alone(text, token) or next_word in _IN_PLACES:
        return True
    if kind in ("man", "woman"):
        # Only first names without a surname: not "Peter Smith".
        named_before = before and tokens[i - 1].tag in ("NNP", "NNPS")
        return named_before or text[token.end : token.end + 2] in ("'s", "’s")
    if kind in ("month", "weekday"):
        return token.tag not in ("NNP", "NNPS", "NN")
    if kind == "nationality":
        return after or (before and tokens[i - 1].pos == "PROPN")
    if before or after:
        return True
    joined = i > 2 and tokens[i - 1].text in ("of", "the", "and", "de")
    if joined and tokens[i - 2].text[:1].isupper():
        return True
    # "Paris, Texas" stays a pair of places.
    listed = i + 2 < len(tokens) and next_word == "," and tokens[i + 2].text[:1].isupper()
    return listed and kind == "city"


def _is_capitalised(tokens: Sequence[Token], k: int) -> bool:
    """Return whether a word that does not open the sentence has a capital, and is no pronoun."""
    if not 0 < k < len(tokens):
        return False
    return tokens[k].text[:1].isupper() and tokens[k].tag != "PRP"


class NumberSwap(GrammarView):
    """Change one number, year, amount or ordinal to another of similar size.

    Null if the sentence has none.

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
                edits = [replaced(token, new), *article_edits(text, tokens, i, new)]
                return apply_edits(text, edits), rule
        return None, "no number"

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[int]:
        """Return the places of the numbers that may be changed."""
        return [i for i in range(len(tokens)) if _is_number(text, tokens, i)]


def _is_number(text: str, tokens: Sequence[Token], i: int) -> bool:
    """Return whether a token is a number that may be changed."""
    token = tokens[i]
    word = token.text.lower()
    before = text[max(token.start - 1, 0) : token.start]
    after = text[token.end : token.end + 2]
    if (before and before in _GLUE) or (after and after[0] in _GLUE and after[1:].isalnum()):
        # "3-2", "10:30", "1988–89", "Mark-2"
        return False
    named = i > 0 and tokens[i - 1].tag in ("NNP", "NNPS") and not _is_month(tokens[i - 1])
    if named and token.relation not in ("nummod", "obl"):
        # "Apollo 11"
        return False
    if _NUMERAL.match(word) or _ORDINAL.match(word):
        return True
    return any(word in series for series in _SERIES)


def _is_month(token: Token) -> bool:
    return names().get(token.text, "") == "month"


def _other_number(
    text: str, tokens: Sequence[Token], i: int, rng: random.Random
) -> tuple[str | None, str]:
    """Return another number in the form of the one at index i, or None, and the rule."""
    word = tokens[i].text.lower()
    series = next((series for series in _SERIES if word in series), None)
    if word == "second" and tokens[i].tag != "JJ":
        return None, "no number"
    if series is not None:
        return rng.choice([other for other in series if other != word]), "number word"
    ordinal = _ORDINAL.match(word)
    if ordinal:
        return _other_ordinal(int(ordinal[1]), rng), "ordinal"
    # "in 785" is a year, too.
    early = i > 0 and word_at(tokens, i - 1) == "in" and tokens[i].relation == "obl"
    is_year = re.fullmatch(r"1[0-9]{3}|20[0-4][0-9]", word)
    if early:
        is_year = is_year or re.fullmatch("[1-9][0-9]{2}", word)
    # "2000 soldiers" are counted, but not "the 2010 meeting".
    head = tokens[i].head
    counts = tokens[i].relation == "nummod" and head > i and tokens[head].tag in ("NNS", "NNPS")
    if is_year and not counts:
        return _other_year(text, int(word), rng), "year"
    return _other_amount(tokens, i, rng), "number"


def _other_ordinal(value: int, rng: random.Random) -> str:
    """Return another ordinal: one up to 21st if there are few, such as centuries."""
    if value <= 21:
        other = _drawn(value, max(value - 6, 1), min(value + 6, 21), rng)
    else:
        other = _drawn(value, value // 2, value * 2, rng)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(other % 10, "th")
    if other % 100 in (11, 12, 13):
        ending = "th"
    return f"{other}{ending}"


def _other_year(text: str, year: int, rng: random.Random) -> str | None:
    """Return another year, at most 40 away, in the same order among the sentence's other years."""
    found = re.findall(r"(?<!\d)(?:1\d{3}|20[0-4]\d)(?!\d)", text)
    years = [int(digits) for digits in found]
    # The year stays between its neighbours: "from 1914 to 1918" must not become "from 1920".
    earlier = [other for other in years if other < year]
    later = [other for other in years if other > year]
    low = max(earlier, default=year - 40) + 1
    # No year in the future, if the sentence does not name one.
    high = min(later, default=min(year + 40, 2025)) - 1
    others = []
    for other in range(max(low, year - 40), min(high, year + 40) + 1):
        # At least two years away, or the claim would hardly change.
        if abs(other - year) > 1:
            others.append(other)
    if not others:
        return None
    return str(rng.choice(others))


def _other_amount(tokens: Sequence[Token], i: int, rng: random.Random) -> str | None:
    """Return another amount: a day of a month, a percentage, or up to half as much more or less."""
    whole, dot, decimals = tokens[i].text.partition(".")
    value = int(whole.replace(",", ""))
    neighbours = [tokens[k] for k in (i - 1, i + 1) if 0 <= k < len(tokens)]
    if value <= 31 and any(map(_is_month, neighbours)):
        return str(_drawn(value, 1, 28, rng))
    percent = any(token.text.lower() in ("%", "percent", "per") for token in neighbours)
    if value <= 1 and not decimals:
        # The noun would have to change as well.
        return None
    high = value + max(value // 2, 3)
    if percent and value <= 99:
        high = min(value * 2 + 2, 99)
    other = _drawn(value, max(2, value // 2), max(high, 3), rng)
    digits = whole.replace(",", "")
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros and value >= 20:
        # A round number stays round.
        step = 10**zeros if value >= 4 * 10**zeros else 10 ** max(zeros - 1, 1)
        other = max(step, other // step * step)
        if other == value:
            other += step
    if percent and other > 99:
        return None
    new = f"{other:,}" if "," in whole else str(other)
    if not dot:
        return new
    return f"{new}.{''.join(rng.choice('123456789') for _ in decimals)}"


def _drawn(value: int, low: int, high: int, rng: random.Random) -> int:
    """Draw an integer in [low, high] other than the value."""
    other = rng.randint(low, max(high - 1, low))
    # The range has one number less, and those from the value on move up by one.
    return other + 1 if other >= value else other
