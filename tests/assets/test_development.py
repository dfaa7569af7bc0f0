"""The bundled development sets: balance, roles, and the wording that their page states for each grade."""

import re
from collections import Counter
from pathlib import Path

import numpy as np

from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.text.surface import lexical_overlap, match_error_rate

DOCUMENT = Path(__file__).parents[2] / "docs" / "data" / "development-sets.md"
SETS = {name: development_set(name).triplets for name in DEVELOPMENT_SETS}


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


def test_exchanged_roles_use_the_words_of_the_sentence():
    def stems(text):
        return Counter(word[:5] for word in re.findall(r"\w+", text.lower()))

    for t in SETS["roles"]:
        a, b = stems(t.anchor), stems(t.negative)
        assert sum(((a - b) + (b - a)).values()) <= 4, t.id
        assert t.anchor.lower() != t.negative.lower()


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
