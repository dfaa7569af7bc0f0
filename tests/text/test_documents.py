from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.documents import Documents

MARKDOWN = """---
title: Not text
---
# Refunds

Refunds are allowed within 30 days. Ask
**support** for the [form](http://example.org/form).

```
code is left out
```

- A first item.

| plan | price |
|---|---|
| Small | Nine euros. |
"""
HTML = """<html><head><title>T</title><style>p {color: red}</style></head><body><nav>Menu</nav>
<h1>Leave</h1><p>Staff get <b>25 days</b> of leave &amp; more.</p><script>var x = 1;</script><p>Ask early.</p></body>"""


def texts(path, **options) -> list[str]:
    return [passage.text for passage in Documents(path).passages(**options)]


@pytest.mark.parametrize(
    ("name", "content", "sentences", "left_out"),
    [
        ("a.md", MARKDOWN, ["Refunds are allowed within 30 days.", "Ask support for the form.", "Nine euros."],
         ("code", "http", "**", "title")),
        ("a.html", HTML, ["Staff get 25 days of leave & more.", "Ask early."], ("Menu", "var", "color")),
    ],
)  # fmt: skip
def test_markup_code_menus_and_scripts_are_no_text(tmp_path, name, content, sentences, left_out) -> None:
    (tmp_path / name).write_text(content)
    (found,) = Documents(tmp_path / name).passages()
    assert set(sentences) <= set(found.sentences)
    assert not any(word in found.text for word in left_out)
    assert found.source == name


def test_html_that_the_parser_gives_up_is_named(tmp_path) -> None:
    (tmp_path / "page.html").write_text("<p>Ask early.</p><![a c>d")
    with pytest.raises(OpencseError, match=r"page\.html: no valid HTML"):
        list(Documents(tmp_path / "page.html").passages())


def test_passages_hold_so_many_words_and_whole_sentences(tmp_path) -> None:
    path = tmp_path / "a.md"
    path.write_text(" ".join(f"This is sentence number {i}." for i in range(10)))
    found = list(Documents(path).passages(words=12))
    assert [len(passage.sentences) for passage in found] == [2, 2, 2, 2, 2]
    assert found[0].sentences == ("This is sentence number 0.", "This is sentence number 1.")


def test_a_folder_of_many_formats(tmp_path) -> None:
    (tmp_path / "a.md").write_text("First text.")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.csv").write_text("id,body\n1,Second text.\n")
    pq.write_table(pa.table({"sentence": ["Third text."]}), tmp_path / "d.parquet")
    (tmp_path / "image.png").write_bytes(b"\x89")
    (tmp_path / ".hidden.md").write_text("Hidden.")
    assert Documents(tmp_path).are_prose
    assert texts(tmp_path) == ["First text.", "Second text.", "Third text."]


def test_documents_that_cannot_be_read_are_counted(tmp_path, capsys) -> None:
    for name in ("b.rtf", "c.RTF", "d.epub"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(OpencseError, match=r"holds no document, 1 .epub files are not read .*, 2 .rtf files are"):
        texts(tmp_path)
    (tmp_path / "a.md").write_text("First text.")
    assert texts(tmp_path) == ["First text."]
    assert "2 .rtf files are not read (convert them" in capsys.readouterr().err


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: None])
def test_nothing_to_read(tmp_path, make) -> None:
    make(tmp_path / "none")
    with pytest.raises(OpencseError, match="none"):
        texts(tmp_path / "none")


def test_german_ordinals_and_abbreviations_end_no_sentence(tmp_path) -> None:
    (tmp_path / "a.md").write_text("Der Vertrag endet am 3. Mai. Er gilt z. B. nicht für die Kunden, die wir haben.")
    (passage,) = Documents(tmp_path).passages()
    assert passage.sentences == (
        "Der Vertrag endet am 3. Mai.",
        "Er gilt z. B. nicht für die Kunden, die wir haben.",
    )
