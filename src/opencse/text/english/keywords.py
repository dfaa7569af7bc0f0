"""Keywords of a sentence, as people type them into a search box: "refund opened headphones"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import NOT
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.syntax.tokens import Token

_EMPTY = frozenset(
    """be have do get make take go come become use include such other own same many several various first last
    only very also more most new thing way one number part kind type lot example""".split()
)
_NEGATIVE = (*NOT, "no", "without", "never")
_IN_NAMES = ("compound", "flat", "goeswith")


@dataclass(frozen=True, kw_only=True)
class Keywords(GrammarView):
    """Keep the words of a sentence that a search would name: its predicate, subject, objects and names.

    Words keep their order; common ones are in lower case. A negative word in front of a chosen word is kept. Null if
    the sentence has fewer than `fewest`.

    Attributes:
        fewest: Fewest words.
        most: Most words; each row draws its own number.

    Example:
        [build.keywords]
        kind = "keywords"
    """

    kind: ClassVar[str] = "keywords"

    fewest: int = 4
    most: int = 7

    def __post_init__(self) -> None:
        if not 1 <= self.fewest <= self.most:
            raise ValueError(f"fewest and most must be 1 <= fewest <= most, not {self.fewest} and {self.most}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Choose the words of one sentence."""
        ranked = sorted((_rank(tokens, i), rng.random(), i) for i, t in enumerate(tokens) if _is_content(tokens, i))
        if len(ranked) < self.fewest:
            return None, "few content words"
        wanted = rng.randint(self.fewest, min(self.most, len(ranked)))
        chosen: set[int] = set()
        for _, _, i in ranked:
            if len(chosen) >= wanted:
                break
            if tokens[i].relation == "amod" and tokens[i].head not in chosen:
                continue  # "young" says little without its noun
            chosen |= {i, *(k for k, t in enumerate(tokens) if t.head == i and _is_part(t))}
        for i, token in enumerate(tokens):
            if token.text.lower() in _NEGATIVE and (token.head in chosen or tokens[token.head].head in chosen):
                chosen.add(i)
        return " ".join(_typed(tokens[i]) for i in sorted(chosen)), f"{len(chosen)} words"


def _is_content(tokens: Sequence[Token], i: int) -> bool:
    """Whether a word carries content: a noun, a name, an adjective, a main verb or a number."""
    token = tokens[i]
    if token.relation.split(":")[0] in ("aux", "cop", "det", "case", "mark") or not any(map(str.isalnum, token.text)):
        return False
    return _is_name(token) or (token.pos in ("NOUN", "ADJ", "VERB", "NUM") and token.lemma.lower() not in _EMPTY)


def _is_name(token: Token) -> bool:
    return token.pos == "PROPN" or token.tag in ("NNP", "NNPS")


def _is_part(token: Token) -> bool:
    """Whether a dependent belongs to a name or a compound: "New York", "bus stop"."""
    relation = token.relation.split(":")[0]
    return relation in _IN_NAMES or (relation == "amod" and _is_name(token))


def _rank(tokens: Sequence[Token], i: int) -> int:
    """Return how early a word is chosen: the predicate and its arguments first."""
    token = tokens[i]
    relation = token.relation.split(":")[0]
    if token.head == i:
        return 0
    if relation in ("nsubj", "obj", "dobj", "nsubjpass"):
        return 1
    if _is_name(token) or relation in ("obl", "xcomp", "acl"):
        return 2
    return 3 if token.pos == "NOUN" else 4


def _typed(token: Token) -> str:
    """Return a word as it is typed: "n't" is "not", and common words have no capitals."""
    if token.text.lower() in NOT:
        return "not"
    return token.text if _is_name(token) or token.text.isupper() else token.text.lower()
