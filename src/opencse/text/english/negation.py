"""Negation of the main clause, or removal of its negation (OssCSE §4, SNCSE).

`sound` (default) edits the original string: "not" after a form of be, have, do or a modal, do-support elsewhere,
existing negation removed, null if no rule is safe. `faithful` follows SNCSE's published rules and joins tokens with
spaces.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from opencse.text.english.articles import article_edits
from opencse.text.english.clause import AUXILIARIES, BE, NOT, Clause, main_clause
from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.lexicon import LexiconTable, antonyms, word_class
from opencse.text.english.verbs import base_form, inflect, is_past
from opencse.text.syntax.tokens import Token
from opencse.text.views.edits import Edit, apply_edits, decapitalise, match_case

Negated = tuple[list[Edit] | None, str]
"""The edits of a negation, or None if no rule is safe, and the rule or the reason."""

# Adverbs about the whole statement: "not" goes after them ("is probably not", "also did not"), and before all others.
SENTENTIAL = word_class("sentence adverbs")
# Negative polarity items and the like: they need the negation, so it is not removed.
POLARITY_ITEMS = word_class("polarity items")
LIMITING = frozenset("only just merely simply solely not".split())  # "not only" negates nothing
REMARKS = frozenset("note see consider suppose recall assume say notice compare cf beware".split())  # not requests
SUBORDINATORS = word_class("subordinators")
PLURAL = frozenset("they we you i these those both many few several".split())
PREVERBAL = word_class("preverbal adverbs")
CONTRACTED = {"can": "can't", "will": "won't", "shall": "shan't"}
UNCONTRACTED = {"ca": "can", "wo": "will", "sha": "shall"}
NO_CONTRACTION = ("am", "may", "might", "shall", "ought")


def negate(text: str, tokens: Sequence[Token], *, remove: bool = True, contract: bool = False) -> Rewrite:
    """Negate the main clause of a sentence, or remove its negation.

    Args:
        text: The sentence.
        tokens: Its tokens.
        remove: Remove an existing negation; if false, such a sentence gives None, and "and" does not become "or".
        contract: Write "isn't" rather than "is not".

    Returns:
        The sentence, or None if no rule is safe, and the rule or the reason.
    """
    if not tokens:
        return None, "empty"
    clause = main_clause(tokens)
    if clause is None:
        return None, "no finite verb"
    if _opens_subordinate(text, clause):
        return None, "subordinate clause"
    edits, rule = negation_edits(text, clause, remove=remove, contract=contract)
    if edits is not None and not remove:  # as OssCSE §4: words are inserted, and "and" stays
        edits = [(start, end, new) for start, end, new in edits if text[start:end].lower() != "and"]
    return (None if edits is None else apply_edits(text, edits)), rule


def _opens_subordinate(text: str, clause: Clause) -> bool:
    """Whether the parser took a subordinate clause that opens the sentence for the main one."""
    first, tokens = clause.tokens[0], clause.tokens
    if first.text.lower() not in SUBORDINATORS or first.tag not in ("IN", "WRB") or first.relation == "case":
        return False
    question = text.rstrip(" \"'”’)").endswith("?")
    end = clause.predicate if clause.finite is None else clause.finite
    return not question and not any(token.text in (",", ";", ":") for token in tokens[:end])


def negation_edits(text: str, clause: Clause, *, remove: bool = True, contract: bool = False) -> Negated:
    """Return the edits that negate a clause, main or subordinate, or remove its negation; arguments as in `negate`."""
    tokens = clause.tokens
    if clause.negatives:
        return None, "negative words"
    if clause.negators:
        return _remove(text, clause) if remove else (None, "negative already")
    if clause.finite is None:
        return _imperative(text, clause)
    if clause.subject is None:
        return None, "no subject"
    if tokens[0].text.lower() == "the" and len(tokens) > 1 and tokens[1].tag in ("RBR", "JJR"):
        return None, "the more the more"
    following = tokens[clause.finite + 1] if clause.finite + 1 < len(tokens) else None
    if tokens[clause.finite].text.lower() == "had" and following and following.text.lower() == "better":
        return [(following.end, following.end, " not")], "had better"
    if clause.auxiliary:
        return _after_auxiliary(text, clause, contract)
    return _do_support(clause, contract)


def _after_auxiliary(text: str, clause: Clause, contract: bool) -> Negated:
    """Insert "not" after a form of be, have, do or a modal, past sentence adverbs; in questions past the subject."""
    assert clause.finite is not None
    assert clause.subject is not None
    tokens, finite = clause.tokens, clause.tokens[clause.finite]
    word = finite.text.lower()
    if not _fits(clause, word):
        return None, "verb form"
    edits = _shared_or(clause)
    inverted = clause.subject > clause.finite
    question = text.rstrip(" \"'”’)").endswith("?")
    if inverted and clause.finite != clause.predicate and clause.predicate > clause.subject:
        last = clause.last_of(clause.subject)
        if last >= clause.predicate or last - clause.finite > 6 or not question:
            return None, "inverted"
        if contract and word not in NO_CONTRACTION:
            return _contracted(finite, edits), "question"
        return [(tokens[last].end, tokens[last].end, " not"), *edits], "question"
    place = _past_adverbs(clause, clause.finite)
    if place + 1 < len(tokens) and tokens[place + 1].text.lower() in (*LIMITING, "ever"):
        return None, "not only"
    kind = "copula" if word in BE else "auxiliary"
    if contract and place == clause.finite and not word.startswith(("'", "’")) and word not in NO_CONTRACTION:
        return _contracted(finite, edits), kind
    inserted = match_case("not", finite.text) if finite.text.isupper() and len(finite.text) > 1 else "not"
    glue = "" if word == "can" and place == clause.finite else " "
    return [(tokens[place].end, tokens[place].end, glue + inserted), *edits], kind


def _fits(clause: Clause, helper: str) -> bool:
    """Whether the verb after an auxiliary has a form that it can govern: "had hopes" is not a perfect tense."""
    if clause.finite == clause.predicate or helper in BE or helper in ("'d", "’d", "'s", "’s"):
        return True
    verbs = [
        clause.predicate,
        *(i for i in clause.children(clause.predicate) if clause.tokens[i].relation in AUXILIARIES),
    ]
    tags = {clause.tokens[i].tag for i in verbs if i != clause.finite}
    return bool(
        tags & ({"VBN", "VBD"} if helper in ("have", "has", "had", "'ve", "’ve") else {"VB", "VBP", "VBD", "VBN"})
    )


def _contracted(finite: Token, edits: list[Edit]) -> list[Edit]:
    """Return the edits with "n't" joined to the finite verb."""
    new = CONTRACTED.get(finite.text.lower(), finite.text.lower() + "n't")
    return [(finite.start, finite.end, match_case(new, finite.text)), *edits]


def _past_adverbs(clause: Clause, place: int) -> int:
    """Return the index after which "not" stands: past sentence adverbs and their commas ("is, however, not")."""
    tokens, last = clause.tokens, place
    at = place + 1
    while at < len(tokens):
        word = tokens[at].text.lower()
        if word in SENTENTIAL and tokens[at].pos in ("ADV", "SCONJ", "INTJ"):
            closed = tokens[at - 1].text != "," or (at + 1 < len(tokens) and tokens[at + 1].text == ",")
            if not closed:
                break
            last = at + 1 if tokens[at - 1].text == "," else at
            at = last + 1
        elif word == "," and last == place and at == place + 1:
            at += 1
        else:
            break
    return last


def _do_support(clause: Clause, contract: bool) -> Negated:
    """Negate by do-support: put "does not" before the verb and the adverbs that belong to it."""
    assert clause.finite is not None
    assert clause.subject is not None
    tokens, verb = clause.tokens, clause.tokens[clause.finite]
    if clause.subject > clause.finite:
        return None, "inverted"
    base = _checked_base(verb, clause.tag)
    if base is None or _meets_finite(clause) or _is_misread(clause):
        return None, "verb form"
    first = clause.finite
    while (
        first - 1 > clause.subject
        and tokens[first - 1].tag in ("RB", "RBR", "RBS")
        and tokens[first - 1].head == clause.finite
        and tokens[first - 1].text.lower() not in SENTENTIAL
    ):
        first -= 1
        if tokens[first].text.lower() not in PREVERBAL and not tokens[first].text.endswith("ly"):
            return None, "verb form"  # a noun that the tagger took for an adverb
    if any(
        tokens[i].text.lower() in LIMITING for i in (first, clause.finite - 1, clause.finite + 1) if i < len(tokens)
    ):
        return None, "not only"
    helper = {"VBZ": "does", "VBP": "do", "VBD": "did"}[clause.tag]
    helper = helper + "n't " if contract else helper + " not "
    if verb.text.isupper() and len(verb.text) > 1:
        helper, base = helper.upper(), base.upper()
    if first == clause.finite:
        edits: list[Edit] = [(verb.start, verb.end, helper + base)]
    else:
        edits = [(tokens[first].start, tokens[first].start, helper), (verb.start, verb.end, base)]
    for i in clause.shared_verbs():
        past = is_past(tokens[i].text)  # whatever the tagger says
        if past != (clause.tag == "VBD"):
            break  # another tense: a statement of its own
        shared = _checked_base(tokens[i], "VBD" if past else tokens[i].tag)
        if shared is None or i < clause.finite:
            break
        edits += [(tokens[i].start, tokens[i].end, shared), *_or(clause, i)]
    return edits, f"do-support {clause.tag}"


def _meets_finite(clause: Clause) -> bool:
    """Whether another finite verb follows without a subject: "taxa included here were …" has another main verb."""
    assert clause.finite is not None
    for token in clause.tokens[clause.finite + 1 :]:
        if token.tag in ("MD", "VBZ", "VBD") or token.text.lower() in BE:
            return True
        if token.pos not in ("ADV", "ADP", "ADJ", "PART"):
            return False
    return False


def _is_misread(clause: Clause) -> bool:
    """Whether the parser may have taken a noun for the verb, or the verb for a noun.

    "Those fires mainly affect" has no agreement, in "The dashboard shows failed jobs" the verb is "shows", and "Objects
    derived from it" may have a verb later on.
    """
    assert clause.finite is not None
    assert clause.subject is not None
    tokens, subject = clause.tokens, clause.tokens[clause.subject]
    if clause.tag == "VBZ" and subject.text.lower() in PLURAL:
        return True
    after = tokens[clause.finite + 1] if clause.finite + 1 < len(tokens) else None
    compound = any(tokens[i].relation == "compound" for i in clause.children(clause.subject))
    bare = after is not None and after.tag in ("NN", "NNS")
    past = clause.tag == "VBD" and clause.subject == clause.finite - 1 and subject.tag in ("NN", "NNS")
    determined = any(tokens[i].relation in ("det", "nmod:poss", "poss") for i in clause.children(clause.subject))
    participle = after is not None and after.text.lower() in ("by", "from", "if", "when", "using")
    return past and ((bare and compound and subject.tag == "NNS") or (participle and not determined))


def _checked_base(verb: Token, tag: str) -> str | None:
    """Return the base of a finite verb; None if its form is not what inflection of the base gives."""
    form = verb.text.lower()
    if not form.isalpha() or (verb.start and verb.text.istitle()):  # a name or tag not in ("VBZ", "VBP", "VBD"):
        return None
    base = base_form(form, tag, verb.lemma)
    if base == form:
        return base if tag == "VBP" or inflect(base, tag) == form else None
    return base


def _shared_or(clause: Clause) -> list[Edit]:
    """Turn the "and" of verbs that share the auxiliary into "or": "was not built or tested"."""
    return [
        edit
        for i in clause.shared_verbs()
        if clause.tokens[i].tag not in ("VBD", "VBZ", "VBP")
        for edit in _or(clause, i)
    ]


def _or(clause: Clause, verb: int) -> list[Edit]:
    """Turn the "and" that joins a verb into "or"."""
    joins = [i for i in clause.children(verb) if clause.tokens[i].relation == "cc" and i < verb]
    return [
        (clause.tokens[i].start, clause.tokens[i].end, match_case("or", clause.tokens[i].text))
        for i in joins
        if clause.tokens[i].text.lower() == "and"
    ]


def _imperative(text: str, clause: Clause) -> Negated:
    """Negate an imperative ("Do not open"), only if the verb opens the sentence or follows "please" or a comma."""
    tokens, verb = clause.tokens, clause.tokens[clause.predicate]
    copula = next((i for i in clause.children(clause.predicate) if clause.tokens[i].relation == "cop"), None)
    start = clause.predicate if copula is None else copula
    before = tokens[start - 1].text.lower() if start else ""
    if before not in ("", "please", ",", ":", '"', "“") or text.rstrip(" \"'”’)")[-1:] not in (".", "!", ";"):
        return None, "no subject"
    verb = tokens[start]
    if any(token.text.lower() in ("else", "otherwise") for token in tokens[start:]):
        return None, "alternative"  # "Return 1 if it is empty, 0 otherwise."
    if verb.text.lower() in REMARKS or re.search(r"[^s]s$", verb.text.lower()):  # "Roads in ..." is a mistagged noun
        return None, "remark"
    if verb.text.lower() == "let" and start + 1 < len(tokens) and tokens[start + 1].text.lower() in ("'s", "’s", "us"):
        return [(tokens[start + 1].end, tokens[start + 1].end, " not")], "let us"
    edits: list[Edit] = [(verb.start, verb.end, match_case("do", verb.text) + " not " + decapitalise(verb.text))]
    return [*edits, *(edit for i in clause.shared_verbs() for edit in _or(clause, i))], "imperative"


def _remove(text: str, clause: Clause) -> Negated:
    """Remove "not", "n't" or "never" from the main clause."""
    tokens = clause.tokens
    if len(clause.negators) > 1:
        return None, "negative words"
    place = clause.negators[0]
    word = tokens[place].text.lower()
    end = next((t.start for t in tokens[place + 1 :] if t.text in (".", "?", "!", ";")), len(text))
    after = [t.text.lower() for t in tokens[place + 1 :] if t.start < end]
    if POLARITY_ITEMS.intersection(after) or "at all" in " ".join(after):
        return None, "hanging on negation"
    previous = place - 1 if place else None
    removed: Edit = (tokens[previous].end if previous is not None else 0, tokens[place].end, "")
    helper = tokens[clause.finite] if clause.finite is not None else None
    if word == "never":
        if place == 0 or clause.finite is None:
            return None, "never"
        return [removed], "never removed"
    if helper is None:  # "Do not go", where the parser has "do" as an auxiliary or as nothing
        return None, "negative imperative"
    stem = helper.text.lower()
    between = tokens[max((clause.finite or 0) - 1, 0) : place]
    if stem == "ai" or any(token.text.lower() == "or" for token in between):  # "may or may not"
        return None, "negative words"
    if stem in UNCONTRACTED and word in NOT[1:]:
        return [(helper.start, tokens[place].end, match_case(UNCONTRACTED[stem], helper.text))], "not removed"
    verb = tokens[clause.predicate]
    supports = stem in ("do", "does", "did") and clause.finite != clause.predicate and verb.tag in ("VB", "VBP")
    if not supports or (clause.subject is not None and clause.subject > (clause.finite or 0)):
        return [removed], "not removed"
    return _without_do(clause, helper, place)


def _without_do(clause: Clause, helper: Token, place: int) -> Negated:
    """Turn "does not like" into "likes", and "Do not open" into "Open"."""
    tokens, verb = clause.tokens, clause.tokens[clause.predicate]
    if clause.predicate < place or place + 1 >= len(tokens):
        return None, "negative words"
    following = tokens[place + 1]
    cut: Edit = (helper.start, following.start, "")
    if clause.subject is None and helper.text.lower() == "do":
        return [(helper.start, following.end, match_case(following.text, helper.text))], "imperative not removed"
    if clause.shared_verbs():  # "did not sing or dance": emphatic "did sing or dance"
        return [(tokens[place - 1].end, tokens[place].end, "")], "not removed"
    tag = {"do": "VBP", "does": "VBZ", "did": "VBD"}[helper.text.lower()]
    new = inflect(verb.text.lower(), tag)
    return [cut, (verb.start, verb.end, match_case(new, verb.text))], "do-support removed"


_POS = {"JJ": "ADJ", "RB": "ADV"} | dict.fromkeys(("VB", "VBZ", "VBP", "VBD", "VBN", "VBG"), "VERB")
_TOO_MANY_SENSES = frozenset("be have do go come get take give make let keep put say know".split())


def negate_by_antonym(text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
    """Replace a word by an antonym: the predicate if it has one, else a word that describes it.

    Args:
        text: The sentence.
        tokens: Its tokens.
        rng: Chooses among several antonyms of one word.

    Returns:
        The sentence, or None if no such word has an antonym, and the rule.
    """
    clause = main_clause(tokens)
    if clause is None or clause.subject is None:
        return None, "no finite verb"
    if clause.negators or clause.negatives:
        return None, "negative already"
    for i in _candidates(tokens, clause.predicate):
        token = tokens[i]
        pos = _POS.get(token.tag, "")
        base = base_form(token.text, token.tag, token.lemma) if pos == "VERB" else token.text.lower()
        if pos == "VERB" and token.tag == "VBG":
            base = token.lemma.lower()
        choices = antonyms().get((base, pos), ()) if base not in _TOO_MANY_SENSES else ()
        if choices:
            new = rng.choice(choices)
            new = inflect(new, token.tag) if pos == "VERB" else new
            edits: list[Edit] = [(token.start, token.end, match_case(new, token.text))]
            return apply_edits(text, [*edits, *article_edits(text, tokens, i, new)]), f"antonym {pos}"
    return None, "no antonym"


def _candidates(tokens: Sequence[Token], predicate: int) -> Iterator[int]:
    """Yield the predicate, its adverbs, and its complements' adjectives: the most important first."""
    yield predicate
    children = [i for i, token in enumerate(tokens) if token.head == predicate and i != predicate]
    for relations in (("acomp", "xcomp"), ("amod", "advmod"), ("attr", "obj", "dobj", "oprd")):
        for i in children:
            if tokens[i].relation in relations:
                if tokens[i].pos in ("ADJ", "ADV", "VERB") and relations[0] != "attr":
                    yield i
                yield from (j for j, t in enumerate(tokens) if t.head == i and t.relation == "amod" and t.pos == "ADJ")


