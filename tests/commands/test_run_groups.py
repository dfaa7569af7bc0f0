from __future__ import annotations

import pytest

from opencse.commands.run_groups import find_runs, group_runs, parse_seeds, read_run, seed_folders
from opencse.foundation.errors import OpencseError
from tests.commands.run_folders import seven, write_run


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path):
    folders = seed_folders(tmp_path / "simcse", [2, 10, 1])
    assert list(folders) == [2, 10, 1]
    for seed, folder in folders.items():
        write_run(folder, seed=seed)
    found = find_runs([tmp_path / "simcse", folders[1]])
    assert sorted(found) == sorted(folder.resolve() for folder in folders.values())
    ((label, runs),) = group_runs([read_run(folder) for folder in found]).items()
    assert [run.seed for run in runs] == [1, 2, 10]
    assert label == "simcse on bert-base-uncased"


def test_what_differs_makes_another_group_and_is_named(tmp_path):
    write_run(tmp_path / "a", seed=1)
    write_run(tmp_path / "b", seed=2)
    write_run(tmp_path / "c", seed=1, temperature=0.1)
    write_run(tmp_path / "d", seed=1, variant="faithful")
    write_run(tmp_path / "e", seed=1, corpus="beef01")
    write_run(tmp_path / "f", seed=1)  # the same as a
    groups = group_runs([read_run(tmp_path / name) for name in "abcdef"])
    assert [len(runs) for runs in groups.values()] == [2, 1, 1, 1]
    name = "simcse on bert-base-uncased"
    assert list(groups) == [
        f"{name}: {tmp_path / 'a'}",
        f"{name}: {tmp_path / 'c'}",
        "simcse (faithful) on bert-base-uncased",
        f"{name}: {tmp_path / 'e'}",
    ]


def test_what_a_run_says_is_read(tmp_path):
    run = read_run(write_run(tmp_path / "a", seed=3, scores=seven(77.0)))
    assert (run.seconds, run.steps, run.scores["sts"]["STS12"]) == (103.0, 250, 74.0)


def test_bad_folders_are_named(tmp_path):
    for path, problem in [(tmp_path / "none", "no such folder"), (tmp_path, "holds no run")]:
        with pytest.raises(OpencseError, match=problem):
            find_runs([path])
    with pytest.raises(OpencseError, match="not finished"):
        read_run(write_run(tmp_path / "half", finished=False))
    damages = [
        ("run.json", "{", "not JSON"),
        ("run.json", "[]", "not a JSON object"),
        ("run.json", '{"outcome": {}}', "not written by a run"),
        ("recipe.toml", "= 3", "recipe.toml: not valid TOML"),
    ]
    for number, (file, content, problem) in enumerate(damages):
        folder = write_run(tmp_path / f"bad {number}", scores=seven(1.0))
        (folder / file).write_text(content)
        with pytest.raises(OpencseError, match=problem):
            read_run(folder)


@pytest.mark.parametrize(("text", "seeds"), [("1,2,3", [1, 2, 3]), ("1-3, 7", [1, 2, 3, 7]), ("42", [42])])
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "1,,2", "a", "1,1", "1-2,2", "-3", "3-1"])
def test_bad_seeds(text):
    with pytest.raises(OpencseError, match="1,2,3 or 1-5"):
        parse_seeds(text)


def test_a_run_is_no_folder_of_runs(tmp_path):
    write_run(tmp_path / "a")
    with pytest.raises(OpencseError, match="itself a run"):
        seed_folders(tmp_path / "a", [1])
