from __future__ import annotations

import pytest

from opencse.text.views.registry import Deletion, RandomSentence, SpanMask

TEXTS = [" ".join(f"w{k}" for k in range(n)) for n in range(1, 40)]


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
    one = Deletion().open(seed=5)(texts)
    assert one == Deletion().open(seed=5)(texts[:20]) + Deletion().open(seed=5)(texts[20:])
    assert one != Deletion().open(seed=6)(texts)


def test_impossible_parameters():
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


LONG_TEXTS = [" ".join(f"w{k}" for k in range(n)) for n in range(1, 60)]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4, 0.9])
def test_it_masks_a_run_of_words_and_keeps_the_rest(rows, share: float) -> None:
    for text, view in zip(LONG_TEXTS, SpanMask(share=share).open(seed=3)(rows(*LONG_TEXTS)), strict=True):
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


@pytest.mark.parametrize("seed", range(4))
def test_a_smaller_span_lies_within_a_larger_one(rows, seed: int) -> None:
    small, large = (SpanMask(share=s, min_words=2).open(seed=seed)(rows(*LONG_TEXTS[1:])) for s in (0.2, 0.4))
    for a, b in zip(small, large, strict=True):
        less, more = ({i for i, word in enumerate(v.text.split()) if word == "[MASK]"} for v in (a, b))
        assert less <= more


def test_spacing_and_the_mask_token_of_another_model(rows) -> None:
    (view,) = SpanMask(share=0.5, token="<mask>", min_words=2).open()(rows(" a\t b  "))
    assert view.text in (" <mask>\t b  ", " a\t <mask>  ")


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.0}, {"share": 0.2, "min_words": 1}])
def test_impossible_settings_are_refused(options) -> None:
    with pytest.raises(ValueError):
        SpanMask(**options)
