"""The word lists of the rewriting kinds: antonyms, opposites and names from `assets/lexicon`, and classes of verbs.

| table | file | source |
|---|---|---|
| `antonyms` | `antonyms.tsv` | Open English WordNet: every antonym of a word, in one of its senses |
| `opposites` | `opposites.tsv` | written for this project: one opposite that holds in nearly every context |
| `affixes` | `affixes.tsv` | written for this project: stems of opposites by a negative prefix, or by -ful and -less |
| `particles` | `particles.tsv` | written for this project: verbs with a particle, and their opposites |
| `collocations` | `collocations.tsv` | written for this project: opposites of verbs that depend on the object |
| `names` | `names.tsv` | written for this project: countries, cities, first names, months, … |
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

LexiconTable = Literal["antonyms", "opposites", "affixes", "particles", "collocations", "names"] | Traversable
"""A bundled word list, or the file of one that a language pack brings."""
OPPOSITE_TABLES: tuple[LexiconTable, ...] = ("opposites", "antonyms", "affixes", "particles", "collocations")
"""The lists from which opposites are found."""

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
    supporter attacker defender lawyer attorney prosecutor baker butcher cook chef waiter waitress driver rider
    pilot sailor
    passenger traveller traveler visitor tourist client buyer seller trader banker lender borrower landlord tenant
    neighborhood community customer contractor builder carpenter plumber electrician mechanic engineer architect
    designer developer programmer inventor researcher physicist chemist biologist historian philosopher economist
    mathematician astronomer surgeon dentist therapist psychologist pharmacist veterinarian midwife paramedic
    firefighter detective inspector investigator spy agent guide ranger shepherd fisherman gardener miner
    secretary clerk manager boss director chairman chairwoman spokesman spokeswoman diplomat ambassador envoy
    politician candidate deputy delegate councillor councilor treasurer auditor accountant referee umpire
    goalkeeper striker captain athlete runner swimmer boxer wrestler cyclist dancer comedian composer pianist
    drummer guitarist photographer sculptor novelist playwright publisher reporter blogger librarian pupil
    teenager baby toddler infant orphan widow widower bride groom grandfather grandmother nephew niece partner
    stranger crowd jury gang squad crew battalion regiment brigade division empire kingdom republic tribe
    monkey elephant tiger fox rabbit mouse cow pig goat sheep eagle snake whale shark""".split()
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
    fold follow tune balance cross wrap bend make embark bound comparable""".split()
)


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


def lexicon_bytes(*tables: LexiconTable) -> bytes:
    """Return the bytes of some word lists, one after another: what the output depends on."""
    folder = files("opencse") / "assets" / "lexicon"
    paths = (folder / f"{table}.tsv" if isinstance(table, str) else table for table in tables)
    return b"".join(path.read_bytes() for path in paths)


def lexicon_rows(table: LexiconTable) -> list[list[str]]:
    """Return the cells of a word list, without its header."""
    return [line.split("\t") for line in lexicon_bytes(table).decode().split("\n")[1:] if line]


@cache
def antonyms() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return all antonyms of WordNet by word and part of speech ("ADJ", "ADV" or "VERB")."""
    table: dict[tuple[str, str], tuple[str, ...]] = {}
    for word, antonym, pos in lexicon_rows("antonyms"):
        table[word, pos] = (*table.get((word, pos), ()), antonym)
    return table


@cache
def opposites() -> dict[tuple[str, str], str]:
    """Return one opposite by word and part of speech ("ADJ", "ADV", "NOUN", "VERB" or "ADP").

    The pairs of `opposites.tsv` come first, then those of `affixes.tsv`. WordNet adds those pairs of which one word is
    the other with a negative prefix ("stable", "unstable"): its other pairs are opposites in one sense of many
    ("second", "first", but "a second later").
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
        if plain_pair and not {word, opposite} & _NOT_OPPOSITE:
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


def is_held_out_opposite(word: str, opposite: str, parts: int) -> bool:
    """Whether a pair of opposites falls into the first of `parts` equal parts, by its hash; False if there are none."""
    digest = hashlib.blake2b(" ".join(sorted((word, opposite))).encode(), digest_size=4).digest()
    return parts > 0 and int.from_bytes(digest, "big") % parts == 0


@cache
def particle_verbs() -> dict[tuple[str, str], tuple[OpposedVerb, ...]]:
    """Return the opposites of verbs with a particle, by verb and particle."""
    table: dict[tuple[str, str], tuple[OpposedVerb, ...]] = {}
    for phrase, opposite, objects, marked in lexicon_rows("particles"):
        verb, particle = phrase.split()
        entry = OpposedVerb(opposite=opposite, objects=frozenset(objects.split()), complementary=marked == "yes")
        table[verb, particle] = (*table.get((verb, particle), ()), entry)
    return table


@cache
def collocations() -> dict[str, tuple[OpposedVerb, ...]]:
    """Return the opposites of verbs that hold with certain objects ("keep" a promise: "break"), by verb."""
    table: dict[str, tuple[OpposedVerb, ...]] = {}
    for verb, opposite, objects, marked in lexicon_rows("collocations"):
        entry = OpposedVerb(opposite=opposite, objects=frozenset(objects.split()), complementary=marked == "yes")
        table[verb] = (*table.get(verb, ()), entry)
    return table


@cache
def names() -> dict[str, str]:
    """Return the kind of each name ("country", "city", "man", "month", …) by name."""
    return dict(lexicon_rows("names"))


@cache
def names_of_kind(kind: str) -> tuple[str, ...]:
    """Return all names of one kind, in the order of the list."""
    return tuple(name for name, other in names().items() if other == kind)
