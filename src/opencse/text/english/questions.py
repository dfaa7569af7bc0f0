"""Questions about a sentence or its topic, and keywords."""

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
# Tokens of a phrase that moves from the beginning to the end, at most.
_LONGEST_LEADING = 8
# Share of the questions that ask for the subject, if its kind is known.
_SUBJECTS = 0.2
# Longest question and longest topic, in words.
_LONGEST = 24
_LONGEST_TOPIC = 4
# Number of keywords.
_FEWEST = 4
_MOST = 7
# Endings of nouns that may name a person, such as "winner".
_PERSON = re.compile(r"(?:er|or|ist|ian|ee|man|men|woman|women)$")
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
        if clause is None or clause.subject is None or clause.finite is None:
            return None, "no subject and verb"
        if clause.subject > clause.finite:
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
        if question is None:
            return None, rule
        if len(question.split()) > _LONGEST:
            return None, "too long"
        # Without adverbs nothing is drawn, so that the draws of other options stay the same.
        if rule == "yes or no" and self.adverbs and rng.random() < self.adverbs:
            return f"{rng.choice(_ADVERBS)} {question[0].lower()}{question[1:]}", "why, how or when"
        return question, rule


def _leading(tokens: Sequence[Token], subject: Span) -> tuple[int, int] | None:
    """Return the half-open range of a phrase before the subject that can move to the end, if any.

    (0, 0) stands for nothing to move, and None for a phrase that cannot move.
    """
    if subject[0] == 0:
        return 0, 0
    end = subject[0] - 1
    if tokens[end].text != "," or end > _LONGEST_LEADING:
        return None
    heads = [i for i in range(end) if not 0 <= tokens[i].head < end]
    if len(heads) != 1 or base_relation(tokens[heads[0]]) not in _LEADING:
        return None
    linking = {token.lemma.lower() for token in tokens[:end]} & word_class("linking")
    if tokens[heads[0]].tag == "RB" or linking:
        # "However, …" has no place in a question.
        return 0, 0
    return 0, end


def _asked(
    text: str, clause: Clause, subject: Span, leading: tuple[int, int], *, ask_subject: bool
) -> Rewrite:
    """Return the question and its rule."""
    assert clause.finite is not None
    tokens = clause.tokens
    tag = clause.tag
    finite = tokens[clause.finite]
    last = _last(clause)
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
        asked = finite.text if tag == "VBD" else _singular(finite, tag)
        edits = [(finite.start, finite.end, asked)]
    elif clause.auxiliary:
        if inflected:
            return None, "shared subject"
        # The auxiliary moves to the front.
        word = finite.text.capitalize()
        edits = [(finite.start, tokens[clause.finite + 1].start, "")]
    elif any(verb.tag not in FINITE for verb in shared):
        return None, "shared subject"
    elif inflect(base, tag) != finite.text.lower():
        return None, "verb form"
    else:
        word = _HELPERS[tag].capitalize()
        edits = [(finite.start, finite.end, base)]
        for verb in shared:
            edits.append((verb.start, verb.end, base_form(verb.text, verb.tag, verb.lemma)))
    start = tokens[subject[1] + 1].start
    end = tokens[last].end
    if any(edit[1] > end for edit in edits):
        return None, "verb form"
    rest = apply_edits(text[start:end], [(a - start, b - start, new) for a, b, new in edits])
    parts = [word]
    if rule == "yes or no":
        parts.append(_moved(text, tokens, subject))
    parts.append(rest)
    if leading[1]:
        parts.append(_moved(text, tokens, (0, leading[1] - 1)))
    return " ".join(parts) + "?", rule


def _last(clause: Clause) -> int:
    """Return the last token of the clause itself, without the clauses that follow it."""
    tokens = clause.tokens
    last = len(tokens) - 2
    for i, token in enumerate(tokens):
        own = any(t.head == i and t.relation.startswith(("nsubj", "aux", "cop")) for t in tokens)
        joined = token.head == clause.predicate and token.relation in ("conj", "parataxis")
        if joined and own and i > clause.predicate:
            last = min(last, min(subtree(tokens, i)) - 1)
    while last > 0 and (tokens[last].text == "," or tokens[last].tag == "CC"):
        last -= 1
    return last


def _moved(text: str, tokens: Sequence[Token], span: Span) -> str:
    """Return a phrase as it reads inside of a sentence."""
    first = tokens[span[0]]
    piece = text_of(text, tokens, span)
    second = tokens[span[0] + 1].text if span[1] > span[0] else ""
    # "Red Hat", "Chile"
    named = first.text in names() or (first.tag[:2] in ("NN", "JJ") and second.istitle())
    return recased(piece, first, was_first=span[0] == 0 and not named)


