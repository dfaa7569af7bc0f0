"""The word lists of the rewriting kinds: antonyms, opposites and names from `assets/lexicon`, and classes of verbs.

| table | file | source |
|---|---|---|
| `antonyms` | `antonyms.tsv` | Open English WordNet: every antonym of a word, in one of its senses |
| `opposites` | `opposites.tsv` | written for this project: one opposite that holds in nearly every context |
| `names` | `names.tsv` | written for this project: countries, cities, first names, months, … |
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal

Table = Literal["antonyms", "opposites", "names"]

SYMMETRIC_VERBS = frozenset(
    """be marry wed meet equal border resemble match differ adjoin neighbor neighbour touch intersect collide
    accompany rival oppose face""".split()
)
"""Verbs whose subject and object can be exchanged without a change of meaning: "A meets B", "A equals B"."""

ACTORS = frozenset(
    """man men woman women boy girl child children person people king queen prince princess emperor president
    minister senator governor mayor general officer soldier captain commander army navy fleet troop force
    police company firm team club party government parliament court judge jury lawyer council committee
    board union church pope bishop priest monk teacher student professor scientist scholar author writer
    poet critic editor journalist actor actress singer musician artist painter director producer player
    coach manager fan worker employee employer owner farmer merchant doctor nurse patient friend enemy
    rival ally father mother son daughter brother sister husband wife parent uncle aunt cousin family
    tribe nation country state city village crowd group band gang association organization organisation
    agency university college school bank hospital newspaper magazine settler colonist rebel prisoner
    guard thief killer hero villain detective hunter dog cat horse wolf lion bear bird animal guest host
    customer neighbor neighbour leader follower member voter citizen resident inhabitant opponent
    supporter attacker defender""".split()
)
"""Common nouns for persons, groups of persons and animals: what can be the subject of any action."""

_PREFIX = re.compile(r"(?:un|in|im|il|ir|dis|a)(?=...)")
# Prefixed pairs that are not opposites in common use, and words with too many senses.
_NOT_OPPOSITE = frozenset(
    """due undue human considerable inconsiderable different valuable famous social certain independent dependent
    fraternal critical historical original civil christian limited conditional appropriate political
    sexual cellular partial particular mediate immediate ordinary equal literate typical involved
    concerned related associate engage claim charge color order arm arrange appear appearing posed pose
    part join miss cover do tie bind interested uninterested like earth wind veil finished wanted personal
    impersonal constant inconstant formed loyal essential inessential frequently equally sexual possibly
    fold tune balance cross wrap bend make embark""".split()
)


@cache
def lexicon_bytes(*tables: Table) -> bytes:
    """Return the bytes of some of the bundled word lists, one after another: what the output depends on."""
    folder = files("opencse") / "assets" / "lexicon"
    return b"".join((folder / f"{table}.tsv").read_bytes() for table in tables)


def _rows(table: Table) -> list[list[str]]:
    """Return the cells of a word list, without its header."""
    return [line.split("\t") for line in lexicon_bytes(table).decode().split("\n")[1:] if line]


@cache
def antonyms() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return all antonyms of WordNet by word and part of speech ("ADJ", "ADV" or "VERB")."""
    table: dict[tuple[str, str], tuple[str, ...]] = {}
    for word, antonym, pos in _rows("antonyms"):
        table[word, pos] = (*table.get((word, pos), ()), antonym)
    return table


@cache
def opposites() -> dict[tuple[str, str], str]:
    """Return one opposite by word and part of speech ("ADJ", "ADV", "NOUN", "VERB" or "ADP").

    The pairs of `opposites.tsv` come first. WordNet adds those pairs of which one word is the other with a negative
    prefix ("stable", "unstable"): its other pairs are opposites in one sense of many ("second", "first", but "a second
    later").
    """
    table = {(word, pos): opposite for word, opposite, pos in _rows("opposites")}
    for word, opposite, pos in _rows("antonyms"):
        longer, shorter = sorted((word, opposite), key=len, reverse=True)
        prefix = _PREFIX.match(longer)
        plain = prefix is not None and longer[prefix.end() :] == shorter and not longer.endswith("ed")
        if plain and not {word, opposite} & _NOT_OPPOSITE:
            table.setdefault((word, pos), opposite)
    return table


@cache
def names() -> dict[str, str]:
    """Return the kind of each name ("country", "city", "man", "month", …) by name."""
    return dict(_rows("names"))


@cache
def names_of_kind(kind: str) -> tuple[str, ...]:
    """Return all names of one kind, in the order of the list."""
    return tuple(name for name, other in names().items() if other == kind)
