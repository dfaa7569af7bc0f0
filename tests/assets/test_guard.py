"""The bundled guard set: counts, form, and that nothing is repeated, shared or from elsewhere."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.foundation.tables import read_table
from tests.assets.known_texts import known_data_files, normalised, repeated_in

DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "development-sets.md"
GUARD = files("opencse") / "assets" / "guard"
TEXT = {"questions": ["question"], "answers": ["question", "passage"], "topics": ["text"], "long": ["summary", "text"]}
ROWS = {name: [row for _, row in read_table(GUARD / f"{name}.tsv")] for name in TEXT}
SUBJECTS = len({row["subject"] for row in ROWS["answers"]})
EVERY = [row[column] for name, rows in ROWS.items() for row in rows for column in TEXT[name] if row[column]]


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


def test_every_cell_is_clean():
    unclean = re.compile(r"[“”|*_#<>]|\.\.")
    assert [t for t in EVERY if not t.isprintable() or t != " ".join(t.split()) or unclean.search(t)] == []


def test_nothing_is_repeated():
    counts = Counter(map(normalised, EVERY))
    assert [text for text, count in counts.items() if count > 1] == []


def test_development_and_guard_share_no_text():
    triplets = [t for name in DEVELOPMENT_SETS for t in development_set(name).triplets]
    ours = {normalised(text) for t in triplets for text in (t.anchor, t.positive, t.negative)}
    assert ours & set(map(normalised, EVERY)) == set()


def test_no_text_occurs_in_a_known_data_set():
    for path in known_data_files():
        assert repeated_in(path, EVERY) == set(), path.name
