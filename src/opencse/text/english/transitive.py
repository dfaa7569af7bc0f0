"""Transitive clauses: subject, verb and object, their roles exchanged, the other voice."""

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
# Tokens of a phrase, at most.
_MAX_TOKENS = 14
# Words that refer back to something: in another place they would refer to something else.
_ANAPHORIC = word_class("anaphoric")
# After an object, these may begin a part of the object ("the need for a union"); after an agent, more
# of them may.
_AFTER_OBJECT = ("that", "for", "about", "between", "against", "over", "of")
_AFTER_AGENT = (*_AFTER_OBJECT, "in", "with", "from", "on", "to")
# These never begin a phrase that belongs to the verb.
_GENITIVES = ("of", "'s", "’s", "'", "’")
_PREPOSITIONS = frozenset("in on for with between against at about over".split())
# Relations of verbs that have a clause of their own next to the main one.
_OTHER_CLAUSES = ("ccomp", "advcl", "conj", "parataxis")
# Relations of clauses and appositions within a noun phrase, which is then too long to be moved.
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
# Auxiliaries whose form depends on the subject, which changes with the voice.
_TO_PLURAL = {"is": "are", "am": "are", "was": "were", "has": "have", "does": "do"}
_TO_SINGULAR = {"are": "is", "am": "is", "were": "was", "have": "has", "do": "does"}
_TO_FIRST_PERSON = {"is": "am", "are": "am", "were": "was", "has": "have", "does": "do"}


