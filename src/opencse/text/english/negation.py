"""Negation of the main clause, or removal of its negation (OssCSE §4, SNCSE).

`sound` (default) edits the original string: "not" after a form of be, have, do or a modal,
do-support elsewhere, existing negation removed, null if no rule is safe (clause.py has the words
that are negative already). `faithful` follows SNCSE's published rules and joins tokens with spaces.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opencse.text.english.clause import (
    AUXILIARIES,
    BE,
    FINITE,
    NOT,
    SENTENTIAL,
    Clause,
    main_clause,
)
from opencse.text.english.lexicon import OPPOSITE_TABLES, base_form, inflect, is_past, word_class
from opencse.text.english.one_word import AntonymSwap
from opencse.text.english.parse import (
    GrammarView,
    Rewrite,
    base_relation,
    children,
    is_question,
    replaced,
    subtree,
    word_at,
)
from opencse.text.syntax import Edit, Token, apply_edits, decapitalise, match_case

Negated = tuple[list[Edit] | None, str]
"""The edits of a negation, or None if no rule is safe, and the rule or the reason."""

_PLURAL = ("they", "we", "you", "i", "these", "those", "both", "many", "few", "several")
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}
_CONTRACTED = {word: f"{stem}n't" for stem, word in _STEMS.items()}
_NO_CONTRACTION = ("am", "may", "might", "shall", "ought", "'s", "'re", "'m", "'ll", "'d", "'ve")
_SUPPORT = {"VBP": "do", "VBZ": "does", "VBD": "did"}
_DIRECT = "am is was are were can could will would shall should may must might".split()


@dataclass(frozen=True, kw_only=True)
class Negation(GrammarView):
    """Negate the main clause, or remove its negation.

    Sources: Shi et al., OssCSE (EMNLP 2023), §4; Wang et al., SNCSE (ICIC 2023).

    Attributes:
        mode: "sound", or "faithful" for SNCSE's rules, which take none of the options below.
        by: "not", or "not-antonym" for an opposite, as in `antonym_swap`, if "not" cannot stand.
        remove: Remove the negation of a sentence that is negative already. If false, such a
            sentence gives null and "and" stays "and", because OssCSE only inserts.

    Example:
        [build.negation]
        kind = "negation"
        by = "not-antonym"

        >>> Negation().preview("The drug is safe.", "The drug is not safe.")
        ['The drug is not safe.', 'The drug is safe.']
    """

    kind = "negation"
    tables = OPPOSITE_TABLES
    random_stream = "antonym"

    mode: Literal["sound", "faithful"] = "sound"
    by: Literal["not", "not-antonym"] = "not"
    remove: bool = True

    def __post_init__(self) -> None:
        if self.mode == "faithful" and (self.by != "not" or not self.remove):
            raise ValueError(
                "mode 'faithful' takes no options: drop by and remove, or set mode to 'sound'"
            )

    @property
    def skips_asides(self) -> bool:
        """Whether brackets are left out of the parse: SNCSE's rules see the complete sentence."""
        return self.mode == "sound"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate one sentence by the first way that works."""
        if self.mode == "faithful":
            return _sncse_negation(tokens)
        negated, rule = self._with_not(text, tokens)
        if negated is None and self.by == "not-antonym":
            return AntonymSwap(predicate_first=True).rewrite(text, tokens, rng)
        return negated, rule

    def _with_not(self, text: str, tokens: Sequence[Token]) -> Rewrite:
        clause = main_clause(tokens)
        if clause is None:
            return None, "no finite verb"
        if _opens_subordinate(text, clause):
            return None, "subordinate clause"
        if clause.negators and not clause.negatives and not self.remove:
            return None, "negative already"
        edits, rule = negation_edits(text, clause)
        if edits is None:
            return None, rule
        if not self.remove:
            # As in OssCSE §4, words are only inserted: "and" does not become "or".
            edits = [edit for edit in edits if text[edit[0] : edit[1]].lower() != "and"]
        return apply_edits(text, edits), rule


def _opens_subordinate(text: str, clause: Clause) -> bool:
    """Return whether the parser took a subordinate clause at the beginning for the main one."""
    tokens = clause.tokens
    first = tokens[0]
    subordinates = first.text.lower() in word_class("subordinators") and first.tag in ("IN", "WRB")
    if not subordinates or first.relation == "case" or is_question(text):
        return False
    end = clause.predicate if clause.finite is None else clause.finite
    return not any(token.text in (",", ";", ":") for token in tokens[:end])


def negation_edits(text: str, clause: Clause, *, contract: bool = False) -> Negated:
    """Return the edits that negate a clause, main or subordinate, or remove its negation.

    With `contract`, "isn't" is written for "is not".
    """
    tokens = clause.tokens
    if clause.negatives:
        return None, "negative words"
    if clause.negators:
        return _remove(text, clause)
    if clause.finite is None:
        return _imperative(text, clause)
    if clause.subject is None:
        return None, "no subject"
    if word_at(tokens, 0) == "the" and len(tokens) > 1 and tokens[1].tag in ("RBR", "JJR"):
        return None, "the more the more"
    if word_at(tokens, clause.finite) == "had" and word_at(tokens, clause.finite + 1) == "better":
        return None, "had better"
    negate = _after_auxiliary if clause.auxiliary else _do_support
    return negate(text, clause, clause.finite, clause.subject, contract)


def _after_auxiliary(
    text: str, clause: Clause, finite: int, subject: int, contract: bool
) -> Negated:
    """Insert "not" after a form of be, have, do or a modal, past sentence adverbs.

    In questions, it goes past the subject.
    """
    tokens = clause.tokens
    verb = tokens[finite]
    word = verb.text.lower()
    if not _governs(clause, word):
        return None, "verb form"
    place = _past_adverbs(tokens, finite)
    rule = "copula" if word in BE else "auxiliary"
    if clause.predicate <= finite < subject and is_question(text):
        # "Where are you?", "Is there a problem?"
        return None, "inverted"
    if finite < subject < clause.predicate:
        place = max(subtree(tokens, subject))
        rule = "question"
        if place >= clause.predicate or place - finite > 6 or not is_question(text):
            return None, "inverted"
    elif word_at(tokens, place + 1) in (*word_class("limiting"), "ever"):
        return None, "not only"
    adjacent = rule == "question" or place == finite
    if contract and adjacent and word.replace("’", "'") not in _NO_CONTRACTION:
        negation = replaced(verb, _CONTRACTED.get(word, word + "n't"))
    else:
        glue = "" if word == "can" and place == finite else " "
        negation = (tokens[place].end, tokens[place].end, f"{glue}not")
    edits: list[Edit] = [negation]
    for i in clause.shared_verbs():
        # "was not built or tested"
        if tokens[i].tag not in FINITE:
            edits += _or(clause, i)
    return edits, rule


def _governs(clause: Clause, helper: str) -> bool:
    """Return whether an auxiliary governs the verb's form: "had hopes" is not a perfect tense."""
    tokens = clause.tokens
    root = clause.predicate
    if clause.finite == root or helper in BE or helper in ("'d", "’d"):
        return True
    verbs = [root, *children(tokens, root, *AUXILIARIES)]
    perfect = helper in ("have", "has", "had", "'ve", "’ve")
    allowed = {"VBN", "VBD"} if perfect else {"VB", "VBP", "VBD", "VBN"}
    return any(tokens[i].tag in allowed for i in verbs if i != clause.finite)


