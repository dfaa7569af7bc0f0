"""The judged sample of `check`'s contradictions: it is of our texts, and its page shows its figure."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from opencse.foundation.tables import read_table

ROOT = Path(__file__).parents[1]
CHECK = ROOT / "benchmarks" / "check"
JUDGED = ROOT / "benchmarks" / "results" / "check-judged-texts.tsv"

_spec = importlib.util.spec_from_file_location(
    "contradictions_sample", CHECK / "contradictions_sample.py"
)
assert _spec is not None
assert _spec.loader is not None
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)


def test_the_stored_sample_is_of_our_texts_and_the_page_shows_its_figure() -> None:
    texts = {
        path.name: " ".join(path.read_text().split()) for path in (CHECK / "texts").glob("*.md")
    }
    rows = [row for _, row in read_table(JUDGED) if row]
    assert all(str(row["sentence"]) in texts[str(row["source"])] for row in rows)
    last = sample.score(list(sample.read_judged(JUDGED)))[-1].removeprefix("all: ")
    page = " ".join((ROOT / "docs" / "measurements" / "check.md").read_text().split())
    assert last in page
