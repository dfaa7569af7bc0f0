"""Paraphrases by negated antonym: "is safe" becomes "is not dangerous", and "is not safe" becomes "is dangerous"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, LexiconTable
from opencse.text.english.opposites import Opposite
from opencse.text.english.predications import find_predications, overlap, predication_edits
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits


@dataclass(frozen=True, kw_only=True)
class NegatedAntonym(GrammarView):
    """Negate the opposite ("is safe" becomes "is not dangerous"): a paraphrase that looks like a negation.

    A predicate that is negated already becomes its opposite: "is not safe", "is dangerous". The predicate is an
    adjective, a noun, or a verb that has a complementary opposite ("accept", "reject"), in any clause of a statement.
    Null if there is none.

    Attributes:
        contract: Share of sentences that get "isn't" instead of "is not", in [0, 1].
        several: Probability with which each further predicate that has an opposite is rewritten as well.
        hold_out: Leave out one of so many pairs of opposites, chosen by their hash; 0 for none.

    Example:
        [build.negated_antonym]
        kind = "negated_antonym"
        contract = 0.5
    """

    kind: ClassVar[str] = "negated_antonym"
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    contract: float = 0.5
    several: float = 0.5
    hold_out: int = 0

    def __post_init__(self) -> None:
        for name in ("contract", "several"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share within [0, 1], not {getattr(self, name)}")

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether the negated opposite of a word says the same as the word."""
        return opposite.complementary

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate the opposites of one or several predicates."""
        contract = rng.random() < self.contract
        found = [
            each for each in find_predications(text, tokens, hold_out=self.hold_out) if self.accepts(each.opposite)
        ]
        rng.shuffle(found)
        edits: list[Edit] = []
        rules: list[str] = []
        reason = "no antonym"
        for each in found:
            if rules and rng.random() >= self.several:
                continue
            new, rule = predication_edits(text, tokens, each, swap=True, deny=True, contract=contract)
            if new is None:
                reason = rule
            elif not overlap([*edits, *new]):
                edits += new
                rules.append(rule)
        if not rules:
            return None, reason
        return apply_edits(text, edits), rules[0] if len(rules) == 1 else f"{len(rules)} predicates"