def _past_adverbs(tokens: Sequence[Token], place: int) -> int:
    """Return the index after which "not" stands, past sentence adverbs ("is, however, not")."""
    last = place
    at = place + 1
    while at < len(tokens):
        if word_at(tokens, at) in SENTENTIAL and tokens[at].pos in ("ADV", "SCONJ", "INTJ"):
            enclosed = tokens[at - 1].text == ","
            if enclosed and word_at(tokens, at + 1) != ",":
                break
            last = at + 1 if enclosed else at
            at = last + 1
        elif tokens[at].text == "," and at == place + 1:
            at += 1
        else:
            break
    return last


def _do_support(text: str, clause: Clause, finite: int, subject: int, contract: bool) -> Negated:
    """Negate by do-support: put "does not" before the verb and the adverbs that belong to it."""
    tokens = clause.tokens
    verb = tokens[finite]
    if subject > finite:
        return None, "inverted"
    base = _checked_base(verb, clause.tag)
    if base is None or _meets_finite(tokens[finite + 1 :]) or _is_misread(clause, finite, subject):
        return None, "verb form"
    first = finite
    while first - 1 > subject and _is_adverb_of(tokens, first - 1, finite):
        first -= 1
        adverb = tokens[first].text
        known = adverb.lower() in word_class("preverbal adverbs")
        if not known and not adverb.endswith("ly"):
            # A noun that the tagger took for an adverb.
            return None, "verb form"
    if any(word_at(tokens, i) in word_class("limiting") for i in (first, finite - 1, finite + 1)):
        return None, "not only"
    helper = _SUPPORT[clause.tag] + ("n't " if contract else " not ")
    edits: list[Edit] = [(verb.start, verb.end, helper + base)]
    if first < finite:
        edits = [(tokens[first].start, tokens[first].start, helper), (verb.start, verb.end, base)]
    for i in clause.shared_verbs():
        # The form decides, whatever the tagger found.
        past = is_past(tokens[i].text)
        if past != (clause.tag == "VBD"):
            # Another tense: a separate statement.
            break
        shared = _checked_base(tokens[i], "VBD" if past else tokens[i].tag)
        if shared is None or i < finite:
            break
        edits.append((tokens[i].start, tokens[i].end, shared))
        edits += _or(clause, i)
    if _leaves_finite(tokens, finite, edits):
        return None, "shared verb"
    return edits, f"do-support {clause.tag}"


