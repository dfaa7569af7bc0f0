"""Questions and searches for the opposite, questions in other words, and statements denied as a whole.

People type questions without a full sentence, and a small parser reads them badly. These rules go by
patterns of words instead. Each returns nothing unless its pattern fits exactly.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

from opencse.text.english.lexicon import (
    ACTORS,
    OPPOSITE_TABLES,
    is_complementary,
    lexicon_bytes,
    lexicon_rows,
    opposites,
)
from opencse.text.syntax import decapitalise, match_case
from opencse.text.views.registry import (
    OpenedView,
    SourceRow,
    View,
    ViewText,
    row_random,
    with_error_rate,
)

_WH = "what|where|when|which|who|whom|whose|why|how"
_HELPERS = (
    "is|are|was|were|do|does|did|can|could|may|might|must|should|shall|will|would|have|has|am"
)
_QUESTION = re.compile(rf"(?:{_WH}|{_HELPERS})\b.*\?$|.*\?$", re.IGNORECASE)
_PROSE = re.compile(r"[\w\s,.'’\"()%$€£°&/–-]*\??")

# Words before a verb in its base form: "How do I …", "Where can guests …", "Is there a way to …".
_BEFORE_A_VERB = r"(?:\b(?:i|we|you|they|one|to|please|guests|users|members|customers)\s+)"


# Words that people leave out in a search box; none of them decides what is asked.
_SPARED = frozenset(
    "how what which do does did i we you can could may should would to a an the my our your it is are there "
    "was were be been please any some one me".split()
)


def is_question(text: str) -> bool:
    """Return whether a text is a question of plain words."""
    return bool(_PROSE.fullmatch(text) and _QUESTION.match(text))


def opposite_questions(text: str, rng: random.Random) -> dict[str, str]:
    """Return questions with another answer, by kind; the words that the rules do not touch stay.

    Args:
        text: A question.
        rng: Chooses among the places that a rule fits.

    Returns:
        Kinds: `action` and `other action`, of which the meaning block's training rows hold only the
        first; `order`, `limit`, `presence` and `arguments`.
    """
    found: dict[str, str] = {}
    for kind, rule in _RULES.items():
        candidates = [new for new in rule(text) if new != text]
        if candidates:
            found[kind] = rng.choice(candidates)
    return found


def question_rewordings(text: str) -> dict[str, str]:
    """Return the same question in another form, by kind: `asked otherwise`, or `in keywords`."""
    found: dict[str, str] = {}
    for pattern, form in _FORMS:
        match = pattern.fullmatch(text)
        if match is not None:
            found["asked otherwise"] = form.format(**match.groupdict())
            break
    words = text.rstrip("?").split()
    kept = [word for word in words if word.lower() not in _SPARED]
    if text.endswith("?") and 2 <= len(kept) < len(words):
        found["in keywords"] = " ".join(kept)
    return found


def deny(text: str, rng: random.Random) -> str | None:
    """Return a statement denied as a whole: "The claim that the door is open is untrue."; None if it is no statement."""
    body = text.rstrip()
    plain = body.endswith(".") and re.fullmatch(r"[\w\s,'’%$€£-]+", body[:-1])
    if not plain or not re.match(r"(?:The|A|An|This|These|Our|Your|All|You|We|They|It)\b", body):
        return None
    claim = decapitalise(body[:-1])
    form = rng.choice(
        ("The claim that {} is untrue.", "Whoever says that {} is in error.", "{}, which is a lie.")
    )
    new = form.format(claim)
    return new[:1].upper() + new[1:]


@cache
def _actions() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return pairs of opposite actions, whichever was asked for: those of training rows, and the others."""
    kinds: dict[str, list[tuple[str, str]]] = {"action": [], "other action": []}
    for first, second, _, trained in lexicon_rows("actions"):
        one = [verb for verb in first.split(", ") if "{o}" not in verb]
        other = [verb for verb in second.split(", ") if "{o}" not in verb]
        if not one or not other:
            continue
        kind = "action" if trained == "yes" else "other action"
        kinds[kind] += [(verb, other[0]) for verb in one]
        kinds[kind] += [(verb, one[0]) for verb in other]
    listed = {(word, other) for (word, pos), other in opposites().items() if pos == "VERB"}
    # Training rows exchange verbs for the listed opposites, also in statements.
    unseen = [pair for pair in kinds["other action"] if pair not in listed]
    known = {verb for verb, _ in (*kinds["action"], *unseen)}
    for word, opposite in sorted(listed):
        if word not in known and is_complementary(word, "VERB"):
            kinds["action"].append((word, opposite))
    return {"action": tuple(kinds["action"]), "other action": tuple(unseen)}


