"""Who does what to whom: subject, verb group and object of a main clause, active or passive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from opencse.syntax.tokens import Token
from opencse.views.rewriting.clause import BE, Clause, main_clause
from opencse.views.rewriting.phrases import Span, as_span, subtree

SUBJECT_FORM = {"him": "he", "them": "they", "me": "I", "us": "we", "whom": "who"}
OBJECT_FORM = {new: old for old, new in SUBJECT_FORM.items()} | {"she": "her", "i": "me"}
_LONGEST = 14
# Phrases that point back at the subject: in another place they would point elsewhere.
_POINTING = frozenset(
    """myself yourself himself herself itself ourselves yourselves themselves oneself his her hers its their theirs my
    our your other another each so such same own""".split()
)
_AFTER_OBJECT = ("that", "for", "about", "between", "against", "over", "of")
_AFTER_AGENT = (*_AFTER_OBJECT, "in", "with", "from", "on", "to")
_STOP = (".", "!", ";", "?", ",", ":", "(", ")", "[", "]", '"', "“", "”", "–", "—", "...", "''", "``")


@dataclass(frozen=True, kw_only=True)
class Transitive:
    """A main clause with a subject and an object, or a passive one with its agent.

    Attributes:
        clause: The clause.
        subject: First and last token of the whole subject.
        other: Likewise of the object, or of the agent without "by".
        subject_head: Its noun.
        other_head: Likewise.
        passive: Whether `other` is an agent.
        by: The token "by" of an agent.
        helpers: Auxiliaries, left to right.
    """

    clause: Clause
    subject: Span
    other: Span
    subject_head: int
    other_head: int
    passive: bool
    by: int | None
    helpers: tuple[int, ...]


def transitive(text: str, tokens: Sequence[Token]) -> Transitive | None:
    """Return the main clause of a sentence as subject, verb and object; None where the grammar is in any doubt."""
    if any(token.text == "." for token in tokens[:-1]):
        return None  # more than one sentence
    clause = main_clause(tokens)
    if clause is None or clause.subject is None or clause.finite is None or clause.negatives or "?" in text:
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
    subject, other = _phrase(clause, clause.subject), _phrase(clause, head, without=by)
    if subject is None or other is None or not subject[1] < min([verb, *helpers]) <= verb < other[0]:
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
    """Whether a phrase after the verb surely ends where the parser says."""
    tokens = clause.tokens
    for i in subtree(tokens, head) - {head, by}:
        if tokens[i].relation == "case" and tokens[i].text.lower() not in ("of", "'s", "’s", "'", "’"):
            return False  # "protects the burrows from flooding"
    following = tokens[span[1] + 1] if span[1] + 1 < len(tokens) else None
    if following is None or following.text in (".", "!", ";"):
        return True
    if following.text == "," and span[1] + 2 < len(tokens):  # no apposition, no relative clause
        return tokens[span[1] + 2].tag in ("IN", "WRB", "RB", "PRP", "VBG")
    if following.tag == "CC":  # "mandated McCoy and Spock be male"
        return span[1] + 2 < len(tokens) and tokens[span[1] + 2].tag[:2] in ("VB", "MD", "PR", "IN")
    # "highlighted the need for a union", "is caused by acids in the blood": what follows may belong to the noun
    joined = _AFTER_AGENT if by is not None else _AFTER_OBJECT
    return following.tag in ("IN", "WRB", "RB") and following.text.lower() not in joined


def shares_subject(tokens: Sequence[Token]) -> bool:
    """Whether some verb in the sentence is joined to another and has no subject of its own ("sang and danced")."""
    if any(a.tag == "CC" and b.tag in ("VBD", "VBZ", "VBP", "MD") for a, b in pairwise(tokens)):
        return True
    verbs = [i for i, t in enumerate(tokens) if t.relation in ("conj", "parataxis", "dep") and t.tag.startswith("V")]
    return any(not any(t.head == i and "subj" in t.relation for t in tokens) for i in verbs)


def is_plural(tokens: Sequence[Token], head: int, span: Span) -> bool | None:
    """Whether a noun phrase takes a plural verb; None where that cannot be told."""
    token = tokens[head]
    if any(t.relation == "conj" and t.head == head for t in tokens[span[0] : span[1] + 1]):
        joins = {t.text.lower() for t in tokens[span[0] : span[1] + 1] if t.relation == "cc"}
        return True if joins == {"and"} else None
    word = token.text.lower()
    if word in ("they", "we", "these", "those", "both", "many", "several", "few", "them", "us"):
        return True
    if word in ("he", "she", "it", "this", "that", "one", "him", "her", "everyone", "somebody", "someone"):
        return False
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
    objects = [i for i in children if clause.tokens[i].relation in ("obj", "dobj")]
    gap = clause.tokens[clause.predicate + 1 : objects[0]] if objects else []
    inner = subtree(clause.tokens, objects[0]) if objects else set()
    if len(objects) != 1 or any(clause.predicate + 1 + k not in inner for k in range(len(gap))):
        return None  # a particle or an adverb between verb and object
    return None, objects[0]


def _agent(clause: Clause, children: Sequence[int]) -> tuple[int, int] | None:
    """Find "by" and the noun: `obl:agent` with its case (Universal Dependencies), `agent` with its object (spaCy)."""
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


def _phrase(clause: Clause, head: int, without: int | None = None) -> Span | None:
    """Return the whole noun phrase if it is one run without commas, clauses and words that point elsewhere."""
    tokens = clause.tokens
    places = subtree(tokens, head) - {without}
    span = as_span(places)
    if span is None or span[1] - span[0] >= _LONGEST or tokens[head].tag in ("EX", "WP", "WDT", "VBG", "JJ", "RB"):
        return None
    words = [tokens[i].text.lower() for i in range(span[0], span[1] + 1)]
    if span[0] == 0 and tokens[0].tag in ("NN", "JJ", "VB", "VBN", "VBG", "FW", "AFX", "GW"):
        return None  # a name that was not known as one, or not: its capital would be a guess
    if any(word in _POINTING or word in _STOP for word in words[:-1]) or words[-1] in (*_POINTING - {"her"}, *_STOP):
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
    return span if noun else None


def _only_adverbs(clause: Clause, first: int, verb: int, helpers: tuple[int, ...]) -> bool:
    """Whether nothing but auxiliaries, adverbs and "not" stands between subject and verb."""
    return all(
        i in helpers or (clause.tokens[i].head == verb and clause.tokens[i].tag in ("RB", "RBR"))
        for i in range(first, verb)
    )


def agreeing(word: str, plural: bool, *, first_person: bool = False) -> str:
    """Return a form of be, have or do that agrees with a subject; other words come back as they are."""
    low = word.lower()
    if low in BE and low not in ("is", "are", "was", "were", "am"):
        return word
    if first_person:
        return {"is": "am", "are": "am", "were": "was", "has": "have", "does": "do"}.get(low, word)
    many = {"is": "are", "am": "are", "was": "were", "has": "have", "does": "do"}
    one = {"are": "is", "am": "is", "were": "was", "have": "has", "do": "does"}
    return (many if plural else one).get(low, word)