def _leaves_finite(tokens: Sequence[Token], finite: int, edits: Sequence[Edit]) -> bool:
    """Whether a verb that shares the subject would stay finite: "does not read … and assigns".

    The parser may take it for a noun or hang it on the object, so this uses tags alone.
    """
    changed = {start for start, _, _ in edits}
    for i in range(finite + 1, len(tokens) - 1):
        before = i - 1
        while tokens[before].tag == "RB":
            before -= 1
        token = tokens[i]
        if word_at(tokens, before) not in ("and", "or", ",", "but", "then"):
            continue
        if token.start in changed or not token.text.islower():
            continue
        if token.tag == "VBZ" and not _opens_own_clause(tokens, i):
            return True
        third_person = token.text.endswith("s") and token.tag in ("NNS", "VBP", "JJ")
        if third_person and tokens[i + 1].tag in _BEGINS_OBJECT:
            return True
        if token.tag == "JJ" and third_person and not token.text.endswith(("ss", "ous")):
            # "and assigns names": hardly any adjective ends like this.
            return True
    return False


# Tags of words that follow a verb, and no plural noun: "reads the file and assigns a type".
_BEGINS_OBJECT = ("DT", "PRP", "PRP$", "CD")


def _opens_own_clause(tokens: Sequence[Token], i: int) -> bool:
    """Whether a finite verb has its own subject, which may follow it ("and is there …")."""
    return bool(children(tokens, i, "nsubj", "nsubjpass", "csubj", "expl"))


def _is_adverb_of(tokens: Sequence[Token], i: int, verb: int) -> bool:
    """Return whether a token is an adverb of a verb, and not of the complete sentence."""
    token = tokens[i]
    if not token.tag.startswith("RB") or token.head != verb:
        return False
    return word_at(tokens, i) not in SENTENTIAL


def _meets_finite(following: Sequence[Token]) -> bool:
    """Return whether another finite verb follows without a subject: "taxa included here were …"."""
    for token in following:
        if token.tag in ("MD", "VBZ", "VBD") or token.text.lower() in BE:
            return True
        if token.pos not in ("ADV", "ADP", "ADJ", "PART"):
            return False
    return False


def _is_misread(clause: Clause, finite: int, subject: int) -> bool:
    """Return whether the parser may have taken a noun for the verb, or the verb for a noun.

    "Those fires mainly affect" has no agreement, in "The dashboard shows failed jobs" the verb is
    "shows", and "Objects derived from it" may have a verb later on.
    """
    tokens = clause.tokens
    noun = tokens[subject]
    if clause.tag == "VBZ" and noun.text.lower() in _PLURAL:
        return True
    if clause.tag != "VBD" or subject != finite - 1 or noun.tag not in ("NN", "NNS"):
        return False
    relations = {tokens[i].relation for i in children(tokens, subject)}
    bare = finite + 1 < len(tokens) and tokens[finite + 1].tag in ("NN", "NNS")
    participle = word_at(tokens, finite + 1) in ("by", "from", "if", "when", "using")
    joined = bare and "compound" in relations and noun.tag == "NNS"
    return joined or (participle and not relations & {"det", "nmod:poss", "poss"})


def _checked_base(verb: Token, tag: str) -> str | None:
    """Return the base of a finite verb; None if inflecting the base does not give its form."""
    form = verb.text.lower()
    is_name = verb.start > 0 and verb.text.istitle()
    if not form.isalpha() or is_name:
        return None
    base = base_form(form, tag, verb.lemma)
    if base == form and tag != "VBP" and inflect(base, tag) != form:
        return None
    return base


def _or(clause: Clause, verb: int) -> list[Edit]:
    """Turn the "and" that joins a verb into "or"."""
    edits = []
    for i in children(clause.tokens, verb, "cc"):
        if i < verb and word_at(clause.tokens, i) == "and":
            edits.append(replaced(clause.tokens[i], "or"))
    return edits


