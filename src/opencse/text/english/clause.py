"""The main clause of a sentence: its predicate, finite verb, subject and negative words; and short statements from it.

Reads both relation schemes: Universal Dependencies (a copula hangs on its predicate) and spaCy's
English models (the copula is the root). Raw text has few short statements, which show the effect of
a single word: the main clause alone is one, and so is an attribute as a predicate.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from opencse.text.english.lexicon import base_form, is_past, word_class
from opencse.text.english.parse import (
    MAX_TOKENS,
    GrammarView,
    Rewrite,
    as_span,
    base_relation,
    capitalised,
    children,
    noun_phrase,
    subtree,
    text_of,
)
from opencse.text.syntax import Token

SUBJECTS = ("nsubj", "csubj", "expl", "nsubjpass", "csubjpass")  # and their subtypes
AUXILIARIES = ("aux", "auxpass", "cop")
CLAUSES = (
    "advcl",
    "ccomp",
    "acl",
    "relcl",
    "parataxis",
    "csubj",
    "conj",
    "dep",
    "list",
    "discourse",
    "appos",
)
FINITE = ("VBZ", "VBP", "VBD")
BE = ("is", "are", "was", "were", "am", "'s", "'re", "'m", "’s", "’re", "’m")
NOT = ("not", "n't", "n’t", "nt")
NEGATIVE = word_class("negative words")
SENTENTIAL = word_class("sentence adverbs")
"""Adverbs about the whole statement: "not" goes after them ("is probably not"), and before all others."""
_SINGULAR = ("he", "she", "it", "this", "that", "one", "everyone", "everything")
_FINITE_AUXILIARIES = (
    *"do does did have has had can could will would shall should may might must ought need dare ca wo sha".split(),
    *("'ll", "'d", "'ve"),
)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A clause, by indices of tokens.

    Attributes:
        tokens: All tokens of the sentence.
        predicate: The root.
        finite: The token that carries tense: an auxiliary, a copula or the main verb; None in an
            imperative.
        tag: Fine tag of the finite verb, corrected where the tagger contradicts the form; "VB" for
            an imperative.
        auxiliary: Whether "not" can follow the finite verb directly (be, have, do, modals).
        subject: Head of the subject; None if there is no subject.
        negators: Tokens that negate the clause as a whole ("not", "n't", "never").
        negatives: Other negative words in it ("no", "nothing", "hardly", "not" within a phrase).
    """

    tokens: Sequence[Token]
    predicate: int
    finite: int | None
    tag: str
    auxiliary: bool
    subject: int | None
    negators: Sequence[int]
    negatives: Sequence[int]

    def _joins(self, i: int) -> bool:
        """Whether a dependent is a conjunct, including one of a list ("came, saw and left") with another relation."""
        tokens, token = self.tokens, self.tokens[i]
        if token.relation in ("ccomp", "parataxis", "dep"):
            listed = i > token.head and token.tag in FINITE and token.tag == tokens[token.head].tag
            return (
                listed and tokens[i - 1].text == "," and not children(tokens, i, *SUBJECTS, "mark")
            )
        return token.relation == "conj"

    def shared_verbs(self) -> list[int]:
        """Return the verbs that are coordinated with the predicate and have no subject or auxiliary of their own."""
        verbs: list[int] = []
        front = [self.predicate]
        while front := [i for h in front for i in children(self.tokens, h) if self._joins(i)]:
            for i in front:
                own = children(self.tokens, i, *SUBJECTS, *AUXILIARIES)
                if own or not self.tokens[i].tag.startswith("V"):
                    return sorted(verbs)  # the clauses from here on are independent
                verbs.append(i)
        return sorted(verbs)


def main_clause(tokens: Sequence[Token]) -> Clause | None:
    """Return the main clause: that of the first root with a finite verb or an imperative; None if there is none.

    A root with a subordinating conjunction is a subordinate clause that the parser took for the
    main one.
    """
    roots = [i for i, token in enumerate(tokens) if token.head == i and token.pos != "PUNCT"]
    roots = [
        root for root in roots if all(tokens[i].tag == "TO" for i in children(tokens, root, "mark"))
    ]
    return next((clause for root in roots if (clause := _clause(tokens, root)) is not None), None)


