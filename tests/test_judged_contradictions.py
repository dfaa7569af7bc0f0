"""The judged sample of `check`'s contradictions: how it is drawn and scored, and that its page shows its figure."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from opencse.data.documents import DocumentPassage
from opencse.errors import OpencseError
from opencse.io.tables import read_table

ROOT = Path(__file__).parents[1]
CHECK = ROOT / "benchmarks" / "check"
JUDGED = ROOT / "benchmarks" / "results" / "check-judged-texts.tsv"

_spec = importlib.util.spec_from_file_location("contradictions_sample", CHECK / "contradictions_sample.py")
assert _spec is not None
assert _spec.loader is not None
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)


def test_a_draw_is_the_same_twice_and_its_column_is_to_be_filled(tmp_path, capsys) -> None:
    (tmp_path / "a.txt").write_text("The old bridge is safe.\nThe shop near the station is open.\nThe soup is hot.\n")
    printed = []
    for _ in range(2):
        sample.main(["draw", str(tmp_path), "--count", "3", "--seed", "5"])
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    head, *rows = printed[0].splitlines()
    assert head.split("\t") == list(sample.COLUMNS)
    assert len(rows) == 3
    assert all(row.endswith("\t") and len(row.split("\t")) == 5 for row in rows)
    (tmp_path / "drawn.tsv").write_text(printed[0])
    with pytest.raises(SystemExit, match="line 2: contradicts is ''"):
        sample.main(["score", str(tmp_path / "drawn.tsv")])
    passages = [DocumentPassage("a.txt", (text,)) for text in ("The soup is hot.", "The shop is open.")]
    assert len(sample.draw(passages, 100, 1)) < 100


def test_a_score_has_a_line_for_each_kind_and_a_wilson_interval() -> None:
    judged = [("negation", True)] * 9 + [("opposite", False)]
    assert sample.score(judged) == [
        "negation: 9 of 9, 100.0 % (70.1 to 100.0 %)",
        "opposite: 0 of 1, 0.0 % (0.0 to 79.3 %)",
        "all: 9 of 10, 90.0 % (59.6 to 98.2 %)",
    ]


def test_a_judgement_is_yes_or_no(tmp_path) -> None:
    (tmp_path / "judged.tsv").write_text("kind\tcontradicts\nnegation\tYes\nnegation\tperhaps\n")
    with pytest.raises(OpencseError, match="line 3: contradicts is 'perhaps'"):
        list(sample.read_judged(tmp_path / "judged.tsv"))


def test_the_stored_sample_is_of_our_texts_and_the_page_shows_its_figure() -> None:
    texts = {path.name: " ".join(path.read_text().split()) for path in (CHECK / "texts").glob("*.md")}
    rows = [row for _, row in read_table(JUDGED) if row]
    assert all(str(row["sentence"]) in texts[str(row["source"])] for row in rows)
    last = sample.score(list(sample.read_judged(JUDGED)))[-1].removeprefix("all: ")
    page = " ".join((ROOT / "docs" / "measurements" / "check.md").read_text().split())
    assert last in page
