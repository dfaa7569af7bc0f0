"""Contradictions by antonym: "is safe" becomes "is dangerous"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import NEGATIVE
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import OPPOSITE_TABLES, LexiconTable
from opencse.text.english.opposites import Opposite, find_opposites, opposite_edits
from opencse.text.english.predicate_adjectives import find_copula
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import apply_edits

_WEIGHTS = {"ADJ": 2, "ADV": 3, "NOUN": 1, "VERB": 4, "ADP": 1, "PART": 3, "DEGREE": 4}


@dataclass(frozen=True, kw_only=True)
class AntonymSwap(GrammarView):
    """Replace one word by its opposite, in the same inflection: a contradiction that looks like its source.

    Null if no word has an opposite in this context, or if the sentence is negative already.

    Attributes:
        predicate_first: Prefer a predicate adjective ("is safe"): the negation of its opposite
            ("is not dangerous") is a paraphrase, which `negated_antonym` builds.
        hold_out: Leave out one of so many pairs of opposites, chosen by their hash; 0 for none.

    Example:
        [build.antonym]
        kind = "antonym_swap"
        predicate_first = true
    """

    kind: ClassVar[str] = "antonym_swap"
    tables: ClassVar[tuple[LexiconTable, ...]] = OPPOSITE_TABLES

    predicate_first: bool = False
    hold_out: int = 0

    def candidates(self, text: str, tokens: Sequence[Token]) -> list[Opposite]:
        """Return the words that may be replaced, with their opposites."""
        return list(find_opposites(text, tokens, hold_out=self.hold_out))

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Replace one word, drawn by the weight of its part of speech."""
        if any(token.text.lower() in NEGATIVE - {"never", "rarely", "seldom"} for token in tokens):
            return None, "negative words"
        found = self.candidates(text, tokens)
        if not found:
            return None, "no antonym"
        if self.predicate_first:
            found = [opposite for opposite in found if find_copula(tokens, opposite) is not None] or found
        chosen = rng.choices(found, [_WEIGHTS[opposite.pos] for opposite in found])[0]
        return apply_edits(text, opposite_edits(text, tokens, chosen)), f"antonym {chosen.pos}"