def clause_at(tokens: Sequence[Token], predicate: int) -> Clause | None:
    """Return the clause of a verb, main or subordinate; None if it has no finite verb.

    A verb that is coordinated with another ("he came and accepted it") has the subject of the
    first, unless it has its own.
    """
    clause, verb = _clause(tokens, predicate), tokens[predicate]
    if clause is not None and clause.subject is None and verb.relation == "conj":
        first = _clause(tokens, verb.head)
        if (
            first is not None
            and first.subject is not None
            and (clause.finite is not None or verb.tag in FINITE)
        ):
            return _clause(tokens, predicate, subject=first.subject)
    return clause


def _clause(tokens: Sequence[Token], root: int, *, subject: int | None = None) -> Clause | None:
    if subject is None:
        subjects = children(tokens, root, *SUBJECTS)
        subject = min(subjects, key=lambda i: base_relation(tokens[i]) == "expl", default=None)
    finite = next(
        (i for i in children(tokens, root, *AUXILIARIES) if is_finite_auxiliary(tokens[i])), None
    )
    negators, negatives = _negatives(tokens, root, finite)
    verb = tokens[root if finite is None else finite]
    word, tag = verb.text.lower(), verb.tag
    auxiliary = finite is not None or word in BE or (is_finite_auxiliary(verb) and tag == "MD")
    auxiliary = auxiliary or (
        bool(negators) and word in ("do", "does", "did", "have", "has", "had")
    )  # "I do not."
    if not auxiliary:
        tag = _corrected_tag(tokens, verb, subject)
        if not tag:
            return None
    if finite is None and (auxiliary or tag != "VB"):
        finite = root
    return Clause(
        tokens=tokens,
        predicate=root,
        finite=finite,
        tag=tag,
        auxiliary=auxiliary,
        subject=subject,
        negators=negators,
        negatives=negatives,
    )


def is_finite_auxiliary(token: Token) -> bool:
    """Whether a token is a finite form of be, have, do, or a modal."""
    text = token.text.lower().replace("’", "'")
    barred = (
        ("VBN", "VBG", "TO", "POS") if text == "do" else ("VB", "VBN", "VBG", "TO", "POS")
    )  # "Do not open" has VB
    return text in (*BE, *_FINITE_AUXILIARIES) and token.tag not in barred


def _negatives(
    tokens: Sequence[Token], root: int, finite: int | None
) -> tuple[list[int], list[int]]:
    """Return the words that negate the clause as a whole, and the negative words deeper in it, without subclauses."""
    heads = subtree(tokens, root, closed=CLAUSES)
    negatives = [
        i
        for i, t in enumerate(tokens)
        if t.text.lower() in NEGATIVE and t.head in heads and i != root
    ]

    def is_whole(token: Token) -> bool:
        direct = token.head in (root, finite) or base_relation(tokens[token.head]) in AUXILIARIES
        return token.text.lower() in (*NOT, "never") and direct and token.relation != "cc:preconj"

    return [i for i in negatives if is_whole(tokens[i])], [
        i for i in negatives if not is_whole(tokens[i])
    ]


def _corrected_tag(tokens: Sequence[Token], verb: Token, subject: int | None) -> str:
    """Return the fine tag of a main verb without auxiliary, corrected by its form; "" if it cannot be finite."""
    form = verb.text.lower()
    if not form.isalpha() or not verb.tag.startswith("VB"):
        return ""
    if subject is None:
        return "VB" if verb.tag in ("VB", "VBP") else ""
    if verb.tag == "VBZ":
        return "VBZ" if form.endswith("s") else ""
    if verb.tag in ("VBD", "VBN"):
        finite = verb.tag == "VBD" or not any(
            t.end <= verb.start and is_finite_auxiliary(t) for t in tokens
        )
        return (
            "VBD" if finite and is_past(form) else ""
        )  # "was the last game released": a participle
    same = is_past(form) and base_form(form, "VBD", form) == form  # put, set, cut
    if is_past(form) and not same:
        return "VBD"
    single = tokens[subject].tag in ("NN", "NNP") or tokens[subject].text.lower() in _SINGULAR
    if single and not children(tokens, subject, "conj"):  # "Tom and Ann"
        return "VBD" if same else ""
    return "VBP" if verb.tag in ("VB", "VBP") else ""


_CUT = ("advcl", "parataxis", "acl", "relcl", "appos", "discourse", "dep", "list", "vocative")
_LOOSE = (";", ":", "-", "–", "—", '"', "“", "”", "(", ")", ".", "!", "?")
_KEPT = frozenset("the this that these those his her its their our my your".split())
_MAX_OF = 4  # tokens of "of the lake" that are kept


