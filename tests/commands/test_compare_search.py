from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from opencse.commands.compare_search import compare_searches, render_search_comparison
from opencse.commands.reports.page import write_page
from opencse.foundation.errors import OpencseError

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


def test_the_page_shows_both_lists_and_escapes_texts(found, tmp_path) -> None:
    page = render_search_comparison(found)
    assert page.count('<div class="query">') == len(QUERIES)
    assert page.index('"name">along') < page.index('"name">digit')
    evil = replace(found.lists[0], query="</script><script>alert(1)</script>")
    assert "<script" not in render_search_comparison(replace(found, lists=(evil,)))
    write_page(tmp_path, "search", page, found.to_dict())
    assert json.loads((tmp_path / "search.json").read_text())["texts"] == len(TEXTS)


def test_one_text_cannot_be_searched() -> None:
    with pytest.raises(OpencseError, match="one text"):
        compare_searches(np.ones, np.ones, ["a", "a"], ["b"])  # type: ignore[arg-type]
