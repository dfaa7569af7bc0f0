from __future__ import annotations

import pytest

from opencse.training.session import base_model

CARD = "---\nlicense: mit\nbase_model:\n- someone/something\n---\n# Title\n"


@pytest.mark.parametrize(
    ("card", "found"),
    [
        (CARD, ("someone/something", "mit")),
        ("# No head\n", (None, None)),
        ("---\n: not [yaml\n---\n", (None, None)),
        (None, (None, None)),
    ],
)
def test_a_folder_says_where_it_comes_from(tmp_path, card, found) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert base_model(tmp_path) == found


def test_names() -> None:
    assert base_model("minilm") == ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")
    assert base_model("bert-base-uncased") == ("bert-base-uncased", None)
    assert base_model("./none") == (None, None)
