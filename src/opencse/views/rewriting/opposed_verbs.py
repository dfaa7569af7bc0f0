"""Verbs that can be replaced by their opposite, and the objects and complements with which they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opencse.syntax.tokens import Token
from opencse.syntax.verbs import base_form, inflect

VERB_TAGS = ("VB", "VBZ", "VBP", "VBD", "VBN", "VBG")
_WITH_OBJECT = frozenset(  # or in the passive
    """join enter support oppose build attack defend raise cause prevent lower like love hate include exclude
    import export hire fire kill create buy sell push pull approve ban establish ignore fill empty help assist
    hinder extend climb avoid seek enjoy mix combine collect distribute connect attach detach lock load
    free complete obtain gain regain possess lack celebrate cool heat employ""".split()
)
_ACTIVE_WITH_OBJECT = frozenset("feed acquire doubt believe marry divorce win".split())
_WITHOUT_OBJECT = frozenset(
    """decline drop plunge surge soar plummet escalate gather scatter flourish thrive arrive depart advance retreat
    vanish stop survive start begin end open""".split()
)
_WITHOUT_OBLIQUE = frozenset("divide expose provide remove insert withhold fall rise drop double connect help".split())
_FINITE = frozenset("start begin stop".split())
_EXAMS = frozenset("exam examination test audition inspection course".split())
_RIDES = frozenset("train bus flight plane boat ferry ball".split())
_CONTESTS = frozenset(
    """match game election battle war race title championship final case seat cup lawsuit fight trial argument
    vote debate""".split()
)
_OBJECTS = {"pass": _EXAMS, "miss": _RIDES, "catch": _RIDES, "lose": _CONTESTS}
_TOO_MANY_SENSES = frozenset("succeed appear grow narrow".split())
_SAYING = frozenset("deny confirm remember forget admit reveal agree acknowledge affirm".split())  # that …
_ONLY_WITH_INFINITIVE = {"fail": "manage", "manage": "fail", "refuse": "agree"}
_WITH_INFINITIVE = _ONLY_WITH_INFINITIVE | {"agree": "refuse"}
_ALSO_WITH_INFINITIVE = frozenset("allow forbid permit encourage".split())


def opposed_verb(tokens: Sequence[Token], i: int, opposite_of: Callable[[str], str | None]) -> str | None:
    """Return the opposite of a verb in the same inflection; None if it does not fit the objects and complements.

    Args:
        tokens: The sentence.
        i: Index of the verb.
        opposite_of: Returns the base of the opposite for the base of a verb, or None.
    """
    verb = tokens[i]
    if verb.relation in ("amod", "aux", "cop"):
        return None
    base = verb.lemma.lower() if verb.tag == "VBG" else base_form(verb.text, verb.tag, verb.lemma)
    children = [k for k, token in enumerate(tokens) if token.head == i and k != i]
    relations = {tokens[k].relation for k in children}
    clauses = [k for k in children if tokens[k].relation in ("xcomp", "ccomp")]
    infinitive = any(token.tag == "TO" and token.head in clauses for token in tokens)
    new = opposite_of(base)
    if infinitive:
        new = _WITH_INFINITIVE.get(base) or (new if base in _ALSO_WITH_INFINITIVE else None)
    elif base in _ONLY_WITH_INFINITIVE or (clauses and base not in _SAYING):
        new = None
    particle = relations & {"compound:prt", "prt"}
    if new is None or particle or base in _TOO_MANY_SENSES or inflect(base, verb.tag) != verb.text.lower():
        return None
    fits = _fits(tokens, i, base, children)
    return inflect(new, verb.tag) if fits else None


def _fits(tokens: Sequence[Token], i: int, base: str, children: Sequence[int]) -> bool:
    """Whether the verb at index i has the objects with which its opposite is one."""
    verb, relations = tokens[i], {tokens[k].relation for k in children}
    passive = bool(relations & {"nsubj:pass", "nsubjpass", "aux:pass"})
    has_object = bool(relations & {"obj", "dobj"})
    oblique = any(relation.split(":")[0] == "obl" for relation in relations)
    objects = {tokens[k].lemma.lower() for k in children if tokens[k].relation in ("obj", "dobj", "nsubj:pass")}
    following = tokens[i + 1].text.lower() if i + 1 < len(tokens) else ""
    words = {token.text for token in tokens}
    return (
        (base not in _WITH_OBJECT or has_object or passive)
        and (base not in _ACTIVE_WITH_OBJECT or has_object)
        and (base not in _WITHOUT_OBJECT or not has_object)
        and (base not in _WITHOUT_OBLIQUE or not oblique)
        and (base not in _OBJECTS or bool(objects & _OBJECTS[base]))
        and (base not in _FINITE or verb.tag in ("VBD", "VBZ", "VBP"))
        and {
            "admit": not passive,
            "agree": "with" in words or any(tokens[k].relation == "xcomp" for k in children),
            "close": not has_object or passive,
            "end": oblique,
            "enter": following != "into",
            "follow": passive,
            "found": verb.text.lower() == "founded",
            "include": verb.relation != "case" and verb.tag != "VBG",
            "raise": "nsubj" in relations and has_object and "his" not in {tokens[k].text for k in children},
        }.get(base, True)
    )
