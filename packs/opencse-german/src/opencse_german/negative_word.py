"""German contradictions by a negative word: "alle" and "keine", "immer" and "nie"."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from opencse.text.english.one_word import NegativeWord
from opencse.text.english.parse import Rewrite
from opencse.text.syntax import Edit, Token, apply_edits
from opencse_german import words as w
from opencse_german.clause import GermanClause, main_clause

_EACH = {"jeder": "Kein", "jede": "Keine", "jedes": "Kein"}
_ALONE = {"jeder": "Niemand", "niemand": "Jeder", "nichts": "Alles", "alles": "Nichts"}
_PAIRS = {
    "immer": "nie",
    "nie": "immer",
    "niemals": "immer",
    "stets": "nie",
    "überall": "nirgends",
    "nirgends": "überall",
}
_AROUND = frozenset("noch wieder nur mehr so wie auf fast nicht wenn".split())


class GermanNegativeWord(NegativeWord):
    """Deny a sentence with "kein", "niemand", "nie" and the like, or replace these by opposites."""

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Deny one sentence."""
        clause = main_clause(tokens)
        if clause is None:
            return None, "unclear clause"
        if any(token.text.lower() in w.VAGUE | w.FOCUS for token in tokens[: clause.end]):
            return None, "unclear clause"
        negatives = [i for i in range(len(tokens)) if clause.word(i) in w.NEGATIVES]
        edits = []
        for i, edit, rule in (*_subjects(clause), *_adverbs(clause)):
            # No negative word may be left next to the new one.
            if not negatives or negatives == [i]:
                edits.append((edit, rule))
        if not edits:
            return None, "no negative word"
        edit, rule = rng.choice(edits)
        return apply_edits(text, [edit]), rule


def _subjects(clause: GermanClause) -> Iterator[tuple[int, Edit, str]]:
    """Yield the edits of the first word, if it says how many of the subjects."""
    first = clause.tokens[0]
    word = clause.word(0)
    finite = clause.word(clause.finite)
    if clause.finite == 1:
        if word in _ALONE and finite not in w.PLURAL_FINITE:
            yield 0, (first.start, first.end, _ALONE[word]), word
        return
    plural = finite in w.PLURAL_FINITE or (finite.endswith("en") and w.is_full_verb(finite))
    noun = w.is_noun(clause.tokens[1].text) or w.is_attribute(clause.word(1))
    if not noun or any(clause.word(i) in w.COORDINATORS for i in range(clause.finite)):
        return
    if word in _EACH and not plural:
        yield 0, (first.start, first.end, _EACH[word]), word
    if word == "alle" and plural:
        yield 0, (first.start, first.end, "Keine"), word
    if word == "keine" and plural:
        yield 0, (first.start, first.end, "Alle"), word


def _adverbs(clause: GermanClause) -> Iterator[tuple[int, Edit, str]]:
    for i in range(clause.finite + 1, clause.end):
        around = {clause.word(i - 1), clause.word(i + 1)}
        if clause.word(i) in _PAIRS and not around & _AROUND:
            token = clause.tokens[i]
            yield i, (token.start, token.end, _PAIRS[clause.word(i)]), clause.word(i)