class Passive(GrammarView):
    """Turn the main clause into the other voice: "A wrote B" and "B was written by A".

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
        subject: First and last token of the complete subject.
        other: First and last token of the complete object, or of the agent without "by".
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
        # More than one sentence, or no statement.
        return
    clauses = [main_clause(tokens)]
    for i, token in enumerate(tokens):
        if base_relation(token) in _OTHER_CLAUSES:
            clauses.append(clause_at(tokens, i))
    for clause in clauses:
        if clause is None:
            continue
        roles = _transitive(tokens, clause)
        if roles is not None:
            yield roles


def _transitive(tokens: Sequence[Token], clause: Clause) -> Transitive | None:
    """Return a clause as subject, verb and object; None if the grammar is in any doubt."""
    verb = clause.predicate
    noun = clause.subject
    finite = clause.finite
    if noun is None or finite is None or clause.negatives or not tokens[verb].tag.startswith("VB"):
        return None
    relations = {tokens[i].relation for i in children(tokens, verb)}
    helpers = children(tokens, verb, "aux", "auxpass")
    first = min([verb, *helpers])
    # "wants to go", "gave him a book", "there is", "is a king": more than one object, or none.
    if relations & {"xcomp", "iobj", "expl", "cop"}:
        return None
    # "Never has he seen it": the order is not that of a statement.
    if noun > first or any(i > verb for i in helpers):
        return None
    # Universal Dependencies and spaCy name the auxiliary of the passive differently.
    passive = bool(relations & {"aux:pass", "auxpass"})
    if passive:
        by, head = _agent(tokens, verb)
    else:
        by = None
        head = _object(tokens, verb)
    if head is None:
        return None
    # "Tom lost his key" may become "His key was lost by Tom", but who is "his" in "He lost his key"?
    possessive = tokens[noun].pos != "PRON" and not passive
    subject = _complete_phrase(tokens, noun)
    other = _complete_phrase(tokens, head, without=by, possessive=possessive)
    if subject is None or other is None or tokens[noun].text.lower() == "one":
        return None
    if subject[0] and tokens[subject[0] - 1].tag == "CC" and tokens[verb].relation != "conj":
        # The first conjuncts are elsewhere: "A, B and C solved it".
        return None
    # Adverbs stay where they are, so nothing else may stand between subject and verb.
    between = [tokens[i] for i in range(subject[1] + 1, verb) if i not in helpers]
    only_adverbs = all(token.head == verb and token.tag in ("RB", "RBR") for token in between)
    in_order = subject[1] < first <= verb < other[0]
    if not in_order or not only_adverbs or not _ends(tokens, head, other, by):
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
    """Return whether a phrase after the verb certainly ends where the parser puts it."""
    for i in subtree(tokens, head) - {head, by}:
        word = word_at(tokens, i)
        if tokens[i].relation != "case" or word in _GENITIVES:
            continue
        counted = tokens[tokens[i].head].tag == "CD"
        if by is not None or word not in _PREPOSITIONS or counted:
            # "protects the burrows from flooding", "received a prize in 1990"
            return False
    following = tokens[span[1] + 1 : span[1] + 3]
    if not following or following[0].text in (".", "!", ";"):
        return True
    after = following[0]
    later = following[1].tag if len(following) > 1 else ""
    if after.text == "," and later:
        # No apposition, and no relative clause.
        return later in ("IN", "WRB", "RB", "PRP", "VBG")
    if after.tag == "CC":
        # "mandated McCoy and Spock be male"
        return later[:2] in ("VB", "MD", "PR", "IN")
    # The next phrase may belong to the noun: "highlighted the need for a union", "is caused by
    # acids in the blood".
    joined = _AFTER_AGENT if by is not None else _AFTER_OBJECT
    return after.tag in ("IN", "WRB", "RB") and after.text.lower() not in joined


def _object(tokens: Sequence[Token], verb: int) -> int | None:
    """Return the noun of the object, if the object follows the verb directly."""
    objects = children(tokens, verb, "obj", "dobj")
    if len(objects) != 1 or not set(range(verb + 1, objects[0])) <= subtree(tokens, objects[0]):
        # A particle or an adverb stands between verb and object.
        return None
    return objects[0]


def _agent(tokens: Sequence[Token], verb: int) -> tuple[int | None, int | None]:
    """Return "by" and its noun: `obl:agent` (Universal Dependencies) or `agent` (spaCy)."""
    for i in children(tokens, verb):
        if i > verb and tokens[i].relation == "obl:agent":
            by = [k for k in children(tokens, i, "case") if tokens[k].text == "by"]
            if len(by) != 1:
                return None, None
            return by[0], i
        if i > verb and tokens[i].relation == "agent" and tokens[i].text == "by":
            nouns = children(tokens, i, "pobj")
            if len(nouns) != 1:
                return None, None
            return i, nouns[0]
    return None, None


def _complete_phrase(
    tokens: Sequence[Token], head: int, without: int | None = None, *, possessive: bool = False
) -> Span | None:
    """Return the complete noun phrase if it is one span without commas, clauses and anaphors."""
    noun = tokens[head]
    places = subtree(tokens, head) - {without}
    span = as_span(places)
    if span is None or span[1] - span[0] >= _MAX_TOKENS:
        return None
    nominal = noun.pos in ("NOUN", "PROPN") or (noun.pos == "PRON" and noun.tag == "PRP")
    if not nominal or noun.tag in ("VBG", "JJ", "RB"):
        return None
    if span[0] == 0 and not _opens_clearly(tokens, head):
        return None
    words = [tokens[i].text.lower() for i in range(span[0], span[1] + 1)]
    barred = _ANAPHORIC
    if possessive:
        barred = _ANAPHORIC - word_class("possessives")
    if any(word in barred or word in _STOP for word in words[:-1]):
        return None
    # "saw her" ends in an object; "saw her dog" has the word before its end.
    if words[-1] in _ANAPHORIC - {"her"} or words[-1] in _STOP:
        return None
    for i in places:
        token = tokens[i]
        # A finite verb or a conjunction within it makes it a clause.
        if token.tag in ("VB", "VBP", "VBZ", "VBD", "MD") or token.relation == "mark":
            return None
        if i == head:
            continue
        if base_relation(token) in _WITHIN or (token.relation == "conj" and token.tag[0] == "V"):
            return None
    if word_at(tokens, span[1] + 1) in ("-", "–", "/", "'"):
        # It would belong to the phrase.
        return None
    return span


def _opens_clearly(tokens: Sequence[Token], head: int) -> bool:
    """Return whether it is certain that the first word of a sentence is no name.

    Otherwise it would be a guess whether it keeps its capital.
    """
    if head > 0 and tokens[0].tag in ("NN", "JJ") and tokens[head].tag == "NNS":
        # "Local farmers"
        return True
    return tokens[0].tag not in ("NN", "JJ", "VB", "VBN", "VBG", "FW", "AFX", "GW")


def shares_subject(tokens: Sequence[Token]) -> bool:
    """Return whether a coordinated verb has no separate subject ("sang and danced")."""
    if any(a.tag == "CC" and b.tag in ("VBD", "VBZ", "VBP", "MD") for a, b in pairwise(tokens)):
        return True
    # The parser may call the second verb a conjunct, a loose clause or nothing in particular.
    with_subject = {token.head for token in tokens if "subj" in token.relation}
    for i, token in enumerate(tokens):
        joined = token.relation in ("conj", "parataxis", "dep") and token.tag.startswith("V")
        if joined and i not in with_subject:
            return True
    return False


def is_plural(tokens: Sequence[Token], head: int, span: Span) -> bool | None:
    """Whether a noun phrase takes a plural verb; None if this is unclear."""
    token = tokens[head]
    phrase = tokens[span[0] : span[1] + 1]
    if any(t.relation == "conj" and t.head == head for t in phrase):
        conjunctions = {t.text.lower() for t in phrase if t.relation == "cc"}
        # "Tom or the girls": the verb may follow either.
        if conjunctions != {"and"}:
            return None
        return True
    word = token.text.lower()
    if word in _PLURAL or word in _SINGULAR:
        return word in _PLURAL
    if token.tag == "NNPS" and phrase[0].text.lower() != "the":
        # "Seth Davies"
        return None
    if token.tag in ("NNS", "NNPS"):
        return True
    if re.search("(?:ch|sh|ese)$", word) and tokens[head - 1].text.lower() == "the":
        # "the Dutch"
        return True
    # "the Sibyls", "the Times"
    unclear = word in word_class("either number") or re.search(r"[^sui]s$", word)
    if unclear or token.tag not in ("NN", "NNP"):
        return None
    return False


def agreeing(word: str, plural: bool, *, first_person: bool = False) -> str:
    """Return a form of be, have or do that agrees with a subject; other words stay unchanged."""
    if first_person:
        forms = _TO_FIRST_PERSON
    elif plural:
        forms = _TO_PLURAL
    else:
        forms = _TO_SINGULAR
    return forms.get(word.lower(), word)


def phrase_as(text: str, tokens: Sequence[Token], span: Span, *, subject: bool, place: Span) -> str:
    """Return a phrase as it reads in another role, in which pronouns change their case.

    It stands in the place of another span; at the start of the sentence it gets a capital.
    """
    piece = text_of(text, tokens, span)
    first = tokens[span[0]]
    forms = _OBJECT_FORM
    if subject:
        # A phrase of "her" alone is the pronoun, not the possessive.
        forms = _SUBJECT_FORM | {"her": "she"}
    if span[0] == span[1]:
        piece = forms.get(piece.lower(), piece)
    was_first = span[0] == 0 and piece != "I"
    return recased(piece, first, was_first=was_first, is_first=place[0] == 0)


def exchange(
    text: str, tokens: Sequence[Token], subject: Span, other: Span, before: str = ""
) -> list[Edit]:
    """Return the edits that exchange subject and another phrase, with a word before the subject."""
    new_subject = phrase_as(text, tokens, other, subject=True, place=subject)
    new_other = before + phrase_as(text, tokens, subject, subject=False, place=other)
    return [(*characters(tokens, subject), new_subject), (*characters(tokens, other), new_other)]


def can_act(token: Token) -> bool:
    """Return whether a noun is a name, a personal pronoun, or a listed word for persons."""
    word = token.text.lower()
    if token.tag == "PRP":
        return word != "it"
    if token.pos == "PROPN" or word in ACTORS:
        return True
    return token.tag == "NNS" and word.removesuffix("s") in ACTORS


def other_voice(text: str, tokens: Sequence[Token], roles: Transitive) -> Rewrite:
    """Turn one clause of a sentence into the other voice; None if the grammar is in doubt."""
    dependents = children(tokens, roles.clause.predicate)
    words = [word_at(tokens, i) for i in range(roles.other[0], roles.other[1] + 1)]
    # "did not see any cat" would become "any cat was not seen".
    if "any" in words and any(word_at(tokens, i) in NOT for i in dependents):
        return None, "hanging on negation"
    # "took the bus to win": whoever wins must stay the subject.
    has_to = any(token.tag == "TO" for token in tokens[roles.other[1] + 1 :])
    joined = shares_subject(tokens) or has_to
    if joined or any(_needs_subject(tokens, i) for i in dependents):
        return None, "shared subject"
    if any(mark in text_of(text, tokens, (roles.subject[0], roles.other[1])) for mark in "()[]"):
        return None, "brackets"
    base = verb_base(tokens[roles.clause.predicate])
    plural = is_plural(tokens, roles.other_head, roles.other)
    change = _to_passive if roles.by is None else _to_active
    return change(text, tokens, roles, base, plural)


def _needs_subject(tokens: Sequence[Token], i: int) -> bool:
    """Return whether a dependent shares the verb's subject: "and left", "winning it"."""
    relation = base_relation(tokens[i])
    if relation in ("advcl", "conj", "parataxis"):
        return not children(tokens, i, "nsubj", "nsubjpass")
    return relation in ("xcomp", "dep", "list", "ccomp")


