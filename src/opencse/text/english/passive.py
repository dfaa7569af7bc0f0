"""Paraphrases by change of voice: "A wrote B" becomes "B was written by A", and back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import NOT
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.phrases import text_of
from opencse.text.english.transitive import (
    Transitive,
    agreeing,
    characters,
    is_plural,
    phrase_as,
    shares_subject,
    transitives,
    verb_base,
)
from opencse.text.english.verbs import inflect, is_past, participle
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits

_NO_PASSIVE = frozenset(
    """be have become remain seem lack resemble fit suit equal cost weigh last total number measure mean get let
    want include contain comprise take make do give join marry meet leave reach enter start begin end
    finish continue feature attend star like hate love wish hope fear try spend undergo experience suffer
    enjoy retain possess hold say think know see keep show find run work play read put set cut turn bring
    go come serve represent concern involve face flee""".split()
)


@dataclass(frozen=True, kw_only=True)
class Passive(GrammarView):
    """Turn the main clause into the other voice: "A wrote B" becomes "B was written by A", and back.

    Null if the verb has no passive, if its agent is missing, or if the grammar is in doubt.

    Example:
        [build.voice]
        kind = "passive"
    """

    kind: ClassVar[str] = "passive"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change the voice of one sentence."""
        reason = "no subject and object"
        for found in transitives(text, tokens):
            rewritten, reason = other_voice(text, tokens, found)
            if rewritten is not None:
                return rewritten, reason
        return None, reason


def other_voice(text: str, tokens: Sequence[Token], found: Transitive) -> Rewrite:
    """Turn one clause of a sentence into the other voice; None if the grammar is in doubt."""
    clause = found.clause
    following = tokens[found.other[1] + 1 :]
    negated = any(tokens[i].text.lower() in NOT for i in clause.children(clause.predicate))
    if negated and any(tokens[i].text.lower() == "any" for i in range(found.other[0], found.other[1] + 1)):
        return None, "hanging on negation"
    joined = shares_subject(tokens) or any(token.tag == "TO" for token in following)  # "and left", "to see it"
    if joined or any(_needs_subject(tokens, i) for i in clause.children(clause.predicate)):
        return None, "shared subject"
    start, end = characters(tokens, (found.subject[0], found.other[1]))
    if any(mark in text[start:end] for mark in "()[]"):
        return None, "brackets"
    return _to_active(text, tokens, found) if found.passive else _to_passive(text, tokens, found)


def _needs_subject(tokens: Sequence[Token], i: int) -> bool:
    """Whether a dependent of the verb shares its subject: "and left", "winning the cup", "to see it"."""
    relation = tokens[i].relation.split(":")[0]
    if relation in ("xcomp", "dep", "list", "ccomp"):
        return True
    finite = any(t.head == i and t.relation.split(":")[0] in ("nsubj", "nsubjpass") for t in tokens)
    return relation in ("advcl", "conj", "parataxis") and not finite


def _to_passive(text: str, tokens: Sequence[Token], found: Transitive) -> Rewrite:
    """Turn an active clause into a passive one."""
    verb = tokens[found.clause.predicate]
    base, plural = verb_base(verb), is_plural(tokens, found.other_head, found.other)
    bare = tokens[found.other[0]].tag == "NN"  # "took place", "won gold": often a fixed phrase
    if base in _NO_PASSIVE or plural is None or bare or not verb.text.isalpha() or tokens[found.other_head].tag == "CD":
        return None, "no passive"
    if tokens[found.subject_head].tag == "PRP" and tokens[found.subject_head].text.lower() in ("it", "you", "i", "we"):
        return None, "no passive"
    if tokens[found.subject_head].text.lower() in ("which", "who", "that", "this"):
        return None, "no passive"
    first = text_of(text, tokens, found.other).lower() == "me"
    group = _passive_group(tokens, found, base, plural=plural, first_person=first)
    if group is None:
        return None, "verb form"
    agent = phrase_as(text, tokens, found.subject, subject=False, place=found.other)
    edits: list[Edit] = [
        (*characters(tokens, found.subject), phrase_as(text, tokens, found.other, subject=True, place=found.subject)),
        *group,
        (*characters(tokens, found.other), f"by {agent}"),
    ]
    return apply_edits(text, edits), "active to passive"


