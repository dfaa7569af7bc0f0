"""Paraphrases by negated antonym: "is safe" becomes "is not dangerous", and "is not safe" becomes "is dangerous"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import inflect
from opencse.views.edits import apply_edits
from opencse.views.rewriting.clause import NOT, main_clause
from opencse.views.rewriting.grammar_view import GrammarView, Rewrite
from opencse.views.rewriting.lexicon import Table
from opencse.views.rewriting.negation_rules import SENTENTIAL, negate
from opencse.views.rewriting.opposites import Opposite, find_opposites, opposite_edits
from opencse.views.rewriting.predicate_adjectives import find_copula

_COMPLEMENTARY_VERBS = frozenset(  # whoever does not accept rejects
    """accept reject remember forget like dislike agree disagree allow forbid permit prohibit trust distrust obey
    disobey approve ratify pass miss possess lack survive continue stop grant heed believe doubt""".split()
)


@dataclass(frozen=True, kw_only=True)
class NegatedAntonym(GrammarView):
    """Negate the opposite ("is safe" becomes "is not dangerous"): a paraphrase that looks like a negation.

    A predicate that is negated already becomes its opposite: "is not safe", "is dangerous". Null unless there is a
    predicate adjective with an opposite, or the main verb has a complementary opposite ("accept", "reject").

    Attributes:
        contract: Share of sentences that get "isn't" instead of "is not", in [0, 1].

    Example:
        [build.negated_antonym]
        kind = "negated_antonym"
        contract = 0.5
    """

    kind: ClassVar[str] = "negated_antonym"
    tables: ClassVar[tuple[Table, ...]] = ("opposites", "antonyms")

    contract: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.contract <= 1:
            raise ValueError(f"contract must be a share within [0, 1], not {self.contract}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate the opposite of a predicate adjective, or of the main verb."""
        contract = rng.random() < self.contract
        found = [(opposite, find_copula(tokens, opposite)) for opposite in find_opposites(text, tokens)]
        adjectives = [(opposite, copula) for opposite, copula in found if copula is not None]
        if adjectives:
            opposite, copula = rng.choice(adjectives)
            return _negate_adjective(text, tokens, opposite, copula, contract=contract)
        return _negate_verb(text, tokens, [opposite for opposite, _ in found], contract=contract)


def _negate_adjective(
    text: str, tokens: Sequence[Token], opposite: Opposite, copula: int, *, contract: bool
) -> Rewrite:
    """Replace an adjective by its opposite, and insert "not", or remove the one that is there."""
    edits = opposite_edits(text, tokens, opposite)
    between = range(copula + 1, opposite.place)
    negators = [k for k in between if tokens[k].text.lower() in NOT]
    if negators:
        if len(negators) > 1:
            return None, "negative words"
        before, removed = tokens[negators[0] - 1], tokens[negators[0]]
        return apply_edits(text, [*edits, (before.end, removed.end, "")]), "not removed"
    adverbs = [k for k in between if tokens[k].text.lower() in SENTENTIAL]
    end = tokens[max([copula, *adverbs])].end
    short = contract and not adverbs and not tokens[copula].text.isupper()
    return apply_edits(text, [*edits, (end, end, "n't" if short else " not")]), "not"


def _negate_verb(text: str, tokens: Sequence[Token], opposites: Sequence[Opposite], *, contract: bool) -> Rewrite:
    """Replace the main verb by its opposite, and negate the clause: "accepted" becomes "did not reject"."""
    clause = main_clause(tokens)
    if clause is None or clause.finite is None or clause.subject is None:
        return None, "no antonym"
    place, verb = clause.predicate, tokens[clause.predicate]
    opposite = next((each for each in opposites if each.place == place and each.pos == "VERB"), None)
    complementary = {inflect(base, verb.tag) for base in _COMPLEMENTARY_VERBS}
    if opposite is None or verb.text not in complementary or clause.has(place, ("conj", "ccomp", "xcomp")):
        return None, "no antonym"
    edits = opposite_edits(text, tokens, opposite)
    if len(edits) > 1:
        return None, "no antonym"  # an article before it: no verb
    ((start, end, new),) = edits
    growth = len(new) - (end - start)
    moved = [
        replace(token, start=token.start + growth * (token.start > start), end=token.end + growth * (token.end > start))
        for token in tokens
    ]
    moved[place] = replace(moved[place], text=new, end=start + len(new), lemma="")
    negated, rule = negate(apply_edits(text, edits), moved, contract=contract)
    return negated, f"{rule}, verb"
