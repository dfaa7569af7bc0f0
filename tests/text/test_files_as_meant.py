"""Files are read as their writers meant: folders of other tools, exports of Excel, compressed and repeated text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import few_sentences
from opencse.text.corpus import Corpus
from opencse.text.documents import Documents
from opencse.text.user_text import UserText, collect_passages, collect_queries

SENTENCES = [
    f"The {word} cat sits in the garden." for word in "red blue old young big small".split()
]
ROWS = [("id", "text"), ("1", 'He said "stop" twice.'), ("2", "A plain sentence, with a comma.")]


def table(folder: Path, **columns: list[str]) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder)
    return folder


def excel(rows: list[tuple[str, ...]], delimiter: str) -> str:
    """What Excel writes, by Python's own writer."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return out.getvalue()


def texts(path: Path, column: str | None = None) -> list[str]:
    return list(UserText(path, column).corpus(split=False).texts())


@pytest.mark.parametrize("extra", ["_SUCCESS", ".part.crc", "_committed_1", "~lock"])
def test_a_folder_of_spark_keeps_its_columns(tmp_path, extra: str) -> None:
    negations = [text.replace("sits", "does not sit") for text in SENTENCES]
    table(tmp_path / "out" / "part-0.parquet", text=SENTENCES, negation=negations)
    (tmp_path / "out" / extra).write_text("not a sentence at all")
    text = UserText(tmp_path / "out")
    assert text.columns == ("text", "negation")
    rows = list(text.corpus({"negation"}).rows(("text", "negation")))
    assert rows == list(zip(SENTENCES, negations, strict=True))


def test_hidden_parquet_files_are_no_data(tmp_path) -> None:
    table(tmp_path / "out" / "part-0.parquet", text=SENTENCES)
    (tmp_path / "out" / "._part-0.parquet").write_bytes(b"Mac OS X")
    table(tmp_path / "out" / "_temporary.parquet", text=["half a file"])
    assert list(Corpus(tmp_path / "out").texts()) == SENTENCES


def test_the_readme_of_a_cloned_data_set_is_not_trained_on(tmp_path, capsys) -> None:
    (tmp_path / "README.md").write_text("# My data\n\nThis data set was made by somebody.\n")
    (tmp_path / ".gitattributes").write_text("*.parquet filter=lfs\n")
    table(tmp_path / "data" / "train-00000-of-00001.parquet", text=SENTENCES)
    table(tmp_path / "data" / "test-00000-of-00001.parquet", text=["A test sentence is no data."])
    assert texts(tmp_path) == SENTENCES
    assert "only the training part is read, 1 of 2 files" in capsys.readouterr().err


def test_a_readme_beside_tables_of_text_is_left_out_but_one_among_documents_is_read(
    tmp_path,
) -> None:
    for name in ("tables", "documents"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text("This page is about the data here.\n")
    (tmp_path / "tables" / "rows.csv").write_text(
        excel([("text",), *zip(SENTENCES, strict=True)], ",")
    )
    (tmp_path / "documents" / "page.md").write_text("\n\n".join(SENTENCES))
    found = [
        [p.text for p in collect_passages(tmp_path / name)] for name in ("tables", "documents")
    ]
    assert found[0] == SENTENCES
    assert any("about the data" in text for text in found[1])


@pytest.mark.parametrize("first", SENTENCES[:1])
def test_a_header_that_looks_like_a_sentence_is_noted(tmp_path, capsys, first: str) -> None:
    (tmp_path / "a.csv").write_text(excel([(text,) for text in [first, *SENTENCES[1:]]], ","))
    assert len(list(Corpus(tmp_path / "a.csv").texts(first))) == len(SENTENCES) - 1
    assert "put a row with names" in capsys.readouterr().err
    (tmp_path / "b.csv").write_text(
        excel([("Customer comment",), *zip(SENTENCES, strict=True)], ",")
    )
    assert Corpus(tmp_path / "b.csv").columns == ("Customer comment",)
    assert "put a row" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["unicode.txt", "unicode.tsv"])
def test_the_unicode_text_of_excel_is_a_table(tmp_path, name: str) -> None:
    (tmp_path / name).write_bytes(codecs.BOM_UTF16_LE + excel(ROWS, "\t").encode("utf-16-le"))
    assert Corpus(tmp_path / name).columns == ("id", "text")
    assert texts(tmp_path / name) == [row[1] for row in ROWS[1:]]


