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
    correct_articles,
    is_participle,
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
    # What comes before the question is a story, which stays: "I lost my card. How do I …?"
    story, question = _last_sentence(text)
    found: dict[str, str] = {}
    for kind, rule in _RULES.items():
        candidates = [correct_articles(new, question) for new in rule(question) if new != question]
        if candidates:
            found[kind] = story + rng.choice(candidates)
    return found


def _last_sentence(text: str) -> tuple[str, str]:
    """Return what comes before the last sentence, and the last sentence."""
    ends = list(re.finditer(r"[.!?]\s+", text))
    start = ends[-1].end() if ends else 0
    return text[:start], text[start:]


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


@dataclass(frozen=True)
class _Action:
    """An action, its opposite, and the nouns of the objects that both are done to."""

    verb: str
    opposite: str
    nouns: frozenset[str]

    @property
    def is_clear(self) -> bool:
        """Whether the verb means the same with any object: "mute" and "unmute", "turn on" and "turn off"."""
        if {self.verb, self.opposite} <= _CLEAR:
            return True
        if {self.verb, self.opposite} & {"charge", "mount"}:
            # One charges a battery, but also a fee.
            return False
        short, long = sorted((self.verb, self.opposite), key=len)
        return any(long == prefix + short for prefix in ("un", "de", "dis"))


_CLEAR = frozenset(
    "encrypt decrypt install uninstall enable disable activate deactivate upload download import export "
    "attach detach inflate deflate withdraw deposit increase decrease raise lower reduce approve reject accept "
    "decline tighten loosen buy sell purchase lengthen shorten".split()
) | {
    "switch on",
    "switch off",
    "turn on",
    "turn off",
    "subscribe to",
    "unsubscribe from",
    "plug in",
    "unplug",
}


@cache
def _actions() -> dict[str, tuple[_Action, ...]]:
    """Return opposite actions by kind: those that training rows hold, and the others."""
    kinds: dict[str, list[_Action]] = {"action": [], "other action": []}
    for first, second, objects, trained in lexicon_rows("actions"):
        one = [verb for verb in first.split(", ") if "{o}" not in verb]
        other = [verb for verb in second.split(", ") if "{o}" not in verb]
        if not one or not other:
            continue
        nouns = frozenset(each.split()[-1] for each in objects.split(", "))
        kind = "action" if trained == "yes" else "other action"
        for verb in one:
            kinds[kind].append(_Action(verb, _opposite_of(verb, other), nouns))
        for verb in other:
            kinds[kind].append(_Action(verb, _opposite_of(verb, one), nouns))
    # Training rows exchange verbs for the listed opposites, also in statements.
    listed = {(word, other) for (word, pos), other in opposites().items() if pos == "VERB"}
    unseen = []
    for action in kinds["other action"]:
        if (action.verb, action.opposite) not in listed:
            unseen.append(action)
    return {"action": tuple(kinds["action"]), "other action": tuple(unseen)}


def _opposite_of(verb: str, others: Sequence[str]) -> str:
    """Return the opposite that looks most like a verb ("switch off" for "switch on"), or else the first."""
    for other in others:
        if verb.split()[0] == other.split()[0] or other.endswith(verb) or verb.endswith(other):
            return other
    # Nobody gives back a table.
    return next(other for other in others if other != "give back")


_OBJECT = r"(?:\s+[\w'’-]+){1,4}"
_NO_OBJECT = re.compile(
    r"\s+(?:me|it|them|him|her|us|that|than|how|if|by|from|with)\b", re.IGNORECASE
)


@cache
def _action_patterns(kind: str) -> tuple[tuple[_Action, re.Pattern[str]], ...]:
    """Return the actions of a kind, each with its pattern: more than `re` keeps compiled by itself."""
    found = []
    for action in _actions()[kind]:
        pattern = rf"(?:{_BEFORE_A_VERB}|^)({re.escape(action.verb)})(?={_OBJECT})"
        found.append((action, re.compile(pattern, re.IGNORECASE)))
    return tuple(found)


