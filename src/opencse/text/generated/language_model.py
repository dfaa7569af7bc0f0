"""Views that a language model writes, through any server with the chat interface of OpenAI."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.numbers import check_least
from opencse.foundation.replies import Reply, ReplyCache
from opencse.text.views.registry import OpenedView, SourceRow, View, ViewText, with_error_rate

PROMPTS = {
    "syntactic_negative": (
        "Rewrite the sentence below so that it keeps its syntax but says something else.\n"
        "Replace every noun, verb, adjective and adverb by its antonym, in the same part of speech "
        "and the same form. If a word has no antonym, take a word of the same kind that has nothing "
        "to do with it. Leave all other words and their order as they are. The result must be a "
        "grammatical sentence.\n"
        "Reply with the new sentence only.\n\n"
        "Sentence: {}"
    ),
    "paraphrase": (
        "Say the same as the sentence below in other words. Change the words and the construction "
        "as much as you can, and neither add nor leave out anything.\n"
        "Reply with the new sentence only.\n\n"
        "Sentence: {}"
    ),
    "contradiction": (
        "Write a sentence that cannot be true if the sentence below is true. Keep as many of its "
        "words as you can, and do not only put a 'not' into it.\n"
        "Reply with the new sentence only.\n\n"
        "Sentence: {}"
    ),
}
"""The prompt of each task. That of `syntactic_negative` asks for what SAN's prompt asks (Table 12)."""

_LABEL = re.compile(r"^(?:new |modified |rewritten )?(?:sentence|output|paraphrase)\s*:\s*", re.I)
_QUOTES = ('"', "'", "“”", "‘’", "«»")
# A reply of more than three times the length explains instead of rewriting.
_LONGEST_SHARE = 3
# Of English text, roughly.
_CHARACTERS_PER_TOKEN = 4
_RETRIES = 5


