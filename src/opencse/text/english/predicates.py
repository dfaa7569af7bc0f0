"""Predicates with an opposite: "is safe", "is not dangerous", "is not safe" and "is dangerous".

All four come from two changes, each made or not: the word is replaced by its opposite, and "not" is
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

# Who can accept can reject as well.
_POSSIBLY = ("can", "could", "may", "might", "need", "dare")
# With a clause: "did not forget that …".
_REPORTING = ("remember", "forget", "believe", "doubt", "think")
# Share of the sentences with "isn't" for "is not".
_CONTRACTED = 0.5


class NegatedAntonym(GrammarView):
    """Negate the opposite of a predicate: a paraphrase that looks like a negation.

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
        """Return whether the negated opposite of a word means the same as the word."""
        return opposite.complementary

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate the opposites of one or several predicates."""
        # Drawn first, so that the choice does not depend on what the sentence has.
        contract = rng.random() < _CONTRACTED
        places = find_predications(text, tokens)
        predications = [predication for predication in places if self.accepts(predication.opposite)]
        rng.shuffle(predications)
        edits: list[Edit] = []
        rules: list[str] = []
        reason = "no antonym"
        for predication in predications:
            # At least one predicate changes, each further one in half of the cases.
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
        rule = rules[0]
        if len(rules) > 1:
            rule = f"{len(rules)} predicates"
        return apply_edits(text, edits), rule


class AntonymQuadruple(GrammarView):
    """Build three views that turn on one predicate with an opposite, in any clause of a sentence.

    The columns of `[build.NAME]` are, for the sentence "They accepted the offer.":

    - `NAME_paraphrase`: "They did not reject the offer." It means the same. Null if the negated
      opposite leaves a third possibility ("did not fall" is not "rose").
    - `NAME_negation`: "They did not accept the offer." It contradicts the sentence and the
      paraphrase.
    - `NAME_antonym`: "They rejected the offer." It contradicts them as well, and means the same as
      the negation if there is a paraphrase.

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
            views = _three_versions(text, tokens, place, contract=contract)
            if views is None:
                continue
            # Further changes are the same in all three views, so that they tell nothing about which
            # of them agree.
            further: list[Edit] = []
            for other in predications:
                if other is place or not other.opposite.complementary or rng.random() >= 0.3:
                    continue
                new, _ = predication_edits(text, tokens, other, swap=True, deny=True)
                if new is None:
                    continue
                if not any(_overlap([*edits, *further, *new]) for edits, _ in views):
                    further += new
            rewritten: list[Rewrite] = []
            for edits, rule in views:
                rewritten.append((apply_edits(text, [*edits, *further]), rule))
            if not place.opposite.complementary:
                rewritten[0] = (None, "third possibility")
            return rewritten
        return [(None, "no antonym")] * len(self.parts)


def _three_versions(
    text: str, tokens: Sequence[Token], place: Predication, *, contract: bool
) -> list[tuple[list[Edit], str]] | None:
    """Return edits and rule of paraphrase, negation and antonym; None unless all are possible."""
    versions = []
    # "did not reject", "did not accept", "rejected", for "accepted".
    for swap, deny in ((True, True), (False, True), (True, False)):
        edits, rule = predication_edits(
            text, tokens, place, swap=swap, deny=deny, contract=contract
        )
        if edits is None:
            return None
        versions.append((edits, rule))
    return versions


@dataclass(frozen=True, kw_only=True)
class Predication:
    """A predicate of a main or subordinate clause that has an opposite.

    Attributes:
        opposite: The word and its opposite.
        copula: Index of the form of be before a predicate adjective or noun; None if the predicate
            is a verb.
        clause: The clause of the verb; None if the predicate is no finite verb.
        to: Index of the "to" of an infinitive ("decided to accept it"); None if the predicate is
            not one.
    """

    opposite: Opposite
    copula: int | None = None
    clause: Clause | None = None
    to: int | None = None


def find_predications(text: str, tokens: Sequence[Token]) -> Iterator[Predication]:
    """Yield all predicates of a statement that have an opposite."""
    if is_question(text):
        return
    for opposite in find_opposites(text, tokens):
        if opposite.pos in ("ADJ", "NOUN"):
            copula = find_copula(tokens, opposite)
            if copula is not None:
                yield Predication(opposite=opposite, copula=copula)
        elif opposite.pos in ("VERB", "PART"):
            to = _infinitive(tokens, opposite)
            clause = None
            if to is None:
                clause = _verb_clause(tokens, opposite)
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
    if predication.to is not None:
        # "decided (not) to accept it"
        to = tokens[predication.to]
        before = tokens[predication.to - 1]
        edit: Edit = (to.start, to.start, "not ")
        if before.text.lower() in NOT:
            edit = (before.start, to.start, "")
        return [*swapped, edit], "infinitive"
    if predication.clause is not None:
        return _verb_denied(
            text, predication.clause, predication.opposite, swapped, contract=contract
        )
    assert predication.copula is not None
    denied, rule = _adjective_denied(
        tokens, predication.opposite.place, predication.copula, contract=contract
    )
    if denied is None:
        return None, rule
    return [*swapped, *denied], rule


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
    last = copula
    for k in between:
        if word_at(tokens, k) in SENTENTIAL:
            last = k
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
    if any(end > verb.start and start < verb.end for start, end, _ in edits):
        # The negation contains the new verb already: "did not reject".
        swapped = [edit for edit in swapped if edit[0] != verb.start]
    return [*edits, *swapped], f"{rule}, verb"


def _overlap(edits: Sequence[Edit]) -> bool:
    """Return whether some edits cannot be applied together."""
    for (before, end, _), (start, stop, _) in pairwise(sorted(edits)):
        if start < end or (start, stop) == (before, end):
            return True
    return False


def _verb_clause(tokens: Sequence[Token], opposite: Opposite) -> Clause | None:
    """Return the clause of a verb, if it can be denied and shares no object."""
    place = opposite.place
    clause = clause_at(tokens, place)
    if clause is None or clause.finite is None or clause.subject is None or clause.negatives:
        return None
    # "may accept it" does not deny "may reject it": both can be true.
    if word_at(tokens, clause.finite) in _POSSIBLY:
        return None
    # A participle or an infinitive that the parser took for a finite verb.
    if word_at(tokens, place - 1) in ("a", "an", "to"):
        return None
    # Of most verbs, the opposite takes no clause: "forgot that it rained", "remembered that …".
    if children(tokens, place, "ccomp") and opposite.pair[0] not in _REPORTING:
        return None
    if shares_predicate(tokens, place):
        # "accepted and signed it"
        return None
    return clause


def _infinitive(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the "to" of an infinitive that can be denied by itself: "decided (not) to accept it".

    "Can open it" does not mean "cannot close it", and neither does "began to open it".
    """
    place = opposite.place
    verb = tokens[place]
    if verb.tag != "VB" or place < 2 or tokens[place - 1].tag != "TO" or verb.relation != "xcomp":
        return None
    governor = tokens[verb.head]
    barred = word_class("infinitive not denied")
    if not governor.tag.startswith("VB") or governor.lemma.lower() in barred:
        return None
    if shares_predicate(tokens, place):
        return None
    before = word_at(tokens, place - 2)
    if before in ("order", "as", "or", "and", "how", "whether", "but", "enough"):
        return None
    return place - 1
