"""Phrases of a parsed sentence: subtrees, base noun phrases, and the exchange of two phrases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import SYMMETRIC_VERBS
from opencse.text.english.parse import (
    MAX_TOKENS,
    Span,
    base_relation,
    characters,
    children,
    noun_phrase,
    recased,
    text_of,
    word_at,
)
from opencse.text.english.verbs import indefinite_article
from opencse.text.syntax import Token
from opencse.text.views.text_edits import apply_edits


def exchange_phrases(text: str, tokens: Sequence[Token], one: Span, other: Span) -> str | None:
    """Return the text with two phrases exchanged; None if they overlap or read alike.

    None as well if one is part of a word: "re-election or exile" must not become "re-exile or election".
    """
    left, right = sorted((one, other))
    if left[1] >= right[0]:
        return None
    edges = [at for start, end in (characters(tokens, s) for s in (left, right)) for at in (start - 1, end)]
    if any(text[at : at + 1] in ("-", "/") for at in edges):
        return None
    before, after = text_of(text, tokens, left), text_of(text, tokens, right)
    if before.lower() == after.lower():
        return None
    at_start = left[0] == 0
    before = recased(before, tokens[left[0]], was_first=at_start)
    after = recased(after, tokens[right[0]], was_first=False, is_first=at_start)
    return apply_edits(text, [(*characters(tokens, left), after), (*characters(tokens, right), before)])


_NOUNS = ("NN", "NNS", "NNP", "NNPS", "CD")
_WITHIN = ("compound", "flat", "goeswith", "fixed", "nummod", "nn", "appos")  # parts of a larger noun phrase
_ARGUMENTS = ("nsubj", "obj", "dobj", "iobj", "obl", "nmod", "pobj")


@dataclass(frozen=True, kw_only=True)
class PhraseSwap(GrammarView):
    """Exchange two noun phrases, names, numbers or adjectives of the same form: same words, another meaning.

    Conjuncts, and phrases whose exchange would not change the meaning, are left alone. Null if nothing can be swapped.

    Example:
        [build.swapped]
        kind = "phrase_swap"

        >>> PhraseSwap().preview("The cat saw the dog.")
        ['The dog saw the cat.']
    """

    kind: ClassVar[str] = "phrase_swap"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Exchange one pair of phrases, drawn by weight."""
        if len(tokens) > MAX_TOKENS:
            return None, "too long"
        swaps = list(_swaps(tokens))
        while swaps:
            weights = [weight for weight, *_ in swaps]
            _, rule, one, other = swaps.pop(rng.choices(range(len(swaps)), weights)[0])
            swapped = exchange_phrases(text, tokens, one, other)
            if swapped is not None:
                return swapped, rule
        return None, "nothing to swap"


def _swaps(tokens: Sequence[Token]) -> Iterator[tuple[float, str, Span, Span]]:
    """Yield the weight, the rule and both phrases of every possible swap."""
    nouns = [i for i, t in enumerate(tokens) if t.tag in _NOUNS and base_relation(t) not in _WITHIN]
    nouns = [i for i in nouns if any(map(str.isalnum, tokens[i].text))]
    for i, j in combinations(nouns, 2):
        kind = _class(tokens[i])
        if kind != _class(tokens[j]) or _coordinated(tokens, i, j) or _symmetric(tokens, i, j):
            continue
        one, other = noun_phrase(tokens, i), noun_phrase(tokens, j)
        if one is not None and other is not None:
            yield _weight(tokens[i], tokens[j], kind), kind, one, other
    adjectives = [i for i, t in enumerate(tokens) if t.tag == "JJ" and t.relation == "amod"]
    for i, j in combinations(adjectives, 2):
        alike = _article(tokens, i) == _article(tokens, j)
        if tokens[i].head != tokens[j].head and alike and not _coordinated(tokens, tokens[i].head, tokens[j].head):
            yield 1.0, "adjectives", (i, i), (j, j)


def _article(tokens: Sequence[Token], i: int) -> str:
    """Return the indefinite article that stands, or would stand, before a word."""
    before = word_at(tokens, i - 1)
    return before if before in ("a", "an") else indefinite_article(tokens[i].text)


def _class(token: Token) -> str:
    """Return the class within which a phrase can be swapped: names, numbers, or nouns of one grammatical number."""
    return {"NN": "singular nouns", "NNS": "plural nouns", "CD": "numbers"}.get(token.tag, "names")


def _weight(one: Token, other: Token, kind: str) -> float:
    """Return the weight of a swap in the draw: highest for subject and object, double for names and numbers."""
    first, second = base_relation(one), base_relation(other)
    weight = 2.0 if first in _ARGUMENTS and second in _ARGUMENTS else 1.0
    if first == "nsubj" and second in ("obj", "dobj"):
        weight = 6.0
    return weight * (2.0 if kind in ("names", "numbers") else 1.0)


def _first_conjunct(tokens: Sequence[Token], i: int) -> int:
    """Return the first of the conjuncts or appositions that a token belongs to."""
    while tokens[i].relation in ("conj", "appos") and tokens[i].head != i:
        i = tokens[i].head
    return i


def _coordinated(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether two tokens are conjuncts or appositions of each other."""
    return _first_conjunct(tokens, i) == _first_conjunct(tokens, j)


def _symmetric(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether a swap would keep the meaning: "A meets B", "A is B", "in A … in B"."""
    for subject, predicate in ((i, j), (j, i)):
        if tokens[subject].head == predicate and tokens[subject].relation == "nsubj":
            return _dependents(tokens, predicate, "cop") != ""
    head = tokens[i].head
    if head != tokens[j].head:
        return False
    place = _dependents(tokens, i, "case")
    return tokens[head].lemma.lower() in SYMMETRIC_VERBS or (place != "" and place == _dependents(tokens, j, "case"))


def _dependents(tokens: Sequence[Token], head: int, relation: str) -> str:
    """Return the words that depend on a token by this relation."""
    return " ".join(word_at(tokens, i) for i in children(tokens, head) if tokens[i].relation == relation)
