"""Predicates with an opposite: "is safe", its paraphrase "is not dangerous", and "is not safe" and "is dangerous".

All four come from two changes, each done or not: the word is replaced by its opposite, and "not" is
inserted, or removed if it is there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opencse.text.english.clause import NOT, SENTENTIAL, Clause, clause_at
from opencse.text.english.lexicon import OPPOSITE_TABLES, word_class
from opencse.text.english.negation import Negated, negation_edits
from opencse.text.english.one_word import find_copula, shares_predicate
from opencse.text.english.opposites import Opposite, find_opposites, opposite_edits
from opencse.text.english.parse import GrammarView, Rewrite, children, is_question, word_at
from opencse.text.syntax import Edit, Token, apply_edits

_POSSIBLY = ("can", "could", "may", "might", "need", "dare")  # who can accept can reject, too
_REPORTING = (
    "remember",
    "forget",
    "believe",
    "doubt",
    "think",
)  # with a clause: "did not forget that …"
_ALL_THREE = (
    (True, True),
    (False, True),
    (True, False),
)  # (swap, deny) of paraphrase, negation and antonym
_CONTRACTED = 0.5  # share of the sentences with "isn't" for "is not"


class NegatedAntonym(GrammarView):
    """Negate the opposite ("is safe" becomes "is not dangerous"): a paraphrase that looks like a negation.

    A predicate that is negated already becomes its opposite: "is not safe", "is dangerous". The
    predicate is an adjective, a noun, or a verb that has a complementary opposite ("accept",
    "reject"), in any clause of a statement. Null if there is none.

    Each further predicate that has an opposite is rewritten in half of the sentences, and half of
    them have "isn't" for "is not".

    Example:
        [build.negated_antonym]
        kind = "negated_antonym"

        >>> NegatedAntonym().preview("The drug is safe.")
        ['The drug is not dangerous.']
    """

    kind = "negated_antonym"
    tables = OPPOSITE_TABLES

    def accepts(self, opposite: Opposite) -> bool:
        """Return whether the negated opposite of a word says the same as the word."""
        return opposite.complementary

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate the opposites of one or several predicates."""
        contract = rng.random() < _CONTRACTED
        places = find_predications(text, tokens)
        predications = [predication for predication in places if self.accepts(predication.opposite)]
        rng.shuffle(predications)
        edits: list[Edit] = []
        rules: list[str] = []
        reason = "no antonym"
        for predication in predications:
            if rules and rng.random() >= 0.5:
                continue
            new, rule = predication_edits(
                text, tokens, predication, swap=True, deny=True, contract=contract
            )
            if new is None:
                reason = rule
            elif not _overlap([*edits, *new]):
                edits += new
                rules.append(rule)
        if not rules:
            return None, reason
        return apply_edits(text, edits), rules[0] if len(rules) == 1 else f"{len(rules)} predicates"


class AntonymQuadruple(GrammarView):
    """Build three views that turn on one predicate with an opposite, in any clause of a sentence.

    The columns of `[build.NAME]` are, for the sentence "They accepted the offer.":

    - `NAME_paraphrase`: "They did not reject the offer." It says the same. Null if the negated
      opposite leaves a third possibility ("did not fall" is not "rose").
    - `NAME_negation`: "They did not accept the offer." It contradicts the sentence and the
    paraphrase.
    - `NAME_antonym`: "They rejected the offer." It contradicts them, too, and says the same as the
      negation where there is a paraphrase.

    All are null if no predicate has an opposite. Three in ten other predicates of the sentence
    become their negated antonym in all three, so that the number of negations does not tell which
    sentences agree. Half of the sentences have "isn't" for "is not".

    Example:
        [build.place]
        kind = "antonym_quadruple"

        [views]
        denied = { text = "place_negation", optional = true }

        >>> AntonymQuadruple().preview("They accepted the offer.")
        [["They didn't reject the offer.", "They didn't accept the offer.", 'They rejected the offer.']]
    """

    kind = "antonym_quadruple"
    parts = ("paraphrase", "negation", "antonym")
    tables = OPPOSITE_TABLES

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> list[Rewrite]:
        """Return the paraphrase, the negation and the antonym of a sentence."""
        contract = rng.random() < _CONTRACTED
        predications = list(find_predications(text, tokens))
        rng.shuffle(predications)
        for place in predications:
            triple = [
                predication_edits(text, tokens, place, swap=swap, deny=deny, contract=contract)
                for swap, deny in _ALL_THREE
            ]
            views = [(edits, rule) for edits, rule in triple if edits is not None]
            if len(views) < len(triple):
                continue
            further: list[Edit] = []
            for other in predications:
                if other is place or not other.opposite.complementary or rng.random() >= 0.3:
                    continue
                new = predication_edits(text, tokens, other, swap=True, deny=True)[0]
                if new is not None and not any(
                    _overlap([*edits, *further, *new]) for edits, _ in views
                ):
                    further += new
            rewritten: list[Rewrite] = [
                (apply_edits(text, [*edits, *further]), rule) for edits, rule in views
            ]
            return (
                rewritten
                if place.opposite.complementary
                else [(None, "third possibility"), *rewritten[1:]]
            )
        return [(None, "no antonym")] * len(self.parts)


