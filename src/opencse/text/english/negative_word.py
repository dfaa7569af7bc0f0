"""Contradictions by a negative word other than "not": "no nurse", "nobody", "never", "no longer", "failed to"."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.clause import BE, FINITE, NEGATIVE, Clause, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import word_class
from opencse.text.english.verbs import base_form, inflect
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits, match_case

EditsAndRule = tuple[list[Edit], str]
"""The edits of one possible change, and the name of its rule."""

_QUANTIFIERS = ("every", "each", "all", "some")
_PRONOUNS = {
    "everyone": "no one",
    "someone": "no one",
    "everybody": "nobody",
    "somebody": "nobody",
    "everything": "nothing",
    "something": "nothing",
}
_ADVERBS = {
    "always": "never",
    "sometimes": "never",
    "regularly": "never",
    "often": "rarely",
    "usually": "rarely",
    "frequently": "rarely",
    "still": "no longer",
}
_OPPOSITE = {
    "nobody": "somebody",
    "nothing": "something",
    "nowhere": "somewhere",
    "never": "always",
    "rarely": "often",
    "seldom": "often",
    "without": "with",
    "no": "some",
}
_DO = ("do", "does", "did")
# "no many books", "no only small ones"
_NEVER_AFTER_NO = frozenset("many much several few fewer various numerous countless certain multiple most".split())
# States, and what happens to the subject: "failed to own" is no contradiction of "owned".
_STATES = word_class("states")


@dataclass(frozen=True, kw_only=True)
class NegativeWord(GrammarView):
    """Contradict a sentence by a negative word other than "not", or by undoing such a word.

    The rules: "no" or "none of" with the subject, "nobody", "never", "rarely", "no longer", "failed to", "no" with the
    object; with a negative word in the sentence, its opposite ("always" for "never"). Null if none of them fits.

    Example:
        [build.negative_word]
        kind = "negative_word"
    """

    kind: ClassVar[str] = "negative_word"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Apply one of the possible edits, drawn at random."""
        found = possible_edits(text, tokens)
        if not found:
            return None, "no place for it"
        edits, rule = rng.choice(found)
        return apply_edits(text, edits), rule


def possible_edits(text: str, tokens: Sequence[Token]) -> list[EditsAndRule]:
    """Return every change of a sentence that contradicts it by a negative word.

    Args:
        text: The sentence.
        tokens: Its tokens.
    """
    negative = [i for i, token in enumerate(tokens) if token.text.lower() in NEGATIVE]
    if negative:
        return list(_undo(tokens, negative[0])) if len(negative) == 1 else []
    clause = main_clause(tokens)
    question = text.rstrip(" \"'”’)").endswith("?")
    if clause is None or clause.finite is None or clause.subject is None or question or clause.subject > clause.finite:
        return []
    subject = list(_subject(clause))  # "every nurse never …" would be ambiguous
    return subject or [*_adverb(clause), *_verb(clause), *_object(clause)]


def _undo(tokens: Sequence[Token], place: int) -> Iterator[EditsAndRule]:
    """Replace a negative word by its opposite."""
    word = tokens[place]
    joined = place + 1 < len(tokens) and tokens[place + 1].start == word.end and tokens[place + 1].text == "-"
    new = None if joined else _OPPOSITE.get(word.text.lower())  # "never-ending" has no opposite of this form
    following = tokens[place + 1].text.lower() if place + 1 < len(tokens) else ""
    if word.text.lower() == "no" and following in ("longer", "one", "more", "doubt", "matter", "."):
        if following == "longer":
            yield [(word.start, tokens[place + 1].end, match_case("still", word.text))], "still"
        elif following == "one":
            yield [(word.start, tokens[place + 1].end, match_case("someone", word.text))], "someone"
        return
    if new is not None and (new != "some" or word.relation == "det"):
        yield [(word.start, word.end, match_case(new, word.text))], new


def _subject(clause: Clause) -> Iterator[EditsAndRule]:
    """Negate the subject: "no nurse", "none of the nurses", "nobody"."""
    assert clause.subject is not None
    tokens, subject = clause.tokens, clause.subject
    word = tokens[subject].text
    if word.lower() in _PRONOUNS:
        new = _PRONOUNS[word.lower()]
        yield [(tokens[subject].start, tokens[subject].end, match_case(new, word))], new
    for i in clause.children(subject):
        quantifier = tokens[i].text.lower()
        if i > subject or quantifier not in _QUANTIFIERS:
            continue
        following = tokens[i + 1].text.lower()
        if following == "of":
            yield [(tokens[i].start, tokens[i].end, match_case("none", tokens[i].text))], "none of"
        elif quantifier == "all" and tokens[i + 1].tag in ("DT", "PRP$"):
            yield [(tokens[i].start, tokens[i].end, match_case("none of", tokens[i].text))], "none of"
        elif not following[0].isdigit():
            yield [(tokens[i].start, tokens[i].end, match_case("no", tokens[i].text))], "no"


def _adverb(clause: Clause) -> Iterator[EditsAndRule]:
    """Replace an adverb of frequency: "never" for "always"."""
    for token in clause.tokens:
        new = _ADVERBS.get(token.text.lower())
        if new is not None and token.head in (clause.predicate, clause.finite):
            yield [(token.start, token.end, match_case(new, token.text))], new


def _verb(clause: Clause) -> Iterator[EditsAndRule]:
    """Put "never", "no longer" or "fail to" before the verb, or after its auxiliary."""
    assert clause.finite is not None
    tokens, finite = clause.tokens, clause.tokens[clause.finite]
    form = finite.text.lower()
    if any(tokens[i].text.lower() in _ADVERBS for i in clause.children(clause.predicate)) or form in _DO:
        return
    present = clause.tag in ("VBZ", "VBP")
    if clause.auxiliary:
        if not form[0].isalpha():  # "'s"
            return
        yield [(finite.end, finite.end, " never")], "never"
        if form in BE and not clause.has(clause.predicate, ("aux",)):
            yield [(finite.end, finite.end, " no longer")], "no longer"
        return
    if clause.tag not in FINITE or not finite.text.islower():
        return
    yield [(finite.start, finite.start, "never ")], "never"
    if present:
        yield [(finite.start, finite.start, "no longer ")], "no longer"
    base = base_form(form, clause.tag, finite.lemma)
    known = inflect(base, clause.tag) == form and base not in ("have", "be")
    if known and base not in _STATES and not clause.shared_verbs():
        yield [(finite.start, finite.end, f"{inflect('fail', clause.tag)} to {base}")], "fail to"


def _object(clause: Clause) -> Iterator[EditsAndRule]:
    """Put "no" before the object: "has no car"."""
    tokens = clause.tokens
    for i in clause.children(clause.predicate):
        if tokens[i].relation not in ("obj", "dobj") or i < clause.predicate or tokens[i].tag not in ("NN", "NNS"):
            continue
        before = [k for k in clause.children(i) if k < i]
        determiners = [k for k in before if tokens[k].tag in ("DT", "PRP$", "CD", "WDT") or tokens[k].pos == "NUM"]
        owners = [k for k in before if tokens[k].relation.startswith(("nmod", "poss"))]
        counted = any(tokens[k].relation == "advmod" or tokens[k].text.lower() in _NEVER_AFTER_NO for k in before)
        if not determiners and not owners and not counted and tokens[i].tag == "NNS":
            first = min([i, *before])
            yield [(tokens[first].start, tokens[first].start, "no ")], "no"
        elif len(determiners) == 1 and tokens[determiners[0]].text.lower() in ("a", "an", "some"):
            article = tokens[determiners[0]]
            yield [(article.start, article.end, "no")], "no"
