from __future__ import annotations

import csv
import io

import pytest

from opencse.foundation.result_table import Number, Table, show

TABLE = Table(
    ("set", "pairs", "score"),
    [("a|b\n<c>", 12345, Number(-0.5, aside="n = 1")), ("mean", 2, Number(None, aside="constant"))],
    title="Scores & more",
    notes=("One note.",),
    totals=1,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(1234.5), "1,234.50"),
        (Number(-0.001), "0.00"),
        (Number(-1.5, 1, signed=True), "−1.5"),
        (Number(1.5, 1, signed=True, aside="1 to 2"), "+1.5 (1 to 2)"),
        (Number(71.2, 0, " %", "60 to 81"), "71 % (60 to 81)"),
        (Number(51, deviation=1.414), "51.00 ± 1.41"),
        (Number(None), "undefined"),
        (Number(None, aside="no row"), "undefined: no row"),
    ],
)
def test_figures(number: Number, text: str) -> None:
    assert str(number) == text


def test_markdown() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[:2] == ["# Scores & more", ""]
    assert lines[3] == "| --- | ---: | ---: |"
    assert lines[4] == "| a\\|b <c> | 12,345 | −0.50 (n = 1) |"
    assert lines[-1] == "- One note."


def test_csv_has_plain_numbers() -> None:
    table = Table(("name", "score", "share"), [("a,b", Number(1234.5678), Number(0.5, aside="0 to 1")), ("c", 7, "")])
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows == [["name", "score", "share"], ["a,b", "1234.5678", "0.50 (0 to 1)"], ["c", "7", ""]]


def test_html_is_escaped_and_a_cell_names_its_column() -> None:
    page = TABLE.html()
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert '<td class="figure" data-label="pairs"><bdi>12,345</bdi></td>' in page
    assert page.count('class="strong"') == 1
    assert TABLE._repr_html_() == page


def test_without_a_terminal_no_line_is_wrapped(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show(Table(("name", "text"), [("a", "word " * 60), ("b", "[bold]y[/bold]")], notes=("note " * 50,)), "z " * 90)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "[bold]y[/bold]" in lines[2]