def test_quoted_cells_of_a_tsv_file_are_unquoted_and_others_are_not(tmp_path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(excel(ROWS, "\t"))
    assert texts(path) == [row[1] for row in ROWS[1:]]
    plain = [("id", "text"), ("1", '"Stop," he said.'), ("2", '"Go."'), ("3", 'a "word" inside')]
    path.write_text("".join("\t".join(row) + "\n" for row in plain))
    assert texts(path) == [row[1] for row in plain[1:]]


def test_the_line_that_states_the_separator_is_no_header(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("sep=;\r\n" + excel(ROWS, ";"))
    assert Corpus(path).columns == ("id", "text")
    assert texts(path) == [row[1] for row in ROWS[1:]]
    path.write_text("sep=;\r\nid;text\r\n1;a;b\r\n")
    with pytest.raises(OpencseError, match="line 3: 3 cells"):
        list(Corpus(path).texts())


def test_gzip_data_is_read_whatever_its_name_and_other_binary_files_are_named(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress("\n".join(SENTENCES).encode()))
    assert texts(path) == SENTENCES
    path.write_bytes(b"PK\x03\x04" + b"\xff" * 40)
    with pytest.raises(OpencseError, match="a ZIP archive, such as"):
        texts(path)


def test_tsv_whose_cells_are_all_quoted(tmp_path) -> None:
    """As `to_csv(sep="\t", quoting=csv.QUOTE_ALL)` and R's `write.table` write it."""
    path = tmp_path / "a.tsv"
    path.write_text('"id"\t"text"\n1\t"The cat sits."\n2\t"It is, red."\n')
    assert Corpus(path).columns == ("id", "text")
    assert texts(path) == ["The cat sits.", "It is, red."]
    path.write_text('"text"\n"The cat sits."\n"It is red."\n')
    assert texts(path) == ["The cat sits.", "It is red."]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path, end: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(end.join(SENTENCES).encode())
    assert texts(path) == SENTENCES
    passages = [passage.text for passage in Documents(path).passages()]
    assert len(" ".join(passages).split()) == len(" ".join(SENTENCES).split())
    assert not any("\r" in passage for passage in passages)


@pytest.mark.parametrize("separator", ["\u0085", "\u2028", "\x0b"])
def test_other_separators_are_part_of_a_line(tmp_path, separator: str) -> None:
    path = tmp_path / "a.txt"
    lines = [text.replace(" sits", f"{separator}sits") for text in SENTENCES]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert texts(path) == lines


def test_rich_text_under_another_name_is_refused(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("{\\rtf1\\ansi The cat sits.}")
    with pytest.raises(OpencseError, match="an RTF document, not text"):
        texts(path)


SPACED = ("{}", " {}", "{} ", "  {}  ", "{}\u00a0")


def test_sentences_that_differ_in_white_space_count_once(tmp_path, capsys) -> None:
    twelve = [f"Sentence number {word} is here." for word in "abcdefghijkl"]
    spaced = [form.format(text) for text in twelve for form in SPACED]
    spaced += [text.replace(" ", "  ") for text in twelve]
    (tmp_path / "a.txt").write_text("\n".join(spaced))
    assert "12 different sentences" in few_sentences(spaced)[0]
    assert len(texts(tmp_path / "a.txt")) == 12
    assert "60 of 72 sentences repeat another" in capsys.readouterr().err
    with pytest.raises(OpencseError, match="7 different sentences are too few"):
        few_sentences(form.format(text) for text in twelve[:7] for form in SPACED)
    assert "9 different" in few_sentences(["caf\u00e9", "cafe\u0301", *"abcdefgh"])[0]


def test_the_first_of_equal_rows_is_kept_with_its_columns(tmp_path) -> None:
    rows = [("a b", "x", "1"), ("c", "y", "2"), ("a  b", "x", "3"), ("a b", "z", "4")]
    pq.write_table(
        pa.table(dict(zip(("text", "negative", "note"), zip(*rows, strict=True), strict=True))),
        tmp_path / "a.parquet",
    )
    corpus = UserText(tmp_path / "a.parquet").corpus({"negative"})
    assert list(corpus.rows(("text", "negative", "note"))) == [rows[0], rows[1], rows[3]]


def test_one_repeated_sentence_does_not_pull_the_corpus_into_memory(tmp_path) -> None:
    path = tmp_path / "a.txt"
    with path.open("w") as file:
        for number in range(60_000):
            file.write(f"This is the sentence of number {number}, and it is quite a long one.\n")
        file.write("This is the sentence of number 7, and it is quite a long one.\n")
    tracemalloc.start()
    corpus = UserText(path).corpus()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20
    assert sum(1 for _ in corpus.texts()) == 60_000


def test_a_stray_control_character_in_one_of_many_files_is_as_in_one_file(tmp_path) -> None:
    pages = [f"Page {number} has a line.\nAnd another line here.\n" for number in range(600)]
    pages[550] = "A stray \u0092 character.\n"
    (tmp_path / "folder").mkdir()
    for number, page in enumerate(pages):
        (tmp_path / "folder" / f"{number:04}.txt").write_text(page)
    (tmp_path / "one.txt").write_text("".join(pages))
    one, many = (len(collect_passages(tmp_path / name)) for name in ("one.txt", "folder"))
    assert one > 0
    assert many > 0
    (tmp_path / "folder" / "0003.txt").write_text("A stray \u0092 character.\n")
    with pytest.raises(OpencseError, match="control character"):
        list(Documents(tmp_path / "folder").passages())


def test_queries_in_a_document_and_in_any_container(tmp_path) -> None:
    (tmp_path / "queries.md").write_text("# Questions\n\n- Where is it? Who is he?\n- When?\n")
    assert collect_queries(tmp_path / "queries.md")[-3:] == ["Where is it?", "Who is he?", "When?"]
    assert collect_queries(("a b", "c")) == ["a b", "c"]
    assert collect_queries(text for text in ("a b", "a b")) == ["a b"]