def _to_passive(
    text: str, tokens: Sequence[Token], roles: Transitive, base: str, plural: bool | None
) -> Rewrite:
    """Turn an active clause into a passive one."""
    verb = tokens[roles.clause.predicate]
    subject = tokens[roles.subject_head]
    # "took place", "won gold"
    fixed = tokens[roles.other[0]].tag == "NN" or tokens[roles.other_head].tag == "CD"
    unnatural = {"which", "who", "that", "this"}
    if subject.tag == "PRP":
        unnatural |= {"it", "you", "i", "we"}
    barred = base in word_class("no passive") or subject.text.lower() in unnatural
    if barred or plural is None or fixed or not verb.text.isalpha():
        return None, "no passive"
    first = text_of(text, tokens, roles.other).lower() == "me"
    group = _passive_group(tokens, roles, base, plural=plural, first_person=first)
    if group is None:
        return None, "verb form"
    edits = [*exchange(text, tokens, roles.subject, roles.other, "by "), *group]
    return apply_edits(text, edits), "active to passive"


def _passive_group(
    tokens: Sequence[Token], roles: Transitive, base: str, *, plural: bool, first_person: bool
) -> list[Edit] | None:
    """Return the edits that make a verb group passive: "has written", "has been written"."""
    verb = tokens[roles.clause.predicate]
    helpers = [tokens[i] for i in roles.helpers]
    past = participle(base)
    tag = roles.clause.tag
    words = [helper.text.lower() for helper in helpers]
    if not words:
        if tag not in FINITE or inflect(base, tag) != verb.text.lower():
            return None
        be = "was" if tag == "VBD" else "is"
        helper = agreeing(be, plural, first_person=first_person)
        # Before the adverbs that precede the verb.
        place = tokens[roles.subject[1]].end
        return [(place, place, f" {helper}"), (verb.start, verb.end, past)]
    # "'s" may be "is" or "has", "'d" "had" or "would"; and "had been writing" has no passive in use.
    if any("'" in word or "’" in word for word in words) or (words[0] == "had" and len(words) > 1):
        return None
    new = helpers[0].text
    if words in (["do"], ["does"], ["did"]):
        # "did write" becomes "was written": the auxiliary of the passive takes its place.
        new = "was" if words[0] == "did" else "is"
        form = ""
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
    place = roles.clause.predicate
    by = roles.by or 0
    verb = tokens[place]
    helper = tokens[roles.helpers[0]]
    past = helper.text.lower() in ("was", "were")
    # Two auxiliaries ("has been written") would need the participle of the active voice.
    plain = past or helper.text.lower() in ("is", "are")
    if plural is None or len(roles.helpers) != 1 or not plain:
        return None, "verb form"
    if any(word_at(tokens, i) in ("not", "n't") for i in range(roles.subject[1], place)):
        return None, "negative already"
    if any(tokens[i].relation in ("compound:prt", "prt") for i in children(tokens, place)):
        return None, "particle"
    (_, _, agent), (_, _, patient) = exchange(text, tokens, roles.subject, roles.other)
    tag = "VBZ"
    if past:
        tag = "VBD"
    elif plural or agent == "I":
        tag = "VBP"
    form = inflect(base, tag)
    # A verb that only looks like a participle is left alone.
    certain = participle(base) == verb.text.lower() or is_past(verb.text)
    if not form or not certain or by < place:
        return None, "verb form"
    before = tokens[by - 1]
    # A comma before "by" goes with it.
    cut = before.start if before.text == "," else before.end
    edits: list[Edit] = [
        (*characters(tokens, roles.subject), agent),
        (helper.start, tokens[roles.helpers[0] + 1].start, ""),
        (verb.start, verb.end, f"{form} {patient}"),
        (cut, tokens[roles.other[1]].end, ""),
    ]
    return apply_edits(text, edits), "passive to active"