@dataclass(frozen=True, kw_only=True)
class LanguageModel(View):
    """Ask a language model for a related sentence.

    Any server with OpenAI's chat interface will do: a hosted service, vLLM, llama.cpp, Ollama. The
    key is read from the environment variable `OPENAI_API_KEY` and never stored. Replies are cached,
    so an interrupted build continues where it stopped, and building again costs nothing. Nothing is
    sent unless a recipe has this kind and names a server.

    Attributes:
        model: Name of the model on the server.
        server: Address of the server, such as `http://localhost:8000/v1`.
        task: What to ask for: `syntactic_negative` (SAN §G: the same syntax, other content words),
            `paraphrase`, or `contradiction`.
        prompt: Your own prompt, with `{}` where the sentence goes; it replaces that of the task.
        temperature: Sampling temperature.
        most_tokens: Maximum length of a reply, in tokens.
        requests_per_minute: Rate limit over all processes; 0 for none.
        at_once: Requests of one process that wait for a reply at the same time.

    Example:
        [build.substitution]
        kind = "language_model"
        model = "gpt-4o-mini"
        server = "http://localhost:8000/v1"
        task = "syntactic_negative"

        >>> LanguageModel(model="m", server="http://localhost:8000/v1").preview("It rains.")  # doctest: +SKIP
    """

    kind = "language_model"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float", "tokens": "int"}

    model: str
    server: str = ""
    task: Literal["syntactic_negative", "paraphrase", "contradiction"] = "paraphrase"
    prompt: str = ""
    temperature: float = 1.0
    most_tokens: int = 200
    requests_per_minute: int = 0
    at_once: int = 8

    def __post_init__(self) -> None:
        check_least(self, 0, "temperature", "requests_per_minute")
        check_least(self, 1, "most_tokens", "at_once")
        if self.prompt and self.prompt.count("{}") != 1:
            raise ValueError("prompt must hold {} exactly once, where the sentence goes")

    def check(self) -> None:
        """Check that a server is named and its client is installed.

        Raises:
            OpencseError: One is missing; the message tells what to do.
        """
        if not self.server:
            raise OpencseError(
                "no server of a language model is named",
                "Name it: --set build.NAME.server=http://localhost:8000/v1.",
            )
        imported("openai", "llm")

    def open(self, *, seed: int = 0, prepared: Any = None) -> OpenedView:
        """Connect to the server; nothing is sent before the first sentence."""
        self.check()
        openai = imported("openai", "llm")
        client = openai.OpenAI(
            base_url=self.server,
            api_key=os.environ.get("OPENAI_API_KEY", "none"),
            max_retries=_RETRIES,
        )
        cache = ReplyCache()

        def ask(request: Mapping[str, Any]) -> Reply:
            return self._reply(client, cache, request)

        def build(rows: Sequence[SourceRow]) -> list[ViewText]:
            return self._built(rows, ask)

        return OpenedView(build=build)

    def request(self, text: str) -> dict[str, Any]:
        """Return what is sent for a sentence."""
        prompt = self.prompt or PROMPTS[self.task]
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt.replace("{}", text.strip())}],
            "temperature": self.temperature,
            "max_tokens": self.most_tokens,
        }

    def estimate(self, texts: Sequence[str]) -> BuildEstimate:
        """Return what a build of some sentences would send; nothing is sent.

        Args:
            texts: The sentences.
        """
        cache = ReplyCache()
        requests = [self.request(text) for text in texts]
        missing = [request for request in requests if cache.get(request) is None]
        characters = sum(len(request["messages"][0]["content"]) for request in missing)
        written = sum(map(len, texts)) * len(missing) // max(len(requests), 1)
        return BuildEstimate(
            requests=len(missing),
            cached=len(requests) - len(missing),
            prompt_tokens=characters // _CHARACTERS_PER_TOKEN,
            reply_tokens=written // _CHARACTERS_PER_TOKEN,
        )

    def _built(
        self, rows: Sequence[SourceRow], ask: Callable[[Mapping[str, Any]], Reply]
    ) -> list[ViewText]:
        requests = [self.request(row.text) for row in rows]
        with ThreadPoolExecutor(max_workers=self.at_once) as pool:
            replies = list(pool.map(ask, requests))
        found = [cleaned(row.text, reply.text) for row, reply in zip(rows, replies, strict=True)]
        views = []
        for view, reply in zip(with_error_rate(rows, found), replies, strict=True):
            scores = {**view.scores, "tokens": reply.tokens}
            views.append(ViewText(text=view.text, rule=view.rule, scores=scores))
        return views

    def _reply(self, client: Any, cache: ReplyCache, request: Mapping[str, Any]) -> Reply:
        kept = cache.get(request)
        if kept is not None:
            return kept
        if self.requests_per_minute:
            cache.wait_for_turn(self.server, self.requests_per_minute)
        openai = imported("openai", "llm")
        try:
            answer = client.chat.completions.create(**request)
        except openai.OpenAIError as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise OpencseError(
                f"the language model at {self.server} did not answer ({reason})",
                "Check the address, OPENAI_API_KEY and the model's name; the build continues where "
                "it stopped.",
            ) from error
        usage = getattr(answer, "usage", None)
        text = answer.choices[0].message.content or ""
        reply = Reply(text=text, tokens=0 if usage is None else int(usage.total_tokens))
        cache.put(request, reply)
        return reply


@dataclass(frozen=True, kw_only=True)
class BuildEstimate:
    """What a build would send to a language model.

    Attributes:
        requests: Requests to be sent.
        cached: Sentences whose replies are in the cache.
        prompt_tokens: Tokens to be sent, at about four characters each.
        reply_tokens: Tokens to be received, if a reply is as long as its sentence.
    """

    requests: int
    cached: int
    prompt_tokens: int
    reply_tokens: int


def cleaned(text: str, reply: str) -> tuple[str | None, str]:
    """Return the sentence in a reply, or None, and the rule or the reason.

    Args:
        text: The sentence that was sent.
        reply: The reply.

    Example:
        >>> cleaned("It rains.", 'Sentence: "It is dry."')
        ('It is dry.', 'written')
        >>> cleaned("It rains.", "it  rains.")
        (None, 'the same sentence')
    """
    lines = [line.strip() for line in reply.strip().splitlines() if line.strip()]
    if not lines:
        return None, "empty reply"
    if len(lines) > 1:
        return None, "several lines"
    sentence = _LABEL.sub("", lines[0]).strip()
    for marks in _QUOTES:
        quoted = len(sentence) > 1 and sentence[0] == marks[0] and sentence[-1] == marks[-1]
        if quoted:
            sentence = sentence[1:-1].strip()
    if not sentence:
        return None, "empty reply"
    if sentence.lower().split() == text.lower().split():
        return None, "the same sentence"
    if len(sentence) > _LONGEST_SHARE * len(text) + 100:
        return None, "too long"
    return sentence, "written"
