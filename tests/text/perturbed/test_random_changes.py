from __future__ import annotations

from collections import Counter

import pytest

from opencse.text.views.registry import Deletion, RandomSentence, WordRepetition

TEXTS = [" ".join(f"w{k}" for k in range(n)) for n in range(1, 40)]


def test_repetition_repeats_in_place_and_no_more_than_its_share(rows):
    counts = Counter()
    for text, view in zip(TEXTS, WordRepetition().open(seed=1)(rows(*TEXTS)), strict=True):
        words = text.split()
        made = view.text.split()
        extra = len(made) - len(words)
        assert 0 <= extra <= min(len(words), max(2, int(0.32 * len(words))))
        assert [word for i, word in enumerate(made) if i == 0 or word != made[i - 1]] == words
        counts[extra == 0] += 1
    assert counts[False] > counts[True]


def test_repetition_keeps_spacing(rows):
    (view,) = WordRepetition(share=1.0).open(seed=2)(rows(" a\t b  "))
    assert view.text.startswith(" a")
    assert view.text.endswith("b  ")


def test_deletion_removes_one_word(rows):
    for text, view in zip(TEXTS[1:], Deletion().open()(rows(*TEXTS[1:])), strict=True):
        gone = set(text.split()) - set(view.text.split())
        assert len(gone) == 1
        assert view.text.split() == [word for word in text.split() if word not in gone]
        assert view.scores["mer"] == pytest.approx(1 / len(text.split()))
    assert Deletion().open()(rows("one", ""))[0].text is None


def test_random_sentence_is_another_row(rows):
    for i, view in enumerate(RandomSentence().open()(rows(*TEXTS))):
        other = int(view.rule.removeprefix("row "))
        assert other != i
        assert view.text == TEXTS[other]
    assert RandomSentence().open()(rows("alone"))[0].rule == "no other row"


def test_chance_comes_from_the_seed_and_the_row_alone(rows):
    texts = rows(*TEXTS)
    for spec in (WordRepetition(), Deletion()):
        one = spec.open(seed=5)(texts)
        assert one == spec.open(seed=5)(texts[:20]) + spec.open(seed=5)(texts[20:])
        assert one != spec.open(seed=6)(texts)


def test_impossible_parameters():
    with pytest.raises(ValueError, match="share"):
        WordRepetition(share=2.0)
    with pytest.raises(ValueError, match="words"):
        Deletion(words=0)


def test_random_sentence_is_never_a_copy_of_the_sentence_itself(rows):
    copies = ["The sun  rises.", "the sun rises.", "The sun rises."]
    assert [view.text for view in RandomSentence().open()(rows(*copies))] == [None, None, None]
    views = RandomSentence().open(seed=3)(rows(*copies, "Rain falls."))
    assert [view.text for view in views[:3]] == ["Rain falls."] * 3
    assert views[3].text in copies


def test_a_share_of_the_words_is_deleted(rows):
    (view,) = Deletion(share=0.5).open()(rows("one two three four five six"))
    assert len(view.text.split()) == 3
    assert Deletion(share=0.5).open()(rows("one"))[0].text is None
