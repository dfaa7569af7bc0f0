"""The main clause of a long sentence, without its subordinate clauses, appositions and brackets.

Short statements show the effect of a single word; raw text such as an encyclopedia's has few of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from opencse.text.english.clause import Clause, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.phrases import MAX_TOKENS, subtree
from opencse.text.syntax.tokens import Token

_CUT = ("advcl", "parataxis", "acl", "relcl", "appos", "discourse", "dep", "list", "vocative")
_LOOSE = (";", ":", "-", "–", "—", '"', "“", "”", "(", ")", ".", "!", "?")


@dataclass(frozen=True, kw_only=True)
class MainClause(GrammarView):
    """Cut each sentence to its main clause.

    Null if nothing would be cut, or if the clause is outside the range of lengths.

    Attributes:
        words: Minimum and maximum length of the clause, in tokens without punctuation.

    Example:
        [build.clause]
        kind = "main_clause"
        words = [3, 14]
    """

    kind: ClassVar[str] = "main_clause"

    words: tuple[int, int] = (3, 14)

    def __post_init__(self) -> None:
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise ValueError(f"words must be a minimum and a maximum length, not {list(self.words)}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Cut one sentence."""
        if len(tokens) > MAX_TOKENS:
            return None, "too long"
        clause = main_clause(tokens)
        if clause is None or clause.subject is None or clause.finite is None:
            return None, "no finite verb"
        kept = _kept_tokens(clause)
        if not {clause.subject, clause.finite, clause.predicate} <= set(kept):
            return None, "broken"
        shortest, longest = self.words
        if not shortest <= len(kept) <= longest:
            return None, "too short" if len(kept) < shortest else "too long"
        cut = _sentence(tokens, kept)
        same = cut.rstrip(".").lower() == text.strip().rstrip(".").lower()
        return (None, "nothing to cut") if same else (cut, "cut")


def _kept_tokens(clause: Clause) -> list[int]:
    """Return the tokens of the clause itself, without loose punctuation and loose conjunctions."""
    tokens = clause.tokens
    kept = subtree(tokens, clause.predicate)
    for i in sorted(kept - {clause.predicate}):
        relation = tokens[i].relation.split(":")[-1] if "relcl" in tokens[i].relation else tokens[i].relation
        other_clause = relation.split(":")[0] == "conj" and tokens[i].head == clause.predicate
        if relation.split(":")[0] in _CUT or other_clause:
            kept -= subtree(tokens, i)
    joined = {tokens[i].head for i in kept if tokens[i].relation == "conj"}
    for i in sorted(kept):
        # "cc" depends on the next conjunct (Universal Dependencies) or on the previous one (spaCy's own models)
        if tokens[i].relation == "cc" and tokens[i].head not in joined and tokens[tokens[i].head].relation != "conj":
            kept.discard(i)
    kept = {i for i in kept if tokens[i].text not in _LOOSE}
    return [i for i in sorted(kept) if tokens[i].text != "," or {i - 1, i + 1} <= kept]  # no comma at a cut


def _sentence(tokens: Sequence[Token], kept: Sequence[int]) -> str:
    """Return the kept words as a sentence, with their original spacing."""
    words = [tokens[kept[0]].text]
    for before, i in pairwise(kept):
        glued = i == before + 1 and tokens[i].start == tokens[before].end
        words.append(("" if glued else " ") + tokens[i].text)
    cut = "".join(words)
    return cut[:1].upper() + cut[1:] + "."
