"""A mistake in an option is told before PyTorch is imported, in the words of the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opencse import (
    OpencseError,
    build,
    check,
    compare,
    compare_search,
    evaluate,
    load_recipe,
    probe,
    run,
    train,
)
from opencse.commands.command_line import check_options
from opencse.commands.options import RunOptions, TrainCommand
from opencse.commands.reproduce import reproduce
from opencse.losses import LOSSES
from opencse.text.views.registry import VIEWS
from tests.tiny import tiny_bert

_CALLS = """
import json, sys
from opencse.commands.main import main

found = []
for sys.argv in json.loads(sys.argv[1]):
    try:
        main()
    except SystemExit as stop:
        found.append(stop.code)
heavy = ("torch", "transformers", "sentence_transformers", "sklearn", "scipy", "spacy", "matplotlib", "pyarrow")
print(json.dumps({"codes": found, "heavy": [name for name in heavy if name in sys.modules]}))
"""


def _recipe(folder: Path, text: str) -> str:
    path = folder / f"recipe-{len(list(folder.iterdir()))}.toml"
    path.write_text(text)
    return str(path)


def test_mistakes_are_told_without_pytorch_and_in_the_words_of_the_command(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.delenv("OPENCSE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    out, missing, used = str(tmp_path / "out"), str(tmp_path / "missing.csv"), tmp_path / "used"
    absent = str(tmp_path / "model")
    used.mkdir()
    (used / "notes.txt").write_text("mine")
    view = _recipe(tmp_path, 'extends = "osscse"\n[build.paraphrase]\nkind = "negatoin"\n')
    loss = _recipe(tmp_path, 'extends = "simcse"\n[[losses]]\nkind = "contrastiv"\n')
    damaged = _recipe(tmp_path, "losses = [")
    of_a_recipe = {"backbone": "mini-mlm", "out": out}
    asked = [  # a function, and what it is given: once as arguments of the command line, once from Python
        *((run, [recipe, "demo"], {}) for recipe in ("simcs", damaged, view, loss, "osscse")),
        *(
            (run, ["simcse", "demo"], {"overrides": [text]})
            for text in (
                "lr",
                "trainin.seed=1",
                "training.sed=1",
                "training.epochs=two",
                "build.x.kind=negatoin",
            )
        ),
        (run, ["simcse", missing], {}),
        *(
            (run, ["debias", "demo"], {name: missing})
            for name in ("dev", "data", "pairs", "guard", "paraphrases")
        ),
        (train, ["osscse", "demo"], {}),
        (train, ["simcse", "demo"], {"backbone": absent}),
        (train, ["simcse", "demo"], {"out": str(used)}),
        (build, ["osscse", missing], {}),
        (evaluate, ["mini-mlm"], {"data": missing}),
        (evaluate, [absent], {"tasks": ["development"]}),
        (probe, ["mini-mlm"], {"sentences": missing}),
        (check, ["mini-mlm"], {"texts": missing}),
        (compare, [missing], {}),
        (compare_search, ["mini-mlm", "mini-mlm"], {"texts": missing}),
        (reproduce, ["osscse/table-2"], {"data": missing}),
    ]
    arguments = []
    for function, given, options in asked:
        if function in (run, train, build):
            options |= of_a_recipe | options
        words = [
            "opencse",
            function.__name__.partition("_")[0],
            *given,
            *(["-o", out] if function is probe else []),
        ]
        for name, value in options.items():
            option = {"out": "-o", "overrides": "--set"}.get(name, f"--{name}")
            words += [option, value if isinstance(value, str) else value[0]]
        arguments.append(words)
    done = subprocess.run(
        [sys.executable, "-c", _CALLS, json.dumps(arguments)], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == {"codes": [2] * len(asked), "heavy": []}, done.stderr
    told = done.stderr.splitlines()
    assert len(told) == len(asked), done.stderr
    for line, (function, given, options) in zip(told, asked, strict=True):
        with pytest.raises(OpencseError) as error:
            function(*([given] if function is compare else given), **options)
        assert line == f"opencse: {' '.join(str(error.value).split())}", (function, given, options)
    assert not Path(out).exists()


def test_what_depends_on_the_run_or_is_not_changed_by_it_is_not_checked(tmp_path) -> None:
    added = [
        "losses.paraphrase.weight=0.5",
        "build.paraphrase.path=p.csv",
        "corpus.parts={a={needs=[]}}",
    ]
    check_options(RunOptions("osscse", "demo", backbone="mini-mlm", out=tmp_path, overrides=added))
    check_options(
        TrainCommand("simcse", "demo", backbone="mini-mlm", out=tmp_path, data="absent", dev="none")
    )
    check_options(RunOptions("debias", None, backbone="minilm", out=tmp_path))
    (tmp_path / "rows.csv").write_text("text,paraphrase\n")
    check_options(
        RunOptions("osscse", tmp_path / "rows.csv", backbone="mini-mlm", out=tmp_path / "new")
    )
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OpencseError, match="already holds files"):
        check_options(RunOptions("simcse", "demo", backbone="mini-mlm", out=tmp_path))
    with pytest.raises(OpencseError, match="no run that could be replaced"):
        check_options(RunOptions("simcse", "demo", backbone="mini-mlm", out=tmp_path, resume=True))
    check_options(TrainCommand("simcse", "demo", backbone="mini-mlm", out=tmp_path, seeds="1,2"))


def test_a_run_does_not_remove_the_model_that_it_starts_from(tmp_path) -> None:
    model = tiny_bert(tmp_path / "out" / "model")
    asked = {"backbone": model, "out": tmp_path / "out", "overwrite": True}
    with pytest.raises(OpencseError, match="--overwrite would remove the backbone"):
        check_options(RunOptions("simcse", "demo", **asked))
    with pytest.raises(OpencseError, match="--overwrite would remove the backbone"):
        train("simcse", "demo", **asked)
    assert (model / "config.json").is_file()


def test_only_train_and_run_work_in_several_processes(tmp_path) -> None:
    several = os.environ | {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}
    several |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    asked = [["opencse", "evaluate", "mini-mlm"], ["opencse", "run", "debias", "-o", "out"]]
    done = subprocess.run(
        [sys.executable, "-c", _CALLS, json.dumps(asked)],
        capture_output=True,
        text=True,
        env=several,
        cwd=tmp_path,
    )
    assert (
        done.stderr.count("2 processes were started, but only `opencse train` and `opencse run`")
        == 2
    )
    assert TrainCommand.several_processes
    assert RunOptions.several_processes


def test_train_tells_missing_columns_at_once_for_it_builds_none(tmp_path) -> None:
    table = tmp_path / "plain.csv"
    table.write_text("text\nA cat runs.\n")
    asked = {"backbone": "mini-mlm", "out": tmp_path / "out"}
    message = r"plain.csv has no column 'paraphrase' and 'negation', which osscse trains on.*opencse run osscse"
    with pytest.raises(OpencseError, match=message):
        train("osscse", table, **asked)
    with pytest.raises(OpencseError, match=r"'positive_1' and .* which debcse trains on"):
        train("debcse", "demo", **asked)
    table.write_text(
        "sentence,negation,paraphrase\nA cat runs.,A cat does not run.,The cat runs.\n"
    )
    check_options(TrainCommand("osscse", table, **asked))
    unused = ["losses.two_way_margin.weight=0"]
    check_options(TrainCommand("osscse", "demo", overrides=unused, **asked))


def test_kinds_are_those_of_their_classes_also_of_ones_own(tmp_path, monkeypatch) -> None:
    assert {name: kind.kind for name, kind in LOSSES.items()} == {name: name for name in LOSSES}
    assert {name: kind.kind for name, kind in VIEWS.items()} == {name: name for name in VIEWS}
    monkeypatch.setitem(LOSSES, "mine", LOSSES["info_nce"])
    path = _recipe(tmp_path, 'extends = "simcse"\n[[losses]]\nkind = "mine"\n')
    check_options(RunOptions(path, "demo", backbone="mini-mlm", out=tmp_path / "out"))
    assert load_recipe(path).losses[0] == load_recipe("simcse").losses[0]
