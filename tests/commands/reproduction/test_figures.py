from __future__ import annotations

import pytest

from opencse.commands.reproduction.details import draw_table
from opencse.commands.reproduction.tables import Cell, ReproducedTable


def drawn(*columns: str):
    cells = tuple(Cell(values=(float(i), i + 2.0), printed=5.0) for i in range(len(columns)))
    gaps = tuple(Cell(missing="no data") for _ in columns)
    (axes,) = draw_table(ReproducedTable(entry="x/y", title="T", columns=columns, rows={"A": cells, "B": gaps})).axes
    return axes


def test_means_over_seeds_stand_beside_what_the_paper_printed() -> None:
    measured, printed, missing = drawn("one", "two").get_lines()
    assert list(measured.get_ydata()) == [1.0, 2.0]
    assert list(printed.get_ydata()) == [5.0, 5.0]
    assert missing.get_label() == "B"


def test_what_all_columns_begin_with_is_not_repeated() -> None:
    assert [tick.get_text() for tick in drawn("STS-B: cosine 0", "STS-B: cosine 1").get_xticklabels()] == [
        "cosine 0",
        "cosine 1",
    ]
    assert drawn("STS-B: cosine 0", "STS-B: cosine 1").get_ylabel() == "STS-B"
    assert [tick.get_text() for tick in drawn("STS12", "STS13").get_xticklabels()] == ["STS12", "STS13"]


def test_long_names_end_below_their_point() -> None:
    ticks = drawn("cosine: substitution", "cosine: paraphrase").get_xticklabels()
    assert {(tick.get_rotation(), tick.get_ha()) for tick in ticks} == {(30.0, "right")}


def test_points_of_a_column_stand_side_by_side() -> None:
    measured, printed, missing = drawn("Cont.", "Oppn.").get_lines()
    assert {line.get_linestyle() for line in (measured, printed)} == {"None"}
    assert list(measured.get_xdata()) == list(printed.get_xdata())
    assert list(missing.get_xdata() - measured.get_xdata()) == pytest.approx([0.12, 0.12])
