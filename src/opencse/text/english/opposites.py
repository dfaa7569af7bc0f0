"""The opposite of a word in its sentence: the words that have one in this context, and the form that it takes there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from opencse.text.english import lexicon
from opencse.text.english.lexicon import (
    OpposedVerb,
    article_edits,
    inflect,
    lexicon_rows,
    third_person,
    verb_base,
    word_class,
)
from opencse.text.english.parse import base_relation, children, word_at
from opencse.text.syntax import Edit, Token, match_case

_VERB_TAGS = ("VB", "VBZ", "VBP", "VBD", "VBN", "VBG")
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
_PLURALS = {"child": "children", "thief": "thieves", "wife": "wives"} | {
    noun: noun.removesuffix("an") + "en" for noun in ("gentleman", "man", "woman")
}
_SINGULARS = {plural: singular for singular, plural in _PLURALS.items()}
_WORD = re.compile(r"(?<![\w'’-])[a-z]+(?![\w'’-])")
_DEGREES = {"more": "less", "less": "more", "most": "least", "least": "most"}

_PARTICLE_RELATIONS = ("compound:prt", "prt")
_OBJECT_RELATIONS = ("obj", "dobj", "nsubj:pass", "nsubjpass")
_VERB_CLASSES = {
    "with object": "obj dobj nsubj:pass nsubjpass aux:pass",
    "active with object": "obj dobj",
    "without object": "!obj dobj",
    "without oblique": "!OBLIQUE",
    "finite only": "VBD VBZ VBP",
}
"""What a verb of a class must have, or with "!" must not have: relations of its dependents, or its tag."""


@dataclass(frozen=True, kw_only=True)
class Opposite:
    """A word of a sentence and its opposite.

    Attributes:
        place: Index of the word's token.
        word: The opposite, in the same inflection.
        pos: "ADJ", "ADV", "NOUN", "VERB", "ADP", "PART" (a verb with a particle) or "DEGREE"
            ("more" and "less").
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


def find_opposites(text: str, tokens: Sequence[Token]) -> Iterator[Opposite]:
    """Yield every word of a sentence that its opposite can replace in this context.

    A word is left out if its opposite occurs in the sentence as well ("forward or backward").
    """
    words = {token.text.lower() for token in tokens}
    for i, token in enumerate(tokens):
        around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
        if (
            not token.text.isalpha()
            or (i and not token.text.islower())
            or any(mark in around for mark in "-–'’\"“”/")
        ):
            continue
        opposite = _degree(tokens, i) or _opposite(tokens, i)
        if opposite is None:
            continue
        if (
            opposite.word if opposite.word != token.text.lower() else opposite.new_particle
        ) not in words:
            yield opposite


def opposite_edits(text: str, tokens: Sequence[Token], opposite: Opposite) -> list[Edit]:
    """Return the edits that replace a word by its opposite, with its particle, and correct the article before it."""
    token = tokens[opposite.place]
    word = match_case(opposite.word, token.text)
    edits = article_edits(text, tokens, opposite.place, opposite.word)
    if opposite.particle is None:
        return [(token.start, token.end, f"{word} {opposite.new_particle}".rstrip()), *edits]
    edits.append((token.start, token.end, word))
    old = tokens[opposite.particle]
    start = old.start if opposite.new_particle else tokens[opposite.particle - 1].end
    return [*edits, (start, old.end, opposite.new_particle)]


def opposed_adjectives(text: str) -> dict[str, str]:
    """Return the opposites of all words of a sentence that can be adjectives, by word.

    It does not parse, so it takes microseconds instead of milliseconds, and finds words that are no
    adjectives here.
    """
    table = lexicon.opposites()
    return {word: table[word, "ADJ"] for word in _WORD.findall(text) if (word, "ADJ") in table}


