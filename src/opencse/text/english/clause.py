"""The main clause of a sentence: its predicate, verb, subject and negative words.

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

# Relations of subjects; they may have subtypes.
SUBJECTS = ("nsubj", "csubj", "expl", "nsubjpass", "csubjpass")
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
"""Adverbs about the statement: "not" goes after them ("is probably not"), and before all others."""
_SINGULAR = ("he", "she", "it", "this", "that", "one", "everyone", "everything")
_FINITE_AUXILIARIES = (
    "do does did have has had can could will would shall should may might must ought need dare ca "
    "wo sha 'll 'd 've".split()
)

_BEFORE_A_VERB = ("DT", "PRP", "PRP$", "JJ", "JJR", "CD", "NN", "NNS", "NNP", "NNPS", "POS", "RB")
_SUBORDINATORS = (
    "after",
    "although",
    "because",
    "before",
    "if",
    "though",
    "unless",
    "until",
    "when",
)


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A clause, by indices of tokens.

    Attributes:
        tokens: All tokens of the sentence.
        predicate: The root.
        finite: The token that carries tense: an auxiliary, a copula or the main verb; None in an
            imperative.
        tag: Fine tag of the finite verb, corrected if the tagger contradicts the form; "VB" for an
            imperative.
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
        """Return whether a dependent is a conjunct.

        In a list ("came, saw and left") it may have another relation.
        """
        tokens = self.tokens
        token = tokens[i]
        if token.relation in ("ccomp", "parataxis", "dep"):
            listed = i > token.head and token.tag in FINITE and token.tag == tokens[token.head].tag
            if not listed or tokens[i - 1].text != ",":
                return False
            return not children(tokens, i, *SUBJECTS, "mark")
        return token.relation == "conj"

    def shared_verbs(self) -> list[int]:
        """Return the verbs joined to the predicate, without their own subject or auxiliary."""
        verbs: list[int] = []
        front = [self.predicate]
        while front:
            joined = []
            for head in front:
                joined += [i for i in children(self.tokens, head) if self._joins(i)]
            for i in joined:
                own = children(self.tokens, i, *SUBJECTS, *AUXILIARIES)
                if own or not self.tokens[i].tag.startswith("V"):
                    # The clauses from here on are independent.
                    return sorted(verbs)
                verbs.append(i)
            front = joined
        return sorted(verbs)


def main_clause(tokens: Sequence[Token]) -> Clause | None:
    """Return the clause of the first root with a finite verb or an imperative, if there is one.

    A root with a subordinating conjunction is a subordinate clause that the parser took for the
    main one.
    """
    for root, token in enumerate(tokens):
        if token.head != root or token.pos == "PUNCT":
            continue
        # A conjunction other than "to" makes it a subordinate clause.
        if any(tokens[i].tag != "TO" for i in children(tokens, root, "mark")):
            continue
        clause = _clause(tokens, root)
        if clause is not None and not _follows_subordinator(clause):
            return clause
    return None


def _follows_subordinator(clause: Clause) -> bool:
    """Whether a conjunction stands right before the noun and the verb, inside of the sentence.

    In "Number of backups to keep before old ones are removed" the parser takes "are removed" for
    the main clause, and "before" for a preposition.
    """
    if clause.subject is None or clause.finite is None or clause.subject > clause.finite:
        return False
    # Not from the subject, which the parser may find far before the conjunction.
    tokens = clause.tokens
    first = clause.finite
    while first > 0 and tokens[first - 1].tag in _BEFORE_A_VERB:
        first -= 1
    before = first - 1
    if before < 1:
        return False
    conjunction = tokens[before].text.lower()
    return conjunction in _SUBORDINATORS and tokens[before].tag in ("IN", "WRB")


def clause_at(tokens: Sequence[Token], predicate: int) -> Clause | None:
    """Return the clause of a verb, main or subordinate; None if it has no finite verb.

    A verb that is coordinated with another ("he came and accepted it") has the subject of the
    first, unless it has its own.
    """
    clause = _clause(tokens, predicate)
    verb = tokens[predicate]
    if clause is not None and clause.subject is None and verb.relation == "conj":
        first = _clause(tokens, verb.head)
        finite = clause.finite is not None or verb.tag in FINITE
        if first is not None and first.subject is not None and finite:
            return _clause(tokens, predicate, subject=first.subject)
    return clause


def _clause(tokens: Sequence[Token], root: int, *, subject: int | None = None) -> Clause | None:
    if subject is None:
        subjects = children(tokens, root, *SUBJECTS)
        # In "there are three cats", the cats are the subject, not "there".
        subject = min(subjects, key=lambda i: base_relation(tokens[i]) == "expl", default=None)
    auxiliaries = children(tokens, root, *AUXILIARIES)
    finite = next((i for i in auxiliaries if is_finite_auxiliary(tokens[i])), None)
    negators, negatives = _negatives(tokens, root, finite)
    verb = tokens[root] if finite is None else tokens[finite]
    word = verb.text.lower()
    tag = verb.tag
    auxiliary = finite is not None or word in BE or (is_finite_auxiliary(verb) and tag == "MD")
    if negators and word in ("do", "does", "did", "have", "has", "had"):
        # "I do not."
        auxiliary = True
    if not auxiliary:
        tag = _corrected_tag(tokens, verb, subject)
        if not tag:
            return None
    # An imperative ("Open it.") has no finite verb.
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
    """Return whether a token is a finite form of be, have, do, or a modal."""
    text = token.text.lower().replace("’", "'")
    if text not in BE and text not in _FINITE_AUXILIARIES:
        return False
    if token.tag == "VB":
        # "Do not open"
        return text == "do"
    return token.tag not in ("VBN", "VBG", "TO", "POS")


def _negatives(
    tokens: Sequence[Token], root: int, finite: int | None
) -> tuple[list[int], list[int]]:
    """Return the words that negate the clause itself, and other negative words in it."""
    heads = subtree(tokens, root, closed=CLAUSES)
    negators = []
    negatives = []
    for i, token in enumerate(tokens):
        word = token.text.lower()
        if word not in NEGATIVE or token.head not in heads or i == root:
            continue
        # "cannot have slept": the negator may depend on any auxiliary of the verb.
        direct = token.head in (root, finite) or base_relation(tokens[token.head]) in AUXILIARIES
        # "not only … but": the parser calls this one a part of the conjunction.
        negates = word in (*NOT, "never") and token.relation != "cc:preconj"
        if negates and direct:
            negators.append(i)
        else:
            negatives.append(i)
    return negators, negatives


def _corrected_tag(tokens: Sequence[Token], verb: Token, subject: int | None) -> str:
    """Return the tag of a main verb without auxiliary, corrected by its form; "" if not finite."""
    form = verb.text.lower()
    if not form.isalpha() or not verb.tag.startswith("VB"):
        return ""
    if subject is None and verb.tag in ("VB", "VBP"):
        # An imperative, which the parser often tags as present tense.
        return "VB"
    if subject is None:
        return ""
    if verb.tag == "VBZ":
        # The parser tags some past forms as present.
        return "VBZ" if form.endswith("s") else ""
    if verb.tag in ("VBD", "VBN"):
        # "was the last game released": a participle.
        after_auxiliary = any(t.end <= verb.start and is_finite_auxiliary(t) for t in tokens)
        finite = verb.tag == "VBD" or not after_auxiliary
        return "VBD" if finite and is_past(form) else ""
    # put, set, cut
    same = is_past(form) and base_form(form, "VBD", form) == form
    if is_past(form) and not same:
        return "VBD"
    single = tokens[subject].tag in ("NN", "NNP") or tokens[subject].text.lower() in _SINGULAR
    # "Tom and Ann" is plural.
    if single and not children(tokens, subject, "conj"):
        return "VBD" if same else ""
    return "VBP" if verb.tag in ("VB", "VBP") else ""


_CUT = ("advcl", "parataxis", "acl", "relcl", "appos", "discourse", "dep", "list", "vocative")
_LOOSE = (";", ":", "-", "–", "—", '"', "“", "”", "(", ")", ".", "!", "?")
_KEPT = frozenset("the this that these those his her its their our my your".split())
# Tokens of "of the lake" that are kept, at most.
_MAX_OF = 4


class MainClause(GrammarView):
    """Cut each sentence to its main clause, without subordinate clauses and brackets.

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
        # The parser may hang the subject below something that was cut.
        if not {clause.subject, clause.finite, clause.predicate} <= set(places):
            return None, "broken"
        if len(places) < 3:
            return None, "too short"
        if len(places) > 14:
            return None, "too long"
        cut = ""
        for i in places:
            # "don't" is two tokens without a space between them.
            glued = i - 1 in places and tokens[i - 1].end == tokens[i].start
            if not glued:
                cut += " "
            cut += tokens[i].text
        cut = cut.lstrip()
        if cut.rstrip(".").lower() == text.strip().rstrip(".").lower():
            return None, "nothing to cut"
        return f"{capitalised(cut)}.", "cut"


