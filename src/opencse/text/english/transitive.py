"""Transitive clauses: subject, verb group and object, phrases in another role, and the other voice."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from opencse.text.english.clause import FINITE, NOT, Clause, clause_at, main_clause
from opencse.text.english.lexicon import ACTORS, inflect, is_past, participle, verb_base, word_class
from opencse.text.english.parse import (
    GrammarView,
    Rewrite,
    Span,
    as_span,
    base_relation,
    characters,
    children,
    recased,
    subtree,
    text_of,
    word_at,
)
from opencse.text.syntax import Edit, Token, apply_edits

_SUBJECT_FORM = {"him": "he", "them": "they", "me": "I", "us": "we", "whom": "who"}
_OBJECT_FORM = {new: old for old, new in _SUBJECT_FORM.items()} | {"she": "her", "i": "me"}
_MAX_TOKENS = 14  # of a phrase
# Words that refer back to something: in another place they would refer to something else.
_ANAPHORIC = word_class("anaphoric")
_AFTER_OBJECT = ("that", "for", "about", "between", "against", "over", "of")
_AFTER_AGENT = (*_AFTER_OBJECT, "in", "with", "from", "on", "to")
_GENITIVES = ("of", "'s", "’s", "'", "’")
_PREPOSITIONS = frozenset("in on for with between against at about over".split())
_OTHER_CLAUSES = ("ccomp", "advcl", "conj", "parataxis")
_WITHIN = ("acl", "relcl", "advcl", "ccomp", "parataxis", "appos", "csubj", "dep", "list")
_STOP = (
    ".",
    "!",
    ";",
    "?",
    ",",
    ":",
    "(",
    ")",
    "[",
    "]",
    '"',
    "“",
    "”",
    "–",
    "—",
    "...",
    "''",
    "``",
)
_PLURAL = frozenset("they we these those both many several few them us".split())
_SINGULAR = frozenset("he she it this that one him her everyone somebody someone".split())
_TO_PLURAL = {"is": "are", "am": "are", "was": "were", "has": "have", "does": "do"}
_TO_SINGULAR = {"are": "is", "am": "is", "were": "was", "have": "has", "do": "does"}
_TO_FIRST_PERSON = {"is": "am", "are": "am", "were": "was", "has": "have", "does": "do"}


class Passive(GrammarView):
    """Turn the main clause into the other voice: "A wrote B" becomes "B was written by A", and back.

    Null if the verb has no passive, if its agent is missing, or if the grammar is in doubt.

    Example:
        [build.voice]
        kind = "passive"

        >>> Passive().preview("The lawyer wrote the letter.")
        ['The letter was written by the lawyer.']
    """

    kind = "passive"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Change the voice of one sentence."""
        reason = "no subject and object"
        for roles in transitives(text, tokens):
            rewritten, reason = other_voice(text, tokens, roles)
            if rewritten is not None:
                return rewritten, reason
        return None, reason


@dataclass(frozen=True, kw_only=True)
class Transitive:
    """A main clause with a subject and an object, or a passive one with its agent.

    Attributes:
        clause: The clause.
        subject: First and last token of the whole subject.
        other: First and last token of the whole object, or of the agent without "by".
        subject_head: The noun of the subject.
        other_head: The noun of the object or agent.
        by: The token "by" of an agent; None in the active voice.
        helpers: The auxiliaries, from left to right.
    """

    clause: Clause
    subject: Span
    other: Span
    subject_head: int
    other_head: int
    by: int | None
    helpers: Sequence[int]


def transitives(text: str, tokens: Sequence[Token]) -> Iterator[Transitive]:
    """Yield the clauses of a sentence that have subject, verb and object, the main clause first.

    A clause is left out if the grammar is in any doubt.
    """
    if any(token.text == "." for token in tokens[:-1]) or "?" in text:
        return  # more than one sentence, or no statement
    clauses = [main_clause(tokens)]
    clauses += [
        clause_at(tokens, i) for i, t in enumerate(tokens) if base_relation(t) in _OTHER_CLAUSES
    ]
    for clause in clauses:
        roles = _transitive(tokens, clause) if clause is not None else None
        if roles is not None:
            yield roles