def opposed_verbs(text: str) -> dict[str, str]:
    """Return the complementary opposites of all words of a sentence that can be verbs, as infinitives ("to accept").

    It does not parse, as `opposed_adjectives`. Verbs whose opposite depends on the object are found
    if one is there.
    """
    words = set(_WORD.findall(text))
    opposites: dict[str, str] = {}
    for word in sorted(words & _verb_forms().keys()):
        for base, entry in _verb_forms()[word]:
            if not entry.objects or any({noun, noun + "s"} & words for noun in entry.objects):
                opposites[f"to {base}"] = f"to {entry.opposite}"
    return opposites


@cache
def _verb_forms() -> dict[str, tuple[tuple[str, OpposedVerb], ...]]:
    """Return the complementary verbs by each of their forms: the base, and the entry of the lexicon."""
    plain = [(word, _whatever_objects(word)) for word, pos in lexicon.opposites() if pos == "VERB"]
    listed = lexicon.opposed_phrases("collocations").items()
    forms: dict[str, tuple[tuple[str, OpposedVerb], ...]] = {}
    for base, entry in [
        *plain,
        *((verb, collocation) for verb, entries in listed for collocation in entries),
    ]:
        if entry is not None and entry.complementary:
            for form in dict.fromkeys(inflect(base, tag) for tag in _VERB_TAGS):
                forms[form] = (*forms.get(form, ()), (base, entry))
    return forms


