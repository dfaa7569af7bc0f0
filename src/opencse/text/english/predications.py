"""Places where a sentence says something of a subject with a word that has an opposite, and how to deny or swap it.

At such a place four sentences are related: "is safe", "is not dangerous" (the same), "is not safe" and "is dangerous"
(its contradictions, which say the same as each other). They come from two changes, each done or not: the word is
replaced by its opposite, and "not" is inserted, or removed if it is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from opencse.text.english.clause import NOT, Clause, clause_at
from opencse.text.english.negation_rules import SENTENTIAL, Negated, negation_edits
from opencse.text.english.opposites import Opposite, find_opposites, opposite_edits
from opencse.text.english.predicate_adjectives import find_copula, shares_predicate
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit

_POSSIBLY = ("can", "could", "may", "might", "need", "dare")  # who can accept can reject, too
# Verbs whose infinitive is not denied on its own: "can open it" does not say "cannot close it", "began to open it".
_NOT_DENIED = frozenset(
    """allow permit enable let help begin start continue cease stop fail manage happen use go have need come get try
    refuse be""".split()
)
_REPORTING = ("remember", "forget", "believe", "doubt", "think")  # with a clause: "did not forget that …"


@dataclass(frozen=True, kw_only=True)
class Predication:
    """A predicate of a main or subordinate clause that has an opposite.

    Attributes:
        opposite: The word and its opposite.
        copula: Index of the form of be before a predicate adjective or noun; None if the predicate is a verb.
        clause: The clause of the verb; None if the predicate is no finite verb.
        to: Index of the "to" of an infinitive ("decided to accept it"); None if the predicate is none.
    """

    opposite: Opposite
    copula: int | None = None
    clause: Clause | None = None
    to: int | None = None


def find_predications(text: str, tokens: Sequence[Token], *, hold_out: int = 0) -> Iterator[Predication]:
    """Yield all places of a statement where a predicate has an opposite; arguments as in `find_opposites`."""
    if text.rstrip(" \"'”’)").endswith("?"):
        return
    for opposite in find_opposites(text, tokens, hold_out=hold_out):
        if opposite.pos in ("ADJ", "NOUN"):
            copula = find_copula(tokens, opposite)
            if copula is not None:
                yield Predication(opposite=opposite, copula=copula)
        elif opposite.pos in ("VERB", "PART"):
            clause, to = _verb_clause(tokens, opposite), _infinitive(tokens, opposite)
            if clause is not None or to is not None:
                yield Predication(opposite=opposite, clause=clause if to is None else None, to=to)


def predication_edits(
    text: str, tokens: Sequence[Token], found: Predication, *, swap: bool, deny: bool, contract: bool = False
) -> Negated:
    """Return the edits of one place.

    Args:
        text: The sentence.
        tokens: Its tokens.
        found: The place.
        swap: Replace the word by its opposite.
        deny: Insert "not", or remove it.
        contract: Write "isn't" rather than "is not".

    Returns:
        The edits, or None if no rule is safe, and the rule or the reason.
    """
    swapped = opposite_edits(text, tokens, found.opposite) if swap else []
    if not deny:
        return swapped, "antonym"
    if found.to is not None:
        return [*swapped, _infinitive_denied(tokens, found.to)], "infinitive"
    if found.clause is None:
        assert found.copula is not None
        denied, rule = _adjective_denied(tokens, found.opposite.place, found.copula, contract=contract)
        return (None if denied is None else [*swapped, *denied]), rule
    return _verb_denied(text, found.clause, found.opposite, swapped, contract=contract)


def _verb_clause(tokens: Sequence[Token], opposite: Opposite) -> Clause | None:
    """Return the clause of a verb; None if it cannot be denied, shares its object or governs a clause."""
    clause = clause_at(tokens, opposite.place)
    if clause is None or clause.finite is None or clause.subject is None or clause.negatives:
        return None
    if tokens[clause.finite].text.lower() in _POSSIBLY or tokens[opposite.place - 1].text.lower() in ("a", "an", "to"):
        return None
    if shares_predicate(tokens, opposite.place):
        return None  # "accepted and signed it"
    if clause.has(opposite.place, ("ccomp",)) and opposite.pair[0] not in _REPORTING:
        return None
    return clause


def _infinitive(tokens: Sequence[Token], opposite: Opposite) -> int | None:
    """Return the "to" of an infinitive that can be denied on its own: "decided (not) to accept it"."""
    place, verb = opposite.place, tokens[opposite.place]
    if verb.tag != "VB" or place < 2 or tokens[place - 1].tag != "TO" or verb.relation != "xcomp":
        return None
    governor = tokens[verb.head]
    if not governor.tag.startswith("VB") or governor.lemma.lower() in _NOT_DENIED or shares_predicate(tokens, place):
        return None
    before = tokens[place - 2].text.lower()
    return None if before in ("order", "as", "or", "and", "how", "whether", "but", "enough") else place - 1


def _infinitive_denied(tokens: Sequence[Token], to: int) -> Edit:
    """Return the edit that inserts "not" before the "to" of an infinitive, or removes it."""
    before = tokens[to - 1]
    if before.text.lower() in NOT:
        return (before.start, tokens[to].start, "")
    return (tokens[to].start, tokens[to].start, "not ")


def _adjective_denied(tokens: Sequence[Token], place: int, copula: int, *, contract: bool) -> Negated:
    """Insert "not" after the copula and its adverbs, or remove the one that is there."""
    between = range(copula + 1, place)
    negators = [k for k in between if tokens[k].text.lower() in NOT]
    if len(negators) > 1:
        return None, "negative words"
    if negators:
        return [(tokens[negators[0] - 1].end, tokens[negators[0]].end, "")], "not removed"
    adverbs = [k for k in between if tokens[k].text.lower() in SENTENTIAL]
    end = tokens[max([copula, *adverbs])].end
    short = contract and not adverbs and not tokens[copula].text.isupper()
    return [(end, end, "n't" if short else " not")], "not"


def _verb_denied(text: str, clause: Clause, opposite: Opposite, swapped: list[Edit], *, contract: bool) -> Negated:
    """Negate the clause of a verb, or of its opposite if there are edits that replace it."""
    place = opposite.place
    verb = clause.tokens[place]
    if swapped:
        tokens = list(clause.tokens)
        tokens[place] = replace(verb, text=opposite.word, lemma=opposite.pair[1].split()[0])
        clause = replace(clause, tokens=tokens)
    edits, rule = negation_edits(text, clause, contract=contract)
    if edits is None:
        return None, rule
    negated = [edit for edit in edits if edit[1] > verb.start and edit[0] < verb.end]  # "did not reject"
    return [*edits, *(edit for edit in swapped if not (negated and edit[0] == verb.start))], f"{rule}, verb"


def overlap(edits: Sequence[Edit]) -> bool:
    """Whether some edits cannot be applied together."""
    ordered = sorted(edits)
    return any(
        start < end or (start, stop) == (before, end) for (before, end, _), (start, stop, _) in pairwise(ordered)
    )
