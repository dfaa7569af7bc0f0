"""The opposite of a word in its sentence: the words that have one in this context, and the form that it takes there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opencse.syntax.tokens import Token
from opencse.views.edits import Edit, match_case
from opencse.views.rewriting import lexicon
from opencse.views.rewriting.articles import article_edits
from opencse.views.rewriting.opposed_verbs import VERB_TAGS, opposed_verb

_POS = {"JJ": "ADJ", "JJR": "ADJ", "JJS": "ADJ", "RB": "ADV", "RBR": "ADV", "NN": "NOUN", "NNS": "NOUN", "IN": "ADP"}
_PLURALS = {"man": "men", "woman": "women", "wife": "wives", "lady": "ladies", "gentleman": "gentlemen"}
# Verbs with which "for" and "against" are opposites, and verbs with particles that are.
_SIDES = frozenset("vote campaign argue testify lobby fight speak".split())
_PARTICLES = {
    one: (other, frozenset(verbs.split()))
    for pair, verbs in (
        ("up down", "go walk climb run move ride drive look"),
        ("on off", "turn switch"),
        ("in out", "move check log rush"),
    )
    for one, other in (pair.split(), pair.split()[::-1])
}
_WORD = re.compile(r"(?<![\w'’-])[a-z]+(?![\w'’-])")


@dataclass(frozen=True, kw_only=True)
class Opposite:
    """A word of a sentence and its opposite.

    Attributes:
        place: Index of the word's token.
        word: The opposite, in the same inflection.
        pos: "ADJ", "ADV", "NOUN", "VERB", "ADP", "PART" ("moved in") or "DEGREE" ("more" and "less").
    """

    place: int
    word: str
    pos: str


def find_opposites(text: str, tokens: Sequence[Token]) -> Iterator[Opposite]:
    """Yield every word of a sentence that its opposite can replace in this context.

    A word is left out if its opposite occurs in the sentence as well ("forward or backward").
    """
    words = {token.text.lower() for token in tokens}
    for i, token in enumerate(tokens):
        if not token.text.isalpha() or (i and not token.text.islower()) or _glued(text, token):
            continue
        found = _degree(tokens, i) or _particle(tokens, i) or _opposite(tokens, i)
        if found is not None and found.word not in words:
            yield found


def opposed_adjectives(text: str) -> dict[str, str]:
    """Return the opposites of all words of a sentence that can be adjectives, by word.

    It does not parse, so it takes microseconds instead of milliseconds, and finds words that are no adjectives here.
    """
    table = lexicon.opposites()
    return {word: table[word, "ADJ"] for word in _WORD.findall(text) if (word, "ADJ") in table}


def opposite_edits(text: str, tokens: Sequence[Token], found: Opposite) -> list[Edit]:
    """Return the edits that replace a word by its opposite, and correct the article before it."""
    token = tokens[found.place]
    edits: list[Edit] = [(token.start, token.end, match_case(found.word, token.text))]
    return [*edits, *article_edits(text, tokens, found.place, found.word)]


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
    return Opposite(place=i, word=new[word], pos="DEGREE") if counted or bound or graded else None


def _particle(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite particle: of "walked up", "moved in", "turned on"."""
    token = tokens[i]
    new, verbs = _PARTICLES.get(token.text.lower(), ("", frozenset()))
    loose = token.relation.split(":")[0] in ("compound", "prt", "advmod") and tokens[token.head].lemma.lower() in verbs
    return Opposite(place=i, word=new, pos="PART") if loose and token.head < i else None


