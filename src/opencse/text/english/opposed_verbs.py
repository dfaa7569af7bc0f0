"""Verbs that can be replaced by their opposite, and the objects and complements with which they can."""

from __future__ import annotations

from collections.abc import Sequence

from opencse.text.english import lexicon
from opencse.text.english.lexicon import OpposedVerb
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token

VERB_TAGS = ("VB", "VBZ", "VBP", "VBD", "VBN", "VBG")
_WITH_OBJECT = frozenset(  # or in the passive
    """join enter support oppose build attack defend raise cause prevent lower like love hate include exclude
    import export hire fire kill create buy sell push pull approve ban establish ignore fill empty help assist
    hinder extend climb avoid seek enjoy mix combine collect distribute connect attach detach lock load
    free complete obtain gain regain celebrate cool heat employ refuse discard
    retain preserve omit welcome attend skip warm dry lead challenge contest launch protest regulate credit qualify
    arm seal dress lock cover load understand observe detect notice follow honour honor cure accompany occupy""".split()
)
_ACTIVE_WITH_OBJECT = frozenset("feed acquire doubt believe marry divorce win possess lack".split())
_WITHOUT_OBJECT = frozenset(
    """decline drop plunge surge soar plummet escalate gather scatter flourish thrive arrive depart advance retreat
    vanish stop survive start begin end open stay remain recover bloom laugh cry fail succeed persist linger""".split()
)
_WITHOUT_OBLIQUE = frozenset(
    """divide expose provide remove insert withhold double connect help stay remain fail survive
    distribute""".split()
)
_FINITE = frozenset("start begin stop".split())
_EXAMS = frozenset("exam examination test audition inspection course".split())
_RIDES = frozenset("train bus flight plane boat ferry ball".split())
_EVENTS = frozenset("class school lesson lecture meeting session training church mass event course".split())
_OBJECTS = {"pass": _EXAMS, "miss": _RIDES, "catch": _RIDES, "skip": _EVENTS}
_TOO_MANY_SENSES = frozenset("appear narrow".split())
_QUANTITIES = frozenset(
    """price rate number cost temperature sale profit population level income output share demand supply tax
    unemployment inflation crime revenue wage value attendance pressure turnout production salary ratio
    percentage index debt deficit emission consumption spending membership enrollment enrolment rent fee traffic
    support popularity interest trade budget earnings turnover gdp ranking rating score water tide""".split()
)
_MOVES = frozenset("rise fall drop".split())
_ONLY_SAYING = frozenset("say claim state insist maintain think expect hope fear assert show".split())
_SAYING = _ONLY_SAYING | frozenset(  # that …
    """deny confirm remember forget admit reveal agree acknowledge affirm concede confess believe doubt prove disprove
    """.split()
)
_WITH_INFINITIVE = {
    "agree": "refuse",
    "cease": "continue",
    "choose": "decline",
    "continue": "cease",
    "decline": "agree",
    "fail": "manage",
    "forget": "remember",
    "instruct": "forbid",
    "manage": "fail",
    "neglect": "remember",
    "offer": "refuse",
    "order": "forbid",
    "promise": "refuse",
    "refuse": "agree",
    "remember": "forget",
    "volunteer": "refuse",
}
_COMPLEMENTARY_WITH_INFINITIVE = frozenset(
    "agree cease continue decline fail forget manage refuse remember allow forbid permit".split()
)
_ALSO_WITH_INFINITIVE = frozenset("allow forbid permit encourage".split())
_PARTICLE_RELATIONS = ("compound:prt", "prt")
_NEVER_PREPOSITIONS = (("put", "on"),)
_OBJECT_RELATIONS = ("obj", "dobj", "nsubj:pass", "nsubjpass")


def opposed_verb(tokens: Sequence[Token], i: int) -> tuple[str, str, OpposedVerb] | None:
    """Return a verb's base, its opposite in the same inflection, and the entry of the lexicon.

    None if the opposite does not fit the objects and complements. Certain objects decide first ("keep a promise").

    Args:
        tokens: The sentence.
        i: Index of the verb.
    """
    verb = tokens[i]
    base = _base(verb)
    children = [k for k, token in enumerate(tokens) if token.head == i and k != i]
    relations = {tokens[k].relation for k in children}
    if base is None or relations & set(_PARTICLE_RELATIONS):
        return None
    entry = _entry(tokens, children, base)
    if entry is None or (base in _TOO_MANY_SENSES and not entry.objects):
        return None
    if not entry.objects and not _fits(tokens, i, base, children):
        return None
    return base, _inflected(entry.opposite, verb.tag), entry


def opposed_particle_verb(tokens: Sequence[Token], i: int) -> tuple[int, str, str, OpposedVerb] | None:
    """Return the index of a verb's particle, the verb's base, the inflected opposite, and the entry of the lexicon.

    None if the verb has no particle, or if its opposite needs an object that it lacks, or lacks one that it has.

    Args:
        tokens: The sentence.
        i: Index of the verb.
    """
    verb = tokens[i]
    base = _base(verb)
    found = _particle(tokens, i, base) if base is not None else None
    if base is None or found is None:
        return None
    particle, objects = found
    for entry in lexicon.particle_verbs().get((base, tokens[particle].text.lower()), ()):
        if "any" in entry.objects or entry.objects & objects or ("yes" if objects else "no") in entry.objects:
            return particle, base, _inflected(entry.opposite, verb.tag), entry
    return None