def _opposite_action(kind: str) -> Callable[[str], list[str]]:
    def rule(text: str) -> list[str]:
        found = []
        for action, pattern in _action_patterns(kind):
            match = pattern.search(text)
            # "How do I set up": a longer entry of the list is a match of its own.
            if match is None or _is_longer_verb(text, match.end()):
                continue
            if not _has_object(text[match.end() :], action):
                continue
            word = match_case(action.opposite, match[1])
            rest = _with_its_preposition(text[match.end() :], word)
            found.append(text[: match.start(1)] + word + rest)
        return found

    return rule


def _has_object(rest: str, action: _Action) -> bool:
    """Whether the words after a verb are an object with which its opposite makes sense."""
    if _NO_OBJECT.match(rest):
        return False
    if action.verb in ("send", "receive") and re.search(r"\b(?:to|from)\b", rest):
        return False
    if action.is_clear:
        return True
    first = re.match(_OBJECT, rest)
    words = set() if first is None else set(first[0].lower().split())
    return any(noun in words or noun.removesuffix("s") in words for noun in action.nouns)


def _with_its_preposition(rest: str, verb: str) -> str:
    """Return what follows a verb: one adds to a list, and removes from it."""
    if verb.lower() in ("remove", "delete", "withdraw"):
        return re.sub(r"\b(?:in)?to (?=the |my |our |an? )", "from ", rest, count=1)
    if verb.lower() in ("add", "deposit"):
        return re.sub(r"\bfrom (?=the |my |our |an? )", "to ", rest, count=1)
    return rest


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
                # "before or after": both are there, so exchanging one would repeat the other.
                continue
            if len(re.findall(rf"\b{old}\b", text, re.IGNORECASE)) == 1:
                replace = partial(_in_the_same_case, new)
                found.append(re.sub(rf"\b{old}\b", replace, text, flags=re.IGNORECASE))
        return found

    return rule


_TIMES = _exchanged(
    (
        ("earlier than", "later than"),
        ("earliest", "latest"),
        ("arrival", "departure"),
    )
)
_PRONOUN = r"(?:I|you|we|they|he|she|it|that|all)\b"
_TIME_SPAN = r"(?:\w+ )?(?:\d+|\w+) (?:minute|hour|day|week|month|year)s?\b"
_CLAUSE = rf"(?:{_PRONOUN}|going\b|{_TIME_SPAN}|(?:the|my) \w+ \w+s\b)"
# Before or after an event. What follows is no clause, whose tense would have to change.
_SIDE = re.compile(
    r"(?<!ever )(?<!never )(?<!named )(?<!look )(?<!looking )(?<!until )"
    rf"\b(before|after) (?!{_CLAUSE})(?=\w)",
    re.IGNORECASE,
)
_SPAN_OF_TIME = re.compile(r"how (?:many|long|low|high|much|soon|often|far)\b", re.IGNORECASE)
_VEHICLE = re.compile(
    r"\b(?P<what>(?:flight|train|bus|ferry|boat|plane|ship|tram|coach)s?) (?P<verb>arrive|leave)(?=s?\b)",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\b(previous|next) (?=(?:page|month|year|week|day|version|order|invoice|chapter|message)s?\b)",
    re.IGNORECASE,
)

_UNTIL = re.compile(r"\buntil (\d[\d:.]*(?: ?[ap]m)?|noon|midnight|\w+day)\b")


def _put(text: str, place: tuple[int, int], new: str) -> str:
    return text[: place[0]] + new + text[place[1] :]


def _order(text: str) -> list[str]:
    found = _TIMES(text)
    for pattern, first, second in ((_SIDE, "before", "after"), (_NEXT, "previous", "next")):
        matches = list(pattern.finditer(text))
        if len(matches) == 1 and not _SPAN_OF_TIME.search(text):
            old = matches[0][1]
            new = second if old.lower() == first else first
            found.append(_put(text, matches[0].span(1), match_case(new, old)))
    vehicle = _VEHICLE.search(text)
    if vehicle is not None:
        new = "leave" if vehicle["verb"].lower() == "arrive" else "arrive"
        found.append(_put(text, vehicle.span("verb"), new))
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
        ("highest", "lowest"),
        ("cheapest", "most expensive"),
    )
)


