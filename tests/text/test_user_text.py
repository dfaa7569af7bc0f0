from __future__ import annotations

import json
import sys
from io import BufferedReader
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation import reading, tables
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import FileTally, open_tallied
from opencse.text import documents
from opencse.text.document_worker import paragraphs_of
from opencse.text.documents import Documents, count_words
from opencse.text.user_text import UserText, collect_passages, collect_queries

TEXTS = ["Refunds are allowed.", "Guests can edit pages."]


def test_a_corpus_comes_back_as_it_is(tmp_path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS))
    assert UserText(path).corpus().path == path
    demo = UserText("demo").corpus()
    assert (demo.name, demo.path.name) == ("demo", "sentences.txt")


@pytest.mark.parametrize("column", ["sentence", "Body"])
def test_another_column_is_found_by_its_name(tmp_path, column) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"id,{column},kind\n1,{TEXTS[0]},a\n2,{TEXTS[1]},b\n")
    found = UserText(path).corpus()
    assert list(found.texts()) == TEXTS
    assert "kind" in found.columns
    assert UserText(path).corpus().path == found.path, "written once"


def test_columns_of_unknown_names_and_of_numbers_are_refused(tmp_path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(OpencseError, match=r"which column holds the text.*`--column`"):
        UserText(path).corpus()
    with pytest.raises(OpencseError, match="no column 'c'"):
        UserText(path, column="c").corpus()
    (tmp_path / "t.csv").write_text(
        "text,remark\n" + "".join(f"{i},The lamp {i} is on.\n" for i in range(9))
    )
    (tmp_path / "plain.txt").write_text("\n".join(TEXTS))
    with pytest.raises(OpencseError, match=r"plain.txt: no column 'c'.*It has: text"):
        collect_passages(tmp_path / "plain.txt", column="c")
    with pytest.raises(OpencseError, match="no cell of the column 'text' has a letter"):
        UserText(tmp_path / "t.csv").corpus()
    assert len(list(UserText(tmp_path / "t.csv", "remark").corpus().texts())) == 9


@pytest.mark.parametrize(
    "given",
    [TEXTS, tuple(TEXTS), pd.DataFrame({"body": TEXTS, "number": [1, 2]})["body"], [*TEXTS, None]],
    ids=["list", "tuple", "column", "missing"],
)
def test_texts_in_memory(given) -> None:
    assert list(UserText(given).corpus().texts()) == TEXTS
    assert [passage.text for passage in collect_passages(given)] == TEXTS


def test_a_table_that_is_to_keep_its_columns_is_not_split(tmp_path) -> None:
    path = tmp_path / "table.csv"
    cell = " ".join(f"This is sentence number {i} of it." for i in range(10))
    path.write_text(f"text,negation\n{cell},No.\n")
    assert UserText(path).corpus(split=False).path == path
    assert UserText(path).corpus(needed=["negation", "paraphrase"]).path == path
    split = UserText(path).corpus(needed=["paraphrase"])
    assert split.path != path
    assert len(list(split.texts())) == 10


def test_queries(tmp_path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,query\n1,can I get a refund\n2,can I get a refund\n3,who can edit\n")
    assert collect_queries(path) == ["can I get a refund", "who can edit"]
    assert collect_queries([str(i) for i in range(1000)])[:3] == ["0", "5", "10"]


def test_what_is_wrong_with_texts_in_memory_does_not_name_a_file_in_the_cache() -> None:
    with pytest.raises(OpencseError, match=r"texts in memory \(list\): no text"):
        collect_passages(["", " "])


def test_queries_in_memory() -> None:
    assert collect_queries([None, "a", "b", "a"]) == ["a", "b"]


@pytest.mark.parametrize("given", [[1, 2], {"query": [1]}, 3, [" "]])
def test_things_that_are_no_queries_are_refused(given) -> None:
    with pytest.raises(OpencseError):
        collect_queries(given)


@pytest.mark.parametrize(
    "given",
    [
        7,
        {"text": [1, 2]},
        ["a", 3],
        [{"text": "a"}, 3],
        pd.DataFrame({"text": []}),
        datasets.DatasetDict(dict.fromkeys("ab", datasets.Dataset.from_dict({"text": TEXTS}))),
        ["\ud800"],
    ],
)
def test_what_holds_no_texts_is_refused(given) -> None:
    with pytest.raises(OpencseError):
        UserText(given).corpus()


PARAGRAPHS = [
    "The pump must be switched off. Wait until it is cold. Nobody may open the lid before that.",
    "Refunds are allowed within a month. Ask the desk on the second floor for the form, which is green.",
]
SENTENCES = [s.strip() + "." for p in PARAGRAPHS for s in p.split(".") if s.strip()]
WRAPPED = [  # at 48 characters, as an editor does it
    "The pump must be switched off. Wait until it is",
    "cold. Nobody may open the lid before that.",
    "",
    "Refunds are allowed within a month. Ask the desk",
    "on the second floor for the form, which is",
    "green.",
]


@pytest.mark.parametrize(
    ("name", "lines"), [("a.txt", PARAGRAPHS), ("b/a.txt", WRAPPED), ("a.md", WRAPPED)]
)
def test_paragraphs_are_split_by_one_rule(tmp_path, capsys, name, lines) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(("\n\n" if lines is PARAGRAPHS else "\n").join(lines))
    given = path.parent if name.startswith("b/") else path
    assert list(UserText(given).corpus().texts()) == SENTENCES
    assert [s for passage in collect_passages(given) for s in passage.sentences] == SENTENCES
    assert f"{given.name}: split into 5 distinct sentences" in capsys.readouterr().err


@pytest.mark.parametrize(
    "texts", [SENTENCES, ["reset my password", "log in with a key", "who can edit"]]
)
def test_one_sentence_per_line_stays_as_it_is(tmp_path, texts) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(texts))
    assert UserText(path).corpus().path == path
    assert [passage.text for passage in collect_passages(path)] == texts


def test_short_paragraphs_in_a_table_are_split_too(tmp_path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in PARAGRAPHS))
    assert list(UserText(path).corpus().texts()) == SENTENCES


