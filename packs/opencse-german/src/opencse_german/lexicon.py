"""The German word lists: opposites with their inflection, and names."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from opencse.text.english.lexicon import lexicon_rows

OPPOSITES = files("opencse_german") / "opposites.tsv"
NAMES = files("opencse_german") / "names.tsv"


class Opposed(NamedTuple):
    """The opposite of a form.

    Attributes:
        opposite: The opposite, in the same form.
        complementary: Whether the negated opposite means the same.
        base: The pair in its base forms, by which words are counted.
    """

    opposite: str
    complementary: bool
    base: tuple[str, str]


def _of(pos: str) -> list[tuple[str, str, bool]]:
    """Return word, opposite and mark of a part of speech, in both directions."""
    pairs = []
    for word, opposite, kind, marked in lexicon_rows(OPPOSITES):
        if kind == pos:
            pairs.append((word, opposite, marked == "yes"))
    reversed_pairs = [(opposite, word, marked) for word, opposite, marked in pairs]
    return pairs + reversed_pairs


@cache
def adjectives() -> dict[str, Opposed]:
    """Return the opposites of predicate adjectives and participles, in their base form."""
    table: dict[str, Opposed] = {}
    for word, opposite, marked in (*_of("ADJ"), *_of("FORM")):
        table.setdefault(word, Opposed(opposite, marked, (word, opposite)))
    return table


@cache
def attributes() -> dict[str, Opposed]:
    """Return the opposites of inflected adjectives: "alte" to "neue"."""
    table: dict[str, Opposed] = {}
    for word, opposite, marked in _of("ADJ"):
        for ending in ("e", "en", "er", "es", "em"):
            entry = Opposed(_stem(opposite) + ending, marked, (word, opposite))
            table.setdefault(_stem(word) + ending, entry)
    return table


def _stem(adjective: str) -> str:
    """Return the stem before an ending: "dunkel" has "dunkle", "teuer" "teure", "müde" "müden"."""
    if adjective == "hoch":
        return "hoh"
    if adjective.endswith("e"):
        return adjective[:-1]
    if adjective.endswith(("euer", "auer")):
        return adjective[:-2] + "r"
    if adjective.endswith("el"):
        return adjective[:-2] + "l"
    return adjective


@cache
def verbs() -> dict[str, Opposed]:
    """Return the opposites of forms of main verbs.

    These are infinitives, the present tense, and participles of verbs on -ieren.
    """
    table: dict[str, Opposed] = {}
    for word, opposite, marked in _of("VERB"):
        for form, other in zip(_verb_forms(word), _verb_forms(opposite), strict=True):
            table.setdefault(form, Opposed(other, marked, (word, opposite)))
    return table


def _verb_forms(infinitive: str) -> tuple[str, str]:
    """Return the infinitive, and the third person singular of the present."""
    stem = infinitive[:-2] if infinitive.endswith("en") else infinitive[:-1]
    # "arbeitet", but "nennt" and "wohnt".
    needs_e = stem.endswith(("t", "d", "n")) and not stem.endswith(("nn", "hn"))
    return infinitive, stem + ("et" if needs_e else "t")


@cache
def particles() -> dict[tuple[str, str], str]:
    """Return the opposite of a separated prefix, by the verb's finite form and the prefix."""
    table: dict[tuple[str, str], str] = {}
    for forms, prefix, pos, other in lexicon_rows(OPPOSITES):
        if pos == "PARTICLE":
            for form in forms.split("/"):
                table[form, prefix] = other
                table[form, other] = prefix
    return table


@cache
def function_words() -> dict[str, str]:
    """Return the opposites of prepositions, adverbs and degrees: "mit" to "ohne"."""
    return {word: opposite for word, opposite, _ in _of("WORD")}


@cache
def german_names() -> dict[str, str]:
    """Return the kind of each name ("city", "country", "month", …)."""
    return {row[0]: row[1] for row in lexicon_rows(NAMES)}
