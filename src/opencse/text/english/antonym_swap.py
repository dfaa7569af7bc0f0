"""One word replaced by its opposite, and the copula before a predicate that has one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import NEGATIVE, NOT, SENTENTIAL
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, LexiconTable, word_class
from opencse.text.english.opposites import Opposite, find_opposites, opposite_edits
from opencse.text.english.parse import base_relation, children, word_at
from opencse.text.syntax import Token
from opencse.text.views.text_edits import apply_edits

_PREDICATES = (("ADJ", "JJ"), ("NOUN", "NN"), ("NOUN", "NNS"))
_ATTRIBUTES = ("amod", "compound", "nummod", "appos")
_COPULAS = ("is", "are", "was", "were")  # those that "n't" can follow
_WEIGHTS = {"ADJ": 2, "ADV": 3, "NOUN": 1, "VERB": 4, "ADP": 1, "PART": 3, "DEGREE": 4}


@dataclass(frozen=True, kw_only=True)
class AntonymSwap(GrammarView):
    """Replace one word by its opposite, in the same inflection: a contradiction that looks like its source.

    Null if no word has an opposite in this context, or if the sentence is negative already.

    Attributes:
        predicate_first: Prefer a predicate adjective ("is safe"): the negation of its opposite
            ("is not dangerous") is a paraphrase, which `negated_antonym` builds.

    Example:
        [build.antonym]
        kind = "antonym_swap"
        predicate_first = true

        >>> AntonymSwap().preview("The old drug is safe.")
        ['The new drug is safe.']
    """

    kind: ClassVar[str] = "antonym_swap"
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    predicate_first: bool = False

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words that may be replaced, with their opposites."""
        return list(find_opposites(text, tokens))

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Replace one word, drawn by the weight of its part of speech."""
        if any(token.text.lower() in NEGATIVE - {"never", "rarely", "seldom"} for token in tokens):
            return None, "negative words"
        opposites = self.candidates(text, tokens)
        if not opposites:
            return None, "no antonym"
        if self.predicate_first:
            opposites = [opposite for opposite in opposites if find_copula(tokens, opposite) is not None] or opposites
        chosen = rng.choices(opposites, [_WEIGHTS[opposite.pos] for opposite in opposites])[0]
        return apply_edits(text, opposite_edits(text, tokens, chosen)), f"antonym {chosen.pos}"


def find_copula(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the form of be that links an adjective or a noun to its subject.

    None if the word is no such predicate, if anything but "not", an adverb or an article stands between, or if the
    word and its opposite leave a third possibility.
    """
    head, place = _described(tokens, opposite), opposite.place
    if head is None or any(shares_predicate(tokens, i) for i in (place, head)):
        return None
    following = tokens[place + 1].tag if place + 1 < len(tokens) else ""
    if word_at(tokens, place) in word_class("with preposition") and following in ("IN", "TO"):
        return None
    copula = place - 1
    if head != place or opposite.pos == "NOUN":
        if word_at(tokens, copula) in ("a", "an"):
            copula -= 1
        elif tokens[head].tag != "NNS":
            return None
    while copula > 0 and word_at(tokens, copula) in (*NOT, *SENTENTIAL):
        copula -= 1
    return copula if _links(tokens, copula, head) else None


def shares_predicate(tokens: Sequence[Token], i: int) -> bool:
    """Whether a word is coordinated with another that has no subject of its own: "safe and clean"."""
    joined = [k for k in children(tokens, i) if tokens[k].relation == "conj"]
    return any(not any(t.head == k and t.relation.startswith("nsubj") for t in tokens) for k in joined)


def _described(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the index of the predicate: the word, or the noun that an adjective is the only attribute of."""
    word, place = tokens[opposite.place], opposite.place
    if not opposite.complementary or (opposite.pos, word.tag) not in _PREDICATES:
        return None
    if opposite.pos == "NOUN":
        return None if any(t.head == place and base_relation(t) in _ATTRIBUTES for t in tokens) else place
    if word.relation != "amod":
        return place
    head = word.head
    if tokens[head].tag not in ("NN", "NNS") or head != place + 1:
        return None
    others = [token.relation for token in tokens if token.head == head and token is not word]
    return None if {"nmod:poss", *_ATTRIBUTES}.intersection(others) else head


def _links(tokens: Sequence[Token], copula: int, head: int) -> bool:
    """Whether a token is the copula of a predicate, in a statement without other negative words."""
    if copula <= 0 or word_at(tokens, copula) not in _COPULAS or any(token.text == "?" for token in tokens):
        return False
    depends = tokens[copula].head == head and tokens[copula].relation == "cop"
    governs = tokens[head].head == copula and tokens[head].relation in ("acomp", "attr")
    negative = any(t.text.lower() in NEGATIVE - set(NOT) and t.head in (head, copula) for t in tokens)
    return (depends or governs) and not negative
