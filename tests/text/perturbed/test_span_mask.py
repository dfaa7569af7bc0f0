from __future__ import annotations

import pytest

from opencse.text.views.registry import SpanMask

TEXTS = [" ".join(f"w{k}" for k in range(n)) for n in range(1, 60)]


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


@pytest.mark.parametrize("seed", range(4))
def test_a_smaller_span_lies_within_a_larger_one(rows, seed: int) -> None:
    small, large = (SpanMask(share=s, min_words=2).open(seed=seed)(rows(*TEXTS[1:])) for s in (0.2, 0.4))
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