def _transitive(tokens: Sequence[Token], clause: Clause) -> Transitive | None:
    """Return a clause as subject, verb and object; None if the grammar is in any doubt."""
    verb, noun, finite = clause.predicate, clause.subject, clause.finite
    if noun is None or finite is None or clause.negatives or not tokens[verb].tag.startswith("VB"):
        return None
    relations = {tokens[i].relation for i in children(tokens, verb)}
    helpers = children(tokens, verb, "aux", "auxpass")
    first = min([verb, *helpers])
    if (
        relations & {"xcomp", "iobj", "expl", "cop"}
        or noun > first
        or any(i > verb for i in helpers)
    ):
        return None
    passive = bool(relations & {"aux:pass", "auxpass"})
    by, head = _agent(tokens, verb) if passive else (None, _object(tokens, verb))
    if head is None:
        return None
    subject = _noun_phrase(tokens, noun)
    other = _noun_phrase(
        tokens, head, without=by, possessive=tokens[noun].pos != "PRON" and not passive
    )
    if subject is None or other is None or tokens[noun].text.lower() == "one":
        return None
    if subject[0] and tokens[subject[0] - 1].tag == "CC" and tokens[verb].relation != "conj":
        return None  # the first conjuncts are elsewhere: "A, B and C solved it"
    between = (tokens[i] for i in range(subject[1] + 1, verb) if i not in helpers)
    only_adverbs = all(token.head == verb and token.tag in ("RB", "RBR") for token in between)
    if (
        not subject[1] < first <= verb < other[0]
        or not only_adverbs
        or not _ends(tokens, head, other, by)
    ):
        return None
    return Transitive(
        clause=clause,
        subject=subject,
        other=other,
        subject_head=noun,
        other_head=head,
        by=by,
        helpers=helpers,
    )


def _ends(tokens: Sequence[Token], head: int, span: Span, by: int | None) -> bool:
    """Whether a phrase after the verb certainly ends where the parser says."""
    for i in subtree(tokens, head) - {head, by}:
        if tokens[i].relation != "case" or word_at(tokens, i) in _GENITIVES:
            continue
        if (
            by is not None
            or word_at(tokens, i) not in _PREPOSITIONS
            or tokens[tokens[i].head].tag == "CD"
        ):
            return False  # "protects the burrows from flooding", "received a prize in 1990"
    following = tokens[span[1] + 1 : span[1] + 3]
    if not following or following[0].text in (".", "!", ";"):
        return True
    after, later = following[0], following[1].tag if len(following) > 1 else ""
    if after.text == "," and later:  # no apposition, no relative clause
        return later in ("IN", "WRB", "RB", "PRP", "VBG")
    if after.tag == "CC":  # "mandated McCoy and Spock be male"
        return later[:2] in ("VB", "MD", "PR", "IN")
    # "highlighted the need for a union", "is caused by acids in the blood": the next phrase may
    # belong to the noun
    joined = _AFTER_AGENT if by is not None else _AFTER_OBJECT
    return after.tag in ("IN", "WRB", "RB") and after.text.lower() not in joined


def _object(tokens: Sequence[Token], verb: int) -> int | None:
    """Return the noun of the object, if the object follows the verb directly."""
    objects = children(tokens, verb, "obj", "dobj")
    if len(objects) != 1 or not set(range(verb + 1, objects[0])) <= subtree(tokens, objects[0]):
        return None  # a particle or an adverb between verb and object
    return objects[0]


def _agent(tokens: Sequence[Token], verb: int) -> tuple[int | None, int | None]:
    """Return "by" and its noun: `obl:agent` with a case (Universal Dependencies), or `agent` with an object (spaCy)."""
    for i in children(tokens, verb):
        if i > verb and tokens[i].relation == "obl:agent":
            by = [k for k in children(tokens, i, "case") if tokens[k].text == "by"]
            return (by[0], i) if len(by) == 1 else (None, None)
        if i > verb and tokens[i].relation == "agent" and tokens[i].text == "by":
            noun = children(tokens, i, "pobj")
            return (i, noun[0]) if len(noun) == 1 else (None, None)
    return None, None


def _noun_phrase(
    tokens: Sequence[Token], head: int, without: int | None = None, *, possessive: bool = False
) -> Span | None:
    """Return the whole noun phrase if it is one span without commas, clauses and anaphoric words."""
    noun, places = tokens[head], subtree(tokens, head) - {without}
    span, inner = as_span(places), [tokens[i] for i in places - {head}]
    nominal = noun.pos in ("NOUN", "PROPN") or (noun.pos == "PRON" and noun.tag == "PRP")
    if (
        span is None
        or span[1] - span[0] >= _MAX_TOKENS
        or not nominal
        or noun.tag in ("VBG", "JJ", "RB")
    ):
        return None
    plain = head > 0 and tokens[0].tag in ("NN", "JJ") and noun.tag == "NNS"  # "Local farmers"
    if (
        span[0] == 0
        and not plain
        and tokens[0].tag in ("NN", "JJ", "VB", "VBN", "VBG", "FW", "AFX", "GW")
    ):
        return None  # perhaps an unknown name: whether it keeps its capital would be a guess
    *words, last = (tokens[i].text.lower() for i in range(span[0], span[1] + 1))
    barred = _ANAPHORIC - word_class("possessives") if possessive else _ANAPHORIC
    if any(word in barred or word in _STOP for word in words) or last in (
        *_ANAPHORIC - {"her"},
        *_STOP,
    ):
        return None
    clauses = any(
        base_relation(t) in _WITHIN or (t.relation == "conj" and t.tag[0] == "V") for t in inner
    )
    verbal = any(
        tokens[i].tag in ("VB", "VBP", "VBZ", "VBD", "MD") or tokens[i].relation == "mark"
        for i in places
    )
    joined = word_at(tokens, span[1] + 1) in ("-", "–", "/", "'")  # it would belong to it
    return None if clauses or verbal or joined else span


