"""The opposite of a word in its sentence: the words that have one in this context, and the form that it takes there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from opencse.text.english import lexicon
from opencse.text.english.articles import article_edits
from opencse.text.english.lexicon import OpposedVerb
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, match_case

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


# Verbs with which "for" and "against" are opposites, and verbs of motion.
_SIDES = frozenset("vote campaign argue testify lobby fight speak".split())
_MOTIONS = frozenset("move walk run drive ride fly sail march swim crawl turn head travel lean drift advance".split())
_TURNS = frozenset("turn veer look lean swing bend swerve bear drive walk run steer".split())
_SHARED = frozenset("live work play travel walk sit stay eat arrive leave sing perform".split())
_FIRST_OF_TWO = frozenset("side hand bank arm leg eye ear foot wing shoulder knee lane wrist lung kidney".split())
_PERIODS = frozenset("period year years month months week weeks day days hour hours minutes decade first last".split())
_ENDS = ("top", "bottom", "beginning", "start", "end", "front", "back")
_ONLY_PREDICATES = frozenset(
    """alive dead absent hard exposed legal illegal moral ethical level broke required optional permitted prohibited
    banned""".split()
)
_ONLY_ATTRIBUTES = frozenset("next fast current left right much little most native foreign established".split())
_FULL_STOP = (".", ",", ";", "", "and", "but")


def fits(tokens: Sequence[Token], i: int, pos: str) -> bool:
    """Whether the opposite of a word suits the words around it.

    Args:
        tokens: The sentence.
        i: Index of the word.
        pos: Its part of speech, "ADJ", "ADV", "NOUN" or "ADP".
    """
    rules = {"ADJ": _adjective_fits, "ADV": _adverb_fits, "NOUN": _noun_fits, "ADP": _preposition_fits}
    return rules[pos](tokens, i)


def _children(tokens: Sequence[Token], head: int) -> Iterator[int]:
    return (k for k, token in enumerate(tokens) if token.head == head and k != head)


def _next_word(tokens: Sequence[Token], i: int, step: int = 1) -> str:
    return tokens[i + step].text.lower() if 0 <= i + step < len(tokens) else ""


def _adjective_fits(tokens: Sequence[Token], i: int) -> bool:
    token, word = tokens[i], tokens[i].text.lower()
    before, after = _next_word(tokens, i, -1), _next_word(tokens, i)
    attribute = token.relation == "amod" and token.head > i and tokens[token.head].tag.startswith("N")
    predicate = not attribute and any(tokens[k].relation == "cop" for k in _children(tokens, i))
    if not (attribute or predicate) or (before in ("very", "too", "as", "so", "how") and word == "many"):
        return False
    if (word in _ONLY_PREDICATES and not predicate) or (word in _ONLY_ATTRIBUTES and not attribute):
        return False
    if attribute and (tokens[token.head].tag in ("NNP", "NNPS") or tokens[i + 1].tag in ("NNP", "NNPS")):
        return False  # "the late John", "early Christian"
    if attribute and word in ("old", "young") and tokens[token.head].text.lower() in ("age", "world", "testament"):
        return False
    return _quantity_fits(tokens, i) and {
        "last": attribute and before in ("the", "his", "her", "its", "their"),
        "first": attribute and before in ("the", "his", "her", "its", "their"),
        "old": before not in ("year", "years", "months") and after not in ("enough", "age"),
        "long": before not in ("m", "km", "metres", "meters", "feet", "miles", "as", "so")
        and after not in ("as", "before"),
        "short": after not in ("of", "story", "stories", "film", "films", "form"),
        "wide": before not in ("m", "km", "metres", "feet"),
        "high": before not in ("m", "metres", "feet") and after not in ("school", "schools"),
        "good": after not in ("at", "for"),
        "black": attribute and after not in ("people", "man", "men", "woman", "women"),
        "open": attribute or after not in ("to",),
        "full": after != "of" and attribute,
        "free": False,
        "possible": before != "as" and before != "if",
        "common": after not in ("to", "with", "law", "name", "names", "noun"),
        "present": predicate and after in (".", "in"),
        "former": attribute and tokens[token.head].tag in ("NN", "NNS"),
        "likely": after in ("to", "that"),
        "keen": after != "on",
        "native": after != "to",
        "required": after not in ("to", "by", "for"),
        "permitted": after not in ("to", "by"),
    }.get(word, True)


def _quantity_fits(tokens: Sequence[Token], i: int) -> bool:
    """Whether "many", "few", "much", "little", "most", "left" or "right" has the sense that its opposite denies."""
    word, before = tokens[i].text.lower(), _next_word(tokens, i, -1)
    head = tokens[tokens[i].head]
    if word in ("left", "right"):
        return head.lemma.lower() in _FIRST_OF_TWO
    return {
        "many": before not in ("as", "so", "too", "how", "the", "a", "great"),
        "few": before not in ("a", "the", "last", "next", "first", "every", "past"),
        "much": before not in ("as", "so", "too", "how", "very", "that") and head.tag == "NN",
        "little": head.tag == "NN" and tokens[i - 1].tag[:2] in ("VB", "IN") and tokens[i].head == i + 1,
        "more": head.tag == "NNS",
        "most": head.tag == "NNS" and before not in ("the", "at"),
    }.get(word, True)


def _adverb_fits(tokens: Sequence[Token], i: int) -> bool:
    word, after, head = tokens[i].text.lower(), _next_word(tokens, i), tokens[tokens[i].head]
    if tokens[i].relation != "advmod" or after in ("than", "as"):
        return False
    if word in ("early", "later", "earlier", "better"):
        return head.pos == "VERB" and word == "early" and after in ("in", ".", "on")
    if (word, after) in (("together", "with"), ("apart", "from"), ("ahead", "of"), ("inside", "of"), ("outside", "of")):
        return False
    return {
        "alone": head.lemma.lower() in _SHARED,
        "left": head.lemma.lower() in _TURNS,
        "right": head.lemma.lower() in _TURNS and after in _FULL_STOP,
        "exactly": after.isdigit(),
        "inside": after in _FULL_STOP,
        "outside": after in _FULL_STOP,
        "fast": head.pos == "VERB",
    }.get(word, True)


def _noun_fits(tokens: Sequence[Token], i: int) -> bool:
    word, before, after = tokens[i].text.lower(), _next_word(tokens, i, -1), _next_word(tokens, i)
    if word in ("north", "south", "east", "west"):
        return after in ("of", ".", ",", "") and before != "and"
    if word in _ENDS:
        return before == "the" and (after == "of" or word in ("top", "bottom", "beginning"))
    if word in ("past", "future", "majority", "minority"):
        return before == "the"
    if word in ("increase", "decrease", "reduction", "decline", "rise", "fall", "growth"):
        return before in ("a", "an", "the") and after in ("in", "of")
    if word in ("ease", "difficulty"):
        return before == "with" and after in _FULL_STOP
    if word in ("fear", "danger", "child", "children", "love"):
        return (after != "of" and before not in ("in", "only")) or (word == "danger" and after in _FULL_STOP)
    if word in ("man", "men"):
        return before not in ("of",)
    joined = [k for k in _children(tokens, i) if tokens[k].relation == "conj"]
    return not joined and tokens[i].relation != "conj"  # "father and mother"


def _preposition_fits(tokens: Sequence[Token], i: int) -> bool:
    word, after = tokens[i].text.lower(), _next_word(tokens, i)
    if tokens[i].relation not in ("case", "mark", "prep"):
        return False
    noun = tokens[tokens[i].head]
    governor = tokens[noun.head]
    if word in ("before", "after"):
        return after not in ("all", "that", "this", "which", "whom", "long") and tokens[i - 1].text.lower() not in (
            "named", "name", "called", "years", "days", "months", "and", "or", "shortly", "soon", "look", "took",
            "just", "ever", "even", "never", "year", "day", "immediately", "not", "until",
        )  # fmt: skip
    if word in ("for", "against"):
        return governor.lemma.lower() in _SIDES
    if word in ("toward", "towards"):
        return governor.lemma.lower() in _MOTIONS
    if word == "within":
        return after in ("the", "its", "their") and not _PERIODS & {noun.lemma.lower(), _next_word(tokens, i, 2)}
    if word == "with":
        return noun.relation == "nmod" and after in ("a", "an") and governor.tag in ("NN", "NNS")
    if word in ("like", "unlike"):
        return i == 0
    if word in ("over", "under"):
        return i + 1 < len(tokens) and tokens[i + 1].tag == "CD" and tokens[i - 1].tag.startswith("VB")
    return word != "without" or noun.pos in ("NOUN", "PRON")


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
