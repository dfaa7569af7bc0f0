from __future__ import annotations

import pytest

from opencse.text.generated import likely_words
from opencse.text.views.registry import Insertion, WordSubstitution

TEXTS = ["The old dog sits in the garden.", "a man", " ".join(["the green house"] * 10), "🙂", "", "   "]


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_insertion_adds_words_and_keeps_the_rest(model, request, rows):
    for text, view in zip(TEXTS, Insertion(model=request.getfixturevalue(model)).open()(rows(*TEXTS)), strict=True):
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
            assert 1 <= sum(x != y for x, y in zip(before, after, strict=True)) <= max(1, len(before) // 10)


def test_alone_as_among_others(bert, rows, monkeypatch):
    monkeypatch.setattr(likely_words, "_SENTENCES", 2)
    spec = WordSubstitution(model=bert)
    together = spec.open(seed=1)(rows(*TEXTS))
    assert together == [spec.open(seed=1)([row])[0] for row in rows(*TEXTS)]


def test_share_is_a_range(bert):
    with pytest.raises(ValueError, match="share"):
        Insertion(model=bert, share=(0.2, 0.1))