def _opposite(tokens: Sequence[Token], i: int) -> Opposite | None:
    """Return the opposite of an adjective, adverb, noun, verb or preposition that fits its context."""
    token = tokens[i]
    word, relation = token.text.lower(), token.relation.split(":")[0]
    if relation in ("compound", "flat", "fixed", "goeswith", "cc", "dep"):
        return None
    if token.tag in VERB_TAGS:
        verb = opposed_verb(tokens, i, lambda base: lexicon.opposites().get((base, "VERB")))
        return Opposite(place=i, word=verb, pos="VERB") if verb else None
    pos = _POS.get(token.tag, "")
    if pos == "NOUN" and token.tag == "NNS" and (word, pos) not in lexicon.opposites():
        singular = re.sub("ies$", "y", word) if word.endswith("ies") else re.sub(r"(?<=ss|ch|sh)es$|s$", "", word)
        new = lexicon.opposites().get((singular, pos))
        return Opposite(place=i, word=_plural(new), pos=pos) if new else None
    new = lexicon.opposites().get((word, pos))
    fits = {"ADJ": _adjective_fits, "ADV": _adverb_fits, "NOUN": _noun_fits, "ADP": _preposition_fits}
    return Opposite(place=i, word=new, pos=pos) if new and fits[pos](tokens, i) else None


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
    if attribute and (tokens[token.head].tag in ("NNP", "NNPS") or tokens[i + 1].tag in ("NNP", "NNPS")):
        return False  # "the late John", "early Christian"
    if attribute and word in ("old", "young") and tokens[token.head].text.lower() in ("age", "world", "testament"):
        return False
    return {
        "many": attribute and before not in ("as", "so", "too", "how", "the", "a", "great"),
        "few": attribute and before not in ("a", "the", "last", "next", "first", "every", "past"),
        "last": attribute and before in ("the", "his", "her", "its", "their"),
        "first": attribute and before in ("the", "his", "her", "its", "their"),
        "next": attribute,
        "alive": predicate,
        "dead": predicate,
        "absent": predicate,
        "old": before not in ("year", "years", "months") and after not in ("enough", "age"),
        "long": before not in ("m", "km", "metres", "meters", "feet", "miles", "as", "so")
        and after not in ("as", "before"),
        "short": after not in ("of", "story", "stories", "film", "films", "form"),
        "wide": before not in ("m", "km", "metres", "feet"),
        "high": before not in ("m", "metres", "feet") and after not in ("school", "schools"),
        "low": True,
        "good": after not in ("at", "for"),
        "hard": predicate,
        "fast": attribute,
        "black": attribute and after not in ("people", "man", "men", "woman", "women"),
        "open": attribute or after not in ("to",),
        "full": after != "of" and attribute,
        "free": False,
        "possible": before != "as" and before != "if",
        "common": after not in ("to", "with", "law", "name", "names", "noun"),
        "present": False,
        "current": attribute,
        "former": attribute and tokens[token.head].tag in ("NN", "NNS"),
        "likely": after in ("to", "that"),
        "big": True,
    }.get(word, True)


def _adverb_fits(tokens: Sequence[Token], i: int) -> bool:
    word, after = tokens[i].text.lower(), _next_word(tokens, i)
    if tokens[i].relation != "advmod" or after in ("than", "as"):
        return False
    if word in ("early", "later", "earlier", "better"):
        return tokens[tokens[i].head].pos == "VERB" and word == "early" and after in ("in", ".", "on")
    if (word, after) in (("together", "with"), ("apart", "from")):
        return False
    return word != "fast" or tokens[tokens[i].head].pos == "VERB"


def _noun_fits(tokens: Sequence[Token], i: int) -> bool:
    word, before, after = tokens[i].text.lower(), _next_word(tokens, i, -1), _next_word(tokens, i)
    if word in ("north", "south", "east", "west"):
        return after in ("of", ".", ",", "") and before != "and"
    if word in ("top", "bottom", "beginning", "past", "future", "majority", "minority"):
        return before == "the"
    if word in ("increase", "decrease", "decline", "rise", "fall", "growth"):
        return before in ("a", "an", "the") and after in ("in", "of")
    if word in ("man", "men"):
        return before not in ("of",)
    joined = [k for k in _children(tokens, i) if tokens[k].relation == "conj"]
    return not joined and tokens[i].relation != "conj"  # "father and mother"


def _preposition_fits(tokens: Sequence[Token], i: int) -> bool:
    word, after = tokens[i].text.lower(), _next_word(tokens, i)
    if tokens[i].relation not in ("case", "mark", "prep"):
        return False
    if word in ("before", "after"):
        return after not in ("all", "that", "this", "which", "whom", "long") and tokens[i - 1].text.lower() not in (
            "named", "name", "called", "years", "days", "months", "and", "or", "shortly", "soon", "look", "took",
            "just", "ever", "even", "never", "year", "day", "immediately", "not", "until",
        )  # fmt: skip
    if word in ("for", "against"):
        return tokens[tokens[tokens[i].head].head].lemma.lower() in _SIDES
    return word != "without" or tokens[tokens[i].head].pos in ("NOUN", "PRON")


def _plural(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:s|x|ch|sh)$", noun) else "s")