def _imperative(text: str, clause: Clause) -> Negated:
    """Negate an imperative ("Do not open") at the beginning or after "please" or a comma."""
    tokens = clause.tokens
    start = next(iter(children(tokens, clause.predicate, "cop")), clause.predicate)
    verb = tokens[start]
    word = word_at(tokens, start)
    opened = word_at(tokens, start - 1) in ("", "please", ",", ":", '"', "“")
    if not opened or text.rstrip(" \"'”’)")[-1:] not in (".", "!", ";"):
        return None, "no subject"
    # "Roads in ..." is a mistagged noun.
    if word in word_class("remarks") or re.search(r"[^s]s$", word):
        return None, "remark"
    negated = f"{match_case('do', verb.text)} not {decapitalise(verb.text)}"
    edits: list[Edit] = [(verb.start, verb.end, negated)]
    for i in clause.shared_verbs():
        edits += _or(clause, i)
    return edits, "imperative"


def _remove(text: str, clause: Clause) -> Negated:
    """Remove "not", "n't" or "never" from the main clause."""
    tokens = clause.tokens
    if len(clause.negators) > 1:
        return None, "negative words"
    place = clause.negators[0]
    if place == 0:
        # "Not all birds can fly"
        return None, "negative words"
    word = word_at(tokens, place)
    end = next((t.start for t in tokens[place + 1 :] if t.text in (".", "?", "!", ";")), len(text))
    after = [t.text.lower() for t in tokens[place + 1 :] if t.start < end]
    if word_class("polarity items").intersection(after) or "at all" in " ".join(after):
        return None, "hanging on negation"
    removed: Edit = (tokens[place - 1].end, tokens[place].end, "")
    if word == "never":
        if clause.finite is None:
            return None, "never"
        return [removed], "never removed"
    if clause.finite is None:
        # "Do not go", if the parser has "do" as an auxiliary or as nothing.
        return None, "negative imperative"
    helper = tokens[clause.finite]
    verb = tokens[clause.predicate]
    stem = helper.text.lower()
    before = [token.text.lower() for token in tokens[max(clause.finite - 1, 0) : place]]
    if stem == "ai" or "or" in before:
        # "may or may not"
        return None, "negative words"
    if stem in _STEMS and word in NOT[1:]:
        # "can't", which the tokenizer divides into "ca" and "n't".
        restored = match_case(_STEMS[stem], helper.text)
        return [(helper.start, tokens[place].end, restored)], "not removed"
    supports = stem in _SUPPORT.values() and clause.finite != clause.predicate
    supports = supports and verb.tag in ("VB", "VBP")
    if not supports or (clause.subject is not None and clause.subject > clause.finite):
        return [removed], "not removed"
    if clause.predicate < place or place + 1 >= len(tokens):
        return None, "negative words"
    following = tokens[place + 1]
    if clause.subject is None and stem == "do":
        # "Do not open"
        opened = match_case(following.text, helper.text)
        return [(helper.start, following.end, opened)], "imperative not removed"
    if clause.shared_verbs():
        # "did not sing or dance"
        return None, "negative words"
    tag = next(tag for tag, support in _SUPPORT.items() if support == stem)
    new = inflect(verb.text.lower(), tag)
    return [(helper.start, following.start, ""), replaced(verb, new)], "do-support removed"


def _sncse_negation(tokens: Sequence[Token]) -> Rewrite:
    """Return SNCSE's soft negative of a sentence, by its published rules with their weaknesses.

    A "not" is deleted. Otherwise "not" follows the first auxiliary before the root; without one,
    the root decides: "not" after be and modals, "do/does/did not" with the lemma by its tag, or
    "Not" before everything. "n't" and "never" are not recognized. The published rules assume
    spaCy's English scheme, in
    which a copula is the root; with Universal Dependencies the copula is treated as the root.
    """
    words = [token.text for token in tokens]
    if "not" in words:
        words.remove("not")
        return " ".join(words), "faithful not removed"
    # By its relation: a token whose head is white space has no head here, and looks like a root.
    named = (i for i, token in enumerate(tokens) if token.relation.lower() == "root")
    headless = (i for i, token in enumerate(tokens) if token.head == i)
    root = next(named, next(headless, 0))
    for i, token in enumerate(tokens):
        if token.head == root and token.relation == "cop":
            root = i
            break
    auxiliary = next(
        (i for i in range(root) if base_relation(tokens[i]) in ("aux", "auxpass")), None
    )
    if auxiliary is not None:
        words.insert(auxiliary + 1, "not")
        return " ".join(words), "faithful auxiliary"
    if words[root].lower() in _DIRECT:
        words.insert(root + 1, "not")
        return " ".join(words), "faithful copula"
    tag = tokens[root].tag
    if tag in _SUPPORT:
        words[root : root + 1] = [_SUPPORT[tag], "not", tokens[root].lemma]
        return " ".join(words), f"faithful do-support {tag}"
    words.insert(0, "Not")
    return " ".join(words), "faithful prefix"
