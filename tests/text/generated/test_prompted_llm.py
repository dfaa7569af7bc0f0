from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.views.registry import PromptedLLM

TEXTS = ["The dog runs.", "The cat sits.", ""]


class Endpoint(BaseHTTPRequestHandler):
    requests: list
    failures = 0
    status = 503
    answer = staticmethod(lambda text: f'Sentence: "Not: {text}"\nDone.')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).requests.append((self.path, self.headers.get("Authorization"), body))
        if type(self).failures > 0:
            type(self).failures -= 1
            self.send_error(self.status)
            return
        text = body["messages"][0]["content"].rsplit("Sentence: ", 1)[-1]
        reply = {
            "choices": [{"message": {"content": type(self).answer(text)}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    handler = type("Handler", (Endpoint,), {"requests": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield handler
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def test_asks_and_cleans(endpoint, rows, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    spec = PromptedLLM(url=endpoint.url, model="tiny", task="negation")
    views = spec.open()(rows(*TEXTS))
    assert [view.text for view in views] == ["Not: The dog runs.", "Not: The cat sits.", None]
    assert views[0].rule == "negation"
    assert views[0].scores["tokens_in"] == 100
    assert views[2].rule == "no answer"
    assert len(endpoint.requests) == 2
    path, key, body = endpoint.requests[0]
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer secret", "tiny")


def test_prompt_of_san_is_complete(endpoint, rows):
    PromptedLLM(url=endpoint.url, model="tiny", task="substitution").open()(rows("A {dog} runs."))
    content = endpoint.requests[0][2]["messages"][0]["content"]
    assert "Original sentence: A {dog} runs." in content
    assert "Modified sentence: {your-outputs}" in content
    assert "\0" not in content


def test_retries_then_answers(endpoint, rows, pauses):
    endpoint.failures = 2
    spec = PromptedLLM(url=endpoint.url, model="tiny", task="negation")
    assert spec.open()(rows(TEXTS[0]))[0].text is not None
    assert len(endpoint.requests) == 3
    assert pauses == sorted(pauses)
    assert len(pauses) >= 2


def test_gives_up_with_a_remedy(endpoint, rows):
    endpoint.failures = 99
    spec = PromptedLLM(url=endpoint.url, model="tiny")
    with pytest.raises(OpencseError, match="status 503"):
        spec.open()(rows(TEXTS[0]))
    endpoint.status = 401
    endpoint.requests.clear()
    with pytest.raises(OpencseError, match="status 401"):
        spec.open()(rows(TEXTS[0]))
    assert len(endpoint.requests) == 1  # no use in asking again


def test_impossible_parameters():
    with pytest.raises(ValueError, match="url"):
        PromptedLLM(url="localhost", model="m")
    with pytest.raises(ValueError, match="text"):
        PromptedLLM(url="http://localhost", model="m", prompt="no place")
