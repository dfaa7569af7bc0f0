"""The command line as a user meets it: real arguments, exit codes, one-line errors."""

from __future__ import annotations

import errno
import json
import os
import sys

import pytest
from typer.testing import CliRunner

from opencse.commands.main import app, main, shortage
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import set_quiet
from opencse.recipes import load_recipe
from tests.tiny import tiny_bert

SENTENCES = [
    f"the {a} {b} in the {c}"
    for a in ("cat", "dog", "bird")
    for b in ("sits", "runs")
    for c in ("house", "garden")
]
SMALL = ["--set", "training.batch_size=4", "--set", "training.precision=fp32"]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    for name in ("ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU"):
        monkeypatch.setenv(name, "")  # so that what a command sets is undone
        monkeypatch.delenv(name)
    yield
    set_quiet(False)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture
def corpus(tmp_path) -> str:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES))
    return str(path)


@pytest.fixture
def pairs(tmp_path) -> str:
    path = tmp_path / "pairs.csv"
    rows = [
        f"{a},{b},{i % 6}" for i, (a, b) in enumerate(zip(SENTENCES, SENTENCES[3:], strict=False))
    ]
    path.write_text("sentence1,sentence2,score\n" + "\n".join(rows))
    return str(path)


@pytest.fixture
def opencse(monkeypatch, capfd):
    """Call the command line; give exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["opencse", *arguments])
        monkeypatch.delenv("OPENCSE_DATA", raising=False)
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err

    return call


def test_run_trains_and_compares(tmp_path, opencse, corpus, pairs, backbone) -> None:
    out = tmp_path / "out"
    code, printed, notes = opencse(
        "run", "simcse", corpus, "--backbone", backbone, "-o", str(out), "--pairs", pairs, *SMALL
    )
    assert code == 0, notes
    assert "Is it better?" in printed
    assert "opencse check" in printed, "what comes next"
    assert "the weights of the last step are kept" in notes
    results = json.loads((out / "results.json").read_text())
    assert results["after"]["pairs"]["tasks"][0]["rows"] == len(SENTENCES) - 3
    assert (out / "model" / "modules.json").is_file()
    assert "warmup" in (out / "recipe.toml").read_text()


def test_train_selects_on_the_given_pairs_and_resumes(
    tmp_path, opencse, corpus, pairs, backbone
) -> None:
    arguments = [
        "train",
        "simcse",
        corpus,
        "--backbone",
        backbone,
        "-o",
        str(tmp_path / "out"),
        "--dev",
        pairs,
        *SMALL,
    ]
    code, printed, notes = opencse(*arguments, "--seed", "3", "--set", "selection.every=1")
    assert code == 0, notes
    assert "kept step" in printed
    assert json.loads((tmp_path / "out" / "run.json").read_text())["seed"] == 3
    code, _, notes = opencse(*arguments, "--seed", "3", "--set", "selection.every=1", "--resume")
    assert (code, "nothing to resume" in notes) == (0, True)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_says_where_it_computes_and_why_so_unless_it_is_quiet(
    tmp_path, opencse, corpus, backbone, quiet
) -> None:
    said = ["--quiet"] if quiet else ["--device", "cpu"]
    arguments = (
        "simcse",
        corpus,
        "--backbone",
        backbone,
        "-o",
        str(tmp_path / "out"),
        "--set",
        "training.max_steps=1",
    )
    code, printed, notes = opencse("train", *arguments, *SMALL[:2], *said)
    assert (code, "1 step in" in printed) == (0, True)
    lines = [line for line in notes.splitlines() if line.startswith("opencse: training on cpu (")]
    assert quiet or (len(lines) == 1 and "the faster one here" in lines[0])
    assert quiet or os.environ["ACCELERATE_USE_CPU"] == "true"
    assert not quiet or "opencse:" not in notes


def test_run_builds_the_columns_that_the_recipe_needs(tmp_path, opencse, corpus, backbone) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "hince"\n[build.negative]\nkind = "negation"\n')
    arguments = (
        "run",
        str(mine),
        corpus,
        "--backbone",
        backbone,
        "-o",
        str(tmp_path / "out"),
        *SMALL,
    )
    code, _, notes = opencse(*arguments)
    assert code == 0, notes
    assert "building negative" in notes
    parts = list((tmp_path / "out" / "views").glob("*.parquet"))
    assert parts
    assert (opencse(*arguments)[0], opencse(*arguments, "--overwrite")[0]) == (2, 0)
    assert list((tmp_path / "out" / "views").glob("*.parquet")) == parts


def test_recipes_are_listed_and_shown(opencse) -> None:
    code, printed, _ = opencse("recipes")
    assert code == 0
    assert "simcse" in printed
    assert "negative (optional)" in printed
    code, printed, _ = opencse(
        "recipes", "show", "byop-c", "--family", "bert-large", "--variant", "faithful"
    )
    assert code == 0
    assert 'signs = "p-n-"' in printed


def test_version_and_help(opencse) -> None:
    assert opencse("--version")[1].startswith("opencse ")
    code, printed, _ = opencse("train", "--help")
    assert code == 0
    assert "sentence-transformers folder" in printed
    code, printed, err = opencse()
    assert code == 2
    assert "Usage" in printed + err
    assert ". See" not in printed + err


BAD = {
    "unknown recipe": (["train", "simsce", "CORPUS"], "Did you mean 'simcse'"),
    "dev without data": (["train", "simcse", "CORPUS", "--dev", "stsb"], "needs the STS files"),
    "guards for a recipe without": (
        ["run", "simcse", "CORPUS", "--guard", "CORPUS"],
        "the recipe simcse uses no guards",
    ),
    "missing argument": (["train", "simcse"], "See `opencse train --help`"),
    "unknown option": (["train", "simcse", "CORPUS", "--frobnicate"], "--frobnicate"),
    "unknown command": (["trian"], "trian"),
    "unknown family": (["recipes", "show", "simcse", "--family", "bert"], "unknown family 'bert'"),
    "both flags": (["train", "simcse", "CORPUS", "--resume", "--overwrite"], "exclude each other"),
    "nothing to evaluate on": (["evaluate", "BACKBONE"], "data"),
    "a device that is not there": (
        ["train", "simcse", "CORPUS", "--device", "cuda"],
        "finds no such device",
    ),
    "no device": (["train", "simcse", "CORPUS", "--device", "gpu"], "no such kind"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path, opencse, corpus, pairs, backbone, name
) -> None:
    arguments, message = BAD[name]
    filled = [{"CORPUS": corpus, "PAIRS": pairs, "BACKBONE": backbone}.get(a, a) for a in arguments]
    if filled[0] in ("train", "run") and len(filled) > 2:
        filled += ["-o", str(tmp_path / "out")] + (
            [] if "--backbone" in filled else ["--backbone", backbone]
        )
    code, printed, err = opencse(*filled)
    lines = [
        line
        for line in err.splitlines()
        if line and not line.startswith("opencse: no development pairs")
    ]
    assert code == 2, err
    assert len(lines) == 1, err
    assert lines[0].startswith("opencse: ")
    assert message in lines[0]
    assert "Traceback" not in err + printed
    assert not (tmp_path / "out").exists()


def test_the_cache_is_shown_and_cleared(opencse, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path))
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / ("a" * 32)).write_bytes(b"x" * 2**20)
    code, printed, _ = opencse("cache")
    assert code == 0
    assert "1.0 MiB" in printed
    assert (opencse("cache", "--clear")[0], list((tmp_path / "vectors").iterdir())) == (0, [])


def test_ctrl_c_says_that_it_stopped(opencse, monkeypatch) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("opencse.commands.recipes.recipe_names", press)
    assert opencse("recipes") == (130, "", "opencse: stopped\n")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "memory"),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"
            ),
            "memory",
        ),
        (RuntimeError("std::bad_alloc"), "memory"),
        (RuntimeError("can't start new thread"), "memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk"),
        (OSError(errno.EFBIG, "File too large"), "limit"),
        (RuntimeError("Error while serializing: I/O error: File too large (os error 27)"), "limit"),
        (OSError(errno.EMFILE, "Too many open files"), "files"),
    ],
)
def test_shortages_are_known(error, words) -> None:
    found = shortage(error)
    assert found is not None
    assert words in found.problem


def test_a_lost_process_is_known_where_there_are_several(monkeypatch) -> None:
    error = RuntimeError(
        "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1234"
    )
    assert shortage(error) is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    found = shortage(error)
    assert found is not None
    assert "--resume" in found.remedy


def test_published_settings_stand_beside_the_recipes_own() -> None:
    result = CliRunner().invoke(
        app, ["recipes", "show", "dclr", "--published", "--family", "roberta-base"]
    )
    assert result.exit_code == 0
    (lr,) = (line for line in result.output.splitlines() if line.startswith("optimizer.lr"))
    assert lr.split()[1:6] == ["roberta-base", "3e-05", "3e-05", "3e-05", "run.sh,"]
    assert "bert-large" not in result.output


def test_each_value_says_where_it_was_published(tmp_path) -> None:
    shown = CliRunner().invoke(app, ["recipes", "show", "osscse", "--family", "bert-base"]).output
    assert "lr = 1e-05  # " in shown
    (precision,) = (line for line in shown.splitlines() if line.startswith("precision"))
    assert precision.startswith('precision = "auto"  # published: fp16; ')
    path = tmp_path / "osscse.toml"
    path.write_text(shown)
    assert load_recipe(path, family="bert-base") == load_recipe("osscse", family="bert-base")


def test_a_recipe_of_no_paper_or_a_family_without_settings_is_said() -> None:
    result = CliRunner().invoke(app, ["recipes", "show", "debias", "--published"])
    assert isinstance(result.exception, OpencseError)
    result = CliRunner().invoke(
        app, ["recipes", "show", "promptbert", "--published", "--family", "mini-mlm"]
    )
    assert "nothing was published for promptbert with the family mini-mlm" in result.output
