"""Phrase swap: two like phrases exchange places, so that the same words say something else ("from A to B").

Such pairs have the same words and another meaning. PAWS (Zhang, Baldridge and He, NAACL 2019) tests models with pairs
that a language model swapped; here grammar finds what may be swapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from opencse.syntax.asides import parse_without_asides
from opencse.syntax.tokens import Token
from opencse.views.constructor import ConstructorSpec, Row, View, row_random, with_error_rate
from opencse.views.rewriting.phrases import LONGEST, Span, exchanged, noun_phrase

_NOUNS = ("NN", "NNS", "NNP", "NNPS", "CD")
_WITHIN = ("compound", "flat", "goeswith", "fixed", "nummod", "nn", "appos")  # parts of a larger noun phrase
_ARGUMENTS = ("nsubj", "obj", "dobj", "iobj", "obl", "nmod", "pobj")
# With these verbs both places mean the same: "A meets B", "A equals B".
_SYMMETRIC = frozenset(
    "be marry wed meet equal border resemble match differ adjoin neighbor neighbour touch intersect collide".split()
)


@dataclass(frozen=True, kw_only=True)
class PhraseSwap(ConstructorSpec):
    """Swap two noun phrases, names, numbers or adjectives of like form that are not coordinated.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "phrase_swap"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> PhraseSwapper:
        """Load the parser."""
        return PhraseSwapper(self, seed=seed)


class PhraseSwapper:
    """An opened `PhraseSwap`."""

    def __init__(self, spec: PhraseSwap, *, seed: int = 0) -> None:
        from opencse.syntax import load_parser

        self._seed = seed
        self._parser = load_parser(spec.syntax)
        self.digest = self._parser.digest

    def __call__(self, rows: Sequence[Row]) -> list[View]:
        """Swap once in each row's text."""
        parsed = parse_without_asides(self._parser, [row.text for row in rows])
        return with_error_rate(rows, [self._one(row, tokens) for row, tokens in zip(rows, parsed, strict=True)])

    def _one(self, row: Row, tokens: Sequence[Token]) -> tuple[str | None, str]:
        if len(tokens) > LONGEST:
            return None, "too long"
        found = list(_swaps(tokens))
        chance = row_random(self._seed, PhraseSwap.kind, row)
        while found:
            weights = [weight for weight, *_ in found]
            _, rule, one, other = found.pop(chance.choices(range(len(found)), weights)[0])
            swapped = exchanged(row.text, tokens, one, other)
            if swapped is not None:
                return swapped, rule
        return None, "nothing to swap" if tokens else "empty"


def _swaps(tokens: Sequence[Token]) -> Iterator[tuple[float, str, Span, Span]]:
    """Yield weight, rule and both runs of everything that can be swapped."""
    nouns = [
        i
        for i, t in enumerate(tokens)
        if t.tag in _NOUNS and t.relation.split(":")[0] not in _WITHIN and any(map(str.isalnum, t.text))
    ]
    for i, j in combinations(nouns, 2):
        kind = _kind(tokens[i])
        if kind != _kind(tokens[j]) or _coordinated(tokens, i, j) or _symmetric(tokens, i, j):
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
    """The form that an indefinite article before this word has or would have."""
    before = tokens[i - 1].text.lower() if i else ""
    return before if before in ("a", "an") else "an" if tokens[i].text[:1].lower() in "aeiou" else "a"


def _kind(token: Token) -> str:
    """What may be swapped with what: names, numbers, and nouns of one grammatical number."""
    return {"NN": "singular nouns", "NNS": "plural nouns", "CD": "numbers"}.get(token.tag, "names")


def _weight(one: Token, other: Token, kind: str) -> float:
    """How likely a swap is drawn: subject and object first, names and numbers before common nouns."""
    roles = [t.relation.split(":")[0] for t in (one, other)]
    weight = 6.0 if roles[0] == "nsubj" and roles[1] in ("obj", "dobj") else 1.0
    if weight == 1.0 and set(roles) <= set(_ARGUMENTS):
        weight = 2.0
    return weight * (2.0 if kind in ("names", "numbers") else 1.0)


def _first_conjunct(tokens: Sequence[Token], i: int) -> int:
    while tokens[i].relation in ("conj", "appos") and tokens[i].head != i:
        i = tokens[i].head
    return i


def _coordinated(tokens: Sequence[Token], i: int, j: int) -> bool:
    return _first_conjunct(tokens, i) == _first_conjunct(tokens, j)


def _symmetric(tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether the sentence means the same either way: "A meets B", "A is B", "in A ... in B"."""
    for subject, predicate in ((i, j), (j, i)):
        if tokens[subject].head == predicate and tokens[subject].relation == "nsubj":
            return _word(tokens, predicate, "cop") != ""
    head = tokens[i].head
    if head != tokens[j].head:
        return False
    place = _word(tokens, i, "case")
    return tokens[head].lemma.lower() in _SYMMETRIC or (place != "" and place == _word(tokens, j, "case"))


def _word(tokens: Sequence[Token], head: int, relation: str) -> str:
    """The words that hang on a token by this relation."""
    return " ".join(t.text.lower() for i, t in enumerate(tokens) if t.head == head != i and t.relation == relation)
