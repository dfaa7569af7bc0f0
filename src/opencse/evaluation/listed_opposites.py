"""Triplets grouped by whether training has seen their pair of opposites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from opencse.errors import OpencseError
from opencse.evaluation.triplets import Triplet, TripletSet
from opencse.syntax.verbs import inflect
from opencse.views.rewriting import lexicon

LEXICAL_KINDS = ("adjective", "verb", "noun", "adverb")
"""Kinds of contradiction in the set `meaning` that exchange a word."""

_WORD = re.compile(r"[a-z]+")
_VERB_TAGS = ("VB", "VBZ", "VBD", "VBN", "VBG")


def listed_pairs() -> list[tuple[str, str, str]]:
    """Return the pairs from which `debias` builds its rows: word, opposite and part of speech.

    Of verbs with a particle, these are the particles ("on", "off") if both verbs are the same, and the verbs otherwise.
    """
    pairs = [(word, opposite, pos) for (word, pos), opposite in lexicon.opposites().items()]
    for verb, entries in lexicon.collocations().items():
        pairs += [(verb, entry.opposite, "VERB") for entry in entries]
    for (verb, particle), entries in lexicon.particle_verbs().items():
        for other, _, new_particle in (entry.opposite.partition(" ") for entry in entries):
            pairs.append((particle, new_particle, "PART") if other == verb else (verb, other, "VERB"))
    return pairs


def is_listed(first: str, second: str, opposites: Mapping[str, frozenset[str]] | None = None) -> bool:
    """Return whether two texts differ by a word and its listed opposite in the same form.

    Args:
        first: A text.
        second: Another.
        opposites: Opposites by word, inflected (`inflected_opposites`); None for the bundled ones.

    Example:
        >>> is_listed("The lake is deep.", "The lake is shallow.")
        True
        >>> is_listed("The well is dry.", "The well is brimming.")
        False
    """
    table = _bundled() if opposites is None else opposites
    a, b = (set(_WORD.findall(text.lower())) for text in (first, second))
    return any(table.get(word, frozenset()) & (b - a) for word in a - b)


def inflected_opposites(pairs: Iterable[tuple[str, str, str]]) -> dict[str, frozenset[str]]:
    """Return opposites by word, in both directions and all inflected forms (irregular forms of verbs only).

    Args:
        pairs: Word, opposite and part of speech ("ADJ", "ADV", "NOUN", "VERB", "ADP"), such as those trained on.
    """
    found: dict[str, set[str]] = {}
    for word, opposite, pos in pairs:
        for form, opposite_form in zip(_forms(word, pos), _forms(opposite, pos), strict=True):
            found.setdefault(form, set()).add(opposite_form)
            found.setdefault(opposite_form, set()).add(form)
    return {word: frozenset(others) for word, others in found.items()}


def group_by_listed(
    data: TripletSet, opposites: Mapping[str, frozenset[str]] | None = None, kinds: Iterable[str] = LEXICAL_KINDS
) -> TripletSet:
    """Return the triplets that exchange a word, grouped by whether its opposite is listed.

    The group `opposites` is `seen` if the positive or the negative has the listed opposite of a word of the anchor,
    and `unseen` otherwise. It replaces the groups of the set.

    Args:
        data: Triplets.
        opposites: Inflected opposites by word; None for the bundled list. If some were held out, give those that the
            model was trained on.
        kinds: Values of the column `kind` that are kept; a set without this column is kept whole.

    Raises:
        OpencseError: No triplet is of these kinds.
    """
    kept = tuple(kinds)
    triplets = tuple(
        replace(each, groups={"opposites": "seen" if _seen(each, opposites) else "unseen"})
        for each in data.triplets
        if each.groups.get("kind", kept[0]) in kept
    )
    if not triplets:
        raise OpencseError(f"{data.name}: no triplet of the kinds {', '.join(kept)}", "Name kinds that the set has.")
    return TripletSet(name=f"{data.name}-opposites", triplets=triplets)


def _seen(triplet: Triplet, opposites: Mapping[str, frozenset[str]] | None) -> bool:
    return any(is_listed(triplet.anchor, other, opposites) for other in (triplet.positive, triplet.negative))


@cache
def _bundled() -> dict[str, frozenset[str]]:
    return inflected_opposites(listed_pairs())


def _forms(word: str, pos: str) -> list[str]:
    """Return the forms of a word; their number depends only on the part of speech."""
    if pos == "VERB":
        return [inflect(word, tag) for tag in _VERB_TAGS]
    if pos == "NOUN":
        return [word, word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"]
    if pos != "ADJ":
        return [word]
    stem = word[:-1] + "i" if re.search("[^aeiou]y$", word) else word.removesuffix("e")
    stem += stem[-1] if re.search("[^aeiou][aeiou][bdgmnpt]$", stem) else ""
    return [word, stem + "er", stem + "est"]