_MOST = re.compile(
    r"\b(?:the|is|are|['’]s) (?P<most>most|least|fewest) (?P<word>[\w-]+)", re.IGNORECASE
)
_LESS_THAN_ONE = re.compile(r"\bless than on(?:ce|e)\b", re.IGNORECASE)
_ADJECTIVE = re.compile(r"(?:ous|ss|us|is)$")


def _limit(text: str) -> list[str]:
    # A pattern with a look-ahead is no text to put in.
    found = [new for new in _LIMIT(text) if "(?=" not in new and not _LESS_THAN_ONE.search(new)]
    match = _MOST.search(text)
    if match is not None and match["word"].lower() not in ("of", "part", "people"):
        word = match["word"].lower()
        if match["most"].lower() != "most":
            new = "most"
        elif word.endswith("s") and not _ADJECTIVE.search(word):
            # "the most members": what is counted, in the plural.
            new = "fewest"
        else:
            # "the most expensive", "the most money".
            new = "least"
        found.append(_put(text, match.span("most"), new))
    return found


def _presence(text: str) -> list[str]:
    found = []
    for old, new in (
        (r"\bwithout (an?) ", r"with \1 "),
        (r"\bwithout (?!\w+ing\b)", "with "),
        (r"\bwith (an?|any) ", r"without \1 "),
        (r"\bthat are ", "that are not "),
        (r"\bwhich are ", "which are not "),
        # The next word is the verb, and not the rest of a noun: "Why is my card declined?"
        (
            r"\b(Why|why) (is|are|was) ((?:the|my|your|our|this) \w+) (?=\w+(?:ed|ing)\b)",
            r"\1 \2 \3 not ",
        ),
        (
            r"\b(Why|why) (does|did|do|can) ((?:the|my|your|our|this) \w+) (?=\w+(?:\?| (?:the|my|me|your|our|an?|it)\b))",
            r"\1 \2 \3 not ",
        ),
        (
            r"^(Which|What) (\w+s) (include|offer|allow|need|require|accept|support|contain) ",
            r"\1 \2 do not \3 ",
        ),
        (
            r"^(Which|What) (\w+[^s\W]) (include|offer|allow|need|require|accept|support|contain)s ",
            r"\1 \2 does not \3 ",
        ),
    ):
        match = re.search(old, text)
        if match is None or " not " in text or text[: match.start()].endswith("("):
            continue
        found.append(text[: match.start()] + match.expand(new) + text[match.end() :])
        break
    if not found and " not " not in text:
        found += _having(text)
    return found


_THAT_HAS = re.compile(r"\b[Tt]hat (?P<have>has|have|had) (?=\w)")
# Adverbs before a participle: "that has already been paid", "that have since been sold".
_ADVERBS = re.compile(
    r"(?:(?:already|never|also|always|often|since|now|recently|yet|even|\w{2,}ly) )*"
)
_WORD = re.compile(r"[\w'’-]+")
_SECOND_WORD = re.compile(r"[\w'’-]+ ([\w'’-]+)")
# What may be said to be missing: "that lacks only one" would not ask for the opposite.
_NOT_MISSING = re.compile(
    r"(?:no|only|just|ever|long|little|few|nothing|never|yet|not|all|both|between|the (?:most|least))\b"
)
_LACK = {"has": "lacks", "have": "lack", "had": "lacked"}
_DO_NOT = {"has": "does not have", "have": "do not have", "had": "did not have"}
# Participles that describe no noun. After the others a noun may follow, and "have" may be the verb:
# "that have heated pools", "that have heated the pool".
_ALWAYS_PERFECT = ("been", "become", "come", "gone", "got", "gotten", "had")
_NO_NOUN = re.compile(
    r" (?:(?:a|an|the|this|these|my|your|our|their|its|his|her|me|you|us|them|it|him|to|from|for|in"
    r"|on|at|by|with|into|over|out|up|off|down|about|after|before|since|through|than|as|that"
    r"|together|yet|already|again|here|there|so|more|all)\b|\w{2,}ly\b)|[^\w\s]|$"
)