def _opposite_action(kind: str) -> Callable[[str], list[str]]:
    def rule(text: str) -> list[str]:
        found = []
        for verb, opposite in _actions()[kind]:
            pattern = rf"(?:{_BEFORE_A_VERB}|^)({re.escape(verb)})(?=\s+\w)"
            match = re.search(pattern, text, re.IGNORECASE)
            # "How do I set up": a longer entry of the list is a match of its own.
            if match is not None and not _is_longer_verb(text, match.end()):
                word = match_case(opposite, match[1])
                found.append(text[: match.start(1)] + word + text[match.end(1) :])
        return found

    return rule


def _is_longer_verb(text: str, end: int) -> bool:
    """Whether a particle follows a verb, which changes its sense: "put up"."""
    return bool(re.match(r"\s+(?:up|down|out|off|on|in|away|over|for)\b", text[end:]))


def _in_the_same_case(word: str, match: re.Match[str]) -> str:
    return match_case(word, match[0])


def _exchanged(pairs: tuple[tuple[str, str], ...]) -> Callable[[str], list[str]]:
    """Return the rule that puts one expression in the place of the other."""
    replacements = [*pairs, *((second, first) for first, second in pairs)]

    def rule(text: str) -> list[str]:
        found = []
        for old, new in replacements:
            if re.search(rf"\b{new}\b", text, re.IGNORECASE):
                continue  # "before or after": both are there
            if len(re.findall(rf"\b{old}\b", text, re.IGNORECASE)) == 1:
                replace = partial(_in_the_same_case, new)
                found.append(re.sub(rf"\b{old}\b", replace, text, flags=re.IGNORECASE))
        return found

    return rule


_TIMES = _exchanged(
    (
        ("before", "after"),
        ("earlier than", "later than"),
        ("previous", "following"),
        ("earliest", "latest"),
        ("arrive", "leave"),
        ("arrival", "departure"),
    )
)

_UNTIL = re.compile(r"\buntil (\d[\d:.]*(?: ?[ap]m)?|noon|midnight|\w+day)\b")


def _order(text: str) -> list[str]:
    found = _TIMES(text)
    if _UNTIL.search(text):
        found.append(_UNTIL.sub(r"from \1 on", text))
    return found


_LIMIT = _exchanged(
    (
        ("more than", "less than"),
        ("at least", "at most"),
        ("longer than", "shorter than"),
        ("older than", "younger than"),
        ("larger than", "smaller than"),
        ("higher than", "lower than"),
        ("heavier than", "lighter than"),
        ("cheaper than", "more expensive than"),
        ("minimum", "maximum"),
        ("above", "below"),
        ("over (?=[0-9$€£])", "under "),
        ("under (?=[0-9$€£])", "over "),
        ("fewest", "most"),
        ("highest", "lowest"),
        ("cheapest", "most expensive"),
    )
)


def _limit(text: str) -> list[str]:
    # A pattern with a look-ahead is no text to put in.
    return [new for new in _LIMIT(text) if "(?=" not in new]


