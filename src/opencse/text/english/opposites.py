"""The opposite of a word in its sentence: the words that have one in this context, and the form that it takes there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from opencse.text.english import lexicon
from opencse.text.english.articles import article_edits
from opencse.text.english.lexicon import OpposedVerb
from opencse.text.english.opposed_verbs import VERB_TAGS, opposed_particle_verb, opposed_verb
from opencse.text.english.opposite_contexts import fits
from opencse.text.english.verbs import inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, match_case

_POS = {
    "JJ": "ADJ",
    "JJR": "ADJ",
    "JJS": "ADJ",
    "RB": "ADV",
    "RBR": "ADV",
    "NN": "NOUN",
    "NNS": "NOUN",
    "IN": "ADP",
}
_PLURALS = {
    "child": "children",
    "gentleman": "gentlemen",
    "lady": "ladies",
    "man": "men",
    "thief": "thieves",
    "wife": "wives",
    "woman": "women",
}
_SINGULARS = {plural: singular for singular, plural in _PLURALS.items()}
_WORD = re.compile(r"(?<![\w'’-])[a-z]+(?![\w'’-])")


@dataclass(frozen=True, kw_only=True)
class Opposite:
    """A word of a sentence and its opposite.

    Attributes:
        place: Index of the word's token.
        word: The opposite, in the same inflection.
        pos: "ADJ", "ADV", "NOUN", "VERB", "ADP", "PART" (a verb with a particle) or "DEGREE" ("more" and "less").
        pair: The word and its opposite in their base forms.
        complementary: Whether the negated opposite says the same (`lexicon.is_complementary`).
        particle: Index of the particle that belongs to a verb; None if there is none.
        new_particle: The particle of the opposite; "" if it has none.
    """

    place: int
    word: str
    pos: str
    pair: tuple[str, str]
    complementary: bool = False
    particle: int | None = None
    new_particle: str = ""


def find_opposites(text: str, tokens: Sequence[Token], *, hold_out: int = 0) -> Iterator[Opposite]:
    """Yield every word of a sentence that its opposite can replace in this context.

    A word is left out if its opposite occurs in the sentence as well ("forward or backward").

    Args:
        text: The sentence.
        tokens: Its tokens.
        hold_out: Leave out one of so many pairs of opposites, chosen by their hash; 0 for none.
    """
    words = {token.text.lower() for token in tokens}
    for i, token in enumerate(tokens):
        if not token.text.isalpha() or (i and not token.text.islower()) or _glued(text, token):
            continue
        found = _degree(tokens, i) or _opposite(tokens, i)
        if found is None or lexicon.is_held_out_opposite(*found.pair, hold_out):
            continue
        if (found.word if found.word != token.text.lower() else found.new_particle) not in words:
            yield found


def opposed_adjectives(text: str) -> dict[str, str]:
    """Return the opposites of all words of a sentence that can be adjectives, by word.

    It does not parse, so it takes microseconds instead of milliseconds, and finds words that are no adjectives here.
    """
    table = lexicon.opposites()
    return {word: table[word, "ADJ"] for word in _WORD.findall(text) if (word, "ADJ") in table}


def opposed_verbs(text: str) -> dict[str, str]:
    """Return the complementary opposites of all words of a sentence that can be verbs, as infinitives ("to accept").

    It does not parse, as `opposed_adjectives`. Verbs whose opposite depends on the object are found if one is there.
    """
    words = set(_WORD.findall(text))
    found: dict[str, str] = {}
    for word in sorted(words & _verb_forms().keys()):
        for base, entry in _verb_forms()[word]:
            if not entry.objects or any({noun, noun + "s"} & words for noun in entry.objects):
                found[f"to {base}"] = f"to {entry.opposite}"
    return found


@cache
def _verb_forms() -> dict[str, tuple[tuple[str, OpposedVerb], ...]]:
    """Return the complementary verbs by each of their forms: the base, and the entry of the lexicon."""
    entries = [
        (word, OpposedVerb(opposite=opposite, objects=frozenset(), complementary=True))
        for (word, pos), opposite in lexicon.opposites().items()
        if pos == "VERB" and lexicon.is_complementary(word, pos)
    ]
    entries += [
        (verb, each) for verb, listed in lexicon.collocations().items() for each in listed if each.complementary
    ]
    forms: dict[str, tuple[tuple[str, OpposedVerb], ...]] = {}
    for base, entry in entries:
        for form in dict.fromkeys(inflect(base, tag) for tag in VERB_TAGS):
            forms[form] = (*forms.get(form, ()), (base, entry))
    return forms


def opposite_edits(text: str, tokens: Sequence[Token], found: Opposite) -> list[Edit]:
    """Return the edits that replace a word by its opposite, with its particle, and correct the article before it."""
    token = tokens[found.place]
    word = match_case(found.word, token.text)
    edits = article_edits(text, tokens, found.place, found.word)
    if found.particle is None:
        return [(token.start, token.end, f"{word} {found.new_particle}".rstrip()), *edits]
    edits.append((token.start, token.end, word))
    old = tokens[found.particle]
    if found.new_particle:
        return [*edits, (old.start, old.end, found.new_particle)]
    return [*edits, (tokens[found.particle - 1].end, old.end, "")]


def _glued(text: str, token: Token) -> bool:
    """Whether a word is part of a compound ("high-speed") or stands in quotes."""
    around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
    return any(mark in around for mark in "-–'’\"“”/")


def _degree(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite degree: of "more than 100", "the most important"."""
    word, new = tokens[i].text.lower(), {"more": "less", "less": "more", "most": "least", "least": "most"}
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if word not in new or following is None or (i and tokens[i - 1].text.lower() in ("no", "any", "not")):
        return None
    counted = following.text == "than" and i + 2 < len(tokens) and tokens[i + 2].tag == "CD"
    bound = i and tokens[i - 1].text.lower() == "at" and following.tag == "CD"
    graded = tokens[i].tag in ("RBR", "RBS") and following.tag == "JJ" and tokens[i].head == i + 1
    if not (counted or bound or graded):
        return None
    return Opposite(place=i, word=new[word], pos="DEGREE", pair=(word, new[word]))


