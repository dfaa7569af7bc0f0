"""Quadruples by antonym: "is safe", "is not dangerous", "is not safe" and "is dangerous", all of the same place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.grammar_columns import GrammarColumns
from opencse.text.english.grammar_view import Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, LexiconTable
from opencse.text.english.predications import Predication, find_predications, overlap, predication_edits
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits


@dataclass(frozen=True, kw_only=True)
class AntonymQuadruple(GrammarColumns):
    """Build three views that turn on one predicate with an opposite, in any clause of a sentence.

    The columns of `[build.NAME]` are, for the sentence "They accepted the offer.":

    - `NAME_paraphrase`: "They did not reject the offer." It says the same. Null if the negated opposite leaves a third
      possibility ("did not fall" is not "rose").
    - `NAME_negation`: "They did not accept the offer." It contradicts the sentence and the paraphrase.
    - `NAME_antonym`: "They rejected the offer." It contradicts them, too, and says the same as the negation where
      there is a paraphrase.

    All are null if no predicate has an opposite. Other predicates of the sentence may be rewritten by their negated
    antonym in all three, so that the number of negations does not tell which sentences agree.

    Attributes:
        contract: Share of sentences that get "isn't" instead of "is not", in [0, 1].
        several: Probability with which each further predicate becomes its negated antonym, in [0, 1].
        hold_out: Leave out one of so many pairs of opposites, chosen by their hash; 0 for none.

    Example:
        [build.place]
        kind = "antonym_quadruple"

        [views]
        denied = { text = "place_negation", optional = true }
    """

    kind: ClassVar[str] = "antonym_quadruple"
    parts: ClassVar[tuple[str, ...]] = ("paraphrase", "negation", "antonym")
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    contract: float = 0.5
    several: float = 0.3
    hold_out: int = 0

    def __post_init__(self) -> None:
        for name in ("contract", "several"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share within [0, 1], not {getattr(self, name)}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return the paraphrase, the negation and the antonym of a sentence."""
        contract = rng.random() < self.contract
        found = list(find_predications(text, tokens, hold_out=self.hold_out))
        rng.shuffle(found)
        for place in found:
            made = [
                predication_edits(text, tokens, place, swap=swap, deny=deny, contract=contract)
                for swap, deny in ((True, True), (False, True), (True, False))
            ]
            if any(edits is None for edits, _ in made):
                continue
            further = _further(text, tokens, [each for each in found if each is not place], place, rng, self)
            rewritten: list[Rewrite] = [(apply_edits(text, [*(edits or ()), *further]), rule) for edits, rule in made]
            return rewritten if place.opposite.complementary else [(None, "third possibility"), *rewritten[1:]]
        return [(None, "no antonym")] * len(self.parts)


def _further(
    text: str,
    tokens: Sequence[Token],
    others: Sequence[Predication],
    place: Predication,
    rng: random.Random,
    spec: AntonymQuadruple,
) -> list[Edit]:
    """Return the edits that replace some other predicates by their negated antonym."""
    kept: list[Edit] = []
    taken = [
        edit
        for swap, deny in ((True, True), (False, True), (True, False))
        for edit in predication_edits(text, tokens, place, swap=swap, deny=deny)[0] or ()
    ]
    for each in others:
        if not each.opposite.complementary or rng.random() >= spec.several:
            continue
        new = predication_edits(text, tokens, each, swap=True, deny=True)[0]
        if new is not None and not any(overlap([one, other]) for one in new for other in [*taken, *kept]):
            kept += new
    return kept
