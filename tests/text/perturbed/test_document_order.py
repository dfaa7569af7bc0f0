from __future__ import annotations

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


def test_a_passage_holds_neighbours_in_order(tmp_path):
    for i, row in enumerate(built(tmp_path, {"passage": Passage()})):
        sentences = [f"{part}." for part in row["passage"].removesuffix(".").split(". ")]
        first = TEXTS.index(sentences[0])
        assert TEXTS[first : first + len(sentences)] == sentences
        assert sentences[row["passage.position"]] == TEXTS[i]
        assert len(sentences) <= 5


def test_denied_passages_differ_in_one_sentence(tmp_path):
    specs = {"negation": Negation(), "passage": Passage(), "denied": Passage(of="negation")}
    for row in built(tmp_path, specs):
        assert row["denied"] == row["passage"].replace(row["text"], row["negation"])
        assert row["denied"] != row["passage"]


def test_the_others_can_come_from_columns(tmp_path):
    rows = built(tmp_path, {"next": NextSentence(), "passage": Passage(around=("next",), sentences=(2, 2))})
    for row in rows[:-1]:
        assert row["passage"] in (f"{row['text']} {row['next']}", f"{row['next']} {row['text']}")
    assert rows[-1]["passage"] is None


def test_long_neighbours_are_dropped(tmp_path):
    for row in built(tmp_path, {"passage": Passage(sentences=(5, 5), words=8)}):
        assert len(row["passage"].split()) <= 12
    with pytest.raises(ValueError, match="sentences"):
        Passage(sentences=(4, 2))
