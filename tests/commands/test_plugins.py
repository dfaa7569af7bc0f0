"""Code from outside the package, by `--import`, by entry points and as objects."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest
import typer

import opencse
from opencse.commands.main import app, main
from opencse.evaluation.suites import TASKS
from opencse.evaluation.task import TaskResult
from opencse.foundation import lazy
from opencse.foundation.errors import OpencseError
from opencse.foundation.lazy import Kinds
from opencse.foundation.plugins import CALLBACKS, RECIPES, TRACKERS, import_plugin
from opencse.losses import LOSSES
from opencse.training.callbacks import TrainingCallback
from opencse.training.tracking import Tracking
from tests.tiny import WORDS, tiny_bert

MODULE = """
from dataclasses import dataclass
from pathlib import Path

from opencse.evaluation.suites import TASKS
from accelerate.tracking import GeneralTracker

from opencse.foundation.plugins import CALLBACKS, RECIPES, TRACKERS
from opencse.losses import LOSSES, InfoNCELoss
from opencse.training.callbacks import TrainingCallback
from tests.commands.test_plugins import Greetings


@dataclass(frozen=True, kw_only=True)
class Doubled(InfoNCELoss):
    kind = "doubled"


class Note(TrainingCallback):
    def on_train_begin(self, run):
        (run.folder / "noted.txt").write_text("yes")


class LinesTracker(GeneralTracker):
    name = "lines"
    requires_logging_directory = True

    def __init__(self, project, folder):
        super().__init__()
        self.file = open(Path(folder) / f"{project}.txt", "w")

    @property
    def tracker(self):
        return self.file

    def store_init_configuration(self, values):
        print(values["recipe"], file=self.file)

    def log(self, values, step=None, **_):
        print(step, *values, file=self.file)

    def finish(self):
        self.file.close()


LOSSES["doubled"] = Doubled
TRACKERS["lines"] = LinesTracker
TASKS["greetings"] = Greetings
CALLBACKS["noted"] = Note
RECIPES["mine"] = Path(__file__).with_name("mine.toml")
"""
RECIPE = 'extends = "simcse"\n[[losses]]\nkind = "doubled"\n'


class Greetings:
    """Whether "hello" is nearer to "hi" than to "bread"."""

    name = "greetings"

    def texts(self):
        return ["hello", "hi", "bread"]

    def score(self, embeddings):
        hi, bread = embeddings.compared(["hello"], ["hi", "bread"])[0]
        return TaskResult(
            task=self.name,
            main="hits",
            metrics={"hits": 100.0 * bool(hi > bread)},
            rows=1,
            data_sha256="0" * 64,
        )


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the current folder that registers one of each, and is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for kinds in (LOSSES, TASKS, CALLBACKS, RECIPES, TRACKERS):
        monkeypatch.setattr(kinds, "data", dict(kinds.data))
    (tmp_path / "my_parts.py").write_text(MODULE)
    (tmp_path / "mine.toml").write_text(RECIPE)
    yield "my_parts"
    sys.modules.pop("my_parts", None)


def test_a_run_from_the_command_line_uses_a_module_for_everything(
    tmp_path, module, monkeypatch, capsys
) -> None:
    backbone = tiny_bert(tmp_path / "bert")
    sentences = [f"the {a} {b} runs" for a in WORDS[:4] for b in WORDS[4:8]]
    (tmp_path / "text.txt").write_text("\n".join(sentences))
    settings = "--set encoder.pooling=mean --set training.max_steps=1"
    command = (
        f"opencse run mine text.txt --backbone {backbone} -o out --import {module} {settings} "
        "--callback noted --track lines --tasks greetings --quiet"
    )
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0, capsys.readouterr().err
    assert (tmp_path / "out" / "noted.txt").read_text() == "yes"
    recipe, logged = (tmp_path / "out" / "tracking" / "opencse.txt").read_text().splitlines()
    assert recipe == "mine"
    assert logged.startswith("1 train/loss ")
    assert "doubled" in (tmp_path / "out" / "metrics.jsonl").read_text()
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    for side in ("before", "after"):
        assert results[side]["tasks"]["metric"] == "hits"
    assert "greetings, hits" in (tmp_path / "out" / "model" / "README.md").read_text()
    assert "greetings, hits" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("order", ["recipes --import {}", "recipes show mine --import {}"])
def test_recipes_of_a_module_are_listed_and_shown(module, order, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["opencse", *order.format(module).split()])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0, capsys.readouterr().err
    assert "mine" in capsys.readouterr().out


def test_every_command_that_uses_plugins_takes_import() -> None:
    for name, one in typer.main.get_command(app).commands.items():
        has_import = any("--import" in option.opts for option in one.params)
        assert has_import == (name != "cache"), name


def test_a_task_object_is_evaluated(tiny_model) -> None:
    evaluation = opencse.evaluate(tiny_model, tasks=[Greetings()])
    result = evaluation.results["tasks"]["greetings"]
    assert result.main == "hits"
    assert result.score in (0.0, 100.0)
    assert np.isfinite(evaluation.results["tasks"].average)
    with pytest.raises(OpencseError, match=r"the task object has no name and no texts"):
        opencse.evaluate(tiny_model, tasks=[object()])


def test_a_class_in_place_of_a_callback_is_named(tiny_model, tmp_path) -> None:
    class Mine(TrainingCallback):
        pass

    for given in (Mine, 3):
        with pytest.raises(OpencseError, match=r"the callback (Mine|int) is no object.*\(\)\]"):
            opencse.train(
                "simcse",
                [f"the {word} runs" for word in WORDS[:16]],
                backbone=tiny_model,
                out=tmp_path / "out",
                callbacks=[given],
            )


def test_entry_points_are_found_and_a_broken_one_is_named(monkeypatch) -> None:
    entries = [
        EntryPoint("fine", "opencse.losses.info_nce:InfoNCELoss", "g"),
        EntryPoint("broken", "no_such_package:Loss", "g"),
        EntryPoint("own", "no_such_package:Loss", "g"),
    ]
    monkeypatch.setattr(lazy, "entry_points", lambda group: entries if group == "g" else [])
    kinds = Kinds({"own": "opencse.losses.nt_xent:NTXentLoss"}, "g")
    assert sorted(kinds) == ["broken", "fine", "own"]
    assert kinds["fine"].__name__ == "InfoNCELoss"
    assert kinds["own"].__name__ == "NTXentLoss"
    with pytest.raises(OpencseError, match=r"the plug-in broken .*no_such_package"):
        kinds["broken"]


def test_an_unknown_kind_names_both_ways(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text(RECIPE)
    with pytest.raises(OpencseError, match=r"--import MODULE .*opencse\.losses"):
        opencse.load_recipe(tmp_path / "mine.toml")
    with pytest.raises(OpencseError, match=r"--import MODULE .*opencse\.recipes"):
        opencse.load_recipe("mine")
    with pytest.raises(OpencseError, match=r"--import MODULE .*opencse\.trackers"):
        Tracking("mine")


def test_a_module_that_fails_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "broken_parts.py").write_text("1 / 0")
    with pytest.raises(OpencseError, match=r"broken_parts\.py failed \(ZeroDivisionError"):
        import_plugin(str(tmp_path / "broken_parts.py"))
