from __future__ import annotations

import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.generated import likely_words
from opencse.text.generated.likely_words import passes_filter
from opencse.text.views.registry import Insertion, SourceRow, Substitution, WordSubstitution

TEXTS = [
    "The old dog sits in the garden.",
    "a man",
    " ".join(["the green house"] * 10),
    "🙂",
    "",
    "   ",
]


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_insertion_adds_words_and_keeps_the_rest(model, request, rows):
    for text, view in zip(
        TEXTS, Insertion(model=request.getfixturevalue(model)).open()(rows(*TEXTS)), strict=True
    ):
        if view.text is None:
            assert view.rule == "too short"
            continue
        made, left = view.text.split(), text.split()
        assert 1 <= len(made) - len(left) <= max(1, len(left) // 10)
        for word in made:
            if left and word == left[0]:
                left.pop(0)
        assert not left


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_substitution_changes_words_in_place(model, request, rows):
    opened = WordSubstitution(model=request.getfixturevalue(model)).open()
    for text, view in zip(TEXTS, opened(rows(*TEXTS)), strict=True):
        if view.text is not None:
            before, after = text.split(), view.text.split()
            assert len(before) == len(after)
            assert (
                1
                <= sum(x != y for x, y in zip(before, after, strict=True))
                <= max(1, len(before) // 10)
            )


def test_alone_as_among_others(bert, rows, monkeypatch):
    monkeypatch.setattr(likely_words, "_SENTENCES", 2)
    spec = WordSubstitution(model=bert)
    together = spec.open(seed=1)(rows(*TEXTS))
    assert together == [spec.open(seed=1)([row])[0] for row in rows(*TEXTS)]


SENTENCES = [
    "The old dog sits in the garden.",
    "A happy child reads a book today",
    "The man sings.",
    "A woman runs slowly over the green street.",
]


MASKED = {
    "NOUN": 0.45, "VERB": 0.45, "ADJ": 0.40, "PROPN": 0.40, "ADV": 0.35, "PRON": 0.35, "CCONJ": 0.30, "DET": 0.30,
    "ADP": 0.25, "CONJ": 0.25, "SCONJ": 0.25, "AUX": 0.20, "NUM": 0.20, "PART": 0.15, "INTJ": 0.10, "PUNCT": 0.05,
    "SYM": 0.05, "X": 0.05,
}  # fmt: skip


def test_each_tag_is_masked_as_often_as_published(bert, monkeypatch):
    """SAN Table 2 over 20, by numbers written out: a tag for each entry of the vocabulary, whatever a tagger says."""
    tags = list(MASKED)
    monkeypatch.setattr(
        likely_words,
        "static_lexicon",
        lambda tokenizer, parser: [
            "" if i in tokenizer.all_special_ids else tags[i % len(tags)]
            for i in range(len(tokenizer))
        ],
    )
    opened = Substitution(model=bert, fallback="").open().build
    encoded = opened._predictor.encode(SENTENCES)
    special = set(opened._predictor.tokenizer.all_special_ids)
    pieces = opened._predictor.tokenizer.convert_ids_to_tokens
    seen = set()
    for ids, found in zip(encoded["input_ids"], opened.mask_probabilities(encoded), strict=True):
        for index, probability in zip(ids, found, strict=True):
            tag = "X" if pieces(index).startswith("##") else tags[index % len(tags)]
            assert probability == pytest.approx(0 if index in special else MASKED[tag]), (
                index,
                tag,
            )
            seen.add(tag)
    assert len(seen) > 8


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_the_same_alone_as_among_others(model, request, rows, monkeypatch):
    monkeypatch.setattr(likely_words, "_SENTENCES", 2)
    spec = Substitution(model=request.getfixturevalue(model), fallback="", iterations=2)
    together = spec.open(seed=4)(rows(*SENTENCES))
    alone = [spec.open(seed=4)([row])[0] for row in rows(*SENTENCES)]
    assert [view.text for view in together] == [view.text for view in alone]


def test_fallback_and_overlap(bert):
    opened = Substitution(model=bert).open().build
    rows = [
        SourceRow(id=0, text="?", views={"negation": "not ?"}),
        SourceRow(id=1, text=" ", views={"negation": None}),
    ]
    rejected, blank = opened(rows)
    assert (rejected.text, rejected.rule) == ("not ?", "rejected, negation")
    assert rejected.scores["overlap"] == 0.5
    assert (blank.text, blank.rule, blank.scores["overlap"]) == (None, "rejected", None)
    assert Substitution(model=bert).needs == ("negation",)
    assert Substitution(model=bert, fallback="").needs == ()


def test_unchanged_output_is_dropped(bert, rows, monkeypatch):
    opened = Substitution(model=bert, fallback="").open().build
    monkeypatch.setattr(opened, "cycle", lambda texts, chances: list(texts))
    assert opened(rows(SENTENCES[0]))[0].rule == "unchanged"
    kept = Substitution(model=bert, fallback="", drop_unchanged=False).open().build
    monkeypatch.setattr(kept, "cycle", lambda texts, chances: list(texts))
    assert kept(rows(SENTENCES[0]))[0].scores["overlap"] == 1.0


def test_published_filter():
    assert passes_filter("word")
    assert passes_filter("three words here now.")
    assert not passes_filter("two words here.")
    assert not passes_filter("- . , p .")
    assert not passes_filter(" ")
    assert passes_filter("." * 60)


def test_impossible_parameters_are_refused(bert):
    with pytest.raises(ValueError, match="divisor"):
        Substitution(model=bert, divisor=5)
    with pytest.raises(OpencseError, match="no/such"):
        Substitution(model="no/such-model").open()
    with pytest.raises(ValueError, match="share"):
        Insertion(model=bert, share=(0.2, 0.1))
