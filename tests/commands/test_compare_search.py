from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from opencse.commands.compare_search import compare_searches, render_search_comparison
from opencse.commands.reports.page import write_page
from opencse.evaluation import read_pairs
from opencse.foundation.errors import OpencseError

BROWSER = next((path for name in ("chromium", "google-chrome", "chrome") if (path := shutil.which(name))), None)
TEXTS = [f"text {i}" for i in range(30)]
QUERIES = ["query 3", "query 17", "text 5"]


def number(text: str) -> float:
    return float(text.split()[-1])


def along(texts) -> np.ndarray:
    """Nearest are the texts of near numbers."""
    angles = np.array([number(text) for text in texts]) / 30
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def by_digit(texts) -> np.ndarray:
    """Nearest are the texts of the same last digit."""
    angles = np.array([number(text) % 10 + number(text) / 1000 for text in texts]) / 10
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture(scope="module")
def found():
    return compare_searches(along, by_digit, TEXTS, QUERIES, names=("along", "digit"))


def test_a_model_changes_nothing_against_itself() -> None:
    same = compare_searches(along, along, TEXTS, QUERIES)
    assert (same.overlap.value, same.same_first.value) == (1, 1)
    assert same.index.strength is None
    assert "No list of hits changes" in render_search_comparison(same)


def test_lists_and_ranks_by_hand(found) -> None:
    pair = next(pair for pair in found.lists if pair.query == "query 3")
    assert [hit.text for hit in pair.old[:3]] == ["text 3", "text 2", "text 4"]
    assert {hit.text for hit in pair.new[:3]} == {"text 3", "text 13", "text 23"}
    assert [len(pair.old), len(pair.new)] == [10, 10]
    assert pair.shared == len({hit.text for hit in pair.old} & {hit.text for hit in pair.new})
    assert found.lists[0].shared <= found.lists[-1].shared


def test_a_query_that_is_a_text_does_not_find_itself(found) -> None:
    pair = next(pair for pair in found.lists if pair.query == "text 5")
    assert "text 5" not in [hit.text for hit in (*pair.old, *pair.new)]


def test_the_page_does_not_say_whose_list_is_where_and_escapes_texts(found, tmp_path) -> None:
    page = render_search_comparison(found)
    assert render_search_comparison(found, seed=3) != page
    evil = replace(found.lists[0], query="</script><script>alert(1)</script>")
    assert "<script>alert" not in render_search_comparison(replace(found, lists=(evil,)))
    write_page(tmp_path, "search", render_search_comparison(found), found.to_dict())
    assert json.loads((tmp_path / "search.json").read_text())["texts"] == len(TEXTS)


@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser in the path")
def test_judgements_are_written_as_scored_pairs(found, tmp_path) -> None:
    """A click in a real browser; the table that would be saved is what `--pairs` reads."""
    page = render_search_comparison(found)
    act = (
        "<script>document.querySelectorAll('.query').forEach((q, i) => q.querySelector("
        "`[data-value=${rows[i].new}]`).click()); document.title = 'done';"
        "document.body.innerHTML = ''; document.body.append(table());</script></main>"
    )
    path = tmp_path / "search.html"
    path.write_text(page.replace("</main>", act))
    arguments = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'p'}",
        "--dump-dom",
    ]
    dom = subprocess.run([*arguments, path.as_uri()], capture_output=True, text=True, timeout=120).stdout
    saved = tmp_path / "judgements.csv"
    saved.write_text(dom[dom.index("sentence1") : dom.index("</body>")].strip() + "\n")
    rows = list(csv.DictReader(saved.open()))
    assert {row["judgement"] for row in rows} == {"new is better"}
    pairs = read_pairs(saved)
    assert sorted(set(pairs.scores)) == [0, 5]
    assert len(pairs) == 2 * sum(
        [h.text for h in pair.old[:5]] != [h.text for h in pair.new[:5]] for pair in found.lists
    )


def test_one_text_cannot_be_searched() -> None:
    with pytest.raises(OpencseError, match="one text"):
        compare_searches(np.ones, np.ones, ["a", "a"], ["b"])  # type: ignore[arg-type]