def _having(text: str) -> list[str]:
    """Deny what "that has" states: "that lacks a lid", "that has not been opened".

    Nothing if "has" may be the verb or the helper of another one.
    """
    match = _THAT_HAS.search(text)
    if match is None:
        return []
    have = match["have"]
    start, rest = text[: match.start("have")], text[match.end() :]
    if rest.startswith("to "):
        return [f"{start}{_DO_NOT[have]} {rest}"]
    leading = _ADVERBS.match(rest)
    adverbs = "" if leading is None else leading[0]
    after = rest[len(adverbs) :]
    verb = _WORD.match(after)
    if verb is not None and is_participle(verb[0]):
        if verb[0] in _ALWAYS_PERFECT or _NO_NOUN.match(after[verb.end() :]):
            return [f"{start}{have} {_denied(adverbs)}{after}"]
        return []
    if _NOT_MISSING.match(rest):
        return []
    second = _SECOND_WORD.match(rest)
    if second is not None and is_participle(second[1]):
        # An adverb that is not listed ("that have otherwise become"), or "pools heated by the sun".
        return []
    missing = rest.removeprefix("any ")
    if missing.startswith("some "):
        missing = missing.replace("some ", "any ", 1)
    return [f"{start}{_LACK[have]} {missing}"]


def _denied(adverbs: str) -> str:
    """Return the adverbs of a perfect tense with "not", or without "never"."""
    if "never " in adverbs:
        return adverbs.replace("never ", "", 1)
    adverbs = re.sub(r"\b(?:also|since) ", "", adverbs)
    if "already " in adverbs:
        return adverbs.replace("already ", "not yet ", 1)
    return f"not {adverbs}"


# What follows a phrase that ends: "from Rome to Bern by train", but not "to the city centre".
_END = r"(?=[?,]|$| (?:by|with|on|in|at|using|via|before|after|per|without)\b)"
_PHRASE = r"(?:(?:the|a|an|my|our|your) )?[\w-]+(?: [\w-]+)?"
_MOVED = re.compile(
    rf"\b(?P<start>from) (?P<one>{_PHRASE}?) (?P<link>to|into) (?P<two>(?:(?:the|a|an|my|our|your) )?[\w-]+){_END}",
    re.IGNORECASE,
)
_TURNED = re.compile(
    rf"(?:{_BEFORE_A_VERB}|^)(?P<start>convert|change|turn|translate|exchange|transform|swap|migrate) (?P<one>{_PHRASE}?) "
    rf"(?P<link>to|into|for) (?P<two>(?:(?:the|a|an|my|our|your) )?[\w-]+){_END}",
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
        if {"another", "other", "from", "here", "there"} & set(match[0].lower().split()[1:]):
            continue
        if pattern is _BOTH and not (_is_person(match["one"]) and _is_person(match["two"])):
            continue
        new = f"{match['start']} {match['two']} {match['link']} {match['one']}"
        found.append(text[: match.start("start")] + new + text[match.end("two") :])
    return found


_RULES: dict[str, Callable[[str], list[str]]] = {
    "action": _opposite_action("action"),
    "other action": _opposite_action("other action"),
    "order": _order,
    "limit": _limit,
    "presence": _presence,
    "arguments": _arguments,
}

_SUBJECT = r"(?:I|you|we|they|he|she|it|the|my|your|our|an?|this)\b"
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
        (r"(?:Is|Are) there (?P<x>.+)\?", "Do you know of {x}?"),
        (
            r"Do you (?:have(?! to\b)|sell|offer) (?P<x>.+)\?",
            "I am looking for {x}, is that available?",
        ),
        (r"What does (?P<x>.+?) mean\?", "What is the meaning of {x}?"),
        (
            r"What (?:is|are) (?P<x>(?:the|my|your|our|an?|this|these) .+)\?",
            "Can you tell me about {x}?",
        ),
        (rf"Which (?P<x>(?!.*\b(?:{_HELPERS}) {_SUBJECT}).+)\?", "Tell me which {x}."),
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
