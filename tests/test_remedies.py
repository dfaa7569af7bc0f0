"""Remedies that are commands work as they are printed, and say what the command at hand can do."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from sentence_transformers import SentenceTransformer

from opencse.commands.main import app
from opencse.encoder import load_encoder, save_encoder
from opencse.foundation.cache import new_store, store_folder
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe, schema
from opencse.recipes.schema import ViewSettings
from tests.tiny import tiny_bert

SOURCE = Path(__file__).parents[1] / "src"


def command_in(error: OpencseError) -> str:
    found = re.search("`(.*)`", error.remedy)
    assert found is not None, error.remedy
    return found[1]


def test_a_model_without_pooling_is_saved_with_one(tmp_path) -> None:
    folder = tiny_bert(tmp_path / "plain")
    with pytest.raises(OpencseError, match="defines no pooling") as error:
        load_encoder(folder)
    command = command_in(error.value).replace("python", sys.executable, 1)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment)
    assert load_encoder(tmp_path / "with-pooling").get_embedding_dimension() == 32


def test_a_cache_that_cannot_be_written_names_its_variable(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "file" / "cache"))
    with (
        pytest.raises(OpencseError, match="OPENCSE_CACHE=FOLDER"),
        new_store(store_folder("tokens", "0"), {}),
    ):
        pass


def test_prompts_without_a_default_are_said_once(tmp_path, capsys) -> None:
    encoder = load_encoder(tiny_bert(tmp_path / "plain"), pooling="mean")
    encoder.prompts = {"query": "a question: ", "document": ""}
    save_encoder(encoder, tmp_path / "model")
    for _ in range(2):
        load_encoder(tmp_path / "model")
    assert capsys.readouterr().err.count("has prompts (query), none of them the default") == 1


def test_a_truncated_model_stays_truncated(tmp_path) -> None:
    encoder = load_encoder(tiny_bert(tmp_path / "plain"), pooling="mean")
    save_encoder(SentenceTransformer(modules=[*encoder], truncate_dim=8), tmp_path / "cut")
    assert load_encoder(tmp_path / "cut").truncate_dim == 8


def texts_of_the_source() -> list[tuple[str, str]]:
    """Each string of the source that is no docstring, with its file; `{}` stands for what an f-string fills in."""
    found = []
    for path in sorted((SOURCE / "opencse").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
        }
        parts |= {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                pieces = (
                    str(p.value) if isinstance(p, ast.Constant) else "{}" for p in node.values
                )
                found.append((str(path.relative_to(SOURCE / "opencse")), "".join(pieces)))
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in parts
            ):
                found.append((str(path.relative_to(SOURCE / "opencse")), node.value))
    return found


TEXTS = texts_of_the_source()
COMMANDS = typer.main.get_command(app).commands
PARTS = {name: [each, *getattr(each, "commands", {}).values()] for name, each in COMMANDS.items()}
OPTIONS = {
    name: {o for c in parts for p in c.params for o in p.opts} | {"--help"}
    for name, parts in PARTS.items()
}
OTHERS_OPTIONS = {"--version"}  # of opencse without a command
ONE_COMMAND = {
    "comparison/compare": "compare",
    "reproduc": "reproduce",
    "integrations/onnx": "export",
} | {f"{name}.py": name for name in COMMANDS}
"""Files of which one command alone tells what they say."""
BACKTICKED = sorted(
    {(where, code) for where, text in TEXTS for code in re.findall("`([^`]+)`", text)}
)


def test_each_option_that_is_named_is_one_of_the_command_at_hand() -> None:
    every = set.union(*OPTIONS.values()) | OTHERS_OPTIONS
    named = 0
    for where, text in TEXTS:
        own = next(
            (name for part, name in ONE_COMMAND.items() if where.startswith(f"commands/{part}")),
            None,
        )
        if said := re.match(r" *opencse (\w+) ", text):
            own = said[1]
        own_words = re.sub("`(accelerate|torchrun|ray) [^`]*`|pip install .*", "", text)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w{-])", own_words):
            named += 1
            assert option in (every if own is None else OPTIONS[own] | OTHERS_OPTIONS), (
                f"{where}: {text}"
            )
    assert named > 50


def test_each_setting_that_is_named_exists() -> None:
    found = {
        (where, key) for where, text in TEXTS for key in re.findall(r"--set ([\w.{}]+)=", text)
    }
    assert len(found) > 5
    tables = {each.name: each.type for each in fields(Recipe)}
    for where, key in found:
        table, *names = key.split(".")
        kind = ViewSettings if table == "views" else getattr(schema, str(tables[table]), None)
        if kind is not None:
            assert names[-1] in {each.name for each in fields(kind)}, f"{where}: {key}"


def test_each_command_that_is_named_works() -> None:
    """What a remedy has as a command is one of opencse's, or a shell's that runs here, or is run by a test below."""
    ran = set()
    for where, code in BACKTICKED:
        program, *rest = code.split()
        if program in ("opencse", "torchrun") and rest:
            command = (
                rest[rest.index("opencse") + 1]
                if program == "torchrun" and len(rest) > 1
                else rest[0]
            )
            assert command in COMMANDS or command.startswith(("-", "{")), f"{where}: {code}"
        elif program in ("unset", "ulimit"):
            subprocess.run(
                code, shell=True, check=True, executable="/bin/bash", capture_output=True
            )
        elif program in ("hf", "pip", "accelerate"):
            assert importlib.util.find_spec({"hf": "huggingface_hub"}.get(program, program)), (
                f"{where}: {code}"
            )
        else:
            continue
        ran.add(program)
    assert ran >= {"opencse", "torchrun", "unset", "ulimit", "hf"}


def test_each_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    named = {extra for _, text in TEXTS for extra in re.findall(r"opencse\[([\w-]+)\]", text)}
    assert named
    assert named <= set(extras)
