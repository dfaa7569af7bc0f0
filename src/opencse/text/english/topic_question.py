"""Short questions about what a sentence mentions, as people ask a search engine: "How does a heat pump work?"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opencse.text.english.grammar_view import GrammarView, Rewrite
from opencse.text.english.phrases import noun_phrase, recased, text_of
from opencse.text.syntax.tokens import Token

_PATTERNS = {
    "what": (
        "What {is} {it}?",
        "What {does} {it} mean?",
        "What {is} {it} used for?",
        "What do I need to know about {it}?",
        "What happened to {it}?",
        "What is special about {it}?",
        "What is the use of {it}?",
        "What comes after {it}?",
    ),
    "how": (
        "How {does} {it} work?",
        "How {is} {it} made?",
        "How much {does} {it} cost?",
        "How old {is} {it}?",
        "How do I recognise {it}?",
        "How did {it} begin?",
        "How long {does} {it} last?",
        "How big {is} {it}?",
    ),
    "where and when": (
        "Where {is} {it}?",
        "Where {does} {it} come from?",
        "Where can I see {it}?",
        "When did {it} change?",
        "When {is} {it} needed?",
    ),
    "who": ("Who invented {it}?", "Who needs {it}?", "Who decides about {it}?", "Whose idea was {it}?"),
    "why": ("Why {is} {it} important?", "Why {does} {it} matter?", "Why did {it} change?", "Why {is} {it} like that?"),
    "yes or no": (
        "{Is} {it} dangerous?",
        "{Is} {it} still in use?",
        "{Does} {it} exist today?",
        "Can {it} be repaired?",
        "Can anyone explain {it}?",
        "Do I need {it}?",
        "Do people like {it}?",
        "Is there anything like {it}?",
        "Is it true about {it}?",
    ),
}
_OWNED = frozenset("my your his her its our their this that these those some any no each every another both".split())


@dataclass(frozen=True, kw_only=True)
class TopicQuestion(GrammarView):
    """Ask a short question about one thing that the sentence mentions.

    The sentence need not answer it. Such questions show a model in training where real ones lie, so that terms that
    preserve similarities hold them there: `question` keeps nearly all words of its statement, people do not.
    Null if the sentence mentions nothing by a noun.

    Attributes:
        longest: Most words of the phrase that is asked about.

    Example:
        [build.topic_question]
        kind = "topic_question"
    """

    kind: ClassVar[str] = "topic_question"

    longest: int = 4

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise ValueError(f"longest must be at least 1, not {self.longest}")

    def rewrite(self, text: str, tokens: Sequence[Token], rng: random.Random) -> Rewrite:
        """Ask one question."""
        topics = [found for i, token in enumerate(tokens) if (found := self._topic(text, tokens, i, token))]
        if not topics:
            return None, "no noun"
        topic, plural = rng.choice(topics)
        kind = rng.choice(list(_PATTERNS))
        words = {"is": "are", "does": "do", "Is": "Are", "Does": "Do"} if plural else {}
        forms = {word: words.get(word, word) for word in ("is", "does", "Is", "Does")}
        return rng.choice(_PATTERNS[kind]).format(it=topic, **forms), kind

    def _topic(self, text: str, tokens: Sequence[Token], place: int, token: Token) -> tuple[str, bool] | None:
        """Return the phrase of a noun and whether it is plural; None if the token is not such a noun."""
        if token.tag not in ("NN", "NNS", "NNP", "NNPS") or token.relation.split(":")[0] in ("compound", "flat"):
            return None
        span = noun_phrase(tokens, place, longest=self.longest + 2)
        if span is None:
            return None
        first, last = span
        plural = token.tag in ("NNS", "NNPS")
        owned = tokens[first].text.lower() in _OWNED
        if owned or (plural and tokens[first].text.lower() == "the"):
            first += 1
        if not first <= last < first + self.longest + 1 or not all(t.text.isalpha() for t in tokens[first : last + 1]):
            return None
        phrase = recased(text_of(text, tokens, (first, last)), tokens[first], was_first=first == 0, is_first=False)
        return (f"the {phrase}" if owned and token.tag == "NN" else phrase), plural
