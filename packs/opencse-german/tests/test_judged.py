"""The judged sample of German contradictions: it is of our texts, and its page shows its figure."""

from __future__ import annotations

from pathlib import Path

from opencse.io.tables import read_table

ROOT = Path(__file__).parents[1]


def test_the_german_sample_is_of_our_texts_and_the_page_shows_its_figure() -> None:
    folder = ROOT / "benchmarks" / "check" / "texts-de"
    texts = {path.name: " ".join(path.read_text(encoding="utf-8").split()) for path in folder.glob("*.md")}
    rows = [row for _, row in read_table(ROOT / "benchmarks" / "results" / "check-judged-texts-de.tsv") if row]
    assert len(rows) == 100
    assert all(str(row["sentence"]) in texts[str(row["source"])] for row in rows)
    right = sum(row["contradicts"] == "yes" for row in rows)
    page = (ROOT / "docs" / "measurements" / "check.md").read_text(encoding="utf-8")
    assert f"{right} of 100 were right" in page