def shares_subject(tokens: Sequence[Token]) -> bool:
    """Whether some verb of the sentence is coordinated and has no subject of its own ("sang and danced")."""
    if any(a.tag == "CC" and b.tag in ("VBD", "VBZ", "VBP", "MD") for a, b in pairwise(tokens)):
        return True
    verbs = [
        i
        for i, t in enumerate(tokens)
        if t.relation in ("conj", "parataxis", "dep") and t.tag.startswith("V")
    ]
    return any(not any(t.head == i and "subj" in t.relation for t in tokens) for i in verbs)


def is_plural(tokens: Sequence[Token], head: int, span: Span) -> bool | None:
    """Whether a noun phrase takes a plural verb; None if this is unclear."""
    token, phrase = tokens[head], tokens[span[0] : span[1] + 1]
    if any(t.relation == "conj" and t.head == head for t in phrase):
        return True if {t.text.lower() for t in phrase if t.relation == "cc"} == {"and"} else None
    word = token.text.lower()
    if word in _PLURAL or word in _SINGULAR:
        return word in _PLURAL
    if token.tag == "NNPS" and phrase[0].text.lower() != "the":
        return None  # "Seth Davies"
    if token.tag in ("NNS", "NNPS") or (
        re.search("(?:ch|sh|ese)$", word) and tokens[head - 1].text.lower() == "the"
    ):
        return True  # "the Dutch"
    unclear = word in word_class("either number") or re.search(
        r"[^sui]s$", word
    )  # "the Sibyls", "the Times"
    return None if unclear or token.tag not in ("NN", "NNP") else False


def agreeing(word: str, plural: bool, *, first_person: bool = False) -> str:
    """Return a form of be, have or do that agrees with a subject; other words are returned unchanged."""
    forms = _TO_FIRST_PERSON if first_person else _TO_PLURAL if plural else _TO_SINGULAR
    return forms.get(word.lower(), word)


def phrase_as(text: str, tokens: Sequence[Token], span: Span, *, subject: bool, place: Span) -> str:
    """Return a phrase as it reads in another role, in which pronouns change their case, in the place of another span.

    At the start of the sentence it gets a capital.
    """
    piece, first = text_of(text, tokens, span), tokens[span[0]]
    forms = _SUBJECT_FORM | {"her": "she"} if subject else _OBJECT_FORM
    if span[0] == span[1]:
        piece = forms.get(piece.lower(), piece)
    return recased(piece, first, was_first=span[0] == 0 and piece != "I", is_first=place[0] == 0)


def exchange(
    text: str, tokens: Sequence[Token], subject: Span, other: Span, before: str = ""
) -> list[Edit]:
    """Return the edits that exchange a subject and another phrase, the subject after a word such as "by"."""
    return [
        (*characters(tokens, subject), phrase_as(text, tokens, other, subject=True, place=subject)),
        (
            *characters(tokens, other),
            before + phrase_as(text, tokens, subject, subject=False, place=other),
        ),
    ]


def can_act(token: Token) -> bool:
    """Whether a noun is a name, a personal pronoun, or a word for persons or groups of persons from a short list."""
    word = token.text.lower()
    if token.tag == "PRP":
        return word != "it"
    return (
        token.pos == "PROPN"
        or word in ACTORS
        or (token.tag == "NNS" and word.removesuffix("s") in ACTORS)
    )


def other_voice(text: str, tokens: Sequence[Token], roles: Transitive) -> Rewrite:
    """Turn one clause of a sentence into the other voice; None if the grammar is in doubt."""
    dependents = children(tokens, roles.clause.predicate)
    words = [word_at(tokens, i) for i in range(roles.other[0], roles.other[1] + 1)]
    if "any" in words and any(word_at(tokens, i) in NOT for i in dependents):
        return None, "hanging on negation"
    joined = shares_subject(tokens) or any(
        token.tag == "TO" for token in tokens[roles.other[1] + 1 :]
    )
    if joined or any(_needs_subject(tokens, i) for i in dependents):
        return None, "shared subject"
    if any(mark in text_of(text, tokens, (roles.subject[0], roles.other[1])) for mark in "()[]"):
        return None, "brackets"
    base, plural = (
        verb_base(tokens[roles.clause.predicate]),
        is_plural(tokens, roles.other_head, roles.other),
    )
    change = _to_passive if roles.by is None else _to_active
    return change(text, tokens, roles, base, plural)