def test_sentences_that_repeat_are_dropped_and_counted(tmp_path, capsys) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(SENTENCES * 3))
    assert list(UserText(path).corpus().texts()) == SENTENCES
    assert "a.txt: 10 of 15 sentences repeat another and are left out" in capsys.readouterr().err
    table = tmp_path / "t.csv"
    table.write_text("text,positive\na b c,one\na b c,two\na b c,two\n")
    assert list(UserText(table).corpus(needed=["positive"]).rows(["text", "positive"])) == [
        ("a b c", "one"),
        ("a b c", "two"),
    ]
    path = tmp_path / "a.txt"
    path.write_text("The pump is off.\n" * 100)
    with pytest.raises(OpencseError, match=r"a\.txt holds one sentence, 100 times"):
        UserText(path).corpus()


def test_pdf_and_docx_are_named_with_the_extra_where_it_is_missing(tmp_path, monkeypatch) -> None:
    for package in ("pypdf", "docx"):
        monkeypatch.setitem(sys.modules, package, None)
    for name in ("a.pdf", "b.docx"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(OpencseError, match=r'pip install "opencse\[documents\]"'):
            UserText(tmp_path / name).corpus()
    with pytest.raises(
        OpencseError,
        match=r"holds no document, but 1 \.pdf files, 1 \.docx files.*extra `documents`",
    ):
        UserText(tmp_path).corpus()


def write_pdf(path: Path, lines: list[str]) -> None:
    """Write a page with a text layer."""
    drawn = "".join(f"({line}) Tj T* " for line in lines)
    stream = f"BT /F1 12 Tf 14 TL 50 700 Td {drawn}ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 600 800]"
        " /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ]
    body, places = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    path.write_text(
        f"{body}xref\n0 5\n0000000000 65535 f \n{table}trailer << /Size 5 /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    )


def test_the_text_layer_of_a_pdf_is_read(tmp_path) -> None:
    pytest.importorskip("pypdf")
    write_pdf(tmp_path / "a.pdf", [line for line in WRAPPED if line])
    (tmp_path / "b.txt").write_text("The desk is open. It closes at six.")
    assert list(UserText(tmp_path / "a.pdf").corpus().texts()) == SENTENCES
    assert len(list(UserText(tmp_path).corpus().texts())) == 7
    write_pdf(tmp_path / "scan.pdf", [])
    with pytest.raises(OpencseError, match=r"scan\.pdf: has no text layer"):
        list(Documents(tmp_path / "scan.pdf").passages())
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4 broken")
    with pytest.raises(OpencseError, match=r"c\.pdf: cannot be read as PDF"):
        list(Documents(tmp_path / "c.pdf").passages())


def test_paragraphs_and_cells_of_docx_are_read(tmp_path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    for text in PARAGRAPHS:
        document.add_paragraph(text)
    document.add_table(rows=1, cols=1).cell(0, 0).text = "The desk is open."
    document.save(str(tmp_path / "a.docx"))
    assert list(UserText(tmp_path / "a.docx").corpus().texts()) == [*SENTENCES, "The desk is open."]
    (tmp_path / "b.docx").write_bytes(b"PK broken")
    with pytest.raises(OpencseError, match=r"b\.docx: cannot be read as DOCX"):
        list(Documents(tmp_path / "b.docx").passages())


def test_scripts_without_spaces_are_split_and_their_words_counted(tmp_path) -> None:
    """Chinese, Japanese and Thai have no spaces between words: their sentences were taken for one-word headings."""
    chinese = [
        f"我喜欢第{i}个苹果。" + end
        for i in range(20)
        for end in ("他不喜欢它！”", "你呢，第几个人？")
    ]
    japanese = [f"私は{i}番目の林檎が好きです。彼は嫌いです。" for i in range(20)]
    for name, text, first in (
        ("zh.md", "".join(chinese), ["我喜欢第0个苹果。", "他不喜欢它！”", "你呢，第几个人？"]),
        (
            "ja.txt",
            "".join(japanese),
            ["私は0番目の林檎が好きです。", "彼は嫌いです。", "私は1番目の林檎が好きです。"],
        ),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert list(UserText(path).corpus().texts())[:3] == first
        passages = list(Documents(path).passages(words=50))
        assert len(passages) > 3
        assert "".join(sentence for passage in passages for sentence in passage.sentences) == text
    assert count_words("ฉันชอบแอปเปิลสีแดง") > 5
    assert count_words("The lamp is on.") == 4


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
def test_markup_code_menus_and_scripts_are_no_text(
    tmp_path, name, content, sentences, left_out
) -> None:
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


def test_documents_are_read_once(tmp_path, monkeypatch) -> None:
    for number in range(3):
        lines = [f"Page {number} has the sentence number {place}." for place in range(9)]
        (tmp_path / f"{number}.md").write_text("\n\n".join(lines))
        (tmp_path / f"{number}.txt").write_text("\n".join(lines))
    expected = Documents(tmp_path).content_hash
    opened = []

    def counted(path: Path, tally: FileTally) -> BufferedReader:
        opened.append(path.name)
        return open_tallied(path, tally)

    monkeypatch.setattr(tables, "open_tallied", counted)
    monkeypatch.setattr(reading, "open_tallied", counted)
    parsed = []

    def paragraphs(path: Path, **options: Any) -> list[str]:
        parsed.append(path.name)
        return paragraphs_of(path, **options)

    monkeypatch.setattr(documents, "paragraphs_of", paragraphs)
    text = UserText(tmp_path)
    assert len(text.first_texts(2)) == 2
    corpus = text.corpus(stored=False)
    assert sum(1 for _ in corpus.texts()) == 27
    assert len(text.first_passages(100)) == 30
    assert text._documents.content_hash == expected
    assert parsed == ["0.md", "1.md", "2.md"]
    assert opened == ["0.txt", "1.txt", "2.txt"]
    (tmp_path / "2.txt").write_text("Another text.")
    assert Documents(tmp_path).content_hash != expected


def test_documents_that_cannot_be_read_are_counted(tmp_path, capsys) -> None:
    for name in ("b.rtf", "c.RTF", "d.epub"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(OpencseError, match=r"holds no document, but 1 .epub files, 2 .rtf files"):
        texts(tmp_path)
    (tmp_path / "a.md").write_text("First text.")
    assert texts(tmp_path) == ["First text."]
    assert "2 .rtf files are not read. Known: .md" in capsys.readouterr().err


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: None])
def test_nothing_to_read(tmp_path, make) -> None:
    make(tmp_path / "none")
    with pytest.raises(OpencseError, match="none"):
        texts(tmp_path / "none")


def test_german_ordinals_and_abbreviations_end_no_sentence(tmp_path) -> None:
    (tmp_path / "a.md").write_text(
        "Der Vertrag endet am 3. Mai. Er gilt z. B. nicht für die Kunden, die wir haben."
    )
    (passage,) = Documents(tmp_path).passages()
    assert passage.sentences == (
        "Der Vertrag endet am 3. Mai.",
        "Er gilt z. B. nicht für die Kunden, die wir haben.",
    )


def test_only_lines_with_a_mark_inside_are_split_to_judge_them(monkeypatch) -> None:
    """Splitting every line of every file would take most of the time of a folder of small files."""
    lines = [
        "The pump is off.",
        'She said "no".',
        "Is it on?",
        "A heading",
        "Stop!)",
        "Wait …",
    ] * 20

    def no_split(texts, language=None):
        raise AssertionError(texts)

    with monkeypatch.context() as patch:
        patch.setattr(documents, "split_sentences", no_split)
        assert documents.are_sentences(lines)
    two = "The pump is off. The tank is full."
    assert documents.are_sentences([*lines, *[two] * 13])
    assert not documents.are_sentences([*lines, *[two] * 14])
    # A point within a sentence is looked at, and does not count.
    assert documents.are_sentences(["Mr. Lee sang at 3.30 p.m. in St. Ives."] * 50)


@pytest.mark.parametrize(
    "text",
    [
        "Wow! $5",
        'He said "Go." and left.',
        "A. B.",
        "x...",
        "Is it? (Yes.)",
        "好。好。",
        "End.] [1]",
        "No.\n",
    ],
)
def test_a_text_without_a_mark_inside_is_never_split(text) -> None:
    if not documents._inner_end().search(text):
        assert len(next(documents.split_sentences([text]))) == 1
