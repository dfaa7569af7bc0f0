"""Contradictions by name: one name becomes another of the same kind, such as a country, a city or a month."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.articles import article_edits
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import LexiconTable, names
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits

_LONG_MONTHS = ("January", "July", "August", "October", "December")
_PLACES = "Town City Street Road Avenue Park County School College House Island River Lake Bay Square Hall".split()


@dataclass(frozen=True, kw_only=True)
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

    kind: ClassVar[str] = "entity_swap"
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
    if not _stands_alone(text, token):
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