def _needs_subject(tokens: Sequence[Token], i: int) -> bool:
    """Whether a dependent of the verb shares its subject: "and left", "winning the cup", "to see it"."""
    relation = base_relation(tokens[i])
    if relation in ("advcl", "conj", "parataxis"):
        return not children(tokens, i, "nsubj", "nsubjpass")
    return relation in ("xcomp", "dep", "list", "ccomp")


def _to_passive(
    text: str, tokens: Sequence[Token], roles: Transitive, base: str, plural: bool | None
) -> Rewrite:
    """Turn an active clause into a passive one."""
    verb, subject = tokens[roles.clause.predicate], tokens[roles.subject_head]
    fixed = (
        tokens[roles.other[0]].tag == "NN" or tokens[roles.other_head].tag == "CD"
    )  # "took place", "won gold"
    unnatural = (
        "which",
        "who",
        "that",
        "this",
        *(("it", "you", "i", "we") if subject.tag == "PRP" else ()),
    )
    barred = base in word_class("no passive") or subject.text.lower() in unnatural
    if barred or plural is None or fixed or not verb.text.isalpha():
        return None, "no passive"
    first = text_of(text, tokens, roles.other).lower() == "me"
    group = _passive_group(tokens, roles, base, plural=plural, first_person=first)
    if group is None:
        return None, "verb form"
    return apply_edits(
        text, [*exchange(text, tokens, roles.subject, roles.other, "by "), *group]
    ), "active to passive"


def _passive_group(
    tokens: Sequence[Token], roles: Transitive, base: str, *, plural: bool, first_person: bool
) -> list[Edit] | None:
    """Return the edits that turn the verb group into a passive one: "has written" into "has been written"."""
    verb, helpers = tokens[roles.clause.predicate], [tokens[i] for i in roles.helpers]
    past, tag = participle(base), roles.clause.tag
    words = [helper.text.lower() for helper in helpers]
    if not words:
        if tag not in FINITE or inflect(base, tag) != verb.text.lower():
            return None
        helper = agreeing("was" if tag == "VBD" else "is", plural, first_person=first_person)
        place = tokens[roles.subject[1]].end  # before the adverbs that precede the verb
        return [(place, place, f" {helper}"), (verb.start, verb.end, past)]
    if any("'" in word or "’" in word for word in words) or (words[0] == "had" and len(words) > 1):
        return None
    new = helpers[0].text
    if words in (["do"], ["does"], ["did"]):
        new, form = "was" if words[0] == "did" else "is", ""
    elif words[-1] in ("have", "has", "had"):
        form = "been "
    elif words[-1] in ("is", "are", "was", "were") and verb.tag == "VBG":
        form = "being "
    elif helpers[-1].tag == "MD" and verb.tag in ("VB", "VBP"):
        form = "be "
    else:
        return None
    new = agreeing(new, plural, first_person=first_person)
    return [(helpers[0].start, helpers[0].end, new), (verb.start, verb.end, form + past)]


def _to_active(
    text: str, tokens: Sequence[Token], roles: Transitive, base: str, plural: bool | None
) -> Rewrite:
    """Turn a passive clause with an agent into an active one."""
    place, by = roles.clause.predicate, roles.by or 0
    verb, helper = tokens[place], tokens[roles.helpers[0]]
    past = helper.text.lower() in ("was", "were")
    if (
        plural is None
        or len(roles.helpers) != 1
        or not (past or helper.text.lower() in ("is", "are"))
    ):
        return None, "verb form"
    if any(word_at(tokens, i) in ("not", "n't") for i in range(roles.subject[1], place)):
        return None, "negative already"
    if any(tokens[i].relation in ("compound:prt", "prt") for i in children(tokens, place)):
        return None, "particle"
    agent, patient = (new for _, _, new in exchange(text, tokens, roles.subject, roles.other))
    form = inflect(base, "VBD" if past else "VBP" if plural or agent == "I" else "VBZ")
    certain = participle(base) == verb.text.lower() or is_past(verb.text)
    if not form or not certain or by < place:
        return None, "verb form"
    before = tokens[by - 1]
    edits: list[Edit] = [
        (*characters(tokens, roles.subject), agent),
        (helper.start, tokens[roles.helpers[0] + 1].start, ""),
        (verb.start, verb.end, f"{form} {patient}"),
        (before.start if before.text == "," else before.end, tokens[roles.other[1]].end, ""),
    ]
    return apply_edits(text, edits), "passive to active"
