"""What cannot work is refused in one line, before any time is spent, and leaves no trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from tests.training.helpers import run, write_corpus


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_corpus(tmp_path, 16)


def refused(match: str, *args, **kwargs) -> None:
    with pytest.raises(OpencseError, match=match):
        run(*args, **kwargs)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("\n \n\n", 0), ("one sentence\n\n", 1)])
def test_a_corpus_with_too_little(tmp_path, backbone, text, count) -> None:
    (tmp_path / "c.txt").write_text(text)
    refused(f"holds {count} usable sentences", tmp_path / "c.txt", backbone, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_blank_lines_are_skipped_and_counted(tmp_path, backbone) -> None:
    (tmp_path / "c.txt").write_text("\n".join(["the cat sits", "", "a dog runs", "  ", "a bird sings"]))
    notes: list[str] = []
    run(tmp_path / "c.txt", backbone, tmp_path / "out", notify=notes.append)
    assert any("2 blank rows were left out; 3 are used" in n for n in notes)


def test_a_column_of_nulls(tmp_path, backbone) -> None:
    (tmp_path / "c.tsv").write_text("text\tnegative\nthe cat\t\nthe dog\t\n")
    refused("'negative' is null in every row", tmp_path / "c.tsv", backbone, tmp_path / "out", recipe="hince")


def test_a_folder_that_holds_something(tmp_path, corpus, backbone) -> None:
    out = tmp_path / "out"
    refused("holds no run to resume", corpus, backbone, out, resume=True)
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    refused("already holds files", corpus, backbone, out)
    run(corpus, backbone, out, overwrite=True)
    assert (out / "mine.txt").read_text() == "precious"
    refused("already holds a run", corpus, backbone, out)


def test_a_finished_run_is_not_run_again(tmp_path, corpus, backbone) -> None:
    first = run(corpus, backbone, tmp_path / "out")
    notes: list[str] = []
    again = run(corpus, backbone, tmp_path / "out", resume=True, notify=notes.append)
    assert again.outcome == first.outcome
    assert any("finished" in n for n in notes)
    refused("begun with another recipe", corpus, backbone, tmp_path / "out", "optimizer.lr=1", resume=True)


@pytest.mark.parametrize("record", ["[]", "{", "[" * 100_000, '{"precision": "auto"}', '{"step_limit": 2.5}'])
def test_a_damaged_record(tmp_path, corpus, backbone, record) -> None:
    (tmp_path / "out").mkdir()
    written = {"fingerprint": {}, "precision": "fp32"}
    if record.endswith("}"):
        record = json.dumps(written | json.loads(record))
    (tmp_path / "out" / "run.json").write_text(record)
    refused(r"run\.json: (not|was not)", corpus, backbone, tmp_path / "out", resume=True)


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ("encoder.max_length=100", "takes at most 64 tokens"),
        ("encoder.pooling=mask", "needs a prompt"),
        ("encoder.pooling=backbone", "defines no pooling"),
        ("training.batch_size=1", "at least 2"),
    ],
)
def test_settings_that_do_not_fit(tmp_path, corpus, backbone, setting, match) -> None:
    refused(match, corpus, backbone, tmp_path / "out", setting)


def test_a_prompt_longer_than_the_input(tmp_path, corpus, backbone) -> None:
    prompts = [f"views.{v}.prompt='This sentence : \"{{}}\" means {{mask}}'" for v in ("anchor", "twin")]
    settings = ["encoder.pooling=mask", "encoder.max_length=4", *prompts]
    refused(r"for its prompt alone.*length_counts=content", corpus, backbone, tmp_path / "out", *settings)


def test_a_missing_backbone(tmp_path, corpus) -> None:
    refused("no such model folder", corpus, tmp_path / "none", tmp_path / "out")
