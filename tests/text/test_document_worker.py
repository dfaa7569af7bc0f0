"""Documents of strangers: each is read, or refused in one line, within its time and memory."""

from __future__ import annotations

import gzip
import io
import os
import time
import zipfile
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.text import document_worker
from opencse.text.document_worker import paragraphs_of
from opencse.text.documents import Documents
from opencse.text.user_text import collect_passages

TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Override PartName="/word/document.xml" ContentType=
"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
RELATIONS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="r" Target="word/document.xml" Type=
"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>"""
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TEXT = "<w:p><w:r><w:t>Refunds are allowed.</w:t></w:r></w:p>"


def docx(body: str, *, start: str = "", without: str = "") -> bytes:
    document = f'<?xml version="1.0"?>{start}<w:document {W}><w:body>{body}</w:body></w:document>'
    parts = {"[Content_Types].xml": TYPES, "_rels/.rels": RELATIONS, "word/document.xml": document}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            if name != without:
                archive.writestr(name, content)
    return packed.getvalue()


def table(cells: str, depth: int = 1) -> str:
    inner = TEXT
    for _ in range(depth):
        inner = f"<w:tbl><w:tr><w:tc>{cells}{inner}</w:tc></w:tr></w:tbl>"
    return inner


def claims_gigabytes(packed: bytes) -> bytes:
    """An archive whose list of contents says that the last part unpacks to 2 GiB."""
    entry = packed.rindex(b"PK\x01\x02")
    return packed[: entry + 24] + b"\xff\xff\xff\x7f" + packed[entry + 28 :]


def read(path: Path) -> list[str] | str:
    """The paragraphs of a document, or the line that says why it cannot be read."""
    try:
        return paragraphs_of(path)
    except OpencseError as error:
        return error.problem


ENTITIES = (
    "<!DOCTYPE d ["
    + "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
    + '<!ENTITY e0 "lol">]>'
)
WORD = {
    "truncated": docx(TEXT)[:300],
    "no zip": b"not a zip",
    "no content types": docx(TEXT, without="[Content_Types].xml"),
    "no relations": docx(TEXT, without="_rels/.rels"),
    "no document": docx(TEXT, without="word/document.xml"),
    "entity bomb": docx("<w:p><w:r><w:t>&e12;</w:t></w:r></w:p>", start=ENTITIES),
    "zip bomb": claims_gigabytes(docx(TEXT)),
    "deep tables": docx(table("", 400)),
}
needs_docx = pytest.mark.usefixtures("_docx")


@pytest.fixture
def _docx() -> None:
    pytest.importorskip("docx")


@needs_docx
@pytest.mark.parametrize("name", [name for name in WORD if name != "entity bomb"])
def test_broken_word_documents(tmp_path, name) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(WORD[name])
    found = read(path)
    if name in ("zip bomb", "truncated", "no zip", "no content types", "no document"):
        assert isinstance(found, str)
    if isinstance(found, str):
        assert "a.docx" in found
        assert "\n" not in found
    else:
        assert found == ["Refunds are allowed."]


@needs_docx
def test_entities_are_not_expanded(tmp_path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(WORD["entity bomb"])
    assert len("".join(read(path))) < 1000


@needs_docx
def test_a_foreign_root(tmp_path) -> None:
    packed = io.BytesIO(docx(TEXT))
    other = io.BytesIO()
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, "<html/>" if name.endswith("document.xml") else old.read(name))
    (tmp_path / "a.docx").write_bytes(other.getvalue())
    with pytest.raises(OpencseError, match=r"a\.docx"):
        paragraphs_of(tmp_path / "a.docx")


@needs_docx
def test_cells_that_claim_many_columns_are_read_once(tmp_path) -> None:
    span = '<w:tcPr><w:gridSpan w:val="200000000"/></w:tcPr>'
    (tmp_path / "a.docx").write_bytes(docx(table(span)))
    assert paragraphs_of(tmp_path / "a.docx") == ["Refunds are allowed."]