def _passive_group(
    tokens: Sequence[Token], found: Transitive, base: str, *, plural: bool, first_person: bool
) -> list[Edit] | None:
    """Return the edits that turn the verb group into a passive one: "has written" into "has been written"."""
    verb, helpers = tokens[found.clause.predicate], [tokens[i] for i in found.helpers]
    past = participle(base)
    words = [helper.text.lower() for helper in helpers]
    if not words:
        if found.clause.tag not in ("VBZ", "VBP", "VBD") or inflect(base, found.clause.tag) != verb.text.lower():
            return None
        form = "was" if found.clause.tag == "VBD" else "is"
        helper = agreeing(form, plural, first_person=first_person)
        place = tokens[found.subject[1]].end  # before the adverbs that precede the verb
        return [(place, place, f" {helper}"), (verb.start, verb.end, past)]
    if any("'" in word or "’" in word for word in words) or (words[0] == "had" and len(words) > 1):
        return None
    last, edits = words[-1], [(verb.start, verb.end, past)]
    if words[0] in ("do", "does", "did") and len(words) == 1:
        form = agreeing("was" if words[0] == "did" else "is", plural, first_person=first_person)
        return [(helpers[0].start, helpers[0].end, form), *edits]
    if last in ("have", "has", "had"):
        edits[0] = (verb.start, verb.end, f"been {past}")
    elif last in ("is", "are", "was", "were") and verb.tag == "VBG":
        edits[0] = (verb.start, verb.end, f"being {past}")
    elif helpers[-1].tag == "MD" and verb.tag in ("VB", "VBP"):
        edits[0] = (verb.start, verb.end, f"be {past}")
    else:
        return None
    new = agreeing(helpers[0].text, plural, first_person=first_person)
    return edits if new == helpers[0].text else [(helpers[0].start, helpers[0].end, new), *edits]


def _to_active(text: str, tokens: Sequence[Token], found: Transitive) -> Rewrite:
    """Turn a passive clause with an agent into an active one."""
    verb, helpers = tokens[found.clause.predicate], [tokens[i] for i in found.helpers]
    base, plural = verb_base(verb), is_plural(tokens, found.other_head, found.other)
    if (
        plural is None
        or found.by is None
        or len(helpers) != 1
        or helpers[0].text.lower() not in ("is", "are", "was", "were")
    ):
        return None, "verb form"
    if any(tokens[i].text.lower() in ("not", "n't") for i in range(found.subject[1], found.clause.predicate)):
        return None, "negative already"
    if any(t.head == found.clause.predicate and t.relation in ("compound:prt", "prt") for t in tokens):
        return None, "particle"
    past = helpers[0].text.lower() in ("was", "were")
    agent = phrase_as(text, tokens, found.other, subject=True, place=found.subject)
    form = inflect(base, "VBD" if past else "VBP" if plural or agent == "I" else "VBZ")
    if not form or (participle(base) != verb.text.lower() and not is_past(verb.text)):
        return None, "verb form"
    patient = phrase_as(text, tokens, found.subject, subject=False, place=found.other)
    helper, by, comma = helpers[0], tokens[found.by], tokens[found.by - 1].text == ","
    edits: list[Edit] = [
        (*characters(tokens, found.subject), agent),
        (helper.start, tokens[found.helpers[0] + 1].start, ""),
        (verb.start, verb.end, f"{form} {patient}"),
        (tokens[found.by - 1].start if comma else tokens[found.by - 1].end, tokens[found.other[1]].end, ""),
    ]
    return (None, "verb form") if by.start < verb.end else (apply_edits(text, edits), "passive to active")
