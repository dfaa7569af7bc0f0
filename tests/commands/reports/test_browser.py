"""The report in a real browser, without its window."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from opencse.commands.reports.page import write_report
from tests.commands.reports.hostile import NAME, probe_scores

BROWSER = next((path for name in ("chromium", "google-chrome", "chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser in the path")

QUIET = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --no-pings --hide-scrollbars --enable-logging=stderr --window-size=390,844 --dump-dom"
).split()


@dataclass
class Visit:
    """What the browser made of a page, what it logged, and what the page (not the browser itself) asked for."""

    dom: str
    log: str
    requests: set[str]


def visit(page: Path, folder: Path) -> Visit:
    net = folder / "net.json"
    arguments = [
        f"--user-data-dir={folder / 'profile'}",
        f"--log-net-log={net}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    done = subprocess.run(
        [str(BROWSER), *QUIET, *arguments, page.as_uri()], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = net.read_text(encoding="utf-8", errors="replace").splitlines()
    events = [json.loads(line.rstrip(",]")) for line in lines if line.startswith('{"params"')]  # one in each line
    starts = [event["params"] for event in events if "initiator" in event.get("params", {})]
    requests = {start["url"] for start in starts if start["initiator"] != "not an origin" and "url" in start}
    return Visit(done.stdout, done.stderr, requests)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Visit:
    folder = tmp_path_factory.mktemp("report")
    return visit(write_report(probe_scores("minilm", NAME), folder), folder)


def test_a_request_from_a_page_would_be_seen(tmp_path):
    (tmp_path / "page.html").write_text(
        "<img src='http://example.invalid/a.png'><script>console.error('heard')</script>"
    )
    seen = visit(tmp_path / "page.html", tmp_path)
    assert "http://example.invalid/a.png" in seen.requests
    assert "heard" in "".join(line for line in seen.log.splitlines() if "CONSOLE" in line)


def test_the_console_is_silent(report):
    assert [line for line in report.log.splitlines() if "CONSOLE" in line] == []


def test_nothing_is_requested_from_outside(report):
    assert {url for url in report.requests if not url.startswith(("file:", "data:"))} == set()


def test_hostile_sentences_did_nothing(report):
    assert "<title>Wording or meaning?" in report.dom
    assert "<script" not in report.dom
    assert "owned" in report.dom  # shown, as text
    assert '<img src="x"' not in report.dom
    assert report.dom.rstrip().endswith("</html>")
    assert "How it was measured" in report.dom
