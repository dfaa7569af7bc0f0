from __future__ import annotations

import pytest
from typer.testing import CliRunner

from opencse.cli.main import app
from opencse.errors import OpencseError
from opencse.pipeline import reproduce as module
from opencse.pipeline.reproduce import reproduce
from tests.tiny import tiny_bert

QUICK = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32", "selection.every=2"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"The {size} cat runs.\n" for size in ("big", "old", "small", "red", "blue", "green")))
    return path


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SMALL", {"bert-base": str(tiny_bert(tmp_path / "bert", layers=1))})


def test_a_table_of_two_systems_is_made_and_its_runs_are_shared(tmp_path, corpus, small, monkeypatch) -> None:
    arguments = {"out": tmp_path / "papers", "corpus": corpus, "overrides": QUICK, "progress": False}
    table = reproduce("byop/table-2", **arguments, seeds=[1, 2])
    assert list(table.rows) == ["SimCSE", "BYOP"]
    for cells, printed in zip(table.rows.values(), (75.83, 76.81), strict=True):
        (cell,) = cells
        assert (len(cell.values), cell.printed) == (2, printed)
    assert table.markdown() == (tmp_path / "papers" / "byop" / "table-2.md").read_text()
    runs = sorted((tmp_path / "papers" / "runs").glob("*.json"))
    assert len(runs) == 4

    def no_training(*_, **__):
        raise OpencseError("not trained before")

    monkeypatch.setattr(module, "run", no_training)
    assert reproduce("byop/table-2", **arguments, seeds=[1, 2]).rows == table.rows
    other = reproduce("diffcse/table-1", **arguments, seeds=[1])
    assert other.rows["SimCSE"][0].values == table.rows["SimCSE"][0].values[:1], "another table, the same run"
    assert other.rows["DiffCSE"][-1].missing == "not trained before"


def test_a_system_that_cannot_be_had_leaves_a_gap_with_its_reason(tmp_path, corpus, small, monkeypatch) -> None:
    def refuse(*_, **__):
        raise OpencseError("no translation model")

    monkeypatch.setattr(module, "run", refuse)
    monkeypatch.setattr(module, "_stored_or_measured", lambda plan, key, measure: measure(tmp_path))
    notes = []
    table = reproduce("osscse/table-4", out=tmp_path / "papers", corpus=corpus, progress=False, notify=notes.append)
    assert table.rows["OssCSE"][-1].text() == "not had: no translation model (79.08)"
    assert table.rows["PCL"][-1].text() == "not had: opencse has no PCL (78.42)"
    assert any("OssCSE" in note for note in notes)


def test_a_backbone_that_is_not_there_is_named(tmp_path, corpus, monkeypatch) -> None:
    monkeypatch.setattr(module, "FULL", {"bert-base": str(tmp_path / "no-such-model")})
    table = reproduce("diffcse/table-1", out=tmp_path / "papers", corpus=corpus, scale="full", progress=False)
    assert "not had: the backbone" in table.rows["SimCSE"][-1].text()


def test_the_command_lists_the_tables() -> None:
    result = CliRunner().invoke(app, ["reproduce"])
    assert "osscse/table-4" in result.output


def test_splits_need_the_sts_data(tmp_path) -> None:
    with pytest.raises(OpencseError, match="--data"):
        reproduce("osscse/table-2", out=tmp_path)
