"""Questions and queries about a sentence: one that it answers, one about what it mentions, and its keywords."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from opencse.text.english.clause import BE, FINITE, NOT, Clause, main_clause
from opencse.text.english.lexicon import ACTORS, base_form, inflect, lexicon_rows, names, word_class
from opencse.text.english.parse import (
    GrammarView,
    Rewrite,
    Span,
    as_span,
    base_relation,
    children,
    noun_phrase,
    recased,
    subtree,
    text_of,
    word_at,
)
from opencse.text.english.transitive import agreeing
from opencse.text.syntax import Edit, Token, apply_edits

_ADVERBS = ("Why", "How", "When")
_HELPERS = {"VBZ": "does", "VBP": "do", "VBD": "did"}
_BREAKS = (".", ";", ":", "?", "!", '"', "“", "”", "(", ")", "[", "]", "--", "—", "–", "...")
_LEADING = ("obl", "advmod", "nmod")
_LONGEST_LEADING = 8  # tokens of a phrase that moves from the beginning to the end
_SUBJECTS = 0.2  # share of the questions that ask for the subject, if its kind is known
_LONGEST = 24  # words of a question
_LONGEST_TOPIC = 4  # words of what a question is about
_FEWEST, _MOST = 4, 7  # keywords
_PERSON = re.compile(r"(?:er|or|ist|ian|ee|man|men|woman|women)$")  # "winner": perhaps a person
_GROUPS = word_class("groups")


@dataclass(frozen=True, kw_only=True)
class Question(GrammarView):
    """Turn a statement into a question about it.

    "Refunds are allowed." becomes "Are refunds allowed?" or, in a fifth of the rows, "What is
    allowed?". Null unless the sentence is a short affirmative statement about something that it
    names.

    Attributes:
        adverbs: Share of the yes-or-no questions that get why, how or when ("Why are refunds
            allowed?"), in [0, 1]. The statement does not answer them, but an answer is about the
            same.

    Example:
        [build.question]
        kind = "question"

        >>> Question().preview("Refunds are allowed.")
        ['Are refunds allowed?']
    """

    kind = "question"
    tables = ("names",)

    adverbs: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.adverbs <= 1:
            raise ValueError(f"adverbs must be a share within [0, 1], not {self.adverbs}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Ask one question."""
        ask_subject = rng.random() < _SUBJECTS
        if tokens[-1].text != "." or any(token.text in _BREAKS for token in tokens[:-1]):
            return None, "no plain statement"
        clause = main_clause(tokens)
        if (
            clause is None
            or clause.subject is None
            or clause.finite is None
            or clause.subject > clause.finite
        ):
            return None, "no subject and verb"
        if clause.negators or clause.negatives:
            return None, "negative words"
        subject = as_span(subtree(tokens, clause.subject))
        leading = _leading(tokens, subject) if subject is not None else None
        if subject is None or leading is None or tokens[subject[0]].tag in ("IN", "RB", "TO", "CC"):
            return None, "something comes first"
        if word_at(tokens, clause.subject) in word_class("unclear subjects"):
            return None, "unclear subject"
        between = tokens[subject[1] + 1 : clause.finite]
        if subject[1] >= clause.finite or any(token.tag != "RB" for token in between):
            return None, "inverted"
        question, rule = _asked(text, clause, subject, leading, ask_subject=ask_subject)
        if question is not None and len(question.split()) > _LONGEST:
            return None, "too long"
        if (
            question is not None
            and rule == "yes or no"
            and self.adverbs
            and rng.random() < self.adverbs
        ):
            return f"{rng.choice(_ADVERBS)} {question[0].lower()}{question[1:]}", "why, how or when"
        return question, rule


def _leading(tokens: Sequence[Token], subject: Span) -> tuple[int, int] | None:
    """Return the half-open range of a phrase before the subject that can move to the end; None if it cannot."""
    if subject[0] == 0:
        return 0, 0
    end = subject[0] - 1
    if tokens[end].text != "," or end > _LONGEST_LEADING:
        return None
    heads = [i for i in range(end) if not 0 <= tokens[i].head < end]
    if len(heads) != 1 or base_relation(tokens[heads[0]]) not in _LEADING:
        return None
    linking = {token.lemma.lower() for token in tokens[:end]} & word_class("linking")
    plain = tokens[heads[0]].tag != "RB" and not linking  # "However, …" has no place in a question
    return (0, end) if plain else (0, 0)


def _asked(
    text: str, clause: Clause, subject: Span, leading: tuple[int, int], *, ask_subject: bool
) -> Rewrite:
    """Return the question and its rule."""
    assert clause.finite is not None
    tokens, tag = clause.tokens, clause.tag
    finite, last = tokens[clause.finite], _last(clause)
    shared = [tokens[i] for i in clause.shared_verbs() if i <= last]
    if finite.text.startswith(("'", "’")) or last <= clause.finite or finite.text.isupper():
        return None, "verb form"
    word = _question_word(tokens, clause) if ask_subject else None
    rule = "yes or no" if word is None else "subject"
    inflected = any(verb.tag in FINITE for verb in shared)
    base = base_form(finite.text, tag, finite.lemma)
    edits: list[Edit]
    if word is not None:
        if any(verb.tag in ("VBP", "VBZ") for verb in shared):
            return None, "shared subject"
        edits = [
            (finite.start, finite.end, finite.text if tag == "VBD" else _singular(finite, tag))
        ]
    elif clause.auxiliary:
        if inflected:
            return None, "shared subject"
        word, edits = (
            finite.text.capitalize(),
            [(finite.start, tokens[clause.finite + 1].start, "")],
        )
    elif any(verb.tag not in FINITE for verb in shared):
        return None, "shared subject"
    elif inflect(base, tag) != finite.text.lower():
        return None, "verb form"
    else:
        word, edits = _HELPERS[tag].capitalize(), [(finite.start, finite.end, base)]
        edits += [
            (verb.start, verb.end, base_form(verb.text, verb.tag, verb.lemma)) for verb in shared
        ]
    start, end = tokens[subject[1] + 1].start, tokens[last].end
    if any(edit[1] > end for edit in edits):
        return None, "verb form"
    parts = [
        word,
        apply_edits(text[start:end], [(a - start, b - start, new) for a, b, new in edits]),
    ]
    if rule == "yes or no":
        parts.insert(1, _moved(text, tokens, subject))
    if leading[1]:
        parts.append(_moved(text, tokens, (0, leading[1] - 1)))
    return " ".join(parts) + "?", rule


def _last(clause: Clause) -> int:
    """Return the last token that belongs in the question: the end of the clause, without the clauses that follow it."""
    tokens = clause.tokens
    last = len(tokens) - 2
    for i, token in enumerate(tokens):
        own = any(t.head == i and t.relation.startswith(("nsubj", "aux", "cop")) for t in tokens)
        if (
            token.head == clause.predicate
            and token.relation in ("conj", "parataxis")
            and own
            and i > clause.predicate
        ):
            last = min(last, min(subtree(tokens, i)) - 1)
    while last > 0 and (tokens[last].text == "," or tokens[last].tag == "CC"):
        last -= 1
    return last


def _moved(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return a phrase as it reads inside of a sentence."""
    first, piece = tokens[span[0]], text_of(text, tokens, span)
    second = tokens[span[0] + 1].text if span[1] > span[0] else ""
    named = first.text in names() or (
        first.tag[:2] in ("NN", "JJ") and second.istitle()
    )  # "Red Hat", "Chile"
    return recased(piece, first, was_first=span[0] == 0 and not named)


def _question_word(tokens: Sequence[Token], clause: Clause) -> str | None:
    """Return "Who" or "What" for the subject; None if it is not known which."""
    assert clause.subject is not None
    head = tokens[clause.subject]
    if names().get(tokens[min(subtree(tokens, clause.subject))].text) in ("man", "woman"):
        return "Who"
    if head.tag not in ("NN", "NNS") or (clause.subject == 0 and head.tag == "NN"):
        return None  # a singular noun without an article, at the beginning, may be a name
    word = head.text.lower() if head.text.lower() in ACTORS else head.text.lower().removesuffix("s")
    if word in ACTORS - _GROUPS:
        return "Who"
    return None if word in _GROUPS or _PERSON.search(word) else "What"


def _singular(finite: Token, tag: str) -> str:
    """Return a finite verb as it follows "who" or "what"."""
    if tag == "VBP" and finite.text.lower() not in (*BE, "have", "do"):
        return inflect(finite.text.lower(), "VBZ")
    return agreeing(finite.text, plural=False)


@cache
def _patterns() -> dict[str, list[str]]:
    """Return the patterns of questions by kind, with {it} for the topic."""
    rows = lexicon_rows("topic_questions")
    return {kind: [pattern for its_kind, pattern in rows if its_kind == kind] for kind, _ in rows}


class TopicQuestion(GrammarView):
    """Ask a short question about one thing that the sentence mentions.

    The sentence need not answer it. Such questions show a model in training where real ones lie, so
    that losses that preserve similarities hold them there: `question` keeps nearly all words of its
    statement, people do not. Null if the sentence mentions nothing by a noun.

    Example:
        [build.topic_question]
        kind = "topic_question"

        >>> TopicQuestion().preview("The old bridge was built in Rome.")
        ['What happened to the old bridge?']
    """

    kind = "topic_question"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Ask one question."""
        topics = [phrase for i in range(len(tokens)) if (phrase := _topic(text, tokens, i))]
        if not topics:
            return None, "no noun"
        topic, plural = rng.choice(topics)
        kind = rng.choice(list(_patterns()))
        forms = {"is": "are", "does": "do", "Is": "Are", "Does": "Do"}
        forms = forms if plural else dict(zip(forms, forms, strict=True))
        return rng.choice(_patterns()[kind]).format(it=topic, **forms), kind


def _topic(text: str, tokens: Sequence[Token], place: int) -> tuple[str, bool] | None:
    """Return the phrase of a noun and whether it is plural; None if the token is not such a noun."""
    token = tokens[place]
    named = token.tag in ("NN", "NNS", "NNP", "NNPS") and base_relation(token) not in (
        "compound",
        "flat",
    )
    span = noun_phrase(tokens, place, longest=_LONGEST_TOPIC + 2) if named else None
    if span is None:
        return None
    first, last = span
    plural = token.tag in ("NNS", "NNPS")
    owned = word_at(tokens, first) in word_class("determiners")
    if owned or (plural and word_at(tokens, first) == "the"):
        first += 1
    words = tokens[first : last + 1]
    if not 1 <= len(words) <= _LONGEST_TOPIC + 1 or not all(t.text.isalpha() for t in words):
        return None
    phrase = recased(text_of(text, tokens, (first, last)), tokens[first], was_first=first == 0)
    return (f"the {phrase}" if owned and token.tag == "NN" else phrase), plural


_EMPTY = word_class("light words")
_NEGATIVE = (*NOT, "no", "without", "never")


class Keywords(GrammarView):
    """Keep the words of a sentence that a search would name: its predicate, subject, objects and names.

    Words keep their order; common ones are in lower case. A negative word in front of a chosen word
    is kept. Null if the sentence has fewer than four; each row draws its own number, up to seven.

    Example:
        [build.keywords]
        kind = "keywords"

        >>> Keywords().preview("The bakery in our street sells fresh bread on Sundays.")
        ['bakery street sells bread Sundays']
    """

    kind = "keywords"

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Choose the words of one sentence."""
        ranked = sorted(
            (_rank(tokens, i), rng.random(), i) for i, t in enumerate(tokens) if _is_content(t)
        )
        if len(ranked) < _FEWEST:
            return None, "few content words"
        wanted = rng.randint(_FEWEST, min(_MOST, len(ranked)))
        chosen: set[int] = set()
        for _, _, i in ranked:
            if len(chosen) >= wanted:
                break
            if tokens[i].relation == "amod" and tokens[i].head not in chosen:
                continue  # "young" says little without its noun
            parts = children(tokens, i, "compound", "flat", "goeswith")  # "bus stop", "New York"
            chosen |= {i, *parts, *(k for k in children(tokens, i, "amod") if _is_name(tokens[k]))}
        for i, token in enumerate(tokens):
            if token.text.lower() in _NEGATIVE and (
                token.head in chosen or tokens[token.head].head in chosen
            ):
                chosen.add(i)
        words = ["not" if tokens[i].text.lower() in NOT else tokens[i].text for i in sorted(chosen)]
        cased = [_is_name(tokens[i]) or tokens[i].text.isupper() for i in sorted(chosen)]
        typed = [word if keep else word.lower() for word, keep in zip(words, cased, strict=True)]
        return " ".join(typed), f"{len(chosen)} words"


def _is_content(token: Token) -> bool:
    """Whether a word carries content: a noun, a name, an adjective, a main verb or a number."""
    if base_relation(token) in ("aux", "cop", "det", "case", "mark") or not any(
        map(str.isalnum, token.text)
    ):
        return False
    return _is_name(token) or (
        token.pos in ("NOUN", "ADJ", "VERB", "NUM") and token.lemma.lower() not in _EMPTY
    )


def _is_name(token: Token) -> bool:
    return token.pos == "PROPN" or token.tag in ("NNP", "NNPS")


def _rank(tokens: Sequence[Token], i: int) -> int:
    """Return how early a word is chosen: the predicate and its arguments first."""
    token, relation = tokens[i], base_relation(tokens[i])
    if token.head == i:
        return 0
    if relation in ("nsubj", "obj", "dobj", "nsubjpass"):
        return 1
    if _is_name(token) or relation in ("obl", "xcomp", "acl"):
        return 2
    return 3 if token.pos == "NOUN" else 4
