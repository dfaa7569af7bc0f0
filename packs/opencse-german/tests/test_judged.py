"""The judged sample of contradictions: it is of the texts beside it, and the README shows its figure."""

from __future__ import annotations

from pathlib import Path

from opencse.foundation.tables import read_table

PACK = Path(__file__).parents[1]


def test_the_sample_is_of_the_stored_texts_and_the_readme_shows_its_figure() -> None:
    texts = {
        path.name: " ".join(path.read_text(encoding="utf-8").split())
        for path in (PACK / "judged/texts").glob("*.md")
    }
    rows = [row for _, row in read_table(PACK / "judged" / "contradictions.tsv") if row]
    assert len(rows) == 100
    assert all(str(row["sentence"]) in texts[str(row["source"])] for row in rows)
    right = sum(row["contradicts"] == "yes" for row in rows)
    assert f"{right} of 100 were right" in (PACK / "README.md").read_text(encoding="utf-8")
