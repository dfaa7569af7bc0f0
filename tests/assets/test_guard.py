"""The bundled guard set: counts, and that its page states them."""

from collections import Counter
from importlib.resources import files
from pathlib import Path

from opencse.foundation.tables import read_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "development-sets.md"
GUARD = files("opencse") / "assets" / "guard"
ROWS = {
    name: [row for _, row in read_table(GUARD / f"{name}.tsv")] for name in ("questions", "answers", "topics", "long")
}
SUBJECTS = len({row["subject"] for row in ROWS["answers"]})


def test_counts():
    groups = Counter(row["group"] for row in ROWS["questions"])
    assert len(groups) >= 150
    assert set(groups.values()) == {2, 3}
    answers = ROWS["answers"]
    assert sum(bool(row["question"]) for row in answers) >= 420
    assert min(Counter(row["subject"] for row in answers).values()) >= 3
    assert sum(not row["question"] for row in answers) >= 20
    assert set(Counter(row["topic"] for row in ROWS["topics"]).values()) == {40}
    assert len({row["topic"] for row in ROWS["topics"]}) >= 12
    assert len(ROWS["long"]) >= 44
    assert all(80 <= len(row["text"].split()) <= 160 for row in ROWS["long"])
    assert sum(path.stat().st_size for path in GUARD.iterdir()) < 200_000


def test_the_document_states_the_counts_of_the_files():
    text = DOCUMENT.read_text(encoding="utf-8")
    questions, answers = ROWS["questions"], ROWS["answers"]
    asked = sum(bool(row["question"]) for row in answers)
    assert f"| {len(questions)} | {len(questions)} questions | {len({row['group'] for row in questions})} " in text
    assert f"| {asked} | {len(answers)} passages | three or four passages on each of {SUBJECTS} subjects" in text
    assert (
        f"| {len(ROWS['topics'])} | {len(ROWS['topics'])} texts | {len({r['topic'] for r in ROWS['topics']})} " in text
    )
    assert f"| {len(ROWS['long'])} texts | pairs of texts" in text