def _particle(tokens: Sequence[Token], i: int, base: str) -> tuple[int, set[str]] | None:
    """Return the index of a verb's particle and its objects; None if it has no particle, or governs a clause.

    The parser often takes a particle for a preposition: "called off the meeting".
    """
    objects: set[str] = set()
    particle = None
    for k, token in enumerate(tokens):
        relation = token.relation.split(":")[0]
        if k == i + 1 and (token.tag == "RP" or (base, token.text.lower()) in _NEVER_PREPOSITIONS):
            particle = k
            if relation == "case" and tokens[token.head].head == i:
                objects.add(tokens[token.head].lemma.lower())
        if token.head != i or k == i:
            continue
        if relation in ("xcomp", "ccomp"):
            return None
        if token.relation in _OBJECT_RELATIONS:
            objects.add(token.lemma.lower())
        if k > i and particle is None and (relation in ("compound", "advmod") or token.relation in _PARTICLE_RELATIONS):
            particle = k
    return None if particle is None else (particle, objects)


def _base(verb: Token) -> str | None:
    """Return the base of a verb; None if it is no predicate, or its form is not what inflection of the base gives."""
    if verb.relation in ("amod", "aux", "cop"):
        return None
    base = verb.lemma.lower() if verb.tag == "VBG" else base_form(verb.text, verb.tag, verb.lemma)
    return base if inflect(base, verb.tag) == verb.text.lower() else None


def _inflected(phrase: str, tag: str) -> str:
    """Return a verb, perhaps with a particle, in the form of a tag."""
    base, _, particle = phrase.partition(" ")
    return f"{inflect(base, tag)} {particle}".rstrip()


def _entry(tokens: Sequence[Token], children: Sequence[int], base: str) -> OpposedVerb | None:
    """Return the opposite of a verb for its objects, its infinitive or its clause; None if it has none."""
    clauses = [k for k in children if tokens[k].relation in ("xcomp", "ccomp")]
    if any(token.tag == "TO" and token.head in clauses for token in tokens):
        new = _WITH_INFINITIVE.get(base)
        if new is None and base not in _ALSO_WITH_INFINITIVE:
            return None
        return _plain(base, new, complementary=base in _COMPLEMENTARY_WITH_INFINITIVE)
    if clauses:
        return _plain(base) if base in _SAYING else None
    objects = {tokens[k].lemma.lower() for k in children if tokens[k].relation in _OBJECT_RELATIONS}
    for entry in lexicon.collocations().get(base, ()):
        if entry.objects & objects:
            return entry
    return None if base in _ONLY_SAYING else _plain(base)


def _plain(base: str, new: str | None = None, *, complementary: bool | None = None) -> OpposedVerb | None:
    """Return a verb's opposite whatever its objects are."""
    opposite = new or lexicon.opposites().get((base, "VERB"))
    if opposite is None:
        return None
    marked = lexicon.is_complementary(base, "VERB") if complementary is None else complementary
    return OpposedVerb(opposite=opposite, objects=frozenset(), complementary=marked)


def _fits(tokens: Sequence[Token], i: int, base: str, children: Sequence[int]) -> bool:
    """Whether the verb at index i has the objects with which its opposite is one."""
    verb, relations = tokens[i], {tokens[k].relation for k in children}
    passive = bool(relations & {"nsubj:pass", "nsubjpass", "aux:pass"})
    has_object = bool(relations & {"obj", "dobj"})
    oblique = any(relation.split(":")[0] == "obl" for relation in relations)
    objects = {tokens[k].lemma.lower() for k in children if tokens[k].relation in ("obj", "dobj", "nsubj:pass")}
    following = tokens[i + 1].text.lower() if i + 1 < len(tokens) else ""
    words = {token.text for token in tokens}
    counted = any(
        tokens[k].relation == "nsubj" and tokens[k].text.lower().removesuffix("s") in _QUANTITIES for k in children
    )
    return (
        (base not in _WITH_OBJECT or has_object or passive)
        and (base not in _ACTIVE_WITH_OBJECT or has_object)
        and (base not in _WITHOUT_OBJECT or not has_object)
        and (base not in _WITHOUT_OBLIQUE or not oblique)
        and (base not in _MOVES or counted or not oblique)
        and (base not in _OBJECTS or bool(objects & _OBJECTS[base]))
        and (base not in _FINITE or verb.tag in ("VBD", "VBZ", "VBP"))
        and {
            "admit": not passive,
            "agree": following in ("with", "that", "to", ".", ",")
            and (following != "to" or bool(relations & {"xcomp"})),
            "close": not has_object or passive,
            "end": oblique,
            "enter": following != "into",
            "grow": counted and not has_object,
            "found": verb.text.lower() == "founded",
            "import": following != "into",
            "reduce": following != "to",
            "start": following != "with",
            "include": verb.relation != "case" and verb.tag != "VBG",
            "object": following == "to",
            "continue": following != "until",
            "participate": "in" in words,
            "remain": not any(tokens[k].relation in ("xcomp", "advmod", "cop") for k in children),
            "succeed": not oblique or following == "in",
            "raise": "nsubj" in relations and has_object and "his" not in {tokens[k].text for k in children},
        }.get(base, True)
    )
