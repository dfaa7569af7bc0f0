"""The masked language model that comes with the package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from opencse.encoder import names
from opencse.encoder.names import resolve
from opencse.foundation.errors import OpencseError

FOLDER = Path(names.__file__).parents[1] / "assets" / "mini-mlm"
here = pytest.mark.skipif(not FOLDER.is_dir(), reason="mini-mlm does not come with this version")


@here
def test_size_and_contents() -> None:
    assert resolve("mini-mlm") == str(FOLDER)
    assert (FOLDER / "model.safetensors").stat().st_size <= 14_000_000
    assert {f.name for f in FOLDER.iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Wikipedia contributors" in card
    assert "CC BY-SA" in card
    vocabulary = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert not any(" " in piece for piece in vocabulary), "pieces of words, no sentences"


@here
def test_a_damaged_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "assets" / "mini-mlm"
    shutil.copytree(FOLDER, copy)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    monkeypatch.setattr(names.importlib.resources, "files", lambda _: tmp_path)
    with pytest.raises(OpencseError, match=r"mini-mlm: .* is not the genuine model"):
        resolve("mini-mlm")
    shutil.rmtree(copy)
    with pytest.raises(OpencseError, match=r"no model\.safetensors"):
        resolve("mini-mlm")
