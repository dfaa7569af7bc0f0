from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from opencse.commands.reports.figures import short
from opencse.commands.reports.tables import shown


@given(st.text(alphabet=st.characters(), max_size=400))  # lone surrogates as well
def test_what_is_shown_is_short_and_has_nothing_invisible(text):
    result = shown(text, 100)
    assert len(result) <= 100 * 10 + 40
    result.encode("utf-8")
    bad = [c for c in result if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\u200c\u200d"]
    assert bad == []


def test_ordinary_text_is_left_alone():
    for text in ("Is it safe?", "ليس الدواء آمنا.", "naïve café, 5 < 6 & 7", "👩\u200d👩\u200d👧"):
        assert shown(text) == text


def test_long_and_tricky_texts():
    assert shown("a" * 100_000, 5) == "aaaaa… (100,000 characters)"
    assert shown("a\u202eb\tc\nd\x00") == "a⟨U+202E⟩b c d⟨U+0000⟩"


def test_names_in_figures_are_short():
    assert short("minilm") == "minilm"
    assert short("x" * 1000, 26) == "x" * 25 + "…"
    assert len(short("\u202e" * 1000, 26)) <= 52