def _question_word(tokens: Sequence[Token], clause: Clause) -> str | None:
    """Return "Who" or "What" for the subject; None if it is not known which."""
    assert clause.subject is not None
    head = tokens[clause.subject]
    if names().get(tokens[min(subtree(tokens, clause.subject))].text) in ("man", "woman"):
        return "Who"
    if head.tag not in ("NN", "NNS"):
        return None
    if clause.subject == 0 and head.tag == "NN":
        # A singular noun without an article, at the beginning, may be a name.
        return None
    word = head.text.lower()
    if word not in ACTORS:
        word = word.removesuffix("s")
    if word in ACTORS - _GROUPS:
        return "Who"
    if word in _GROUPS or _PERSON.search(word):
        return None
    return "What"


def _singular(finite: Token, tag: str) -> str:
    """Return a finite verb as it follows "who" or "what"."""
    if tag == "VBP" and finite.text.lower() not in (*BE, "have", "do"):
        return inflect(finite.text.lower(), "VBZ")
    return agreeing(finite.text, plural=False)


@cache
def _patterns() -> dict[str, list[str]]:
    """Return the patterns of questions by kind, with {it} for the topic."""
    patterns: dict[str, list[str]] = {}
    for kind, pattern in lexicon_rows("topic_questions"):
        patterns.setdefault(kind, []).append(pattern)
    return patterns


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
        topics = []
        for i in range(len(tokens)):
            phrase = _topic(text, tokens, i)
            if phrase is not None:
                topics.append(phrase)
        if not topics:
            return None, "no noun"
        topic, plural = rng.choice(topics)
        kind = rng.choice(list(_patterns()))
        # The patterns have the singular; a plural topic takes the other forms.
        forms = {"is": "is", "does": "does", "Is": "Is", "Does": "Does"}
        if plural:
            forms = {"is": "are", "does": "do", "Is": "Are", "Does": "Do"}
        pattern = rng.choice(_patterns()[kind])
        return pattern.format(it=topic, **forms), kind


def _topic(text: str, tokens: Sequence[Token], place: int) -> tuple[str, bool] | None:
    """Return the phrase of a noun and whether it is plural; None for other tokens."""
    token = tokens[place]
    if token.tag not in ("NN", "NNS", "NNP", "NNPS"):
        return None
    if base_relation(token) in ("compound", "flat"):
        return None
    span = noun_phrase(tokens, place, longest=_LONGEST_TOPIC + 2)
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
    if owned and token.tag == "NN":
        phrase = f"the {phrase}"
    return phrase, plural


_EMPTY = word_class("light words")
_NEGATIVE = (*NOT, "no", "without", "never")


class Keywords(GrammarView):
    """Keep the words that a search would name: predicate, subject, objects and names.

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
        ranked = []
        for i, token in enumerate(tokens):
            if _is_content(token):
                # A random number orders the words of one rank.
                ranked.append((_rank(tokens, i), rng.random(), i))
        ranked.sort()
        if len(ranked) < _FEWEST:
            return None, "few content words"
        wanted = rng.randint(_FEWEST, min(_MOST, len(ranked)))
        chosen: set[int] = set()
        for _, _, i in ranked:
            if len(chosen) >= wanted:
                break
            if tokens[i].relation == "amod" and tokens[i].head not in chosen:
                # "young" means little without its noun.
                continue
            # "bus stop", "New York"
            chosen.add(i)
            chosen.update(children(tokens, i, "compound", "flat", "goeswith"))
            chosen.update(k for k in children(tokens, i, "amod") if _is_name(tokens[k]))
        for i, token in enumerate(tokens):
            near = token.head in chosen or tokens[token.head].head in chosen
            if near and token.text.lower() in _NEGATIVE:
                chosen.add(i)
        typed = [_typed(tokens[i]) for i in sorted(chosen)]
        return " ".join(typed), f"{len(chosen)} words"


def _typed(token: Token) -> str:
    """Return a word as people type it: names and abbreviations keep their capitals."""
    word = "not" if token.text.lower() in NOT else token.text
    if _is_name(token) or token.text.isupper():
        return word
    return word.lower()


def _is_content(token: Token) -> bool:
    """Whether a word carries content: a noun, a name, an adjective, a main verb or a number."""
    if base_relation(token) in ("aux", "cop", "det", "case", "mark"):
        return False
    if not any(character.isalnum() for character in token.text):
        return False
    if _is_name(token):
        return True
    return token.pos in ("NOUN", "ADJ", "VERB", "NUM") and token.lemma.lower() not in _EMPTY


def _is_name(token: Token) -> bool:
    return token.pos == "PROPN" or token.tag in ("NNP", "NNPS")


def _rank(tokens: Sequence[Token], i: int) -> int:
    """Return how early a word is chosen: the predicate and its arguments first."""
    token = tokens[i]
    relation = base_relation(token)
    if token.head == i:
        return 0
    if relation in ("nsubj", "obj", "dobj", "nsubjpass"):
        return 1
    if _is_name(token) or relation in ("obl", "xcomp", "acl"):
        return 2
    return 3 if token.pos == "NOUN" else 4