@dataclass(frozen=True, kw_only=True)
class Predication:
    """A predicate of a main or subordinate clause that has an opposite.

    Attributes:
        opposite: The word and its opposite.
        copula: Index of the form of be before a predicate adjective or noun; None if the predicate
            is a verb.
        clause: The clause of the verb; None if the predicate is no finite verb.
        to: Index of the "to" of an infinitive ("decided to accept it"); None if the predicate is
            none.
    """

    opposite: Opposite
    copula: int | None = None
    clause: Clause | None = None
    to: int | None = None


def find_predications(text: str, tokens: Sequence[Token]) -> Iterator[Predication]:
    """Yield all places of a statement where a predicate has an opposite."""
    if is_question(text):
        return
    for opposite in find_opposites(text, tokens):
        if opposite.pos in ("ADJ", "NOUN"):
            copula = find_copula(tokens, opposite)
            if copula is not None:
                yield Predication(opposite=opposite, copula=copula)
        elif opposite.pos in ("VERB", "PART"):
            to = _infinitive(tokens, opposite)
            clause = _verb_clause(tokens, opposite) if to is None else None
            if clause is not None or to is not None:
                yield Predication(opposite=opposite, clause=clause, to=to)


def predication_edits(
    text: str,
    tokens: Sequence[Token],
    predication: Predication,
    *,
    swap: bool,
    deny: bool,
    contract: bool = False,
) -> Negated:
    """Return the edits of one place, or None if no rule is safe, and the rule or the reason.

    `swap` replaces the word by its opposite, `deny` inserts "not" or removes it, and `contract`
    writes "isn't" for "is not".
    """
    swapped = opposite_edits(text, tokens, predication.opposite) if swap else []
    if not deny:
        return swapped, "antonym"
    if predication.to is not None:  # "decided (not) to accept it"
        to, before = tokens[predication.to], tokens[predication.to - 1]
        negative = before.text.lower() in NOT
        return [
            *swapped,
            (before.start if negative else to.start, to.start, "" if negative else "not "),
        ], "infinitive"
    if predication.clause is not None:
        return _verb_denied(
            text, predication.clause, predication.opposite, swapped, contract=contract
        )
    assert predication.copula is not None
    denied, rule = _adjective_denied(
        tokens, predication.opposite.place, predication.copula, contract=contract
    )
    return (None if denied is None else [*swapped, *denied]), rule


def _adjective_denied(
    tokens: Sequence[Token], place: int, copula: int, *, contract: bool
) -> Negated:
    """Insert "not" after the copula and its adverbs, or remove the one that is there."""
    between = range(copula + 1, place)
    negators = [k for k in between if word_at(tokens, k) in NOT]
    if len(negators) > 1:
        return None, "negative words"
    if negators:
        return [(tokens[negators[0] - 1].end, tokens[negators[0]].end, "")], "not removed"
    last = max([copula, *(k for k in between if word_at(tokens, k) in SENTENTIAL)])
    short = contract and last == copula and not tokens[copula].text.isupper()
    return [(tokens[last].end, tokens[last].end, "n't" if short else " not")], "not"


def _verb_denied(
    text: str, clause: Clause, opposite: Opposite, swapped: list[Edit], *, contract: bool
) -> Negated:
    """Negate the clause of a verb, or of its opposite if there are edits that replace it."""
    verb = clause.tokens[opposite.place]
    if swapped:
        tokens = list(clause.tokens)
        tokens[opposite.place] = replace(
            verb, text=opposite.word, lemma=opposite.pair[1].split()[0]
        )
        clause = replace(clause, tokens=tokens)
    edits, rule = negation_edits(text, clause, contract=contract)
    if edits is None:
        return None, rule
    if any(end > verb.start and start < verb.end for start, end, _ in edits):  # "did not reject"
        swapped = [edit for edit in swapped if edit[0] != verb.start]
    return [*edits, *swapped], f"{rule}, verb"


def _overlap(edits: Sequence[Edit]) -> bool:
    """Whether some edits cannot be applied together."""
    pairs = pairwise(sorted(edits))
    return any(
        start < end or (start, stop) == (before, end)
        for (before, end, _), (start, stop, _) in pairs
    )


def _verb_clause(tokens: Sequence[Token], opposite: Opposite) -> Clause | None:
    """Return the clause of a verb; None if it cannot be denied, shares its object or governs a clause."""
    place = opposite.place
    clause = clause_at(tokens, place)
    if clause is None or clause.finite is None or clause.subject is None or clause.negatives:
        return None
    if word_at(tokens, clause.finite) in _POSSIBLY or word_at(tokens, place - 1) in (
        "a",
        "an",
        "to",
    ):
        return None
    reported = bool(children(tokens, place, "ccomp")) and opposite.pair[0] not in _REPORTING
    return (
        None if reported or shares_predicate(tokens, place) else clause
    )  # "accepted and signed it"


def _infinitive(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the "to" of an infinitive that can be denied on its own: "decided (not) to accept it".

    "Can open it" does not say "cannot close it", nor does "began to open it".
    """
    place, verb = opposite.place, tokens[opposite.place]
    if verb.tag != "VB" or place < 2 or tokens[place - 1].tag != "TO" or verb.relation != "xcomp":
        return None
    governor = tokens[verb.head]
    deniable = governor.tag.startswith("VB") and governor.lemma.lower() not in word_class(
        "infinitive not denied"
    )
    if not deniable or shares_predicate(tokens, place):
        return None
    barred = word_at(tokens, place - 2) in (
        "order",
        "as",
        "or",
        "and",
        "how",
        "whether",
        "but",
        "enough",
    )
    return None if barred else place - 1
