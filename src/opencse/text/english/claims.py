"""Contradictions and paraphrases from a table of expressions: quantifiers, comparatives, conditions, amounts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from opencse.text.english.lexicon import lexicon_rows
from opencse.text.english.parse import GrammarView, Rewrite, base_relation, word_at
from opencse.text.syntax import Token, apply_edits, match_case

_SMALL = "two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!,?\d)|\d+(?:\.\d+)?|" + "|".join(
    f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in _SMALL
)
_PLACES = {
    "n": f"{_NUMBER}|twenty|thirty|forty|fifty|a hundred|a thousand",
    "y": r"(?:1[5-9]|20)\d\d",
    "adj": "[a-z]{3,}",
    "a": "an?",
}
"""What the places of an expression stand for; {g} is a noun of `hyponyms.tsv`, and {s} a narrower one."""
_DEGREES = ("JJ", "RB", "VBN", "VBG")
"""Tags of what {adj} stands for: words with degrees ("more advanced than")."""
_MODIFIERS = ("RB", "RBR", "NN", "NNS", "CD")
"""Tags of words after which "not as … as" cannot stand: "a bit larger than", "two years older than"."""


class Claim(GrammarView):
    """Rewrite an expression that decides what a sentence claims, by a table.

    The columns of `[build.NAME]` are, for "At least ten people came on Monday.":

    - `NAME_reworded`: "No fewer than ten people came on Monday." It says the same, or what follows from the sentence.
    - `NAME_opposed`: "At most ten people came on Monday." It contradicts the sentence.
    - `NAME_opposed_reworded`: "Ten or fewer people came on Monday." It says what `NAME_opposed` says.
    - `NAME_exchanged`: "At least ten people came on Friday." Something else: another day, amount or direction.

    One expression is rewritten; the columns for which the table has nothing are null. The kinds of expressions are
    quantifiers, comparatives, conditions, modality, time, presence, entailment ("no dogs" entails "no poodles"), the
    calendar and amounts with units.

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
        """Rewrite one expression: a kind is drawn first, so that frequent kinds don't crowd out the others."""
        matches = [*_matches(text, tokens), *_amounts(text, tokens)]
        if not matches:
            return [(None, "no claim")] * len(self.parts)
        kind = rng.choice(sorted({match.kind for match in matches}))
        matches = [match for match in matches if match.kind == kind]
        longest = max(match.end - match.start for match in matches)  # "one of the largest" before "the largest"
        match = rng.choice([match for match in matches if match.end - match.start == longest])
        new = match.rewritten(rng)
        old = text[match.start : match.end]
        views = {part: apply_edits(text, [(match.start, match.end, match_case(new[part], old))]) for part in new}
        return [(views.get(part), kind) for part in self.parts]


Sides = Mapping[str, Sequence[str]]
"""What may take the place of an expression: under "same", under "opposed", and under "neither" of both."""


class _Line(NamedTuple):
    """An expression of `claims.tsv` that may be replaced, with what its line says.

    `needs` has tags or relations of which the first token must have one, if there are any, and `not_after` matches the
    words that must not precede it.
    """

    kind: str
    pattern: re.Pattern[str]
    needs: frozenset[str]
    not_after: re.Pattern[str]
    sides: Sides


class _Match(NamedTuple):
    """An expression in a sentence from `start` to `end`, and what may take its place."""

    kind: str
    start: int
    end: int
    sides: Sides

    def rewritten(self, rng: random.Random) -> dict[str, str]:
        """Draw a text for each column that has one."""
        opposed = rng.sample(self.sides["opposed"], min(2, len(self.sides["opposed"])))
        new = dict(zip(("opposed", "opposed_reworded"), opposed, strict=False))
        one_of = {"reworded": self.sides["same"], "exchanged": self.sides["neither"]}
        return new | {part: rng.choice(texts) for part, texts in one_of.items() if texts}


def _matches(text: str, tokens: Sequence[Token]) -> Iterator[_Match]:
    """Yield the expressions of the table in a sentence."""
    for i, token in enumerate(tokens):
        if token.text[0].isupper() and i and any(one.text[0].isalnum() for one in tokens[:i]):
            continue  # "May", or a title: "The Best of Both Worlds"
        for line in (*_lines().get(token.text.lower(), ()), *_lines()[""]):
            match = line.pattern.match(text, token.start)
            if match is None or line.not_after.fullmatch(word_at(tokens, i - 1)):
                continue
            if line.needs and not line.needs & {token.tag, base_relation(token)}:
                continue
            values = {name: value for name, value in match.groupdict().items() if value}
            if "adj" in values and not any(t.start == match.start("adj") and t.tag in _DEGREES for t in tokens):
                continue
            barred = "not " if i > 0 and tokens[i - 1].tag in _MODIFIERS else "\0"
            sides = {
                side: [new for one in expressions if not one.startswith(barred) for new in _filled(one, values)]
                for side, expressions in line.sides.items()
            }
            yield _Match(line.kind, match.start(), match.end(), sides)


