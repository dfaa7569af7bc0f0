"""The opposite of a word in its sentence: which words have one there, and in which form."""

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
# What a verb of a class must have, or after "!" must not have: relations or its tag.
_VERB_CLASSES = {
    "with object": "obj dobj nsubj:pass nsubjpass aux:pass",
    "active with object": "obj dobj",
    "without object": "!obj dobj",
    "without oblique": "!OBLIQUE",
    "finite only": "VBD VBZ VBP",
}


@dataclass(frozen=True, kw_only=True)
class Opposite:
    """A word of a sentence and its opposite.

    Attributes:
        place: Index of the word's token.
        word: The opposite, in the same inflection.
        pos: "ADJ", "ADV", "NOUN", "VERB", "ADP", "PART" (a verb with a particle) or "DEGREE"
            ("more" and "less").
        pair: The word and its opposite in their base forms.
        complementary: Whether the negated opposite means the same (`lexicon.is_complementary`).
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
        if not _may_have_opposite(text, token, is_first=i == 0):
            continue
        opposite = _degree(tokens, i) or _opposite(tokens, i)
        if opposite is None:
            continue
        new_word = opposite.word
        if new_word == token.text.lower():
            # Only the particle changes: "turn on", "turn off".
            new_word = opposite.new_particle
        if new_word not in words:
            yield opposite


def _may_have_opposite(text: str, token: Token, *, is_first: bool) -> bool:
    """Return whether a token is a plain word: no name, and not joined to or quoted by a mark."""
    if not token.text.isalpha():
        return False
    if not is_first and not token.text.islower():
        return False
    around = text[max(token.start - 1, 0) : token.start] + text[token.end : token.end + 1]
    return not any(mark in around for mark in "-–'’\"“”/")


def opposite_edits(text: str, tokens: Sequence[Token], opposite: Opposite) -> list[Edit]:
    """Return the edits that replace a word by its opposite, with its particle and its article."""
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
    """Return the complementary opposites of words that can be verbs, as infinitives ("to accept").

    It does not parse, like `opposed_adjectives`. A verb whose opposite depends on the object is
    found if one of its objects is there.
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
    """Return the complementary verbs by each of their forms: base, and entry of the lexicon."""
    entries: list[tuple[str, OpposedVerb | None]] = []
    for word, pos in lexicon.opposites():
        if pos == "VERB":
            entries.append((word, _whatever_objects(word)))
    for verb, collocations in lexicon.opposed_phrases("collocations").items():
        for collocation in collocations:
            entries.append((verb, collocation))
    forms: dict[str, tuple[tuple[str, OpposedVerb], ...]] = {}
    for base, entry in entries:
        if entry is None or not entry.complementary:
            continue
        for form in dict.fromkeys(inflect(base, tag) for tag in _VERB_TAGS):
            forms[form] = (*forms.get(form, ()), (base, entry))
    return forms


