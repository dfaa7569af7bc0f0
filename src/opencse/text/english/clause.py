"""The main clause of a sentence: its predicate, finite verb, subject, negative words and shared verbs.

Reads both relation schemes: Universal Dependencies (a copula hangs on its predicate) and spaCy's English models (the
copula is the root).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opencse.text.english.lexicon import word_class
from opencse.text.english.verbs import base_form, is_past
from opencse.text.syntax.tokens import Token

SUBJECTS = ("nsubj", "csubj", "expl")  # and their subtypes
AUXILIARIES = ("aux", "aux:pass", "auxpass", "cop")
CLAUSES = ("advcl", "ccomp", "acl", "relcl", "parataxis", "csubj", "conj", "dep", "list", "discourse", "appos")
FINITE = ("VBZ", "VBP", "VBD")
BE = ("is", "are", "was", "were", "am", "'s", "'re", "'m", "’s", "’re", "’m")
SINGULAR = ("he", "she", "it", "this", "that", "one", "everyone", "everything")
NOT = ("not", "n't", "n’t", "nt")
NEGATIVE = word_class("negative words")


@dataclass(frozen=True, kw_only=True)
class Clause:
    """The main clause, by indices of tokens.

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
    negators: tuple[int, ...]
    negatives: tuple[int, ...]

    def children(self, head: int) -> Iterator[int]:
        """Yield the direct dependents of a token, left to right."""
        return (i for i, token in enumerate(self.tokens) if token.head == head and i != head)

    def has(self, head: int, relations: tuple[str, ...]) -> bool:
        """Whether a token has a dependent with one of these relations or their subtypes."""
        return any(self.tokens[i].relation.split(":")[0] in relations for i in self.children(head))

    def last_of(self, head: int) -> int:
        """Return the last token of a token's subtree."""
        last, front = head, [head]
        while front:
            front = [i for h in front for i in self.children(h)]
            last = max([last, *front])
        return last

    def _joins(self, i: int) -> bool:
        """Whether a dependent is a conjunct, including one of a list ("came, saw and left") with another relation."""
        token = self.tokens[i]
        if token.relation in ("ccomp", "parataxis", "dep"):
            same = token.tag in FINITE and token.tag == self.tokens[token.head].tag
            return same and i > token.head and self.tokens[i - 1].text == "," and not self.has(i, (*SUBJECTS, "mark"))
        return token.relation == "conj"

    def shared_verbs(self) -> list[int]:
        """Return the verbs that are coordinated with the predicate and have no subject or auxiliary of their own."""
        verbs: list[int] = []
        front = [self.predicate]
        while front:
            joined = [i for h in front for i in self.children(h) if self._joins(i)]
            for i in joined:
                if self.has(i, SUBJECTS) or any(self.tokens[j].relation in AUXILIARIES for j in self.children(i)):
                    return sorted(verbs)  # the clauses from here on are independent
                if not self.tokens[i].tag.startswith("V"):
                    return sorted(verbs)
                verbs.append(i)
            front = joined
        return sorted(verbs)


def main_clause(tokens: Sequence[Token]) -> Clause | None:
    """Return the main clause: that of the first root with a finite verb or an imperative; None if there is none."""
    for root in (i for i, token in enumerate(tokens) if token.head == i and token.pos != "PUNCT"):
        clause = _clause(tokens, root)
        if clause is not None:
            return clause
    return None


def clause_at(tokens: Sequence[Token], predicate: int) -> Clause | None:
    """Return the clause of a verb, main or subordinate; None if it has no finite verb.

    A verb that is coordinated with another ("he came and accepted it") has the subject of the first, unless it has its
    own.
    """
    clause = _clause(tokens, predicate, subordinate=True)
    if clause is not None and clause.subject is None and tokens[predicate].relation == "conj":
        first = _clause(tokens, tokens[predicate].head, subordinate=True)
        own = clause.finite is not None or tokens[predicate].tag in FINITE
        if first is not None and first.subject is not None and own:
            return _clause(tokens, predicate, subordinate=True, subject=first.subject)
    return clause