_AUXILIARY = ("aux", "auxpass", "aux:pass")
_DIRECT = "am is was are were can could will would shall should may must might".split()
_SUPPORT = {"VBP": "do", "VBZ": "does", "VBD": "did"}


def sncse_negate(tokens: Sequence[Token]) -> tuple[str | None, str]:
    """Return SNCSE's soft negative of a sentence and its rule; None only for an empty sentence."""
    words = [token.text for token in tokens]
    if not words:
        return None, "empty"
    if "not" in words:
        words.remove("not")
        return " ".join(words), "faithful not removed"
    root = next((i for i, token in enumerate(tokens) if token.head == i), 0)
    root = next((i for i, token in enumerate(tokens) if token.head == root and token.relation == "cop"), root)
    for i in range(root):
        if tokens[i].relation in _AUXILIARY:
            return " ".join([*words[: i + 1], "not", *words[i + 1 :]]), "faithful auxiliary"
    if words[root] in _DIRECT:
        return " ".join([*words[: root + 1], "not", *words[root + 1 :]]), "faithful copula"
    if tokens[root].tag in _SUPPORT:
        support = [_SUPPORT[tokens[root].tag], "not", tokens[root].lemma]
        return " ".join([*words[:root], *support, *words[root + 1 :]]), f"faithful do-support {tokens[root].tag}"
    return " ".join(["Not", *words]), "faithful prefix"


