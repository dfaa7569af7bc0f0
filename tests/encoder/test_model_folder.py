from __future__ import annotations

import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.model_folder import check_model_folder
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert

MODULE = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


@pytest.fixture
def folder(tmp_path):
    return tiny_bert(tmp_path / "model")


class Evil:
    def __reduce__(self):
        return pytest.fail, ("foreign code ran",)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", "[" * 100_000, "not JSON"),
        ("modules.json", "3", "not a list of modules"),
        ("modules.json", json.dumps([{**MODULE, "path": "../x"}]), "outside the model's folder"),
        ("modules.json", json.dumps([{**MODULE, "path": "/etc"}]), "outside the model's folder"),
        ("modules.json", json.dumps([{**MODULE, "type": "os.system"}]), "not a module of sentence-transformers"),
        ("modules.json", json.dumps([{**MODULE, "path": 3}]), "without a path or a type"),
        ("config.json", "[]", "not a JSON object"),
        ("tokenizer_config.json", '{"model_max_length": -1}', "not a length"),
        ("tokenizer_config.json", '{"model_max_length": NaN}', "not a length"),
    ],
)
def test_a_folder_of_the_wrong_form_is_one_clear_line(folder, file, content, message) -> None:
    (folder / file).write_text(content)
    with pytest.raises(OpencseError, match=message):
        load_encoder(folder, pooling="cls")


def test_pickled_weights_are_refused_unread(folder) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(OpencseError, match="pickled weights"):
        check_model_folder(folder)


@pytest.mark.parametrize("content", [b"\xff" * 100, b"{}", (99).to_bytes(8, "little") + b"{}"])
def test_damaged_weights_are_one_clear_line(folder, content) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(OpencseError, match="cannot be loaded"):
        load_encoder(folder, pooling="cls")


def change_weights(folder, change) -> None:
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if "word_embeddings" in name)
    save_file({**tensors, name: change(tensors[name])}, folder / "model.safetensors", metadata={"format": "pt"})


def test_weights_that_are_not_finite_are_refused(folder) -> None:
    change_weights(folder, lambda tensor: tensor.fill_(torch.nan))
    with pytest.raises(OpencseError, match="not finite"):
        load_encoder(folder, pooling="cls")


def test_a_tokenizer_that_knows_more_tokens_than_the_model_is_refused(folder) -> None:
    change_weights(folder, lambda tensor: tensor[:20].clone())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 20}))
    with pytest.raises(OpencseError, match="the model only 20"):
        load_encoder(folder, pooling="cls")


def test_nothing_that_is_not_finite_is_written(folder, tmp_path) -> None:
    model = load_encoder(folder, pooling="cls")
    with torch.no_grad():
        next(model.parameters()).fill_(torch.inf)
    with pytest.raises(OpencseError, match="not finite"):
        save_encoder(model, tmp_path / "out")
    with pytest.raises(OpencseError, match="not finite"):
        Embedder(model).encode(["a dog"])
    assert not (tmp_path / "out").exists()


def test_modules_that_do_not_fit_together_are_one_clear_line(folder, tmp_path) -> None:
    model = load_encoder(folder, pooling="mean")
    save_encoder(model, tmp_path / "saved")
    loaded = load_encoder(tmp_path / "saved")
    assert [m.training for m in loaded.modules()] == [
        m.training for m in SentenceTransformer(str(tmp_path / "saved")).modules()
    ]
    SentenceTransformer(modules=[*model, Dense(5, 3)], device="cpu").save(str(tmp_path / "other"))
    with pytest.raises(OpencseError, match="cannot be loaded"):
        load_encoder(tmp_path / "other")
