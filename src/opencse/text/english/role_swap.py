"""Contradictions by exchange of roles: "A chased B" becomes "B chased A"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import SYMMETRIC_VERBS
from opencse.text.english.transitive import (
    Transitive,
    agreeing,
    can_act,
    characters,
    is_plural,
    phrase_as,
    shares_subject,
    transitives,
    verb_base,
)
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits

# Verbs whose subject and object cannot change places: the result would say nothing.
_ONE_WAY = frozenset(
    """have become remain contact join cost weigh last total number measure mean lack need want get let make do take
    give win lose attend enter receive perform sing sign release operate gather create introduce propose found establish
    build write publish record direct produce compose design tour cross practice practise""".split()
)


@dataclass(frozen=True, kw_only=True)
class RoleSwap(GrammarView):
    """Exchange subject and object, both as whole phrases, with the pronouns' case and the verb's number corrected.

    Passive sentences with an agent are included. Null if both orders may mean the same, or if the grammar is in doubt.

    Attributes:
        alike: Exchange only names, personal pronouns, people and groups of people, so that the result makes sense.

    Example:
        [build.roles]
        kind = "role_swap"
    """

    kind: ClassVar[str] = "role_swap"

    alike: bool = True

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Exchange the roles of one sentence."""
        reason = "no subject and object"
        for found in transitives(text, tokens):
            rewritten, reason = exchanged_roles(text, tokens, found, alike=self.alike)
            if rewritten is not None:
                return rewritten, reason
        return None, reason


def exchanged_roles(text: str, tokens: Sequence[Token], found: Transitive, *, alike: bool) -> Rewrite:
    """Exchange subject and object of one clause of a sentence; `alike` as in `RoleSwap`."""
    if any(tokens[i].tag == "PRP$" for i in range(found.other[0], found.other[1] + 1)):
        return None, "possessive"
    fits = not alike or all(can_act(tokens[i]) for i in (found.subject_head, found.other_head))
    if verb_base(tokens[found.clause.predicate]) in SYMMETRIC_VERBS | _ONE_WAY or not fits:
        return None, "not alike"
    number = is_plural(tokens, found.other_head, found.other)
    before = is_plural(tokens, found.subject_head, found.subject)
    if number is None or before is None:
        return None, "number"
    subject = phrase_as(text, tokens, found.other, subject=True, place=found.subject)
    other = phrase_as(text, tokens, found.subject, subject=False, place=found.other)
    edits = [(*characters(tokens, found.subject), subject), (*characters(tokens, found.other), other)]
    if number != before or "I" in (tokens[found.subject[0]].text, subject):
        agreement = _agreement(tokens, found, plural=number, first_person=subject == "I")
        if agreement is None:
            return None, "verb form"
        edits += agreement
    return apply_edits(text, edits), "passive roles" if found.passive else "active roles"


def _agreement(tokens: Sequence[Token], found: Transitive, *, plural: bool, first_person: bool) -> list[Edit] | None:
    """Return the edit that makes the finite verb agree with its new subject; None if a second verb would have to."""
    assert found.clause.finite is not None
    finite, verb = tokens[found.clause.finite], tokens[found.clause.predicate]
    if shares_subject(tokens):
        return None
    if found.helpers:
        new = agreeing(finite.text, plural, first_person=first_person)
    elif found.clause.tag in ("VBZ", "VBP"):
        base = base_form(verb.text, found.clause.tag, verb.lemma)
        new = base if plural or first_person else inflect(base, "VBZ")
    else:
        return []
    return [(finite.start, finite.end, new)] if new != finite.text else []
