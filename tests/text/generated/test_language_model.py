from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

import opencse
from opencse.foundation.errors import OpencseError
from opencse.papers.entries import load_entry
from opencse.recipes import load_recipe
from opencse.text.corpus import Corpus
from opencse.text.generated.language_model import LanguageModel, cleaned
from opencse.text.views.builder import build_views
from tests.tiny import tiny_bert

SENTENCES = ["The shop is open.", "It rains today.", "She sold the red car."]


class StandIn(BaseHTTPRequestHandler):
    """A server that writes a sentence backwards."""

    asked: ClassVar[list[dict]] = []
    fail_after = 1000

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if len(self.asked) >= self.fail_after:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b"{}")
            return
        self.asked.append({**request, "key": self.headers["Authorization"]})
        sentence = request["messages"][0]["content"].rsplit("Sentence: ", 1)[-1]
        words = " ".join(reversed(sentence.rstrip(".").split())) + "."
        choice = {"index": 0, "finish_reason": "stop"}
        choice["message"] = {"role": "assistant", "content": f'"{words}"'}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        answer |= {"choices": [choice]}
        answer |= {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setattr(StandIn, "asked", [])
    monkeypatch.setattr(StandIn, "fail_after", 1000)
    http = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()


def test_replies_become_views_with_their_tokens(server) -> None:
    view = LanguageModel(model="m", server=server, task="contradiction")
    assert view.preview(*SENTENCES) == [
        "open is shop The.",
        "today rains It.",
        "car red the sold She.",
    ]
    assert StandIn.asked[0]["model"] == "m"
    assert StandIn.asked[0]["key"] == "Bearer secret"
    assert "cannot be true" in StandIn.asked[0]["messages"][0]["content"]


def test_a_prompt_of_your_own_takes_the_place_of_the_tasks(server) -> None:
    view = LanguageModel(model="m", server=server, prompt="Now do it.\nSentence: {}")
    view.preview("It rains.")
    assert StandIn.asked[0]["messages"][0]["content"] == "Now do it.\nSentence: It rains."


def test_what_was_asked_is_not_asked_again(server) -> None:
    view = LanguageModel(model="m", server=server)
    assert view.estimate(SENTENCES).requests == 3
    view.preview(SENTENCES[0])
    left = view.estimate(SENTENCES)
    assert (left.requests, left.cached) == (2, 1)
    assert left.prompt_tokens > left.reply_tokens > 0
    view.preview(*SENTENCES)
    view.preview(*SENTENCES)
    assert len(StandIn.asked) == 3


def test_an_interrupted_build_continues(server, tmp_path, monkeypatch) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(SENTENCES) + "\n")
    view = LanguageModel(model="m", server=server, at_once=1)
    monkeypatch.setattr(StandIn, "fail_after", 2)
    with pytest.raises(OpencseError, match=r"did not answer.*continues where it stopped"):
        build_views(Corpus(corpus), {"paraphrase": view}, tmp_path / "views")
    monkeypatch.setattr(StandIn, "fail_after", 1000)
    built = build_views(Corpus(corpus), {"paraphrase": view}, tmp_path / "views")
    assert len(StandIn.asked) == 3
    assert [row[0] for row in built.rows(["paraphrase"])] == [
        "open is shop The.",
        "today rains It.",
        "car red the sold She.",
    ]


def test_the_recipe_of_san_takes_it(tmp_path) -> None:
    settings = [
        'build.substitution={kind="language_model",model="m",server="http://localhost:1/v1",task="syntactic_negative"}'
    ]
    recipe = load_recipe("san-simcse", overrides=settings)
    assert isinstance(recipe.build["substitution"], LanguageModel)


def test_the_rows_of_table_8_are_built_from_its_replies(server, tmp_path, capsys) -> None:
    """The recipe of the guide: a dry run, the build, and the column that `reproduce` asks for."""
    (tmp_path / "written.toml").write_text(
        'extends = "san-simcse"\n[build.substitution]\nkind = "language_model"\nmodel = "m"\n'
        f'server = "{server}"\ntask = "syntactic_negative"\n'
    )
    backbone = tiny_bert(tmp_path / "bert")
    notes: list[str] = []
    asked = {"backbone": backbone, "notify": notes.append, "progress": False, "workers": 1}
    recipe = tmp_path / "written.toml"
    opencse.build(recipe, SENTENCES, tmp_path / "views", dry_run=True, **asked)
    assert StandIn.asked == []
    assert not (tmp_path / "views").exists()
    assert notes[-1].startswith("substitution: 3 requests to http")
    built = Corpus(opencse.build(recipe, SENTENCES, tmp_path / "views", **asked))
    assert len(StandIn.asked) == 3
    (system,) = [
        s for s in load_entry("san/table-8").systems if s.label.startswith("SimCSE, large")
    ]
    assert next(row[0] for row in built.rows([system.column])) == "open is shop The."


def test_without_a_server_nothing_is_asked() -> None:
    with pytest.raises(OpencseError, match="no server"):
        LanguageModel(model="m").check()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("It is dry.", ("It is dry.", "written")),
        ("  “It is dry.”\n", ("It is dry.", "written")),
        ("Modified sentence: It is dry.", ("It is dry.", "written")),
        ("It  RAINS.", (None, "the same sentence")),
        ("", (None, "empty reply")),
        ('""', (None, "empty reply")),
        ("Sure!\nIt is dry.", (None, "several lines")),
        ("word " * 200, (None, "too long")),
    ],
)
def test_only_one_other_sentence_is_taken(reply: str, expected) -> None:
    assert cleaned("It rains.", reply) == expected


@pytest.mark.parametrize(
    "settings", [{"prompt": "no place"}, {"at_once": 0}, {"requests_per_minute": -1}]
)
def test_odd_settings_are_refused(settings) -> None:
    with pytest.raises(ValueError):
        LanguageModel(model="m", **settings)
