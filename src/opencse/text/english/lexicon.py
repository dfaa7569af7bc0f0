"""The word lists of the rewriting kinds: antonyms, opposites, names and classes of words from `assets/lexicon`.

| table | file | source |
|---|---|---|
| `antonyms` | `antonyms.tsv` | Open English WordNet: every antonym of a word, in one of its senses |
| `opposites` | `opposites.tsv` | written for this project: one opposite that holds in nearly every context |
| `affixes` | `affixes.tsv` | written for this project: stems of opposites by a negative prefix, or by -ful and -less |
| `particles` | `particles.tsv` | written for this project: verbs with a particle, and their opposites |
| `collocations` | `collocations.tsv` | written for this project: opposites of verbs that depend on the object |
| `names` | `names.tsv` | written for this project: countries, cities, first names, months, … |
| `claims`, `hyponyms`, `units` | `claims.tsv`, … | written for this project: expressions that decide what is claimed |

The others belong to the rules and change with the code: `classes.tsv` (words by what they have in common),
`contexts.tsv` (where a word has its opposite), `infinitives.tsv`, `irregular_verbs.tsv`, `negative_words.tsv` and
`topic_questions.tsv`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

LexiconTable = (
    Literal["antonyms", "opposites", "affixes", "particles", "collocations", "names", "claims", "units", "hyponyms"]
    | Traversable
)
"""A bundled word list, or the file of one that a language pack brings."""
OPPOSITE_TABLES: tuple[LexiconTable, ...] = ("opposites", "antonyms", "affixes", "particles", "collocations")
"""The lists from which opposites are found."""
RuleTable = Literal["classes", "contexts", "infinitives", "irregular_verbs", "negative_words", "topic_questions"]

_PREFIX = re.compile(r"(?:un|in|im|il|ir|dis|a)(?=...)")


@dataclass(frozen=True, kw_only=True)
class OpposedVerb:
    """The opposite of a verb in a certain construction.

    Attributes:
        opposite: Base of the opposite, perhaps with a particle ("take off").
        objects: The nouns that it needs as object or passive subject. With particles also "yes" for every noun, "no"
            for none, or "any" for both.
        complementary: See `is_complementary`.
    """

    opposite: str
    objects: frozenset[str]
    complementary: bool


def lexicon_bytes(*tables: LexiconTable | RuleTable) -> bytes:
    """Return the bytes of some word lists, one after another: what the output depends on."""
    folder = files("opencse") / "assets" / "lexicon"
    paths = (folder / f"{table}.tsv" if isinstance(table, str) else table for table in tables)
    return b"".join(path.read_bytes() for path in paths)


def lexicon_rows(table: LexiconTable | RuleTable) -> list[list[str]]:
    """Return the cells of a word list, without its header."""
    return [line.split("\t") for line in lexicon_bytes(table).decode().split("\n")[1:] if line]


@cache
def _word_classes() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in lexicon_rows("classes")}


def word_class(name: str) -> frozenset[str]:
    """Return the words of one class of `classes.tsv`."""
    return _word_classes()[name]


SYMMETRIC_VERBS = word_class("symmetric verbs")
"""Verbs whose subject and object can be exchanged without a change of meaning: "A meets B", "A equals B"."""
ACTORS = word_class("actors")
"""Common nouns for persons, groups of persons and animals: what can be the subject of any action."""


@cache
def opposites() -> dict[tuple[str, str], str]:
    """Return one opposite by word and part of speech ("ADJ", "ADV", "NOUN", "VERB" or "ADP").

    The pairs of `opposites.tsv` come first, then those of `affixes.tsv`. WordNet adds those pairs of which one word is
    the other with a negative prefix ("stable", "unstable"): its other pairs are opposites in one sense of many
    ("second", "first", but "a second later"). Prefixed pairs with too many senses are left out.
    """
    table = {(word, pos): opposite for word, opposite, pos, _ in lexicon_rows("opposites")}
    for affix, pos, stems in lexicon_rows("affixes"):
        for stem in stems.split():
            plain, negative = affixed(affix, stem)
            table.setdefault((plain, pos), negative)
            table.setdefault((negative, pos), plain)
    for word, opposite, pos in lexicon_rows("antonyms"):
        longer, shorter = sorted((word, opposite), key=len, reverse=True)
        prefix = _PREFIX.match(longer)
        plain_pair = prefix is not None and longer[prefix.end() :] == shorter and not longer.endswith("ed")
        if plain_pair and not {word, opposite} & word_class("not opposite"):
            table.setdefault((word, pos), opposite)
    return table


def affixed(affix: str, stem: str) -> tuple[str, str]:
    """Return the plain and the negative word of a stem: ("possible", "impossible"), ("harmful", "harmless").

    Args:
        affix: A prefix, or "less"; "in" becomes "im", "il" or "ir" where the stem's first letter requires it.
        stem: A word, without "-ful" if the affix is "less".
    """
    if affix == "less":
        return stem + "ful", stem + "less"
    if affix == "in":
        affix = {"b": "im", "m": "im", "p": "im", "l": "il", "r": "ir"}.get(stem[0], "in")
    return stem, affix + stem


@cache
def _complementary() -> dict[tuple[str, str], bool]:
    return {(word, pos): marked == "yes" for word, _, pos, marked in lexicon_rows("opposites")}


def is_complementary(word: str, pos: str) -> bool:
    """Whether the negated opposite of a word says the same: "was not rejected" for "was accepted".

    Scales and changes leave a third possibility ("did not fall" is not "rose"). Predicate adjectives count as
    complementary ("is not cold" for "is hot") unless they are comparatives or name one of several possibilities.

    Args:
        word: A word in its base form.
        pos: Its part of speech, as in `opposites`.
    """
    return _complementary().get((word, pos), pos == "ADJ")


@cache
def opposed_phrases(table: Literal["particles", "collocations"]) -> dict[str, tuple[OpposedVerb, ...]]:
    """Return the opposites of "take off" by verb and particle, or of "keep" (a promise: "break") by verb."""
    entries: dict[str, tuple[OpposedVerb, ...]] = {}
    for phrase, opposite, objects, marked in lexicon_rows(table):
        entry = OpposedVerb(opposite=opposite, objects=frozenset(objects.split()), complementary=marked == "yes")
        entries[phrase] = (*entries.get(phrase, ()), entry)
    return entries


@cache
def names() -> dict[str, str]:
    """Return the kind of each name ("country", "city", "man", "month", …) by name."""
    return dict(lexicon_rows("names"))
