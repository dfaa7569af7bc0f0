"""Negation of the main clause, or removal of its negation (OssCSE §4, SNCSE).

`sound` (default) edits the original string: "not" after a form of be, have, do or a modal, do-support elsewhere,
existing negation removed, null if no rule is safe. `faithful` follows SNCSE's published rules and joins tokens with
spaces.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from opencse.text.english import negation_rules, sncse_negation
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import LexiconTable
from opencse.text.english.negation_by_antonym import negate_by_antonym
from opencse.text.syntax.tokens import Token


@dataclass(frozen=True, kw_only=True)
class Negation(GrammarView):
    """Negate the main clause, or remove its negation.

    Sources: Shi et al., OssCSE (EMNLP 2023), §4; Wang et al., SNCSE (ICIC 2023).

    Attributes:
        mode: "sound", or "faithful" for SNCSE's rules; the options below then have no effect.
        by: "not", "antonym", or both in the order in which they are tried ("not-antonym", "antonym-not").
        remove: Remove the negation of a sentence that is negative already; if false, such a sentence gives null
            and "and" stays "and", because OssCSE only inserts.
        contract: Write "isn't", "doesn't".

    Example:
        [build.negation]
        kind = "negation"
        by = "not-antonym"
        contract = true
    """

    kind: ClassVar[str] = "negation"
    tables: ClassVar[tuple[LexiconTable, ...]] = ("antonyms",)
    random_stream: ClassVar[str] = "antonym"

    mode: Literal["sound", "faithful"] = "sound"
    by: Literal["not", "antonym", "not-antonym", "antonym-not"] = "not"
    remove: bool = True
    contract: bool = False

    def __post_init__(self) -> None:
        if self.mode == "faithful" and (self.by != "not" or self.contract or not self.remove):
            raise ValueError("mode 'faithful' takes no options: drop by, contract and remove, or set mode to 'sound'")

    @property
    def skips_asides(self) -> bool:
        """Whether brackets are left out of the parse: SNCSE's rules see the whole sentence."""
        return self.mode == "sound"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate one sentence by the first way that works."""
        if self.mode == "faithful":
            return sncse_negation.sncse_negate(tokens)
        negated, rule = None, ""
        for way in self.by.split("-"):
            if way == "not":
                negated, rule = negation_rules.negate(text, tokens, remove=self.remove, contract=self.contract)
            else:
                negated, rule = negate_by_antonym(text, tokens, rng)
            if negated is not None:
                break
        return negated, rule