def _opposite(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of an adjective, adverb, noun, verb or preposition that fits its context."""
    token = tokens[i]
    word, relation = token.text.lower(), token.relation.split(":")[0]
    if relation in ("compound", "flat", "fixed", "goeswith", "cc", "dep"):
        return None
    if token.tag in VERB_TAGS:
        return _verb(tokens, i)
    pos = _POS.get(token.tag, "")
    base = _singular(word) if token.tag == "NNS" and (word, pos) not in lexicon.opposites() else word
    new = lexicon.opposites().get((base, pos))
    if new is None or not fits(tokens, i, pos):
        return None
    marked = lexicon.is_complementary(base, pos)
    form = new if base == word else _plural(new)
    return Opposite(place=i, word=form, pos=pos, pair=(base, new), complementary=marked)


def _verb(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a verb, alone or with its particle."""
    if found := opposed_particle_verb(tokens, i):
        particle, base, form, entry = found
        phrase = f"{base} {tokens[particle].text.lower()}"
        word, _, new_particle = form.partition(" ")
        return Opposite(
            place=i,
            word=word,
            pos="PART",
            pair=(phrase, entry.opposite),
            complementary=entry.complementary,
            particle=particle,
            new_particle=new_particle,
        )
    verb = opposed_verb(tokens, i)
    if verb is None:
        return None
    base, form, entry = verb
    return Opposite(place=i, word=form, pos="VERB", pair=(base, entry.opposite), complementary=entry.complementary)


def _singular(noun: str) -> str:
    if noun in _SINGULARS:
        return _SINGULARS[noun]
    return re.sub("ies$", "y", noun) if noun.endswith("ies") else re.sub(r"(?<=ss|ch|sh)es$|s$", "", noun)


def _plural(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:s|x|ch|sh)$", noun) else "s")