def _clause(
    tokens: Sequence[Token], root: int, *, subordinate: bool = False, subject: int | None = None
) -> Clause | None:
    marked = any(token.head == root and token.relation == "mark" and token.tag != "TO" for token in tokens)
    if marked and not subordinate:
        return None  # the parser took a subordinate clause for the main one
    bare = Clause(
        tokens=tokens, predicate=root, finite=None, tag="", auxiliary=False, subject=None, negators=(), negatives=()
    )
    children = list(bare.children(root))
    subjects = [i for i in children if tokens[i].relation.split(":")[0] in (*SUBJECTS, "nsubjpass", "csubjpass")]
    if subject is None:
        subject = next((i for i in subjects if not tokens[i].relation.startswith("expl")), next(iter(subjects), None))
    finite = next((i for i in children if tokens[i].relation in AUXILIARIES and is_finite_auxiliary(tokens[i])), None)
    negators, negatives = _negatives(bare, root, finite)
    clause = replace(bare, subject=subject, negators=negators, negatives=negatives)
    if finite is not None:
        return replace(clause, finite=finite, tag=tokens[finite].tag, auxiliary=True)
    verb = tokens[root]
    if verb.text.lower() in BE or (is_finite_auxiliary(verb) and verb.tag == "MD"):
        return replace(clause, finite=root, tag=verb.tag, auxiliary=True)
    if negators and verb.text.lower() in ("do", "does", "did", "have", "has", "had"):  # "I do not."
        return replace(clause, finite=root, tag=verb.tag, auxiliary=True)
    tag = _corrected_tag(clause, verb)
    if tag == "VB":
        return replace(clause, tag="VB")
    return replace(clause, finite=root, tag=tag) if tag else None


def is_finite_auxiliary(token: Token) -> bool:
    """Whether a token is a finite form of be, have, do, or a modal."""
    text = token.text.lower().replace("’", "'")
    finite = "do does did have has had can could will would shall should may might must ought need dare 'll 'd 've"
    barred = ("VBN", "VBG", "TO", "POS") if text == "do" else ("VB", "VBN", "VBG", "TO", "POS")  # "Do not open" has VB
    return (text in BE or text in (*finite.split(), "ca", "wo", "sha")) and token.tag not in barred


def _negatives(clause: Clause, root: int, finite: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the words that negate the clause as a whole, and the negative words deeper in it, without subclauses."""
    tokens = clause.tokens
    whole: list[int] = []
    inner: list[int] = []
    front = [root]
    while front:
        following = []
        for head in front:
            for i in clause.children(head):
                relation = tokens[i].relation
                if tokens[i].text.lower() in NEGATIVE:
                    direct = head in (root, finite) or tokens[head].relation in AUXILIARIES
                    is_whole = tokens[i].text.lower() in (*NOT, "never") and direct and relation != "cc:preconj"
                    (whole if is_whole else inner).append(i)
                if relation.split(":")[0] not in CLAUSES:
                    following.append(i)
        front = following
    return tuple(sorted(whole)), tuple(sorted(inner))


def _corrected_tag(clause: Clause, verb: Token) -> str:
    """Return the fine tag of a main verb without auxiliary, corrected by its form; "" if it cannot be finite."""
    form, subject = verb.text.lower(), clause.subject
    if not form.isalpha() or not verb.tag.startswith("VB"):
        return ""
    if subject is None:
        return "VB" if verb.tag in ("VB", "VBP") else ""
    if verb.tag == "VBZ":
        return "VBZ" if form.endswith("s") else ""
    if verb.tag in ("VBD", "VBN"):
        finite = verb.tag == "VBD" or not any(t.end <= verb.start and is_finite_auxiliary(t) for t in clause.tokens)
        return "VBD" if finite and is_past(form) else ""  # "was the last game released": a participle
    same = is_past(form) and base_form(form, "VBD", form) == form  # put, set, cut
    if is_past(form) and not same:
        return "VBD"
    single = clause.tokens[subject].tag in ("NN", "NNP") or clause.tokens[subject].text.lower() in SINGULAR
    if single and not clause.has(subject, ("conj",)):  # "Tom and Ann"
        return "VBD" if same else ""
    return "VBP" if verb.tag in ("VB", "VBP") else ""