@dataclass(frozen=True, kw_only=True)
class Negation(GrammarView):
    """Negate the main clause, or remove its negation.

    Sources: Shi et al., OssCSE (EMNLP 2023), §4; Wang et al., SNCSE (ICIC 2023).

    Attributes:
        mode: "sound", or "faithful" for SNCSE's rules; the options below then have no effect.
        by: "not", "antonym", or both in the order in which they are tried ("not-antonym", "antonym-not").
        remove: Remove the negation of a sentence that is negative already; if false, such a sentence gives null
            and "and" stays "and", because OssCSE only inserts.
        contract: Write "isn't", "doesn't".

    Example:
        [build.negation]
        kind = "negation"
        by = "not-antonym"
        contract = true
    """

    kind: ClassVar[str] = "negation"
    tables: ClassVar[tuple[LexiconTable, ...]] = ("antonyms",)
    random_stream: ClassVar[str] = "antonym"

    mode: Literal["sound", "faithful"] = "sound"
    by: Literal["not", "antonym", "not-antonym", "antonym-not"] = "not"
    remove: bool = True
    contract: bool = False

    def __post_init__(self) -> None:
        if self.mode == "faithful" and (self.by != "not" or self.contract or not self.remove):
            raise ValueError("mode 'faithful' takes no options: drop by, contract and remove, or set mode to 'sound'")

    @property
    def skips_asides(self) -> bool:
        """Whether brackets are left out of the parse: SNCSE's rules see the whole sentence."""
        return self.mode == "sound"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Negate one sentence by the first way that works."""
        if self.mode == "faithful":
            return sncse_negate(tokens)
        negated, rule = None, ""
        for way in self.by.split("-"):
            if way == "not":
                negated, rule = negate(text, tokens, remove=self.remove, contract=self.contract)
            else:
                negated, rule = negate_by_antonym(text, tokens, rng)
            if negated is not None:
                break
        return negated, rule
