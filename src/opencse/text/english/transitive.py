"""Transitive clauses: subject, verb group and object, phrases in another role, and the other voice."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from opencse.text.english.clause import BE, NOT, Clause, clause_at, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import ACTORS, word_class
from opencse.text.english.phrases import Span, as_span, recased, subtree, text_of
from opencse.text.english.verbs import base_form, inflect, is_past, participle
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits, match_case

SUBJECT_FORM = {"him": "he", "them": "they", "me": "I", "us": "we", "whom": "who"}
OBJECT_FORM = {new: old for old, new in SUBJECT_FORM.items()} | {"she": "her", "i": "me"}
_MAX_TOKENS = 14  # of a phrase
# Words that refer back to something: in another place they would refer to something else.
_ANAPHORIC = word_class("anaphoric")
_AFTER_OBJECT = ("that", "for", "about", "between", "against", "over", "of")
_AFTER_AGENT = (*_AFTER_OBJECT, "in", "with", "from", "on", "to")
_POSSESSIVES = frozenset("his her its their my our your".split())
_GENITIVES = ("of", "'s", "’s", "'", "’")
_PREPOSITIONS = frozenset("in on for with between against at about over".split())
_OTHER_CLAUSES = ("ccomp", "advcl", "conj", "parataxis")
_STOP = (".", "!", ";", "?", ",", ":", "(", ")", "[", "]", '"', "“", "”", "–", "—", "...", "''", "``")


@dataclass(frozen=True, kw_only=True)
class Transitive:
    """A main clause with a subject and an object, or a passive one with its agent.

    Attributes:
        clause: The clause.
        subject: First and last token of the whole subject.
        other: First and last token of the whole object, or of the agent without "by".
        subject_head: The noun of the subject.
        other_head: The noun of the object or agent.
        passive: Whether `other` is an agent.
        by: The token "by" of an agent.
        helpers: The auxiliaries, from left to right.
    """

    clause: Clause
    subject: Span
    other: Span
    subject_head: int
    other_head: int
    passive: bool
    by: int | None
    helpers: tuple[int, ...]


def transitives(text: str, tokens: Sequence[Token]) -> Iterator[Transitive]:
    """Yield the clauses of a sentence that have subject, verb and object, the main clause first.

    A clause is left out if the grammar is in any doubt.

    Args:
        text: The sentence.
        tokens: Its tokens.
    """
    if any(token.text == "." for token in tokens[:-1]):
        return  # more than one sentence
    clauses = [main_clause(tokens)]
    clauses += [clause_at(tokens, i) for i, t in enumerate(tokens) if t.relation.split(":")[0] in _OTHER_CLAUSES]
    for clause in clauses:
        found = _transitive(text, tokens, clause) if clause is not None else None
        if found is not None:
            yield found


def _transitive(text: str, tokens: Sequence[Token], clause: Clause) -> Transitive | None:
    """Return a clause as subject, verb and object; None if the grammar is in any doubt."""
    if clause.subject is None or clause.finite is None or clause.negatives or "?" in text:
        return None
    verb = clause.predicate
    children = list(clause.children(verb))
    relations = {i: tokens[i].relation for i in children}
    if not tokens[verb].tag.startswith("VB") or any(r in ("xcomp", "iobj", "expl", "cop") for r in relations.values()):
        return None
    helpers = tuple(i for i in children if relations[i].split(":")[0] == "aux" or relations[i] == "auxpass")
    passive = any(relations[i] in ("aux:pass", "auxpass") for i in helpers)
    if any(i > verb for i in helpers) or clause.subject > min([verb, *helpers]):
        return None
    found = _agent(clause, children) if passive else _object(clause, children)
    if found is None:
        return None
    by, head = found
    named = tokens[clause.subject].pos != "PRON"
    subject = _noun_phrase(clause, clause.subject)
    other = _noun_phrase(clause, head, without=by, possessive=named and not passive)
    if subject is None or other is None or tokens[clause.subject].text.lower() == "one":
        return None
    if subject[0] and tokens[subject[0] - 1].tag == "CC" and tokens[verb].relation != "conj":
        return None  # the first conjuncts are elsewhere: "A, B and C solved it"
    if not subject[1] < min([verb, *helpers]) <= verb < other[0]:
        return None
    if not _only_adverbs(clause, subject[1] + 1, verb, helpers) or not _ends(clause, head, other, by):
        return None
    return Transitive(
        clause=clause,
        subject=subject,
        other=other,
        subject_head=clause.subject,
        other_head=head,
        passive=passive,
        by=by,
        helpers=helpers,
    )


def _ends(clause: Clause, head: int, span: Span, by: int | None) -> bool:
    """Whether a phrase after the verb certainly ends where the parser says."""
    tokens = clause.tokens
    for i in subtree(tokens, head) - {head, by}:
        if tokens[i].relation != "case" or tokens[i].text.lower() in _GENITIVES:
            continue
        if by is not None or tokens[i].text.lower() not in _PREPOSITIONS or tokens[tokens[i].head].tag == "CD":
            return False  # "protects the burrows from flooding", "received a prize in 1990"
    following = tokens[span[1] + 1] if span[1] + 1 < len(tokens) else None
    if following is None or following.text in (".", "!", ";"):
        return True
    if following.text == "," and span[1] + 2 < len(tokens):  # no apposition, no relative clause
        return tokens[span[1] + 2].tag in ("IN", "WRB", "RB", "PRP", "VBG")
    if following.tag == "CC":  # "mandated McCoy and Spock be male"
        return span[1] + 2 < len(tokens) and tokens[span[1] + 2].tag[:2] in ("VB", "MD", "PR", "IN")
    # "highlighted the need for a union", "is caused by acids in the blood": the next phrase may belong to the noun
    joined = _AFTER_AGENT if by is not None else _AFTER_OBJECT
    return following.tag in ("IN", "WRB", "RB") and following.text.lower() not in joined


def shares_subject(tokens: Sequence[Token]) -> bool:
    """Whether some verb of the sentence is coordinated and has no subject of its own ("sang and danced")."""
    if any(a.tag == "CC" and b.tag in ("VBD", "VBZ", "VBP", "MD") for a, b in pairwise(tokens)):
        return True
    verbs = [i for i, t in enumerate(tokens) if t.relation in ("conj", "parataxis", "dep") and t.tag.startswith("V")]
    return any(not any(t.head == i and "subj" in t.relation for t in tokens) for i in verbs)


def is_plural(tokens: Sequence[Token], head: int, span: Span) -> bool | None:
    """Whether a noun phrase takes a plural verb; None if this is unclear."""
    token = tokens[head]
    if any(t.relation == "conj" and t.head == head for t in tokens[span[0] : span[1] + 1]):
        joins = {t.text.lower() for t in tokens[span[0] : span[1] + 1] if t.relation == "cc"}
        return True if joins == {"and"} else None
    word = token.text.lower()
    if word in ("they", "we", "these", "those", "both", "many", "several", "few", "them", "us"):
        return True
    if word in ("he", "she", "it", "this", "that", "one", "him", "her", "everyone", "somebody", "someone"):
        return False
    if token.tag == "NNPS" and tokens[span[0]].text.lower() != "the":
        return None  # "Seth Davies"
    if token.tag in ("NNS", "NNPS") or (re.search("(?:ch|sh|ese)$", word) and tokens[head - 1].text.lower() == "the"):
        return True  # "the Dutch"
    if word in (
        "number",
        "majority",
        "variety",
        "couple",
        "range",
        "group",
        "lot",
        "series",
        "species",
        "police",
        "people",
    ):
        return None
    if token.tag in ("NN", "NNP") and re.search(r"[^sui]s$", word):
        return None  # "the Sibyls", "the Times"
    return False if token.tag in ("NN", "NNP") else None


def _object(clause: Clause, children: Sequence[int]) -> tuple[None, int] | None:
    """Return (None, the noun of the object), if the object follows the verb directly."""
    objects = [i for i in children if clause.tokens[i].relation in ("obj", "dobj")]
    gap = clause.tokens[clause.predicate + 1 : objects[0]] if objects else []
    inner = subtree(clause.tokens, objects[0]) if objects else set()
    if len(objects) != 1 or any(clause.predicate + 1 + k not in inner for k in range(len(gap))):
        return None  # a particle or an adverb between verb and object
    return None, objects[0]


def _agent(clause: Clause, children: Sequence[int]) -> tuple[int, int] | None:
    """Return "by" and its noun: `obl:agent` with a case (Universal Dependencies), or `agent` with an object (spaCy)."""
    tokens = clause.tokens
    for i in children:
        if i < clause.predicate:
            continue
        if tokens[i].relation == "obl:agent":
            by = [k for k in clause.children(i) if tokens[k].relation == "case" and tokens[k].text == "by"]
            return (by[0], i) if len(by) == 1 else None
        if tokens[i].relation == "agent" and tokens[i].text == "by":
            noun = [k for k in clause.children(i) if tokens[k].relation == "pobj"]
            return (i, noun[0]) if len(noun) == 1 else None
    return None


def _noun_phrase(clause: Clause, head: int, without: int | None = None, *, possessive: bool = False) -> Span | None:
    """Return the whole noun phrase if it is one span without commas, clauses and anaphoric words."""
    tokens = clause.tokens
    places = subtree(tokens, head) - {without}
    span = as_span(places)
    if span is None or span[1] - span[0] >= _MAX_TOKENS or tokens[head].tag in ("EX", "WP", "WDT", "VBG", "JJ", "RB"):
        return None
    words = [tokens[i].text.lower() for i in range(span[0], span[1] + 1)]
    plain = head > 0 and tokens[0].tag in ("NN", "JJ") and tokens[head].tag == "NNS"  # "Local farmers"
    if span[0] == 0 and not plain and tokens[0].tag in ("NN", "JJ", "VB", "VBN", "VBG", "FW", "AFX", "GW"):
        return None  # perhaps an unknown name: whether it keeps its capital would be a guess
    barred = _ANAPHORIC - _POSSESSIVES if possessive else _ANAPHORIC
    if any(word in barred or word in _STOP for word in words[:-1]) or words[-1] in (*_ANAPHORIC - {"her"}, *_STOP):
        return None
    clauses = ("acl", "relcl", "advcl", "ccomp", "parataxis", "appos", "csubj", "dep", "list")
    if any(tokens[i].relation.split(":")[0] in clauses for i in places - {head}):
        return None
    if any(tokens[i].tag in ("VB", "VBP", "VBZ", "VBD", "MD") for i in places):
        return None
    following = span[1] + 1  # a comma or bracket right before would belong to it
    if following < len(tokens) and tokens[following].text in ("-", "–", "/", "'"):
        return None
    noun = tokens[head].pos in ("NOUN", "PROPN", "PRON") and (tokens[head].pos != "PRON" or tokens[head].tag == "PRP")
    if any(tokens[i].relation == "mark" or (tokens[i].relation == "conj" and tokens[i].tag[0] == "V") for i in places):
        return None  # "after the army", "restored temples and built more"
    return span if noun else None


def _only_adverbs(clause: Clause, first: int, verb: int, helpers: tuple[int, ...]) -> bool:
    """Whether nothing but auxiliaries, adverbs and "not" stands between subject and verb."""
    return all(
        i in helpers or (clause.tokens[i].head == verb and clause.tokens[i].tag in ("RB", "RBR"))
        for i in range(first, verb)
    )


def agreeing(word: str, plural: bool, *, first_person: bool = False) -> str:
    """Return a form of be, have or do that agrees with a subject; other words are returned unchanged."""
    low = word.lower()
    if low in BE and low not in ("is", "are", "was", "were", "am"):
        return word
    if first_person:
        return {"is": "am", "are": "am", "were": "was", "has": "have", "does": "do"}.get(low, word)
    many = {"is": "are", "am": "are", "was": "were", "has": "have", "does": "do"}
    one = {"are": "is", "am": "is", "were": "was", "have": "has", "do": "does"}
    return (many if plural else one).get(low, word)


def verb_base(verb: Token) -> str:
    """Return the base of a verb in any form."""
    return verb.lemma.lower() if verb.tag == "VBG" else base_form(verb.text, verb.tag, verb.lemma)


def characters(tokens: Sequence[Token], span: Span) -> tuple[int, int]:
    """Return the characters of a span of tokens: the first, and the one after the last."""
    return tokens[span[0]].start, tokens[span[1]].end


def phrase_as(text: str, tokens: Sequence[Token], span: Span, *, subject: bool, place: Span) -> str:
    """Return a phrase as it reads in another role and at another place.

    Args:
        text: The sentence.
        tokens: Its tokens.
        span: The phrase.
        subject: Whether it becomes the subject; pronouns change their case.
        place: The span that it replaces; at the start of the sentence the phrase gets a capital.
    """
    piece = text_of(text, tokens, span)
    forms = SUBJECT_FORM if subject else OBJECT_FORM
    if span[0] == span[1]:
        piece = "she" if subject and piece.lower() == "her" else forms.get(piece.lower(), piece)
        if piece.lower() in ("he", "she", "they", "we", "it", *OBJECT_FORM.values()) and place[0] == 0:
            piece = match_case(piece, "X")
    return recased(piece, tokens[span[0]], was_first=span[0] == 0 and piece != "I", is_first=place[0] == 0)


def can_act(token: Token) -> bool:
    """Whether a noun is a name, a personal pronoun, or a word for persons or groups of persons from a short list."""
    word = token.text.lower()
    if token.tag == "PRP":
        return word != "it"
    return token.pos == "PROPN" or word in ACTORS or (token.tag == "NNS" and word.removesuffix("s") in ACTORS)


_NO_PASSIVE = word_class("no passive")


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
