from __future__ import annotations

import pytest

from opencse.text.spans import DocumentSpans

WORDS = [f"w{i}" for i in range(120)]
DOCUMENT = " ".join(WORDS)


def span(text: str) -> range:
    numbers = [int(word[1:]) for word in text.split()]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    return range(numbers[0], numbers[-1] + 1)


@pytest.mark.parametrize("seed", range(20))
def test_positives_touch_their_anchor_and_anchors_do_not_overlap(seed: int) -> None:
    view = DocumentSpans(anchors=2, positives=2, shortest=4, longest=20)
    spans = [span(text) for text in view.preview(DOCUMENT, seed=seed)[0]]
    assert len(spans) == len(view.columns("span")) == 6
    assert all(4 <= len(words) <= 20 for words in spans)
    for anchor, *positives in (spans[:3], spans[3:]):
        for positive in positives:
            assert positive.start <= anchor.stop
            assert positive.stop >= anchor.start
    assert not set(spans[0]) & set(spans[3])


def test_a_short_document_has_no_spans() -> None:
    view = DocumentSpans(anchors=2, positives=1, shortest=4, longest=20)
    assert view.preview("too short")[0] == [None] * 4


def test_longest_is_not_below_shortest() -> None:
    with pytest.raises(ValueError, match="less than shortest"):
        DocumentSpans(shortest=10, longest=5)