def _presence(text: str) -> list[str]:
    found = []
    for old, new in (
        (r"\bwithout (?:an?|any) ", "with a "),
        (r"\bwithout ", "with "),
        (r"\bwith (?:an?|any) ", "without a "),
        (r"\bthat are ", "that are not "),
        (r"\bwhich are ", "which are not "),
        (r"\bthat (?:has|have) (?:an? |any )?", "that lack "),
        (
            r"\b(Why|why) (is|are|was|does|did|do|can) ((?:the|my|your|our|this) \w+) ",
            r"\1 \2 \3 not ",
        ),
        (
            r"^(Which|What) (\w+) (include|offer|allow|need|require|accept|support|contain)s? ",
            r"\1 \2 do not \3 ",
        ),
    ):
        match = re.search(old, text)
        if match is None or " not " in text:
            continue
        found.append(text[: match.start()] + match.expand(new) + text[match.end() :])
        break
    return found


_PHRASE = r"(?:(?:the|a|an|my|our|your) )?[\w-]+(?: [\w-]+)?"
_MOVED = re.compile(
    rf"\b(?P<start>from) (?P<one>{_PHRASE}?) (?P<link>to|into) (?P<two>(?:(?:the|a|an|my|our|your) )?[\w-]+)\b",
    re.IGNORECASE,
)
_TURNED = re.compile(
    rf"\b(?P<start>convert|change|turn|translate|exchange|transform|swap|migrate) (?P<one>{_PHRASE}?) "
    r"(?P<link>to|into|for) (?P<two>(?:(?:the|a|an|my|our|your) )?[\w-]+)\b",
    re.IGNORECASE,
)
_BOTH = re.compile(
    r"^(?P<start>Can|Could|May|Do|Should|Must|Will) (?P<one>(?:the |my |our )?\w+s) "
    r"(?P<link>\w+) (?P<two>(?:the |my |our )?\w+s)\b"
)


def _is_person(phrase: str) -> bool:
    """Whether a plural noun is likely to name people: "teachers", "patients"."""
    noun = phrase.lower().split()[-1]
    return noun.removesuffix("s") in ACTORS or bool(
        re.search(r"(?:er|or|ist|ian|ee|ent|ant|man)s$", noun)
    )


def _arguments(text: str) -> list[str]:
    found = []
    for pattern in (_MOVED, _TURNED, _BOTH):
        match = pattern.search(text)
        if match is None or match["one"].lower() == match["two"].lower():
            continue
        if pattern is _BOTH and not (_is_person(match["one"]) and _is_person(match["two"])):
            continue
        new = f"{match['start']} {match['two']} {match['link']} {match['one']}"
        found.append(text[: match.start()] + new + text[match.end() :])
    return found


_RULES: dict[str, Callable[[str], list[str]]] = {
    "action": _opposite_action("action"),
    "other action": _opposite_action("other action"),
    "order": _order,
    "limit": _limit,
    "presence": _presence,
    "arguments": _arguments,
}

# Forms of questions, and another form for each; the first that fits is taken.
_FORMS = tuple(
    (re.compile(pattern, re.IGNORECASE), form)
    for pattern, form in (
        (r"How (?:do|can|should|could) (?:I|we|you|one) (?P<x>.+)\?", "What is the way to {x}?"),
        (r"How to (?P<x>.+?)\??", "What steps are needed to {x}?"),
        (r"What is the (?:best )?way to (?P<x>.+)\?", "How do I {x}?"),
        (r"Is there a way to (?P<x>.+)\?", "Can I somehow {x}?"),
        (r"(?:Can|Could|May) I (?P<x>.+)\?", "Is it possible for me to {x}?"),
        (
            r"(?:Can|Could|May) (?P<w>we|you|guests|users|members|customers) (?P<x>.+)\?",
            "Is it possible for {w} to {x}?",
        ),
        (r"Is it possible to (?P<x>.+)\?", "Can I {x}?"),
        (r"(?:Do|Must) I (?:have|need) to (?P<x>.+)\?", "Am I obliged to {x}?"),
        (r"Should I (?P<x>.+)\?", "Would you advise me to {x}?"),
        (r"Where (?:can|do|could) I (?P<x>.+)\?", "What is the place to {x}?"),
        (r"When (?:can|should|do) I (?P<x>.+)\?", "What is the time to {x}?"),
        (r"(?:Is|Are) there (?:an?|any|some) (?P<x>.+)\?", "Do you know of {x}?"),
        (r"Do you (?:have|sell|offer) (?P<x>.+)\?", "I am looking for {x}, is that available?"),
        (r"What does (?P<x>.+?) mean\?", "What is the meaning of {x}?"),
        (r"What (?:is|are) (?P<x>.+)\?", "Can you tell me about {x}?"),
        (r"Which (?P<x>.+)\?", "Tell me which {x}."),
        (r"Who (?P<x>.+)\?", "I would like to know who {x}."),
    )
)


