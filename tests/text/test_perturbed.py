"""Words deleted or masked at random, other sentences, and passages."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from opencse.text.corpus import Corpus
from opencse.text.views.registry import (
    Deletion,
    Negation,
    NextSentence,
    Passage,
    RandomSentence,
    SpanMask,
    build_views,
)

TEXTS = [" ".join(f"w{k}" for k in range(n)) for n in range(1, 60)]


def test_deletion_removes_one_word_or_a_share(rows):
    for text, view in zip(TEXTS[1:], Deletion().open()(rows(*TEXTS[1:])), strict=True):
        gone = set(text.split()) - set(view.text.split())
        assert len(gone) == 1
        assert view.text.split() == [word for word in text.split() if word not in gone]
        assert view.scores["mer"] == pytest.approx(1 / len(text.split()))
    assert Deletion().open()(rows("one", ""))[0].text is None
    (view,) = Deletion(share=0.5).open()(rows("one two three four five six"))
    assert len(view.text.split()) == 3
    assert Deletion(share=0.5).open()(rows("one"))[0].text is None
    with pytest.raises(ValueError, match="share"):
        Deletion(share=1.0)


def test_random_sentence_is_another_row_and_never_a_copy_of_the_sentence(rows):
    for i, view in enumerate(RandomSentence().open()(rows(*TEXTS))):
        other = int(view.rule.removeprefix("row "))
        assert other != i
        assert view.text == TEXTS[other]
    assert RandomSentence().open()(rows("alone"))[0].rule == "no other row"
    copies = ["The sun  rises.", "the sun rises.", "The sun rises."]
    assert [view.text for view in RandomSentence().open()(rows(*copies))] == [None, None, None]
    views = RandomSentence().open(seed=3)(rows(*copies, "Rain falls."))
    assert [view.text for view in views[:3]] == ["Rain falls."] * 3
    assert views[3].text in copies


def test_chance_comes_from_the_seed_and_the_row_alone(rows):
    texts = rows(*TEXTS)
    one = Deletion().open(seed=5)(texts)
    assert one == Deletion().open(seed=5)(texts[:20]) + Deletion().open(seed=5)(texts[20:])
    assert one != Deletion().open(seed=6)(texts)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4, 0.9])
def test_it_masks_a_run_of_words_and_keeps_the_rest(rows, share: float) -> None:
    for text, view in zip(TEXTS, SpanMask(share=share).open(seed=3)(rows(*TEXTS)), strict=True):
        words = text.split()
        if len(words) < 10:
            assert view.text is None
            assert view.rule == "too short"
            continue
        made = view.text.split()
        masked = [i for i, word in enumerate(made) if word == "[MASK]"]
        assert masked == list(range(masked[0], masked[0] + len(masked)))
        assert len(masked) == max(round(share * len(words)), 1)
        assert [word for i, word in enumerate(made) if i not in masked] == [
            word for i, word in enumerate(words) if i not in masked
        ]


@pytest.mark.parametrize("seed", range(2))
def test_a_smaller_span_lies_within_a_larger_one(rows, seed: int) -> None:
    small, large = (SpanMask(share=s).open(seed=seed)(rows(*TEXTS[9:])) for s in (0.2, 0.4))
    for a, b in zip(small, large, strict=True):
        less, more = (
            {i for i, word in enumerate(v.text.split()) if word == "[MASK]"} for v in (a, b)
        )
        assert less <= more


def test_spacing_and_the_mask_token_of_another_model(rows) -> None:
    (view,) = SpanMask(share=0.1, token="<mask>").open()(rows(" a\t b  c d e f g h i j"))
    before, after = view.text.split("<mask>")
    assert " a\t b  c d e f g h i j" in [f"{before}{letter}{after}" for letter in "abcdefghij"]


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.0}])
def test_impossible_settings_are_refused(options) -> None:
    with pytest.raises(ValueError):
        SpanMask(**options)


FURNITURE = [
    f"The {word} is old."
    for word in ("door", "roof", "wall", "gate", "lamp", "desk", "sofa", "vase")
]


def built(tmp_path, specs, texts=FURNITURE):
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    return pq.read_table(
        build_views(Corpus(tmp_path / "corpus.txt"), specs, tmp_path / "out").path
    ).to_pylist()


def test_each_sentence_has_the_one_that_follows_and_the_last_has_none(tmp_path):
    table = built(
        tmp_path, {"next": NextSentence()}, ["One.", "Two.", "", "Three.", "Four.", "Five."]
    )
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


def test_a_passage_has_others_beside_the_sentence_but_not_too_many_words(tmp_path, monkeypatch):
    specs = {"next": NextSentence(), "passage": Passage(around=("next", "next", "next"))}
    rows = built(tmp_path, specs)
    assert rows[-1]["passage"] is None
    assert all(8 < len(row["passage"].split()) <= 16 for row in rows[:-1])
    assert all(
        f" {row['text']} " in f" {row['passage']} " and row["next"] in row["passage"]
        for row in rows[:-1]
    )
    monkeypatch.setattr("opencse.text.perturbed._PASSAGE_WORDS", 4)
    (tmp_path / "short").mkdir()
    assert all(len(row["passage"].split()) == 8 for row in built(tmp_path / "short", specs)[:-1])
