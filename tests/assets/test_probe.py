"""The bundled transformations: counts, what each kind changes, and the figures that their page states."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from opencse.text.surface import match_error_rate

PROBE = files("opencse") / "assets" / "probe" / "transformations.tsv"
DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "probe.md"
KINDS = ["paraphrase", "negation", "deletion", "insertion", "substitution", "random"]
NOT = re.compile(r"\bnot\b|\bcannot\b|n't\b", re.IGNORECASE)
NEGATIVE = re.compile(r"\b(not|never|no|nobody|nothing|none|neither|nowhere|cannot|hardly)\b|n't\b", re.IGNORECASE)


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


@pytest.fixture(scope="module")
def rows():
    text = PROBE.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    header, *cells = (line.split("\t") for line in text[:-1].split("\n"))
    assert header == ["id", "topic", "sentence", *KINDS]
    assert {len(row) for row in cells} == {len(header)}
    return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.fixture(scope="module")
def rates(rows):
    sentences = [row["sentence"] for row in rows]
    return {kind: match_error_rate(sentences, [row[kind] for row in rows]) for kind in KINDS}


def test_counts_and_topics(rows):
    assert len(rows) >= 310
    assert len({row["id"] for row in rows}) == len(rows)
    topics = Counter(row["topic"] for row in rows)
    assert len(topics) >= 20
    assert min(topics.values()) >= 10
    numbers = Counter()
    for row in rows:
        numbers[row["topic"]] += 1
        assert row["id"] == f"{row['topic']}-{numbers[row['topic']]:02d}"


def test_deletions_only_remove_and_insertions_only_add(rows):
    def within(short, long):
        rest = iter(long)
        return all(word in rest for word in short)

    for row in rows:
        assert within(words(row["deletion"]), words(row["sentence"])), row["id"]
        assert within(words(row["sentence"]), words(row["insertion"])), row["id"]
        change = len(row["substitution"].split()) - len(row["sentence"].split())
        assert abs(change) <= 2, row["id"]


def test_only_negations_change_whether_a_sentence_says_not(rows):
    """A stray or lost "not" would turn an insertion or a deletion into a contradiction."""
    for row in rows:
        for kind in ("deletion", "insertion"):
            assert len(NOT.findall(row[kind])) == len(NOT.findall(row["sentence"])), (row["id"], kind)


def test_random_is_the_sentence_of_a_row_on_another_topic_used_once(rows):
    owner = {row["sentence"]: row for row in rows}
    partners = [owner[row["random"]] for row in rows]
    assert len({partner["id"] for partner in partners}) == len(rows)
    for row, partner in zip(rows, partners, strict=True):
        assert partner["topic"] != row["topic"], row["id"]


def test_the_document_states_the_figures_of_the_file(rows, rates):
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"{len(rows)} sentences" in text
    assert f"{len({row['topic'] for row in rows})} topics" in text
    sentences = [row["sentence"] for row in rows]
    assert f"{sum(s.endswith('?') for s in sentences)} are questions" in text
    assert f"{sum(bool(re.search(r'[0-9]', s)) for s in sentences)} contain digits" in text
    assert f"{sum(bool(NEGATIVE.search(s)) for s in sentences)} are negative" in text
    table = re.findall(r"^\| `(\w+)` \|.*\| (\d\.\d\d) \| (\d\.\d\d) \| (\d\.\d\d) \|$", text, re.MULTILINE)
    stated = {kind: tuple(map(float, figures)) for kind, *figures in table}
    assert stated == {
        kind: tuple(round(float(f(rate)), 2) for f in (np.median, np.min, np.max)) for kind, rate in rates.items()
    }