def _kept_tokens(clause: Clause) -> list[int]:
    """Return the tokens of the clause itself, without loose punctuation and loose conjunctions."""
    tokens = clause.tokens
    places = subtree(tokens, clause.predicate)
    for i in sorted(places - {clause.predicate}):
        other_clause = base_relation(tokens[i]) == "conj" and tokens[i].head == clause.predicate
        if base_relation(tokens[i]) in _CUT or "relcl" in tokens[i].relation or other_clause:
            places -= subtree(tokens, i)
    joined = {tokens[i].head for i in places if tokens[i].relation == "conj"}
    # "cc" depends on the next conjunct (Universal Dependencies) or on the previous one (spaCy).
    loose = {i for i in places if tokens[i].relation == "cc" and tokens[i].head not in joined}
    places -= {i for i in loose if tokens[tokens[i].head].relation != "conj"}
    places = {i for i in places if tokens[i].text not in _LOOSE}
    # A comma at a cut goes, too.
    return [i for i in sorted(places) if tokens[i].text != "," or {i - 1, i + 1} <= places]


def attribute_clause(text: str, tokens: Sequence[Token], word: str) -> str | None:
    """Return a sentence that states an attribute: "The water is dirty." for "the dirty water".

    The statement has the tense of the sentence. None if the word, in lower case, is not the
    attribute of a common noun.
    """
    for i, token in enumerate(tokens):
        if token.tag == "JJ" and token.relation == "amod" and token.text.lower() == word:
            subject = _subject(text, tokens, i)
            if subject is not None:
                past = any(t.tag == "VBD" for t in tokens)
                plural = tokens[token.head].tag == "NNS"
                verb = _form_of_be(plural=plural, past=past)
                return f"{capitalised(subject)} {verb} {word}."
    return None