def _degree(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite degree: of "more than 100", "the most important"."""
    word = tokens[i].text.lower()
    before = word_at(tokens, i - 1)
    if word not in _DEGREES or i + 1 == len(tokens) or before in ("no", "any", "not"):
        return None
    following = tokens[i + 1]
    counted = following.text == "than" and i + 2 < len(tokens) and tokens[i + 2].tag == "CD"
    bound = before == "at" and following.tag == "CD"
    graded = tokens[i].tag in ("RBR", "RBS") and following.tag == "JJ" and tokens[i].head == i + 1
    if not (counted or bound or graded):
        return None
    opposite = _DEGREES[word]
    return Opposite(place=i, word=opposite, pos="DEGREE", pair=(word, opposite))


def _opposite(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a word that fits its context."""
    token = tokens[i]
    word = token.text.lower()
    if base_relation(token) in ("compound", "flat", "fixed", "goeswith", "cc", "dep"):
        return None
    if token.tag in _VERB_TAGS:
        return _particle_verb(tokens, i) or _verb(tokens, i)
    pos = _POS.get(token.tag, "")
    base = word
    if token.tag == "NNS" and (word, pos) not in lexicon.opposites():
        base = _singular(word)
    new = lexicon.opposites().get((base, pos))
    if new is None or not _suits_context(tokens, i, pos):
        return None
    return Opposite(
        place=i,
        word=new if base == word else _plural(new),
        pos=pos,
        pair=(base, new),
        complementary=lexicon.is_complementary(base, pos),
    )


def _plural(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    if re.search(r"[^aeiou]y$", noun):
        return re.sub("y$", "ie", noun) + "s"
    return third_person(noun)


def _singular(noun: str) -> str:
    if noun in _SINGULARS:
        return _SINGULARS[noun]
    if noun.endswith("ies"):
        return re.sub("ies$", "y", noun)
    return re.sub(r"(?<=ss|ch|sh)es$|s$", "", noun)


@cache
def _contexts() -> dict[tuple[str, str], list[list[str]]]:
    """Return the contexts in which a word has its opposite, by word and part of speech.

    One of a word's contexts is enough.

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
    """Return whether the words around a token are one of the contexts of its word."""
    before = _neighbour(tokens, i - 1)
    after = _neighbour(tokens, i + 1)
    if word not in _contexts():
        return True
    for role_cell, before_cell, after_cell, governor_cell in _contexts()[word]:
        around = _among(before_cell, before) and _among(after_cell, after)
        if around and _among(role_cell, role) and _among(governor_cell, governor):
            return True
    return False


def _neighbour(tokens: Sequence[Token], i: int) -> set[str]:
    """Return a word and its tag, as the cells of a context name them."""
    if not 0 <= i < len(tokens):
        return {"END"}
    token = tokens[i]
    tag = token.tag if token.tag.isalpha() else ""
    if token.text.isdigit():
        tag = "DIGITS"
    return {token.text.lower(), tag}


def _among(cell: str, around: set[str]) -> bool:
    """Return whether a cell's words are in a context, or none if it begins with "!"."""
    if not cell:
        return True
    excluded = cell.startswith("!")
    found = bool(around.intersection(cell.removeprefix("!").split()))
    return found != excluded


def _suits_context(tokens: Sequence[Token], i: int, pos: str) -> bool:
    """Return whether the opposite of a word that is no verb suits the words around it."""
    token = tokens[i]
    head = tokens[token.head]
    word = token.text.lower()
    role: set[str] = set()
    if pos == "ADJ":
        if token.relation == "amod" and token.head > i and head.tag.startswith("N"):
            if {head.tag, tokens[i + 1].tag} & {"NNP", "NNPS"}:
                # "the late John"
                return False
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
    elif (word, pos) not in _contexts():
        # A noun may have its opposite as a conjunct: "father and mother".
        conjuncts = [k for k in children(tokens, i) if tokens[k].relation == "conj"]
        return token.relation != "conj" and not conjuncts
    governor = {head.tag, head.pos, head.lemma.lower()}
    return _has_context(tokens, i, (word, pos), role, governor)


def _base(verb: Token) -> str | None:
    """Return the base of a predicate's verb; None if inflecting it does not give the form."""
    if verb.relation in ("amod", "aux", "cop"):
        return None
    base = verb_base(verb)
    if inflect(base, verb.tag) != verb.text.lower():
        return None
    return base


def _opposed(
    i: int, verb: Token, phrase: str, entry: OpposedVerb, particle: int | None = None
) -> Opposite:
    """Return the opposite of a verb, perhaps with a particle, in the verb's form."""
    base, _, new_particle = entry.opposite.partition(" ")
    word = inflect(base, verb.tag)
    pos = "PART"
    if particle is None:
        # The opposite may have a particle although the verb has none.
        word = f"{word} {new_particle}".rstrip()
        new_particle = ""
        pos = "VERB"
    return Opposite(
        place=i,
        word=word,
        pos=pos,
        pair=(phrase, entry.opposite),
        complementary=entry.complementary,
        particle=particle,
        new_particle=new_particle,
    )


def _particle_verb(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a verb with a particle; None if its objects do not fit the opposite.

    The parser often takes a particle for a preposition: "called off the meeting".
    """
    base = _base(tokens[i])
    dependents = children(tokens, i)
    if base is None or children(tokens, i, "xcomp", "ccomp"):
        return None
    objects = _lemmas(tokens, dependents, _OBJECT_RELATIONS)
    following = tokens[i + 1] if i + 1 < len(tokens) else tokens[i]
    if following.tag == "RP" or (base, following.text.lower()) == ("put", "on"):
        particle: int | None = i + 1
        if base_relation(following) == "case" and tokens[following.head].head == i:
            objects.add(tokens[following.head].lemma.lower())
    else:
        particle = next((k for k in dependents if k > i and _is_particle(tokens[k])), None)
    if particle is None:
        return None
    phrase = f"{base} {tokens[particle].text.lower()}"
    has_object = "yes" if objects else "no"
    for entry in lexicon.opposed_phrases("particles").get(phrase, ()):
        if entry.objects & (objects | {"any", has_object}):
            return _opposed(i, tokens[i], phrase, entry, particle)
    return None


def _is_particle(token: Token) -> bool:
    return base_relation(token) in ("compound", "advmod") or token.relation in _PARTICLE_RELATIONS


def _lemmas(tokens: Sequence[Token], places: Sequence[int], relations: Sequence[str]) -> set[str]:
    """Return the lemmas of the tokens with one of some relations."""
    return {tokens[k].lemma.lower() for k in places if tokens[k].relation in relations}


def _verb(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of a verb; None if it does not fit the objects ("keep a promise")."""
    base = _base(tokens[i])
    dependents = children(tokens, i)
    if base is None or any(tokens[k].relation in _PARTICLE_RELATIONS for k in dependents):
        return None
    entry = _entry(tokens, dependents, base)
    if entry is None:
        return None
    # An entry that names objects was chosen by them, and fits.
    if not entry.objects and not _fits(tokens, i, base, dependents):
        return None
    return _opposed(i, tokens[i], base, entry)


def _entry(tokens: Sequence[Token], dependents: Sequence[int], base: str) -> OpposedVerb | None:
    """Return the opposite of a verb with its objects, infinitive or clause, if it has one."""
    clauses = [k for k in dependents if tokens[k].relation in ("xcomp", "ccomp")]
    if any(token.tag == "TO" and token.head in clauses for token in tokens):
        return _with_infinitive().get(base)
    if clauses:
        if base in word_class("saying"):
            return _whatever_objects(base)
        return None
    objects = _lemmas(tokens, dependents, _OBJECT_RELATIONS)
    for entry in lexicon.opposed_phrases("collocations").get(base, ()):
        if entry.objects & objects:
            return entry
    if base in word_class("only saying"):
        return None
    return _whatever_objects(base)


@cache
def _with_infinitive() -> dict[str, OpposedVerb]:
    """Return the opposites of verbs before an infinitive ("agreed to come").

    An empty cell stands for the opposite of `opposites.tsv`.
    """
    table = {}
    for verb, new, marked in lexicon_rows("infinitives"):
        table[verb] = OpposedVerb(
            opposite=new or lexicon.opposites()[verb, "VERB"],
            objects=frozenset(),
            complementary=marked == "yes",
        )
    return table


def _whatever_objects(base: str) -> OpposedVerb | None:
    """Return the opposite of a verb that holds with any object."""
    opposite = lexicon.opposites().get((base, "VERB"))
    if opposite is None:
        return None
    marked = lexicon.is_complementary(base, "VERB")
    return OpposedVerb(opposite=opposite, objects=frozenset(), complementary=marked)


def _fits(tokens: Sequence[Token], i: int, base: str, dependents: Sequence[int]) -> bool:
    """Return whether a verb has the dependents that its opposite needs."""
    verb = tokens[i]
    related = [tokens[k] for k in dependents]
    role = {verb.tag, verb.text.lower(), f"={verb.relation}"}
    role |= {token.relation for token in related}
    role |= {token.text for token in tokens if token.tag in ("IN", "RP")}
    if any(base_relation(token) == "obl" for token in related):
        role.add("OBLIQUE")
    for token in related:
        is_subject = token.relation == "nsubj"
        if is_subject and token.text.lower().removesuffix("s") in word_class("quantities"):
            role.add("COUNTED")
    for name, cell in _VERB_CLASSES.items():
        if base in word_class(name) and not _among(cell, role):
            return False
    objects = _lemmas(tokens, dependents, ("obj", "dobj", "nsubj:pass"))
    if role & {"obj", "dobj"}:
        objects.add("OBJECT")
    return _has_context(tokens, i, (base, "VERB"), role, objects)
