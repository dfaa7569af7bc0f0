"""Roles: subject and object exchanged, a contradiction ("B chased A"), or kept in the other voice, a paraphrase."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import base_form, inflect, is_past, participle
from opencse.views.constructor import ConstructorSpec
from opencse.views.rewriting.edits import Edit, apply, like
from opencse.views.rewriting.grammar_view import Made, Rewriter
from opencse.views.rewriting.phrases import Span, recased, text_of
from opencse.views.rewriting.transitive import (
    OBJECT_FORM,
    SUBJECT_FORM,
    Transitive,
    agreeing,
    is_plural,
    shares_subject,
    transitive,
)

# With these both orders say the same, or one order says nothing.
_SYMMETRIC = frozenset(
    """be have become remain marry wed meet equal border resemble match adjoin neighbor neighbour touch intersect
    collide contact accompany rival oppose face join cost weigh last total number measure mean lack need
    want get let make do take give win lose""".split()
)
ACTORS = frozenset(
    """man men woman women boy girl child children person people king queen prince princess emperor president
    minister senator governor mayor general officer soldier captain commander army navy fleet troop force
    police company firm team club party government parliament court judge jury lawyer council committee
    board union church pope bishop priest monk teacher student professor scientist scholar author writer
    poet critic editor journalist actor actress singer musician artist painter director producer player
    coach manager fan worker employee employer owner farmer merchant doctor nurse patient friend enemy
    rival ally father mother son daughter brother sister husband wife parent uncle aunt cousin family
    tribe nation country state city village crowd group band gang association organization organisation
    agency university college school bank hospital newspaper magazine settler colonist rebel prisoner
    guard thief killer hero villain detective hunter dog cat horse wolf lion bear bird animal guest host
    customer neighbor neighbour leader follower member voter citizen resident inhabitant opponent
    supporter attacker defender""".split()
)
_NO_PASSIVE = frozenset(
    """be have become remain seem lack resemble fit suit equal cost weigh last total number measure mean get let
    want include contain comprise take make do give join marry meet leave reach enter start begin end
    finish continue feature attend star like hate love wish hope fear try spend undergo experience suffer
    enjoy retain possess hold say think know see keep show find run work play read put set cut turn bring
    go come serve represent concern involve face flee""".split()
)


@dataclass(frozen=True, kw_only=True)
class RoleSwap(ConstructorSpec):
    """Exchange subject and object, both phrases whole, with the pronouns' case and the verb's number mended.

    Passive sentences with an agent too. Null where both orders may say the same, or grammar is in doubt.

    Attributes:
        alike: Only where both phrases are names, personal pronouns, people or bodies of people, so that the result
            makes sense.
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "role_swap"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    alike: bool = True
    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser."""

        def make(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
            return _exchanged(text, tokens, alike=self.alike)

        return Rewriter(self.syntax, make, seed=seed, kind=self.kind)


@dataclass(frozen=True, kw_only=True)
class Passive(ConstructorSpec):
    """Turn the main clause into the other voice, the same roles: "A wrote B" becomes "B was written by A", and back.

    Attributes:
        syntax: The bundled pipeline ("syntax"), or an installed spaCy pipeline by name or folder.
    """

    kind: ClassVar[str] = "passive"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    syntax: str = "syntax"

    def open(self, *, seed: int = 0, workers: int = 1) -> Rewriter:
        """Load the parser."""
        return Rewriter(self.syntax, _other_voice, seed=seed, kind=self.kind)


def _exchanged(text: str, tokens: Sequence[Token], *, alike: bool) -> Made:
    found = transitive(text, tokens)
    if found is None:
        return None, "no subject and object"
    verb = tokens[found.clause.predicate]
    if _base(verb) in _SYMMETRIC or (
        alike and not all(_can_act(tokens[i]) for i in (found.subject_head, found.other_head))
    ):
        return None, "not alike"
    number = is_plural(tokens, found.other_head, found.other)
    before = is_plural(tokens, found.subject_head, found.subject)
    if number is None or before is None:
        return None, "number"
    edits = [
        (*_place(tokens, found.subject), _phrase(text, tokens, found.other, subject=True, at=found.subject)),
        (*_place(tokens, found.other), _phrase(text, tokens, found.subject, subject=False, at=found.other)),
    ]
    if number != before or "I" in (tokens[found.subject[0]].text, edits[0][2]):
        mended = _agreement(tokens, found, plural=number, first_person=edits[0][2] == "I")
        if mended is None:
            return None, "verb form"
        edits += mended
    return apply(text, edits), "passive roles" if found.passive else "active roles"


def _agreement(tokens: Sequence[Token], found: Transitive, *, plural: bool, first_person: bool) -> list[Edit] | None:
    """Return the edit that makes the finite verb agree with another subject; None where a second verb would have to."""
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


def _other_voice(text: str, tokens: Sequence[Token], chance: random.Random) -> Made:
    found = transitive(text, tokens)
    if found is None:
        return None, "no subject and object"
    clause = found.clause
    following = tokens[found.other[1] + 1 :]
    joined = shares_subject(tokens) or any(t.tag == "TO" for t in following)  # "and left", "to see it"
    if joined or any(_hangs_on_subject(tokens, i) for i in clause.children(clause.predicate)):
        return None, "shared subject"
    return _to_active(text, tokens, found) if found.passive else _to_passive(text, tokens, found)


def _hangs_on_subject(tokens: Sequence[Token], i: int) -> bool:
    """Whether a dependent of the verb takes its subject from it: "and left", "winning the cup", "to see it"."""
    relation = tokens[i].relation.split(":")[0]
    if relation in ("conj", "xcomp", "parataxis", "dep", "list", "ccomp"):
        return True
    finite = any(t.head == i and t.relation.split(":")[0] in ("nsubj", "nsubjpass") for t in tokens)
    return relation == "advcl" and not finite


def _to_passive(text: str, tokens: Sequence[Token], found: Transitive) -> Made:
    verb, clause = tokens[found.clause.predicate], found.clause
    base, plural = _base(verb), is_plural(tokens, found.other_head, found.other)
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
    agent = _phrase(text, tokens, found.subject, subject=False, at=found.other)
    edits: list[Edit] = [
        (*_place(tokens, found.subject), _phrase(text, tokens, found.other, subject=True, at=found.subject)),
        *group,
        (*_place(tokens, found.other), f"by {agent}"),
    ]
    assert clause.finite is not None
    return apply(text, edits), "active to passive"


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
        return [_with_adverbs(tokens, found, helper), (verb.start, verb.end, past)]
    if any("'" in word or "’" in word for word in words) or (words[0] == "had" and len(words) > 1):
        return None
    last, edits = words[-1], [(verb.start, verb.end, past)]
    if words[0] in ("do", "does", "did") and len(words) == 1:
        form = agreeing("was" if words[0] == "did" else "is", plural, first_person=first_person)
        return [(helpers[0].start, helpers[0].end, form), *edits]
    if last in ("have", "has", "had"):
        edits[0] = (verb.start, verb.end, f"been {past}")
    elif last in ("is", "are", "was", "were", "be", "been") and verb.tag == "VBG":
        edits[0] = (verb.start, verb.end, f"being {past}")
    elif helpers[-1].tag == "MD" and verb.tag in ("VB", "VBP"):
        edits[0] = (verb.start, verb.end, f"be {past}")
    else:
        return None
    new = agreeing(helpers[0].text, plural, first_person=first_person)
    return edits if new == helpers[0].text else [(helpers[0].start, helpers[0].end, new), *edits]


def _with_adverbs(tokens: Sequence[Token], found: Transitive, helper: str) -> Edit:
    """Return the insertion of a form of be before the adverbs that precede the verb."""
    place = tokens[found.subject[1]].end
    return (place, place, f" {helper}")


def _to_active(text: str, tokens: Sequence[Token], found: Transitive) -> Made:
    verb, helpers = tokens[found.clause.predicate], [tokens[i] for i in found.helpers]
    base, plural = _base(verb), is_plural(tokens, found.other_head, found.other)
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
    agent = _phrase(text, tokens, found.other, subject=True, at=found.subject)
    form = inflect(base, "VBD" if past else "VBP" if plural or agent == "I" else "VBZ")
    if not form or (participle(base) != verb.text.lower() and not is_past(verb.text)):
        return None, "verb form"
    patient = _phrase(text, tokens, found.subject, subject=False, at=found.other)
    helper, by, comma = helpers[0], tokens[found.by], tokens[found.by - 1].text == ","
    edits: list[Edit] = [
        (*_place(tokens, found.subject), agent),
        (helper.start, tokens[found.helpers[0] + 1].start, ""),
        (verb.start, verb.end, f"{form} {patient}"),
        (tokens[found.by - 1].start if comma else tokens[found.by - 1].end, tokens[found.other[1]].end, ""),
    ]
    return (None, "verb form") if by.start < verb.end else (apply(text, edits), "passive to active")


def _base(verb: Token) -> str:
    return verb.lemma.lower() if verb.tag == "VBG" else base_form(verb.text, verb.tag, verb.lemma)


def _can_act(token: Token) -> bool:
    """Whether a noun names a person or a body of persons, as far as a short list knows, or is a name or a pronoun."""
    word = token.text.lower()
    if token.tag == "PRP":
        return word != "it"
    return token.pos == "PROPN" or word in ACTORS or (token.tag == "NNS" and word.removesuffix("s") in ACTORS)


def _place(tokens: Sequence[Token], span: Span) -> tuple[int, int]:
    return tokens[span[0]].start, tokens[span[1]].end


def _phrase(text: str, tokens: Sequence[Token], span: Span, *, subject: bool, at: Span) -> str:
    """Return a phrase as it reads at another place, as a subject or not."""
    piece = text_of(text, tokens, span)
    forms = SUBJECT_FORM if subject else OBJECT_FORM
    if span[0] == span[1]:
        piece = "she" if subject and piece.lower() == "her" else forms.get(piece.lower(), piece)
        if piece.lower() in ("he", "she", "they", "we", "it", *OBJECT_FORM.values()) and at[0] == 0:
            piece = like(piece, "X")
    return recased(piece, tokens[span[0]], was_first=span[0] == 0 and piece != "I", is_first=at[0] == 0)