def _form_of_be(*, plural: bool, past: bool) -> str:
    """Return a third-person form of be."""
    if past:
        return "were" if plural else "was"
    return "are" if plural else "is"


def _subject(text: str, tokens: Sequence[Token], i: int) -> str | None:
    """Return the noun phrase around an adjective, without it and with a definite article."""
    head = tokens[i].head
    if head < i or tokens[head].tag not in ("NN", "NNS"):
        return None
    phrase = noun_phrase(tokens, head)
    if phrase is None or not phrase[0] <= i < phrase[1] or any(t.head == i for t in tokens):
        return None
    words = [tokens[k].text for k in range(phrase[0], phrase[1] + 1) if k != i]
    article = "the"
    if tokens[phrase[0]].tag in ("DT", "PRP$"):
        word = words.pop(0).lower()
        if word not in (*_KEPT, "a", "an"):
            # "no", "every", "any" name no particular thing.
            return None
        if word in _KEPT:
            article = word
    if not all(word.isalpha() for word in words):
        return None
    for k in children(tokens, head, "nmod"):
        # "of the lake"
        if k < head:
            continue
        span = as_span(subtree(tokens, k))
        if span is None or span[0] != head + 1 or tokens[span[0]].text != "of":
            continue
        if span[1] - span[0] < _MAX_OF:
            words.append(text_of(text, tokens, span))
            break
    return " ".join([article, *words])