def pdf(pages: int) -> bytes:
    """A PDF whose list of pages names one page again and again."""
    kids = " ".join(["3 0 R"] * pages)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/Kids[{kids}]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj{content}endobj\n".encode()
    table_at = len(out)
    out += b"xref\n0 4\n0000000000 65535 f \n"
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + f"trailer<</Size 4/Root 1 0 R>>\nstartxref\n{table_at}\n%%EOF".encode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (pdf(60_000), "60,000 pages|cannot be read"),
        (pdf(1), "no text layer"),
        (b"%PDF-1.4 nothing", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_broken_pdf_files(tmp_path, content, problem) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.pdf").write_bytes(content)
    with pytest.raises(OpencseError, match=problem):
        paragraphs_of(tmp_path / "a.pdf", budget=15)


def test_brackets_that_take_hours(tmp_path) -> None:
    path = tmp_path / "a.md"
    path.write_text("[" * 60_000)
    started = time.monotonic()
    with pytest.raises(OpencseError, match=r"a\.md: cannot be read within 1 seconds of computing"):
        paragraphs_of(path, budget=1)
    assert time.monotonic() - started < 60
    path.write_text("A text.")  # the next document has a process of its own
    assert paragraphs_of(path) == ["A text."]


def test_a_word_without_end_is_split_in_time(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("[" * 60_000 + "\n")
    started = time.monotonic()
    assert len(collect_passages(tmp_path / "a.txt")) >= 1
    assert time.monotonic() - started < 60


def test_a_reader_that_waits_is_ended(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(document_worker, "_WAITING", 0.0)
    (tmp_path / "a.md").write_text("A text.")
    with pytest.raises(OpencseError, match="cannot be read within"):
        for _ in range(20):  # the clock may be slower than the reader
            paragraphs_of(tmp_path / "a.md", budget=1)


def test_memory_is_limited(tmp_path) -> None:
    path = tmp_path / "a.md"
    path.write_text("*a " * 10 + "\n\n" + "text " * 100)
    assert len(paragraphs_of(path)) == 2
    document = next(iter(document_worker._CHILDREN.values()))
    limits = Path(f"/proc/{document.pid}/limits")
    if limits.exists():
        line = next(row for row in limits.read_text().splitlines() if "address space" in row)
        assert str(document_worker.MEMORY) in line


def test_lists_as_deep_as_people_write_are_read_and_deeper_ones_refused(tmp_path) -> None:
    path = tmp_path / "a.md"
    nested = "".join(f"{'  ' * i}- Item {i} is here.\n" for i in range(20))
    path.write_text(f"{nested}\nThe last text.\n")
    assert paragraphs_of(path)[-2:] == ["Item 19 is here.", "The last text."]
    path.write_text("".join(f"{'  ' * i}- Item {i} is here.\n" for i in range(80)))
    with pytest.raises(OpencseError, match="nested 30 levels deep"):
        paragraphs_of(path)


def test_nothing_is_imported_from_the_folder_of_the_documents(tmp_path, monkeypatch) -> None:
    for name in ("markdown_it", "docx", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "a.md").write_text("A text.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(document_worker, "_CHILDREN", {})
    assert paragraphs_of(Path("a.md")) == ["A text."]
    assert not (tmp_path / "ran").exists()


def test_blank_lines_that_unpack_without_end(tmp_path) -> None:
    path = tmp_path / "a.txt.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(40):
            file.write(b"\n" * 2**20)
    with pytest.raises(OpencseError, match="unpacks to more than 100 times its size"):
        collect_passages(path)


def test_links_out_of_a_folder_of_documents_are_not_followed(tmp_path, capsys) -> None:
    (tmp_path / "secret.txt").write_text("Nobody may read this.")
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("First text.")
    (folder / "b.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "c.md").symlink_to("a.md")
    os.mkfifo(folder / "d.txt")
    assert [passage.text for passage in Documents(folder).passages()] == ["First text."] * 2
    assert "1 links that lead out of the folder" in capsys.readouterr().err
