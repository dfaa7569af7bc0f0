"""Where a word can be replaced by its opposite: contexts of adjectives, adverbs, nouns and prepositions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opencse.text.syntax.tokens import Token

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
