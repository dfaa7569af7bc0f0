"""Remedies that are commands work as they are printed, and say what the command at hand can do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder, save_encoder
from opencse.foundation.errors import OpencseError
from opencse.foundation.stores import CachedStore
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
    with pytest.raises(OpencseError, match="OPENCSE_CACHE=FOLDER"), CachedStore("tokens", "0").writer({}):
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
