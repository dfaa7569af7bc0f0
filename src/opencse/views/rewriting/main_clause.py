"""Main clause: a long sentence cut to what it states, without its subordinate clauses, appositions and asides.

Short statements teach what one word does; raw text such as an encyclopedia's has few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from opencse.syntax.asides import parse_without_asides
from opencse.syntax.tokens import Token
from opencse.views.constructor import ConstructorSpec, Row, View, with_error_rate
from opencse.views.rewriting.clause import Clause, main_clause
from opencse.views.rewriting.phrases import LONGEST, subtree

_CUT = ("advcl", "parataxis", "acl", "relcl", "appos", "discourse", "dep", "list", "vocative")
_LOOSE = (";", ":", "-", "–", "—", '"', "“", "”", "(", ")", ".", "!", "?")


@dataclass(frozen=True, kw_only=True)
class MainClause(ConstructorSpec):
    """Cut each sentence to its main clause; null where nothing would be cut or too little or too much is left.

    Attributes:
        words: Least and greatest length of the clause, in tokens without punctuation.
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "main_clause"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    words: tuple[int, int] = (3, 14)
    syntax: str = "syntax"

    def __post_init__(self) -> None:
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise ValueError(f"words must be a least and a greatest length, not {list(self.words)}")

    def open(self, *, seed: int = 0, workers: int = 1) -> ClauseCutter:
        """Load the parser."""
        return ClauseCutter(self)


class ClauseCutter:
    """An opened `MainClause`."""

    def __init__(self, spec: MainClause) -> None:
        from opencse.syntax import load_parser

        self._spec = spec
        self._parser = load_parser(spec.syntax)
        self.digest = self._parser.digest

    def __call__(self, rows: Sequence[Row]) -> list[View]:
        """Cut each row's text."""
        parsed = parse_without_asides(self._parser, [row.text for row in rows])
        return with_error_rate(rows, [self._one(row.text, tokens) for row, tokens in zip(rows, parsed, strict=True)])

    def _one(self, text: str, tokens: Sequence[Token]) -> tuple[str | None, str]:
        if not tokens:
            return None, "empty"
        if len(tokens) > LONGEST:
            return None, "too long"
        clause = main_clause(tokens)
        if clause is None or clause.subject is None or clause.finite is None:
            return None, "no finite verb"
        kept = _kept(clause)
        if not {clause.subject, clause.finite, clause.predicate} <= set(kept):
            return None, "broken"
        least, most = self._spec.words
        if not least <= len(kept) <= most:
            return None, "too short" if len(kept) < least else "too long"
        cut = _joined(tokens, kept)
        same = cut.rstrip(".").lower() == text.strip().rstrip(".").lower()
        return (None, "nothing to cut") if same else (cut, "cut")


def _kept(clause: Clause) -> list[int]:
    """The tokens of the clause itself, without loose punctuation and conjunctions that join nothing any more."""
    tokens = clause.tokens
    kept = subtree(tokens, clause.predicate)
    for i in sorted(kept - {clause.predicate}):
        relation = tokens[i].relation.split(":")[-1] if "relcl" in tokens[i].relation else tokens[i].relation
        other_clause = relation.split(":")[0] == "conj" and tokens[i].head == clause.predicate
        if relation.split(":")[0] in _CUT or other_clause:
            kept -= subtree(tokens, i)
    joined = {tokens[i].head for i in kept if tokens[i].relation == "conj"}
    for i in sorted(kept):
        # "cc" hangs on what it introduces (Universal Dependencies) or on what it follows (spaCy's own models)
        if tokens[i].relation == "cc" and tokens[i].head not in joined and tokens[tokens[i].head].relation != "conj":
            kept.discard(i)
    kept = {i for i in kept if tokens[i].text not in _LOOSE}
    return [i for i in sorted(kept) if tokens[i].text != "," or {i - 1, i + 1} <= kept]  # no comma at a cut


def _joined(tokens: Sequence[Token], kept: Sequence[int]) -> str:
    """The kept words as a sentence, spaced as they were."""
    words = [tokens[kept[0]].text]
    for before, i in pairwise(kept):
        glued = i == before + 1 and tokens[i].start == tokens[before].end
        words.append(("" if glued else " ") + tokens[i].text)
    cut = "".join(words)
    return cut[:1].upper() + cut[1:] + "."
