"""Sentences that no one would write on purpose: each constructor gives a valid row or a null, never an exception."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.text.generated import paraphrases
from opencse.text.views.registry import (
    CONSTRUCTORS,
    BackTranslation,
    CandidateTable,
    Deletion,
    Insertion,
    Negation,
    RandomSentence,
    Substitution,
    WordSubstitution,
    build_views,
)

BY_RULES = [name for name, kind in CONSTRUCTORS.items() if kind.__module__.startswith("opencse.text.english")]

HOSTILE = [
    "word", "", " ", ".", "not", "'s n't", "Is?", "do do do does did not", "🙂🙃 👩‍👩‍👧 is 🇫🇷",
    "هذا الدواء ليس آمنا.", "זה לא בטוח", "the\x00drug \x07is\x1b[0m safe\x7f.", "a\u2028b\u0085c\xa0d",
    "\ufeff\u200bis\u202e not", "((((is) not]", "e\u0301" * 50, "\ud83d is half",
    "[MASK] is [SEP] </s> <mask> not", "the old dog sits in the garden . " * 715, "x" * 5000, "IS IT NOT?",
    "!" * 300,
]  # fmt: skip


@pytest.fixture
def specs(bert, roberta, marian, tmp_path, monkeypatch):
    monkeypatch.setattr(paraphrases, "_MAX_NEW_TOKENS", 4)
    path = tmp_path / "candidates.parquet"
    pq.write_table(pa.table({"text": ["word", None, ""], "candidate": ["other", "x", None]}), path)
    return {name: CONSTRUCTORS[name]() for name in BY_RULES} | {
        "antonym": Negation(by="not-antonym"),
        "faithful": Negation(mode="faithful"),
        "table": CandidateTable(path=str(path), window=(0.0, 1.0)),
        "translation": BackTranslation(models=((marian, marian),), beams=1, noise="mask", window=(0.0, 1.0)),
        "san": Substitution(model=bert, iterations=2),
        "substituted": Substitution(model=roberta, iterations=1),
        "insertion": Insertion(model=bert),
        "replaced": WordSubstitution(model=roberta),
        "deletion": Deletion(),
        "random": RandomSentence(),
    }


def test_a_valid_row_or_a_null(specs, rows):
    for name, spec in specs.items():
        for text, built in zip(HOSTILE, spec.open()(rows(*HOSTILE)), strict=True):
            views = built if isinstance(built, list) else [built]
            assert len(views) == len(spec.columns(name))
            for view in views:
                assert view.text is None or isinstance(view.text, str)
                assert view.rule
                assert set(view.scores) == set(spec.scores)
                if not text.strip() and name not in ("random", "table"):
                    assert not view.text


def test_they_survive_a_build(tmp_path):
    path = tmp_path / "corpus.jsonl"
    # A corpus with half a surrogate pair or a NUL is refused.
    texts = [text for text in HOSTILE if "\ud83d" not in text and "\0" not in text]
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    table = pq.read_table(build_views(path, {"negation": Negation(), "deletion": Deletion()}, tmp_path / "views"))
    assert table.num_rows == sum(bool(text.strip()) for text in texts)
    assert table["text"].null_count == 0
