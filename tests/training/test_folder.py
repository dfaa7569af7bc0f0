"""Output folders: what --overwrite may replace, and what it refuses."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import find_damage
from opencse.foundation.tables import write_texts
from opencse.recipes import load_recipe
from opencse.training.folder import CONTENTS, check_folder, prepare_folder

RECORD = {"fingerprint": {}, "precision": "fp32"}


@pytest.mark.parametrize("record", [None, "{}", '{"name": "my own project"}', "[1, 2]"])
def test_a_users_model_is_not_removed(tmp_path, record) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("precious")
    if record is not None:
        (tmp_path / "run.json").write_text(record)
    with pytest.raises(OpencseError, match=r"holds no run, so its '.*' is not replaced"):
        check_folder(tmp_path, resume=False, overwrite=True)
    assert (tmp_path / "model" / "weights").read_text() == "precious"


@pytest.mark.parametrize("name", CONTENTS)
def test_every_file_that_a_run_would_replace_counts(tmp_path, name) -> None:
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(OpencseError, match="holds no run"):
        check_folder(tmp_path, resume=False, overwrite=True)


def test_a_table_of_others_is_not_replaced(tmp_path) -> None:
    pq.write_table(pa.table({"text": ["mine"]}), tmp_path / "corpus.parquet")
    with pytest.raises(OpencseError, match="was not written by opencse"):
        check_folder(tmp_path, resume=False, overwrite=True)
    write_texts(tmp_path / "corpus.parquet", {"text": ["of a run"]})
    check_folder(tmp_path, resume=False, overwrite=True)


def test_a_run_is_replaced_and_other_files_stay(tmp_path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(RECORD))
    (tmp_path / "model").mkdir()
    (tmp_path / "mine.txt").touch()
    check_folder(tmp_path, resume=False, overwrite=True)
    prepare_folder(tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_damaged_record_among_the_files_of_its_run_is_replaced(tmp_path) -> None:
    for name in ("run.json", "recipe.toml", "environment.json"):
        (tmp_path / name).write_text("{")
    check_folder(tmp_path, resume=False, overwrite=True)


def test_what_a_killed_process_left_is_no_file_of_the_user(tmp_path) -> None:
    (tmp_path / ".run.json.0123.tmp").touch()
    check_folder(tmp_path, resume=False, overwrite=False)
    assert CONTENTS[-1] == "run.json"  # removed last: until then, the folder is known to hold a run


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "..", ""])
def test_stages_stay_inside(tmp_path, name) -> None:
    recipe = tmp_path / "own.toml"
    recipe.write_text(f'extends = "simcse"\n[first_stages.{json.dumps(name)}]\nrecipe = "simcse"\n')
    with pytest.raises(OpencseError, match="not a plain name"):
        load_recipe(recipe)


def test_checksums_name_no_file_outside(tmp_path) -> None:
    (tmp_path / "sealed").mkdir()
    (tmp_path / "outside").touch()
    (tmp_path / "sealed" / "checksums.json").write_text('{"../outside": "0"}')
    assert "outside the folder" in str(find_damage(tmp_path / "sealed"))
