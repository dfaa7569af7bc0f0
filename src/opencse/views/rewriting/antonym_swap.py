"""Antonyms that contradict ("is dangerous") and antonyms that, negated, say the same ("is not dangerous")."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import inflect
from opencse.views.constructor import ConstructorSpec
from opencse.views.rewriting.clause import NEGATIVE, NOT, main_clause
from opencse.views.rewriting.edits import apply
from opencse.views.rewriting.grammar_view import Made, Rewriter
from opencse.views.rewriting.negation_rules import SENTENTIAL, negate
from opencse.views.rewriting.opposites import Opposite, opposites, opposites_bytes, replacement

_WEIGHTS = {"ADJ": 2, "ADV": 3, "NOUN": 1, "VERB": 4, "ADP": 1, "PART": 3, "DEGREE": 4}
# Opposites of which one does not follow where the other is denied: what is not black need not be white.
_NOT_COMPLETE = frozenset(
    """northern southern eastern western northeastern southwestern northwestern southeastern black white first last next
    previous national international former current upper lower inner outer vertical horizontal many few""".split()
)
_COMPLETE_VERBS = frozenset(
    """accept reject remember forget like dislike agree disagree allow forbid permit prohibit trust distrust obey
    disobey approve ratify pass miss possess lack survive continue stop grant heed believe doubt""".split()
)
_GOVERNING = frozenset("responsible famous safe known unknown rich poor free different full true".split())
_CONTRACTED = ("is", "are", "was", "were")


@dataclass(frozen=True, kw_only=True)
class AntonymSwap(ConstructorSpec):
    """Replace one word by its opposite, inflected alike: a contradiction that looks like its source.

    Attributes:
        predicate_first: Where an adjective is said of the subject ("is safe"), replace that one: its opposite denied
            ("is not dangerous") says the same, as it does of no other word.
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "antonym_swap"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    predicate_first: bool = False
    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser and the opposites."""

        def make(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
            return _swapped(text, tokens, chance, predicate_first=self.predicate_first)

        return Rewriter(self.syntax, make, seed=seed, kind=self.kind, data=opposites_bytes())


@dataclass(frozen=True, kw_only=True)
class NegatedAntonym(ConstructorSpec):
    """Deny the opposite ("is safe" becomes "is not dangerous"): a paraphrase that looks like a negation.

    What is denied already becomes its opposite: "is not safe", "is dangerous".

    Attributes:
        contract: Share of sentences that get "isn't" instead of "is not".
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "negated_antonym"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    contract: float = 0.5
    syntax: str = "syntax"

    def __post_init__(self) -> None:
        if not 0 <= self.contract <= 1:
            raise ValueError(f"contract must be a share within [0, 1], not {self.contract}")

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser and the opposites."""

        def make(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
            return _denied(text, tokens, chance, contract=chance.random() < self.contract)

        return Rewriter(self.syntax, make, seed=seed, kind=self.kind, data=opposites_bytes())


def _swapped(text: str, tokens: Sequence[Token], chance: random.Random, *, predicate_first: bool) -> Made:
    if any(token.text.lower() in NEGATIVE - {"never", "rarely", "seldom"} for token in tokens):
        return None, "negative words"
    found = list(opposites(text, tokens))
    if not found:
        return None, "no antonym"
    if predicate_first:
        found = [one for one in found if _copula_before(tokens, one) is not None] or found
    one = chance.choices(found, [_WEIGHTS[each.pos] for each in found])[0]
    return apply(text, replacement(text, tokens, one)), f"antonym {one.pos}"


def _denied(text: str, tokens: Sequence[Token], chance: random.Random, *, contract: bool) -> Made:
    places = [(one, copula) for one in opposites(text, tokens) if (copula := _copula_before(tokens, one)) is not None]
    if places:
        one, copula = chance.choice(places)
        edits = replacement(text, tokens, one)
        between = range(copula + 1, one.place)
        negators = [k for k in between if tokens[k].text.lower() in NOT]
        if negators:
            if len(negators) > 1:
                return None, "negative words"
            before, gone = tokens[negators[0] - 1], tokens[negators[0]]
            return apply(text, [*edits, (before.end, gone.end, "")]), "not removed"
        adverbs = [k for k in between if tokens[k].text.lower() in SENTENTIAL]
        end = tokens[max([copula, *adverbs])].end
        short = contract and not adverbs and not tokens[copula].text.isupper()
        return apply(text, [*edits, (end, end, "n't" if short else " not")]), "not"
    clause = main_clause(tokens)
    if clause is None or clause.finite is None or clause.subject is None:
        return None, "no antonym"
    place, verb = clause.predicate, tokens[clause.predicate]
    found = next((each for each in opposites(text, tokens) if each.place == place and each.pos == "VERB"), None)
    complete = {inflect(base, verb.tag) for base in _COMPLETE_VERBS}
    if found is None or verb.text not in complete or clause.has(place, ("conj", "ccomp", "xcomp")):
        return None, "no antonym"
    edits = replacement(text, tokens, found)
    if len(edits) > 1:
        return None, "no antonym"  # an article before it: no verb
    ((start, end, new),) = edits
    grown = len(new) - (end - start)
    moved = [
        replace(
            t,
            start=t.start + grown * (t.start > start),
            end=t.end + grown * (t.end > start),
            text=new if t is verb else t.text,
        )
        for t in tokens
    ]
    moved[clause.predicate] = replace(moved[clause.predicate], lemma="")
    made, rule = negate(apply(text, [(start, end, new)]), moved, contract=contract)
    return made, f"{rule}, verb"


def _copula_before(tokens: Sequence[Token], one: Opposite) -> int | None:
    """Return the form of be that says this adjective of its subject, if only "not" or an article stands between."""
    word, place = tokens[one.place], one.place
    if one.pos != "ADJ" or word.text.lower() in _NOT_COMPLETE or word.tag != "JJ":
        return None
    head = place
    if word.relation == "amod":  # "is a good player", but no other adjective
        head = word.head
        inner = [t for t in tokens if t.head == head and t is not word]
        if tokens[head].tag not in ("NN", "NNS") or head != place + 1:
            return None
        if any(t.relation in ("amod", "compound", "nmod:poss", "nummod", "appos") for t in inner):
            return None
    described = {place, head}
    if any(t.head in described and t.relation.split(":")[0] in ("conj", "cc") for t in tokens):
        return None
    if word.text.lower() in _GOVERNING and place + 1 < len(tokens) and tokens[place + 1].tag in ("IN", "TO"):
        return None
    at = place - 1
    if head != place and tokens[at].text.lower() in ("a", "an"):
        at -= 1
    elif head != place and tokens[head].tag != "NNS":
        return None
    while at > 0 and tokens[at].text.lower() in (*NOT, *SENTENTIAL):
        at -= 1
    says = tokens[at]
    hangs = says.head == head and says.relation == "cop"
    governs = tokens[head].head == at and tokens[head].relation in ("acomp", "attr")
    asked = any(t.text == "?" for t in tokens)
    negative = any(t.text.lower() in NEGATIVE - set(NOT) and t.head in (head, at) for t in tokens)
    fits = at > 0 and says.text.lower() in _CONTRACTED and (hangs or governs) and not asked and not negative
    return at if fits else None
