from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from opencse.text.views.registry import Negation, NextSentence, Passage, build_views

TEXTS = [f"The {word} is old." for word in ("door", "roof", "wall", "gate", "lamp", "desk", "sofa", "vase")]


def built(tmp_path, specs, texts=TEXTS):
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    return pq.read_table(build_views(tmp_path / "corpus.txt", specs, tmp_path / "out")).to_pylist()


def test_each_sentence_has_the_one_that_follows_and_the_last_has_none(tmp_path):
    table = built(tmp_path, {"next": NextSentence()}, ["One.", "Two.", "", "Three.", "Four.", "Five."])
    assert [row["next"] for row in table] == ["Two.", "Three.", "Four.", "Five.", None]
    assert [row["next.rule"] for row in table][-2:] == ["row 4", "last row"]


def test_denied_passages_differ_in_one_sentence(tmp_path):
    around = Passage(around=("next",))
    specs = {
        "negation": Negation(),
        "next": NextSentence(),
        "passage": around,
        "denied": replace(around, of="negation"),
    }
    for row in built(tmp_path, specs)[:-1]:
        assert row["denied"] == row["passage"].replace(row["text"], row["negation"])
        assert row["denied"] != row["passage"]


def test_the_others_can_come_from_columns(tmp_path):
    rows = built(tmp_path, {"next": NextSentence(), "passage": Passage(around=("next",), sentences=(2, 2))})
    for row in rows[:-1]:
        assert row["passage"] in (f"{row['text']} {row['next']}", f"{row['next']} {row['text']}")
    assert rows[-1]["passage"] is None


def test_long_neighbours_are_dropped(tmp_path):
    specs = {"next": NextSentence(), "passage": Passage(around=("next", "next", "next"), words=8)}
    for row in built(tmp_path, specs)[:-1]:
        assert len(row["passage"].split()) <= 12
    with pytest.raises(ValueError, match="sentences"):
        Passage(around=(), sentences=(4, 2))
