"""Views from a prompted language model behind any OpenAI-compatible endpoint (extra `llm`)."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.text.views.constructor import BuiltView, ConstructorSpec, SourceRow, bundle_digest, with_error_rate

_RETRIES = 4  # after a failed request, with growing pauses
_TIMEOUT = 60.0  # seconds
_CONCURRENT = 8  # requests of one process
_LABELS = ("modified sentence:", "sentence:", "output:")


@dataclass(frozen=True, kw_only=True)
class PromptedLLM(ConstructorSpec):
    """Ask a language model to rewrite each sentence; a request that fails is repeated up to four times.

    Attributes:
        url: Base URL of the endpoint, such as "http://localhost:8000/v1".
        model: Name of the model at the endpoint.
        task: A built-in prompt: "substitution" (SAN Table 12), "paraphrase" or "negation".
        prompt: Your own prompt, with {text}, instead of the task's.
        temperature: Temperature of sampling.
        max_tokens: Maximum length of an answer, in tokens.

    Example:
        [build.paraphrase]
        kind = "llm"
        url = "http://localhost:8000/v1"
        model = "my-model"
        task = "paraphrase"

        >>> PromptedLLM(url="http://localhost:8000/v1", model="my-model").preview("It rains.")  # doctest: +SKIP
    """

    kind: ClassVar[str] = "llm"
    scores: ClassVar[Mapping[str, str]] = {"mer": "float", "tokens_in": "int", "tokens_out": "int"}

    url: str
    model: str
    task: Literal["substitution", "paraphrase", "negation"] = "paraphrase"
    prompt: str = ""
    temperature: float = 0.0
    max_tokens: int = 256

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(
                f"url must begin with http:// or https://, as in http://localhost:8000/v1, not {self.url!r}"
            )
        if self.prompt and "{text}" not in self.prompt:
            raise ValueError("prompt must have {text} where the sentence goes")

    def open(self, *, seed: int = 0, prepared: Any = None) -> Prompter:
        """Open the connection."""
        return Prompter(self)


class Prompter:
    """An opened `PromptedLLM`; the key is that in OPENAI_API_KEY, if it is set."""

    def __init__(self, spec: PromptedLLM) -> None:
        try:
            import httpx
        except ImportError as error:
            raise OpencseError("llm needs the package httpx", "pip install 'opencse[llm]'") from error
        self._spec = spec
        self._template = spec.prompt or tomllib.loads((ASSETS / "prompts.toml").read_text("utf-8"))[spec.task]
        key = os.environ.get("OPENAI_API_KEY", "")
        self._client = httpx.Client(timeout=_TIMEOUT, headers={"Authorization": f"Bearer {key}"} if key else {})
        self.digest = bundle_digest(self._template)

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Request the answer for each row's text, several at a time."""
        with ThreadPoolExecutor(_CONCURRENT) as pool:
            answers = list(pool.map(self._ask, [row.text for row in rows]))
        results: list[tuple[str | None, str]] = []
        for row, answer in zip(rows, answers, strict=True):
            text = _cleaned(answer["text"])
            if not text:
                results.append((None, "no answer"))
            elif text == row.text:
                results.append((None, "unchanged"))
            else:
                results.append((text, self._spec.task if not self._spec.prompt else "prompt"))
        return [
            replace(view, scores={**view.scores, **{name: answer[name] for name in ("tokens_in", "tokens_out")}})
            for view, answer in zip(with_error_rate(rows, results), answers, strict=True)
        ]

    def _ask(self, text: str) -> dict[str, Any]:
        """Return the answer for one text with its numbers of tokens."""
        spec = self._spec
        if not text.strip():
            return {"text": "", "tokens_in": 0, "tokens_out": 0}
        prompt = self._template.replace("{{", "\0").replace("}}", "\1").replace("{text}", text)
        return self._request(
            {
                "model": spec.model,
                "messages": [{"role": "user", "content": prompt.replace("\0", "{").replace("\1", "}")}],
                "temperature": spec.temperature,
                "max_tokens": spec.max_tokens,
            }
        )

    def _request(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request, retry after temporary failures, and return the answer."""
        import httpx

        spec, problem = self._spec, ""
        for attempt in range(_RETRIES + 1):
            if attempt:
                time.sleep(min(0.5 * 2**attempt, 30.0))
            try:
                response = self._client.post(f"{spec.url.rstrip('/')}/chat/completions", json=body)
                if response.status_code == 200:
                    return _parsed(response.json())
                problem = f"status {response.status_code}"
                if response.status_code not in (408, 409, 425, 429) and response.status_code < 500:
                    break
            except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
                problem = f"{type(error).__name__}: {error}"
        raise OpencseError(
            f"{spec.url} gave no answer ({problem})", "Check the endpoint and the key, then build again: it resumes."
        )


def _parsed(data: dict[str, Any]) -> dict[str, Any]:
    """Return text and token counts of an endpoint's response."""
    usage = data.get("usage") or {}
    return {
        "text": data["choices"][0]["message"]["content"] or "",
        "tokens_in": int(usage.get("prompt_tokens", 0)),
        "tokens_out": int(usage.get("completion_tokens", 0)),
    }


def _cleaned(answer: str) -> str:
    """Return the sentence of an answer, without a label or quotes around it."""
    line = next((line.strip() for line in answer.split("\n") if line.strip()), "")
    for label in _LABELS:
        if line.lower().startswith(label):
            line = line[len(label) :].strip()
    if len(line) > 1 and line[0] in '"“' and line[-1] in '"”' and not any(mark in line[1:-1] for mark in '"“”'):
        line = line[1:-1].strip()
    return line.strip("{}").strip()
