"""Reordering: the same words in another order that mean the same ("In 1990, he left", "He left in 1990")."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.syntax.tokens import Token
from opencse.views.base import ConstructorSpec
from opencse.views.clause import Clause, main_clause
from opencse.views.edits import apply, decapitalised
from opencse.views.phrases import Span, as_span, subtree, text_of
from opencse.views.rewriter import Made, Rewriter

_TIME = frozenset(
    """year years month months week weeks day days century centuries decade decades season spring summer autumn
    winter war morning evening night afternoon period era time career childhood lifetime reign january
    february march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday""".split()
)
_FRONTED = (
    "in",
    "during",
    "after",
    "before",
    "since",
    "on",
    "at",
    "until",
    "throughout",
    "by",
    "from",
    "despite",
    "under",
)
_CLAUSES = (
    "when",
    "while",
    "because",
    "although",
    "though",
    "if",
    "after",
    "before",
    "since",
    "until",
    "unless",
    "once",
)
_OTHER_CLAUSES = ("acl", "relcl", "ccomp", "parataxis", "appos", "advcl", "conj", "dep", "list", "xcomp", "csubj")
_MOST = 24  # tokens of a sentence that is turned round


@dataclass(frozen=True, kw_only=True)
class Reordering(ConstructorSpec):
    """Move an adverbial from the front of the sentence to its end or back, or turn a pair round ("A and B").

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "reordering"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser."""
        return Rewriter(self.syntax, _reordered, seed=seed, kind=self.kind)


def _reordered(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
    clause = main_clause(tokens)
    ways = [made for made in (_to_end(text, clause), _to_front(text, clause)) if made is not None] if clause else []
    turned = _pairs_turned(text, tokens)
    if not ways and not turned:
        return None, "nothing to move"
    return chance.choice([*ways, *turned, *ways]) if ways else chance.choice(turned)


def _simple(clause: Clause, besides: set[int]) -> bool:
    """Whether the rest of the sentence is one plain clause, so that an adverbial at its end belongs to it."""
    tokens = clause.tokens
    if len(tokens) > _MOST or tokens[-1].text != "." or clause.subject is None or clause.finite is None:
        return False
    rest = [t for i, t in enumerate(tokens[:-1]) if i not in besides]
    plain = not any(t.relation.split(":")[0] in _OTHER_CLAUSES or "relcl" in t.relation for t in rest)
    return plain and not any(t.text in (",", ";", ":", "(", '"', "“", "–", "—") for t in rest)


def _to_end(text: str, clause: Clause) -> Made | None:
    """Make "He left in 1990." of "In 1990, he left."."""
    tokens = clause.tokens
    span = _adverbial(clause, first=0)
    if span is None or span[1] + 2 >= len(tokens):
        return None
    start = span[1] + 1
    places = set(range(span[0], span[1] + 1))
    if tokens[start].text == ",":
        places.add(start)
        start += 1
    elif tokens[span[0]].tag == "WRB" or span[1] - span[0] > 3:
        return None  # no comma, so the phrase may end elsewhere
    if start != clause.subject and start not in subtree(tokens, clause.subject or 0):
        return None  # inversion, or another adverbial before the subject
    if not _simple(clause, places) or tokens[start].text.lower() in ("this", "these", "there"):
        return None
    rest = text[tokens[start].start : tokens[-1].start].rstrip()
    moved = decapitalised(text_of(text, tokens, span)) if tokens[0].pos != "PROPN" else text_of(text, tokens, span)
    return f"{rest[:1].upper()}{rest[1:]} {moved}{text[tokens[-1].start :]}", "to the end"


def _to_front(text: str, clause: Clause) -> Made | None:
    """Make "In 1990, he left." of "He left in 1990."."""
    tokens = clause.tokens
    span = _adverbial(clause, first=None)
    if span is None or span[0] < 2 or clause.subject is None or clause.finite is None:
        return None
    before = tokens[span[0] - 1]
    places = set(range(span[0], span[1] + 1)) | ({span[0] - 1} if before.text == "," else set())
    opening = tokens[0]
    known = opening.tag in ("DT", "PRP", "PRP$", "NNP", "NNPS", "CD", "NNS")
    if not _simple(clause, places) or not known or min(subtree(tokens, clause.subject)) != 0:
        return None
    end = tokens[span[0] - 2].end if before.text == "," else before.end
    rest = text[opening.start : end]
    capital = opening.pos == "PROPN" or opening.tag in ("NNP", "NNPS") or opening.text == "I"
    moved = text_of(text, tokens, span)
    return f"{moved[:1].upper()}{moved[1:]}, {rest if capital else decapitalised(rest)}.", "to the front"


def _adverbial(clause: Clause, first: int | None) -> Span | None:
    """Return an adverbial of time, or a clause with a conjunction, that opens the sentence (0) or closes it (None)."""
    tokens = clause.tokens
    for i in clause.children(clause.predicate):
        relation = tokens[i].relation.split(":")[0]
        if relation not in ("obl", "advcl") or tokens[i].relation == "obl:agent":
            continue
        span = as_span(subtree(tokens, i) - ({len(tokens) - 1} if first is None else set()) or {i})
        if span is not None and tokens[span[1]].text == ",":
            span = (span[0], span[1] - 1)
        if span is None or (span[0] != 0 if first == 0 else span[1] != len(tokens) - 2):
            continue
        opener, inner = tokens[span[0]].text.lower(), tokens[span[0] : span[1] + 1]
        if any(t.text in (",", ";", ":", "(", '"') for t in inner):
            continue
        if relation == "obl" and opener in _FRONTED and len(inner) <= 8 and _about_time(inner, tokens[i]):
            return span
        finite = any(t.tag in ("VBD", "VBZ", "VBP", "MD") for t in inner)
        if span[0] and tokens[span[0] - 1].text.lower() in ("only", "even", "just", "and", "but", "not", "especially"):
            continue
        if relation == "advcl" and opener in _CLAUSES and finite and len(inner) <= 12:
            return span
    return None


def _about_time(phrase: Sequence[Token], noun: Token) -> bool:
    year = any(t.tag == "CD" and t.text.isdigit() and len(t.text) == 4 for t in phrase) and len(phrase) <= 5
    return noun.text.lower() in _TIME or year


def _pairs_turned(text: str, tokens: Sequence[Token]) -> list[Made]:
    """Return the sentence with each plain pair of nouns or adjectives turned round."""
    out: list[Made] = []
    for k, token in enumerate(tokens):
        if token.text.lower() not in ("and", "or") or token.relation != "cc" or not 0 < k < len(tokens) - 1:
            continue
        right, left = token.head, tokens[token.head].head
        if right < k or tokens[right].relation != "conj" or left > k or tokens[left].tag != tokens[right].tag:
            continue
        spans = _side(tokens, left, k - 1, left_side=True), _side(tokens, right, k + 1, left_side=False)
        one, other = spans
        if one is None or other is None or not _alone(tokens, left, right, one, other):
            continue
        first, second = text_of(text, tokens, one), text_of(text, tokens, other)
        if one[0] == 0 or first.lower() == second.lower():
            continue
        edits = [
            (tokens[one[0]].start, tokens[one[1]].end, second),
            (tokens[other[0]].start, tokens[other[1]].end, first),
        ]
        out.append((apply(text, edits), "pair"))
    return out


def _side(tokens: Sequence[Token], head: int, edge: int, *, left_side: bool) -> Span | None:
    """Return one side of a pair: a bare word, or a noun with its article or possessive."""
    token = tokens[head]
    if token.tag not in ("NN", "NNS", "JJ", "NNP"):
        return None
    inner = [
        i for i, t in enumerate(tokens) if t.head == head and i != head and t.relation not in ("cc", "conj", "case")
    ]
    inner = [i for i in inner if tokens[i].relation != "punct" and not (left_side and i > head)]
    if token.tag == "JJ":
        return (head, head) if head == edge and not inner else None
    if any(tokens[i].relation != "det" for i in inner):  # "the king and his court": a pronoun would come first
        return None
    span = as_span({head, *(k for i in inner for k in subtree(tokens, i))})
    return span if span is not None and span[1 if left_side else 0] == edge and span[1] == head else None


def _alone(tokens: Sequence[Token], left: int, right: int, one: Span, other: Span) -> bool:
    """Whether nothing but the two belongs to the pair, and neither is part of a name or shares a modifier."""
    joined = [i for i, t in enumerate(tokens) if t.relation == "conj" and t.head in (left, right)]
    if joined != [right] or (one[0] == left) != (other[0] == right) or other[1] + 1 >= len(tokens):
        return False
    following = tokens[other[1] + 1]
    if following.text.lower() in ("of", "'s", "’s", "'", "’", "-", "–", ",", "respectively", "both"):
        return False
    if following.tag not in (".", "IN", "VBD", "VBZ", "VBP", "MD", "TO", "RB") or tokens[one[0] - 1].text in (
        "-",
        "–",
        ",",
        "of",
    ):
        return False
    if following.tag == "IN" and tokens[following.head].head in (left, right):
        return False  # a phrase that may belong to both
    before = tokens[one[0] - 1]
    if before.tag in ("NN", "NNS", "JJ", "JJR", "JJS", "VBG", "VBN", "CD", "PRP$", "POS"):
        return False  # it may belong to the first alone, or to both
    if tokens[left].tag == "NNP":
        return before.tag in ("IN", "VBD", "VBZ", "VBP", "TO") and "respectively" not in [t.text for t in tokens]
    return tokens[one[0] - 1].text.lower() not in (
        "between",
        "from",
        "more",
        "most",
        "very",
        "both",
        "either",
        "of",
        "/",
    )
