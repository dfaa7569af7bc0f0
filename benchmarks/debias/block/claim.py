"""Contradictions and paraphrases from a table of expressions: quantifiers, comparatives, conditions, amounts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, bundle_digest, row_random
from opencse.text.views.edits import match_case

_SMALL = "one two three four five six seven eight nine ten eleven twelve".split()
_PLACES = {
    "{n}": r"(?P<n>\d[\d,.]*\d|\d|" + "|".join(_SMALL[1:]) + r"|twenty|thirty|forty|fifty|a hundred|a thousand)",
    "{y}": r"(?P<y>(?:1[5-9]|20)\d\d)",
    "{w}": r"(?P<w>[a-z]{4,})",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Expressions:
    """One side of a line of `claims.tsv`: expressions that mean the same, and those that mean the opposite.

    Attributes:
        kind: Kind of claim.
        pattern: Matches one of the expressions, where it may be replaced.
        same: The expressions.
        opposed: The expressions of the other side; none for a list of things that exclude each other.
    """

    kind: str
    pattern: re.Pattern[str]
    same: tuple[str, ...]
    opposed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Claims(ConstructorSpec):
    """Rewrite an expression that decides what a sentence claims, by a table, without a parser.

    The columns of `[build.NAME]` are, for "At least ten people came before 1990.":

    - `NAME_reworded`: "No fewer than ten people came before 1990." It says the same.
    - `NAME_opposed`: "At most ten people came before 1990." It contradicts the sentence.
    - `NAME_opposed_reworded`: "Ten or fewer people came before 1990." It says what `NAME_opposed` says.
    - `NAME_exchanged`: "At least ten people came before 1960." Another amount, month or direction.

    Each is null if the table has no such expression. `claims.tsv` has a line for each pair of opposites; `~` marks an
    expression that is written, but never replaced, since it has other meanings as well.

    Example:
        [build.claim]
        kind = "claim"
    """

    kind: ClassVar[str] = "claim"
    parts: ClassVar[tuple[str, ...]] = ("reworded", "opposed", "opposed_reworded", "exchanged")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return one column for each part."""
        return tuple(f"{name}_{part}" for part in self.parts)

    def open(self, *, seed: int = 0, workers: int = 1) -> ClaimRewriter:
        """Load the tables."""
        return ClaimRewriter(seed)


class ClaimRewriter:
    """The opened form of `Claims`.

    Args:
        seed: Seed of the generators of all rows.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed, self.digest = seed, bundle_digest(*(_read(name) for name in ("claims.tsv", "units.tsv")))

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Rewrite each row's text."""
        return [self._row(row) for row in rows]

    def _row(self, row: SourceRow) -> list[BuiltView]:
        rule, found = rewrite_claim(row.text, row_random(self._seed, Claims.kind, row))
        return [BuiltView(text=found.get(part), rule=rule) for part in Claims.parts]


def rewrite_claim(text: str, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Return the kind of claim that was rewritten, and the new sentences by part; the reason and none if there is none.

    A kind is drawn among those that occur, so that frequent ones don't crowd out the others.
    """
    places = [(each, match) for each in expressions() for match in each.pattern.finditer(text)]
    kinds = sorted({each.kind for each, _ in places}) + ["amount"] * bool(units()[0].search(text))
    if not kinds:
        return "no claim", {}
    kind = rng.choice(kinds)
    if kind == "amount":
        return kind, dict(_amounts(text, rng))
    # The longest expression: "at the beginning of" rather than "the beginning of".
    longest = max(len(match[0]) for each, match in places if each.kind == kind)
    each, match = rng.choice([one for one in places if one[0].kind == kind and len(one[1][0]) == longest])
    return kind, dict(_claims(text, each, match, rng))


def _claims(text: str, each: Expressions, match: re.Match[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    values = {name[-1]: value for name, value in match.groupdict().items() if value}

    def written(expression: str) -> str:
        new = expression.format(**values)
        return text[: match.start()] + match_case(new, match[0]) + text[match.end() :]

    others = [new for one in each.same if (new := written(one)) != text]
    if not each.opposed:
        yield "exchanged", rng.choice(others)
        return
    if others:
        yield "reworded", rng.choice(others)
    opposed = rng.sample(each.opposed, min(2, len(each.opposed)))
    yield from zip(("opposed", "opposed_reworded"), map(written, opposed), strict=False)


def _amounts(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Change an amount with a unit: to another unit, and to another amount."""
    pattern, table = units()
    match = rng.choice(list(pattern.finditer(text)))
    names, factor, smaller = table[match["unit"].lower()]
    number = float(match["number"].replace(",", "")) if match["number"][0].isdigit() else _number(match["number"])

    def written(amount: float, unit: str) -> str:
        return f"{text[: match.start()]}{amount:,.10g} {unit}{text[match.end() :]}"

    same = [written(number, name) for name in names if name != match["unit"]]
    yield "reworded", rng.choice([*same, written(number * factor, smaller)])
    other = max(number * rng.choice((0.1, 0.25, 0.5, 2, 3, 5, 10)), 2) if number > 4 else number + rng.randint(2, 9)
    other = round(other) if number == int(number) else other
    yield "exchanged", rng.choice([written(other, match["unit"]), written(other * factor, smaller)])


def _number(word: str) -> float:
    return _SMALL.index(word.lower()) + 1


@cache
def expressions() -> tuple[Expressions, ...]:
    """Return both sides of every line of `claims.tsv`."""
    found = []
    for kind, one, other, not_after, not_before in _lines("claims.tsv"):
        sides = [side.split(" / ") if side else [] for side in (one, other)]
        for side, opposite in (sides, sides[::-1]):
            matched = sorted((each for each in side if not each.startswith("~")), key=len, reverse=True)
            if matched:
                found.append(
                    Expressions(
                        kind=kind,
                        pattern=_pattern(matched, not_after.split(), not_before.split()),
                        same=tuple(each.lstrip("~") for each in side),
                        opposed=tuple(each.lstrip("~") for each in opposite),
                    )
                )
    return tuple(found)


def _pattern(matched: Sequence[str], not_after: Sequence[str], not_before: Sequence[str]) -> re.Pattern[str]:
    alternatives = []
    for i, each in enumerate(matched):
        pattern = re.escape(each).replace(r"\{", "{").replace(r"\}", "}")
        for place, group in _PLACES.items():
            pattern = pattern.replace(place, group.replace("(?P<", f"(?P<{'x' * i}"))
        alternatives.append(pattern)
    behind = "".join(rf"(?<!\b{word} )" for word in not_after)
    ahead = "".join(rf"(?! {word}\b)" for word in not_before)
    return re.compile(rf"(?<![\w'-]){behind}(?:{'|'.join(alternatives)})(?![\w'-]){ahead}", re.IGNORECASE)


@cache
def units() -> tuple[re.Pattern[str], Mapping[str, tuple[tuple[str, ...], int, str]]]:
    """Return what matches an amount with a unit, and for each unit its names, and a smaller unit with the factor."""
    table = {}
    for names, factor, smaller in _lines("units.tsv"):
        for name in names.split(", "):
            table[name] = (tuple(names.split(", ")), int(factor), smaller)
    number = r"(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?|" + "|".join(_SMALL[1:]) + ")"
    return re.compile(rf"(?<![\w.,–-]){number} (?P<unit>{'|'.join(table)})\b", re.IGNORECASE), table


def _lines(name: str) -> Iterator[list[str]]:
    for line in _read(name).split("\n")[1:]:
        if line:
            yield line.split("\t")


def _read(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