def _degree(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite degree: of "more than 100", "the most important"."""
    word, before = tokens[i].text.lower(), word_at(tokens, i - 1)
    if word not in _DEGREES or i + 1 == len(tokens) or before in ("no", "any", "not"):
        return None
    following = tokens[i + 1]
    counted = following.text == "than" and i + 2 < len(tokens) and tokens[i + 2].tag == "CD"
    bound = before == "at" and following.tag == "CD"
    graded = tokens[i].tag in ("RBR", "RBS") and following.tag == "JJ" and tokens[i].head == i + 1
    pair = (word, _DEGREES[word])
    return (
        Opposite(place=i, word=pair[1], pos="DEGREE", pair=pair)
        if counted or bound or graded
        else None
    )


def _opposite(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of an adjective, adverb, noun, verb or preposition that fits its context."""
    token = tokens[i]
    word = token.text.lower()
    if base_relation(token) in ("compound", "flat", "fixed", "goeswith", "cc", "dep"):
        return None
    if token.tag in _VERB_TAGS:
        return _particle_verb(tokens, i) or _verb(tokens, i)
    pos = _POS.get(token.tag, "")
    base = (
        _singular(word) if token.tag == "NNS" and (word, pos) not in lexicon.opposites() else word
    )
    new = lexicon.opposites().get((base, pos))
    if new is None or not _suits_context(tokens, i, pos):
        return None
    marked = lexicon.is_complementary(base, pos)
    form = new
    if base != word:
        regular = (
            re.sub("y$", "ie", new) + "s" if re.search(r"[^aeiou]y$", new) else third_person(new)
        )
        form = _PLURALS.get(new, regular)
    return Opposite(place=i, word=form, pos=pos, pair=(base, new), complementary=marked)


def _singular(noun: str) -> str:
    regular = (
        re.sub("ies$", "y", noun)
        if noun.endswith("ies")
        else re.sub(r"(?<=ss|ch|sh)es$|s$", "", noun)
    )
    return _SINGULARS.get(noun, regular)


@cache
def _contexts() -> dict[tuple[str, str], list[list[str]]]:
    """Return the contexts in which a word has its opposite, by word and part of speech; one of them is enough.

    A context has four cells. Each lists words of which one must be there, or after "!" none: the
    role ("attribute", "predicate" or "never"; what a preposition's noun is; the relations and the
    tag of a verb), the word before and the word after, or their tags ("END" at the ends of the
    sentence), and the governor (its tag, class or lemma; of a verb, its objects).
    """
    table: dict[tuple[str, str], list[list[str]]] = {}
    for word, pos, *context in lexicon_rows("contexts"):
        table.setdefault((word, pos), []).append(context)
    return table


def _has_context(
    tokens: Sequence[Token], i: int, word: tuple[str, str], role: set[str], governor: set[str]
) -> bool:
    """Whether the words around a token are one of the contexts of its word."""
    cells = role, _neighbour(tokens, i - 1), _neighbour(tokens, i + 1), governor
    contexts = _contexts().get(word, [[""] * 4])
    return any(all(map(_among, context, cells)) for context in contexts)


def _neighbour(tokens: Sequence[Token], i: int) -> set[str]:
    if not 0 <= i < len(tokens):
        return {"END"}
    token = tokens[i]
    return {
        token.text.lower(),
        "DIGITS" if token.text.isdigit() else token.tag if token.tag.isalpha() else "",
    }


def _among(cell: str, around: set[str]) -> bool:
    """Whether one of some words is in the cell of a context, or none if it begins with "!"."""
    return not cell or bool(around.intersection(cell.removeprefix("!").split())) != cell.startswith(
        "!"
    )


def _suits_context(tokens: Sequence[Token], i: int, pos: str) -> bool:
    """Whether the opposite of an adjective, adverb, noun or preposition suits the words around it."""
    token, head = tokens[i], tokens[tokens[i].head]
    word, role = token.text.lower(), set()
    if pos == "ADJ":
        if token.relation == "amod" and token.head > i and head.tag.startswith("N"):
            if {head.tag, tokens[i + 1].tag} & {"NNP", "NNPS"}:
                return False  # "the late John"
            role = {"attribute"}
        elif any(tokens[k].relation == "cop" for k in children(tokens, i)):
            role = {"predicate"}
        else:
            return False
    elif pos == "ADV":
        if token.relation != "advmod" or word_at(tokens, i + 1) in ("than", "as"):
            return False
    elif pos == "ADP":
        if token.relation not in ("case", "mark", "prep"):
            return False
        role = {head.relation, head.pos, head.lemma.lower(), word_at(tokens, i + 2)}
        head = tokens[head.head]
    elif (word, pos) not in _contexts():  # "father and mother"
        return token.relation != "conj" and all(
            tokens[k].relation != "conj" for k in children(tokens, i)
        )
    return _has_context(tokens, i, (word, pos), role, {head.tag, head.pos, head.lemma.lower()})


def _base(verb: Token) -> str | None:
    """Return the base of a verb; None if it is no predicate, or its form is not what inflection of the base gives."""
    if verb.relation in ("amod", "aux", "cop"):
        return None
    base = verb_base(verb)
    return base if inflect(base, verb.tag) == verb.text.lower() else None


def _opposed(
    i: int, verb: Token, phrase: str, entry: OpposedVerb, particle: int | None = None
) -> Opposite:
    """Return the opposite of a verb, perhaps with a particle, in the verb's form."""
    base, _, new_particle = entry.opposite.partition(" ")
    word = inflect(base, verb.tag)
    if particle is None:
        word, new_particle = f"{word} {new_particle}".rstrip(), ""
    return Opposite(
        place=i,
        word=word,
        pos="VERB" if particle is None else "PART",
        pair=(phrase, entry.opposite),
        complementary=entry.complementary,
        particle=particle,
        new_particle=new_particle,
    )


def _particle_verb(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a verb with a particle; None if it needs an object that the verb lacks, or lacks one.

    The parser often takes a particle for a preposition: "called off the meeting".
    """
    base, dependents = _base(tokens[i]), children(tokens, i)
    if base is None or children(tokens, i, "xcomp", "ccomp"):
        return None
    objects = {
        tokens[k].lemma.lower() for k in dependents if tokens[k].relation in _OBJECT_RELATIONS
    }
    following = tokens[i + 1] if i + 1 < len(tokens) else tokens[i]
    if following.tag == "RP" or (base, following.text.lower()) == ("put", "on"):
        particle: int | None = i + 1
        if base_relation(following) == "case" and tokens[following.head].head == i:
            objects.add(tokens[following.head].lemma.lower())
    else:
        particles = [
            k
            for k in dependents
            if base_relation(tokens[k]) in ("compound", "advmod")
            or tokens[k].relation in _PARTICLE_RELATIONS
        ]
        particle = next((k for k in particles if k > i), None)
    if particle is None:
        return None
    phrase = f"{base} {tokens[particle].text.lower()}"
    for entry in lexicon.opposed_phrases("particles").get(phrase, ()):
        if (
            "any" in entry.objects
            or entry.objects & objects
            or ("yes" if objects else "no") in entry.objects
        ):
            return _opposed(i, tokens[i], phrase, entry, particle)
    return None


def _verb(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a verb; None if it does not fit the objects, which decide first ("keep a promise")."""
    base, dependents = _base(tokens[i]), children(tokens, i)
    if base is None or any(tokens[k].relation in _PARTICLE_RELATIONS for k in dependents):
        return None
    entry = _entry(tokens, dependents, base)
    if entry is None or not (entry.objects or _fits(tokens, i, base, dependents)):
        return None
    return _opposed(i, tokens[i], base, entry)


def _entry(tokens: Sequence[Token], dependents: Sequence[int], base: str) -> OpposedVerb | None:
    """Return the opposite of a verb for its objects, its infinitive or its clause; None if it has none."""
    clauses = [k for k in dependents if tokens[k].relation in ("xcomp", "ccomp")]
    if any(token.tag == "TO" and token.head in clauses for token in tokens):
        return _with_infinitive().get(base)
    if clauses:
        return _whatever_objects(base) if base in word_class("saying") else None
    objects = {
        tokens[k].lemma.lower() for k in dependents if tokens[k].relation in _OBJECT_RELATIONS
    }
    for entry in lexicon.opposed_phrases("collocations").get(base, ()):
        if entry.objects & objects:
            return entry
    return None if base in word_class("only saying") else _whatever_objects(base)


@cache
def _with_infinitive() -> dict[str, OpposedVerb]:
    """Return the opposites of verbs before an infinitive ("agreed to come"); those of `opposites.tsv` if empty."""
    return {
        verb: OpposedVerb(
            opposite=new or lexicon.opposites()[verb, "VERB"],
            objects=frozenset(),
            complementary=marked == "yes",
        )
        for verb, new, marked in lexicon_rows("infinitives")
    }


def _whatever_objects(base: str) -> OpposedVerb | None:
    """Return the opposite of a verb that holds with any object."""
    opposite = lexicon.opposites().get((base, "VERB"))
    if opposite is None:
        return None
    marked = lexicon.is_complementary(base, "VERB")
    return OpposedVerb(opposite=opposite, objects=frozenset(), complementary=marked)


def _fits(tokens: Sequence[Token], i: int, base: str, dependents: Sequence[int]) -> bool:
    """Whether the verb at index i has the dependents with which its opposite is one."""
    verb, related = tokens[i], [tokens[k] for k in dependents]
    role = {
        verb.tag,
        verb.text.lower(),
        f"={verb.relation}",
        *(token.relation for token in related),
    }
    role |= {token.text for token in tokens if token.tag in ("IN", "RP")}
    if any(base_relation(token) == "obl" for token in related):
        role.add("OBLIQUE")
    subjects = {
        token.text.lower().removesuffix("s") for token in related if token.relation == "nsubj"
    }
    if subjects & word_class("quantities"):
        role.add("COUNTED")
    objects = {
        token.lemma.lower() for token in related if token.relation in ("obj", "dobj", "nsubj:pass")
    }
    if role & {"obj", "dobj"}:
        objects.add("OBJECT")
    in_class = all(
        base not in word_class(name) or _among(cell, role) for name, cell in _VERB_CLASSES.items()
    )
    return in_class and _has_context(tokens, i, (base, "VERB"), role, objects)