# Words of a search without a question mark, such as "hotel without a pool", at most.
_LONGEST_SEARCH = 12


def is_search(text: str) -> bool:
    """Return whether a text is a question, or a phrase as people type it into a search box."""
    if is_question(text):
        return True
    plain = _PROSE.fullmatch(text) is not None and not text.rstrip().endswith((".", "!", ":"))
    return plain and 2 <= len(text.split()) <= _LONGEST_SEARCH


@dataclass(frozen=True, kw_only=True)
class QuestionPair(View):
    """Ask the same in other words, and ask for the opposite.

    The columns of `[build.NAME]` are, for "How do I mute a chat?":

    - `NAME_reworded`: "What is the way to mute a chat?"
    - `NAME_opposed`: "How do I unmute a chat?"

    Searches without a question mark are read as well ("hotel without a pool"). Both columns are
    null for statements, and each is null if no rule fits. These are the rules by which `check`
    reads questions, so its numbers flatter a model that was trained on them.

    Attributes:
        rules: Which opposites are asked for: `action` ("mute", "unmute"), `other action` (those
            that the rows of the meaning block don't hold), `order` ("before", "after"), `limit`
            ("at least", "at most"), `presence` ("with", "without") and `arguments` ("from Rome to
            Bern"); empty for all.

    Example:
        [build.asked]
        kind = "question_pair"

        >>> QuestionPair().preview("Are there flights before noon?")
        [['Do you know of flights before noon?', 'Are there flights after noon?']]
    """

    kind = "question_pair"
    parts: ClassVar[tuple[str, ...]] = ("reworded", "opposed")
    scores: ClassVar[Mapping[str, str]] = {"mer": "float"}

    rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.rules:
            if name not in _RULES:
                raise ValueError(f"there is no rule {name!r}; choose among {', '.join(_RULES)}")

    def columns(self, name: str) -> tuple[str, ...]:
        """Return a column for each part."""
        return tuple(f"{name}_{part}" for part in self.parts)

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Return the view; the word lists are read with it."""

        def build(rows: Sequence[SourceRow]) -> list[list[ViewText]]:
            reworded = []
            opposed = []
            for row in rows:
                rng = row_random(seed, self.kind, row)
                reworded.append(self._reworded(row.text))
                opposed.append(self._opposed(row.text, rng))
            columns = [with_error_rate(rows, reworded), with_error_rate(rows, opposed)]
            return [list(views) for views in zip(*columns, strict=True)]

        tables = lexicon_bytes("actions", *OPPOSITE_TABLES)
        digest = hashlib.sha256(tables).hexdigest()
        return OpenedView(build=build, digest=digest)

    def _reworded(self, text: str) -> tuple[str | None, str]:
        if not is_question(text):
            return None, "no question"
        found = question_rewordings(text)
        if "asked otherwise" not in found:
            return None, "no other form"
        return found["asked otherwise"], "asked otherwise"

    def _opposed(self, text: str, rng: random.Random) -> tuple[str | None, str]:
        if not is_search(text):
            return None, "no question"
        found = opposite_questions(text, rng)
        kinds = [kind for kind in found if not self.rules or kind in self.rules]
        if not kinds:
            return None, "no opposite"
        kind = rng.choice(kinds)
        return found[kind], kind
