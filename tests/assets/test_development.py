"""The bundled development sets: form, balance, wording of each grade, and that nothing is from elsewhere."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.text.surface import lexical_overlap, match_error_rate
from tests.assets.known_texts import known_data_files, normalised, repeated_in

DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "development-sets.md"
SETS = {name: development_set(name).triplets for name in DEVELOPMENT_SETS}
EVERY = [triplet for triplets in SETS.values() for triplet in triplets]


def texts(triplets):
    return [text for t in triplets for text in (t.anchor, t.positive, t.negative)]


def words(text):
    return re.sub(r"[^\w' ]", " ", text)


def rates(measure, triplets, side):
    return measure([words(t.anchor) for t in triplets], [words(getattr(t, side)) for t in triplets])


def of_grade(grade):
    return [t for t in SETS["meaning"] if t.groups["grade"] == grade]


def test_counts_and_balance():
    assert {name: len(triplets) for name, triplets in SETS.items()} == {"meaning": 300, "search": 200, "roles": 200}
    assert Counter(t.groups["grade"] for t in SETS["meaning"]) == {"near": 100, "middle": 100, "far": 100}
    kinds = Counter((t.groups["grade"], t.groups["kind"]) for t in SETS["meaning"])
    assert len({kind for _, kind in kinds}) == 10
    assert all(kinds[grade, kind] == kinds["near", kind] >= 6 for grade, kind in kinds)
    assert set(Counter(t.groups["domain"] for t in SETS["search"]).values()) == {40}
    assert len({t.groups["kind"] for t in SETS["roles"]}) == 8


def test_every_cell_is_clean():
    unclean = re.compile(r"[\"“”|*_#<>]|\.\.")
    assert [t for t in texts(EVERY) if not t.isprintable() or t != " ".join(t.split()) or unclean.search(t)] == []


def test_sentences_are_whole_and_varied_in_length():
    for name in ("meaning", "roles"):
        assert all(re.fullmatch(r"[A-Z].*[.?]", text) for text in texts(SETS[name]))
    assert all(re.fullmatch(r"[A-Z].*[.?]", t.positive) and re.fullmatch(r"[A-Z].*[.?]", t.negative) for t in EVERY)
    for grade in ("near", "middle", "far"):
        lengths = [len(t.anchor.split()) for t in of_grade(grade)]
        assert min(lengths) >= 6
        assert 24 <= max(lengths) <= 30
        assert np.mean([length >= 18 for length in lengths]) >= 0.15


def test_nothing_is_repeated():
    counts = Counter(map(normalised, texts(EVERY)))
    assert [text for text, count in counts.items() if count > 1] == []


def test_grades_are_told_apart_by_the_wording_of_their_paraphrases():
    error = {
        grade: np.median(rates(match_error_rate, of_grade(grade), "positive")) for grade in ("near", "middle", "far")
    }
    overlap = {grade: rates(lexical_overlap, of_grade(grade), "positive") for grade in ("near", "middle", "far")}
    assert error["near"] < 0.3 < 0.8 < error["middle"] < error["far"]
    assert np.median(overlap["near"]) > 0.75
    assert 0.45 < np.median(overlap["middle"]) < 0.6
    assert np.median(overlap["far"]) < 0.2
    assert max(overlap["far"]) < 0.45


@pytest.mark.parametrize("grade", ["near", "middle", "far"])
def test_contradictions_share_most_words(grade):
    assert np.median(rates(match_error_rate, of_grade(grade), "negative")) < 0.2


def test_exchanged_roles_use_the_words_of_the_sentence():
    def stems(text):
        return Counter(word[:5] for word in re.findall(r"\w+", text.lower()))

    for t in SETS["roles"]:
        a, b = stems(t.anchor), stems(t.negative)
        assert sum(((a - b) + (b - a)).values()) <= 4, t.id
        assert t.anchor.lower() != t.negative.lower()


def test_passages_that_say_and_deny_share_most_words():
    triplets = SETS["search"]
    overlap = lexical_overlap([words(t.positive) for t in triplets], [words(t.negative) for t in triplets])
    assert np.median(overlap) > 0.7
    assert np.mean([t.anchor.endswith("?") for t in triplets]) > 0.08


def test_the_document_states_the_figures_of_the_files():
    text = DOCUMENT.read_text(encoding="utf-8")
    parts = {f"`meaning`, {grade}": of_grade(grade) for grade in ("near", "middle", "far")}
    for name, triplets in (parts | {f"`{name}`": SETS[name] for name in ("search", "roles")}).items():
        medians = [
            f"{np.median(rates(measure, triplets, side)):.2f}"
            for side in ("positive", "negative")
            for measure in (lexical_overlap, match_error_rate)
        ]
        assert f"| {' | '.join([name, str(len(triplets)), *medians])} |" in text


def test_no_text_is_in_the_other_bundled_files():
    assets = files("opencse") / "assets"
    bundled = set()
    for name in ("probe/transformations.tsv", "demo/pairs.tsv", "demo/sentences.txt"):
        for line in (assets / name).read_text(encoding="utf-8").splitlines():
            bundled |= {normalised(cell) for cell in line.split("\t")}
    assert {normalised(text) for text in texts(EVERY)} & bundled == set()


def test_no_text_occurs_in_a_known_data_set():
    for path in known_data_files():
        assert repeated_in(path, texts(EVERY)) == set(), path.name
