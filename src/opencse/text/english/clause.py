"""The main clause of a sentence: its predicate, finite verb, subject, negative words and shared verbs.

Reads both relation schemes: Universal Dependencies (a copula hangs on its predicate) and spaCy's English models (the
copula is the root).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opencse.text.english.lexicon import word_class
from opencse.text.english.parse import base_relation, children, subtree
from opencse.text.english.verbs import base_form, is_past
from opencse.text.syntax import Token

SUBJECTS = ("nsubj", "csubj", "expl", "nsubjpass", "csubjpass")  # and their subtypes
AUXILIARIES = ("aux", "auxpass", "cop")
CLAUSES = ("advcl", "ccomp", "acl", "relcl", "parataxis", "csubj", "conj", "dep", "list", "discourse", "appos")
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
        finite: The token that carries tense: an auxiliary, a copula or the main verb; None in an imperative.
        tag: Fine tag of the finite verb, corrected where the tagger contradicts the form; "VB" for an imperative.
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
            return listed and tokens[i - 1].text == "," and not children(tokens, i, *SUBJECTS, "mark")
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

    A root with a subordinating conjunction is a subordinate clause that the parser took for the main one.
    """
    roots = [i for i, token in enumerate(tokens) if token.head == i and token.pos != "PUNCT"]
    roots = [root for root in roots if all(tokens[i].tag == "TO" for i in children(tokens, root, "mark"))]
    return next((clause for root in roots if (clause := _clause(tokens, root)) is not None), None)


def clause_at(tokens: Sequence[Token], predicate: int) -> Clause | None:
    """Return the clause of a verb, main or subordinate; None if it has no finite verb.

    A verb that is coordinated with another ("he came and accepted it") has the subject of the first, unless it has its
    own.
    """
    clause, verb = _clause(tokens, predicate), tokens[predicate]
    if clause is not None and clause.subject is None and verb.relation == "conj":
        first = _clause(tokens, verb.head)
        if first is not None and first.subject is not None and (clause.finite is not None or verb.tag in FINITE):
            return _clause(tokens, predicate, subject=first.subject)
    return clause


def _clause(tokens: Sequence[Token], root: int, *, subject: int | None = None) -> Clause | None:
    if subject is None:
        subjects = children(tokens, root, *SUBJECTS)
        subject = min(subjects, key=lambda i: base_relation(tokens[i]) == "expl", default=None)
    finite = next((i for i in children(tokens, root, *AUXILIARIES) if is_finite_auxiliary(tokens[i])), None)
    negators, negatives = _negatives(tokens, root, finite)
    verb = tokens[root if finite is None else finite]
    word, tag = verb.text.lower(), verb.tag
    auxiliary = finite is not None or word in BE or (is_finite_auxiliary(verb) and tag == "MD")
    auxiliary = auxiliary or (bool(negators) and word in ("do", "does", "did", "have", "has", "had"))  # "I do not."
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
    barred = ("VBN", "VBG", "TO", "POS") if text == "do" else ("VB", "VBN", "VBG", "TO", "POS")  # "Do not open" has VB
    return text in (*BE, *_FINITE_AUXILIARIES) and token.tag not in barred


def _negatives(tokens: Sequence[Token], root: int, finite: int | None) -> tuple[list[int], list[int]]:
    """Return the words that negate the clause as a whole, and the negative words deeper in it, without subclauses."""
    heads = subtree(tokens, root, closed=CLAUSES)
    found = [i for i, t in enumerate(tokens) if t.text.lower() in NEGATIVE and t.head in heads and i != root]

    def is_whole(token: Token) -> bool:
        direct = token.head in (root, finite) or base_relation(tokens[token.head]) in AUXILIARIES
        return token.text.lower() in (*NOT, "never") and direct and token.relation != "cc:preconj"

    return [i for i in found if is_whole(tokens[i])], [i for i in found if not is_whole(tokens[i])]


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
        finite = verb.tag == "VBD" or not any(t.end <= verb.start and is_finite_auxiliary(t) for t in tokens)
        return "VBD" if finite and is_past(form) else ""  # "was the last game released": a participle
    same = is_past(form) and base_form(form, "VBD", form) == form  # put, set, cut
    if is_past(form) and not same:
        return "VBD"
    single = tokens[subject].tag in ("NN", "NNP") or tokens[subject].text.lower() in _SINGULAR
    if single and not children(tokens, subject, "conj"):  # "Tom and Ann"
        return "VBD" if same else ""
    return "VBP" if verb.tag in ("VB", "VBP") else ""