class MainClause(GrammarView):
    """Cut each sentence to its main clause, without its subordinate clauses, appositions and brackets.

    Null if nothing would be cut, or if the clause has fewer than three or more than fourteen
    tokens.

    Example:
        [build.clause]
        kind = "main_clause"

        >>> MainClause().preview("The shop opened early because people waited.")
        ['The shop opened early.']
    """

    kind = "main_clause"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Cut one sentence."""
        if len(tokens) > MAX_TOKENS:
            return None, "too long"
        clause = main_clause(tokens)
        if clause is None or clause.subject is None or clause.finite is None:
            return None, "no finite verb"
        places = _kept_tokens(clause)
        if not {clause.subject, clause.finite, clause.predicate} <= set(places):
            return None, "broken"
        if not 3 <= len(places) <= 14:
            return None, "too short" if len(places) < 3 else "too long"
        glued = {i for i in places if i - 1 in places and tokens[i - 1].end == tokens[i].start}
        cut = "".join(
            tokens[i].text if i in glued else f" {tokens[i].text}" for i in places
        ).lstrip()
        same = cut.rstrip(".").lower() == text.strip().rstrip(".").lower()
        return (None, "nothing to cut") if same else (f"{capitalised(cut)}.", "cut")


def _kept_tokens(clause: Clause) -> list[int]:
    """Return the tokens of the clause itself, without loose punctuation and loose conjunctions."""
    tokens = clause.tokens
    places = subtree(tokens, clause.predicate)
    for i in sorted(places - {clause.predicate}):
        other_clause = base_relation(tokens[i]) == "conj" and tokens[i].head == clause.predicate
        if base_relation(tokens[i]) in _CUT or "relcl" in tokens[i].relation or other_clause:
            places -= subtree(tokens, i)
    joined = {tokens[i].head for i in places if tokens[i].relation == "conj"}
    # "cc" depends on the next conjunct (Universal Dependencies) or on the previous one (spaCy's own
    # models)
    loose = {i for i in places if tokens[i].relation == "cc" and tokens[i].head not in joined}
    places -= {i for i in loose if tokens[tokens[i].head].relation != "conj"}
    places = {i for i in places if tokens[i].text not in _LOOSE}
    return [
        i for i in sorted(places) if tokens[i].text != "," or {i - 1, i + 1} <= places
    ]  # no comma at a cut


def attribute_clause(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a sentence that states an attribute of a noun: "the dirty water" becomes "The water is dirty.".

    The statement has the tense of the sentence. None if the word, in lower case, is not the
    attribute of a common noun.
    """
    for i, token in enumerate(tokens):
        if token.tag == "JJ" and token.relation == "amod" and token.text.lower() == word:
            subject = _subject(text, tokens, i)
            if subject is not None:
                past = any(t.tag == "VBD" for t in tokens)
                plural = tokens[token.head].tag == "NNS"
                verb = ("were" if plural else "was") if past else "are" if plural else "is"
                return f"{capitalised(subject)} {verb} {word}."
    return None


def _subject(text: str, tokens: Sequence[Token], i: int) -> str | None:
    """Return the noun phrase around an adjective, without it and with a definite article."""
    head = tokens[i].head
    phrase = noun_phrase(tokens, head) if head > i and tokens[head].tag in ("NN", "NNS") else None
    if phrase is None or not phrase[0] <= i < phrase[1] or any(t.head == i for t in tokens):
        return None
    words = [tokens[k].text for k in range(phrase[0], phrase[1] + 1) if k != i]
    article = "the"
    if tokens[phrase[0]].tag in ("DT", "PRP$"):
        word = words.pop(0).lower()
        if word not in (*_KEPT, "a", "an"):
            return None  # "no", "every", "any" name no particular thing
        article = word if word in _KEPT else "the"
    if not all(word.isalpha() for word in words):
        return None
    for k in children(tokens, head, "nmod"):  # "of the lake"
        span = as_span(subtree(tokens, k)) if k > head else None
        if (
            span
            and span[0] == head + 1
            and span[1] - span[0] < _MAX_OF
            and tokens[span[0]].text == "of"
        ):
            words.append(text_of(text, tokens, span))
            break
    return " ".join([article, *words])