def _filled(expression: str, values: Mapping[str, str]) -> list[str]:
    """Return an expression with the values of its places; several if it has a narrower noun."""
    narrower = _narrower()[values["g"].lower()] if "{s}" in expression else ("",)
    return [expression.format(**{**values, "s": noun}) for noun in narrower]


@cache
def _lines() -> dict[str, list[_Line]]:
    """Return the expressions of `claims.tsv` by their first word; "" for those that begin with a place."""
    lines: dict[str, list[_Line]] = {"": []}
    for kind, needs, one, other, neither, not_after, not_before in lexicon_rows("claims"):
        sides = one.split(" / "), other.split(" / ") if other else []
        for side, opposite in (sides, sides[::-1]):
            for expression in side:
                if expression.startswith("~"):  # written, but never replaced
                    continue
                others = [new.lstrip("~") for new in side if new != expression]
                opposed = [new.lstrip("~") for new in opposite]
                written: Sides = {"same": others, "opposed": opposed, "neither": [neither] if neither else []}
                if not other:  # a list of things that exclude each other
                    written = {"same": [], "opposed": opposed, "neither": [neither] if neither else others}
                not_preceded = re.compile("|".join(not_after.split()) or "(?!)")
                line = _Line(kind, _pattern(expression, not_before), frozenset(needs.split()), not_preceded, written)
                first = expression.lower().split()[0]
                lines.setdefault("" if first.startswith("{") else first, []).append(line)
    return lines


def _pattern(expression: str, not_before: str) -> re.Pattern[str]:
    """Return what matches an expression, whose first letter may be a capital."""
    places = {**_PLACES, "g": "|".join(_narrower())}
    first = expression[0]
    start = f"[{first}{first.upper()}]" if first.islower() else re.escape(first)
    escaped = start + re.escape(expression[1:])
    body = re.sub(r"\\{(\w+)\\}", lambda place: f"(?P<{place[1]}>{places[place[1]]})", escaped)
    ahead = rf"(?! (?:{'|'.join(not_before.split())})\b)" if not_before else ""
    return re.compile(rf"(?<![\w'’-]){body}(?![\w'’-]){ahead}")


@cache
def _narrower() -> dict[str, tuple[str, ...]]:
    """Return the narrower nouns of a noun, by noun: "poodles", "terriers" and "beagles" for "dogs"."""
    return {noun: tuple(narrower.split(" / ")) for noun, narrower in lexicon_rows("hyponyms")}


def _amounts(text: str, tokens: Sequence[Token]) -> Iterator[_Match]:
    """Yield the amounts with a unit: in another unit, and as another amount."""
    pattern, table = _units()
    for match in pattern.finditer(text):
        names, factor, smaller = table[match["unit"]]
        number, unit = match["number"], match["unit"]
        amount = float(number.replace(",", "")) if number[0].isdigit() else _SMALL.index(number.lower()) + 2.0
        others = [amount + n for n in (2, 3, 5, 9)] if amount <= 4 else [amount * f for f in (0.25, 0.5, 2, 3, 10)]
        if not smaller:  # a share
            others = [other for other in (amount + 13, amount + 37, amount / 2, amount / 3) if other < 100]
        others = [max(round(other), 2) if amount.is_integer() else other for other in others]
        pairs = [(amount, name) for name in names if name != unit]
        pairs_other = [(other, unit) for other in others if other != amount]
        if smaller:
            pairs.append((amount * factor, smaller))
            pairs_other += [(other * factor, smaller) for other, _ in pairs_other]
        same, neither = ([f"{number:,.10g} {name}" for number, name in some] for some in (pairs, pairs_other))
        yield _Match("amount", match.start(), match.end(), {"same": same, "opposed": [], "neither": neither})


@cache
def _units() -> tuple[re.Pattern[str], Mapping[str, tuple[list[str], int, str]]]:
    """Return what matches an amount with a unit, and by unit its names, and a smaller unit with the factor."""
    rows = [(names.split(", "), int(factor or 1), smaller) for names, factor, smaller in lexicon_rows("units")]
    table = {name: row for row in rows for name in row[0]}
    return re.compile(
        rf"(?<![\w.,:/$£€–-])(?P<number>{_NUMBER}) (?P<unit>{'|'.join(table)})(?![\w/²³'’-]| (?:and )?\d)"
    ), table
