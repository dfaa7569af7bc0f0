"""The bundled demo text: counts, scores, and that it does its work."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from tests.assets.known_texts import normalised

DEMO = files("opencse") / "assets" / "demo"
KINDS = {
    "paraphrase": 58,
    "negation": 33,
    "antonym": 20,
    "role_swap": 15,
    "number": 10,
    "entity": 10,
    "edit": 28,
    "related": 33,
    "unrelated": 23,
    "double_negation": 10,
}
# The scoring rule of docs/data/demo.md, as the range that each kind may use.
RANGES = {
    "paraphrase": (3.8, 5.0),
    "negation": (1.5, 2.0),
    "antonym": (1.5, 2.0),
    "role_swap": (1.5, 2.5),
    "number": (2.5, 5.0),
    "entity": (1.8, 5.0),
    "edit": (4.4, 5.0),
    "related": (1.0, 3.6),
    "unrelated": (0.0, 0.5),
    "double_negation": (4.4, 5.0),
}


def lines(name):
    text = (DEMO / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.fixture(scope="module")
def sentences():
    return lines("sentences.txt")


@pytest.fixture(scope="module")
def pairs():
    header, *rows = (line.split("\t") for line in lines("pairs.tsv"))
    assert header == ["sentence1", "sentence2", "score", "kind"]
    assert {len(row) for row in rows} == {4}
    return [(first, second, float(score), kind) for first, second, score, kind in rows]


def test_counts(sentences, pairs):
    assert 900 <= len(sentences) <= 1200
    assert Counter(kind for *_, kind in pairs) == KINDS
    assert sum(KINDS.values()) == 240


def test_the_document_states_the_counts_of_the_files(sentences):
    document = Path(__file__).parents[2] / "docs" / "data" / "demo.md"
    text = document.read_text(encoding="utf-8")
    stated = {kind: int(count) for kind, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)}
    assert stated == KINDS
    assert f"{len(sentences):,} sentences" in text


def test_scores_follow_the_rule(pairs):
    for first, second, score, kind in pairs:
        low, high = RANGES[kind]
        assert 0 <= low <= score <= high <= 5, (first, second, score, kind)


def test_wording_misleads(pairs):
    """The set does its work: contradictions share more words than paraphrases do."""

    def overlap(kind):
        shares = []
        for first, second, _, k in pairs:
            if k == kind:
                a, b = set(normalised(first).split()), set(normalised(second).split())
                shares.append(len(a & b) / len(a | b))
        return sum(shares) / len(shares)

    assert overlap("paraphrase") < 0.2
    assert min(overlap("negation"), overlap("antonym"), overlap("role_swap")) > 0.5
