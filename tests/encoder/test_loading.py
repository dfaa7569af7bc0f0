"""Loading of backbones and of the masked language model that comes with the package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder, names, save_encoder
from opencse.encoder.loading import readable_errors
from opencse.encoder.names import resolve
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

TEXTS = ["the cat sits", "a dog runs in the garden", "no"]


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def backbone(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tiny"))


def hidden_states(model: SentenceTransformer, text: str) -> tuple[torch.Tensor, ...]:
    batch = model.tokenizer([text], return_tensors="pt")
    with torch.no_grad():
        return model[0].auto_model(**batch, output_hidden_states=True).hidden_states


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("cls", lambda h: h[-1][0, 0]),
        ("mean", lambda h: h[-1][0].mean(0)),
        ("first_last", lambda h: ((h[1] + h[-1]) / 2)[0].mean(0)),
        ("embeddings_last", lambda h: ((h[0] + h[-1]) / 2)[0].mean(0)),
    ],
)
def test_pooling_and_its_export(backbone, tmp_path, pooling, expected) -> None:
    model = load_encoder(backbone, pooling=pooling).eval()
    vectors = model.encode(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, expected(hidden_states(model, text)).numpy(), atol=1e-5)
    save_encoder(model, tmp_path / "model")
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path / "model")).encode(TEXTS), vectors, atol=1e-6)


def test_a_model_saved_in_half_precision_is_one_of_fp32(tmp_path) -> None:
    """fp16 does not train on a CPU, and Adam loses small steps in bf16."""
    folder = tiny_bert(tmp_path / "bert")
    load_encoder(folder, pooling="mean").half().save(str(tmp_path / "half"))
    assert {each.dtype for each in SentenceTransformer(str(tmp_path / "half")).parameters()} == {torch.float16}
    assert {each.dtype for each in load_encoder(tmp_path / "half").parameters()} == {torch.float32}


def test_an_unknown_pooling_is_named_before_anything_is_loaded() -> None:
    with pytest.raises(OpencseError, match=r"no pooling 'most'.*cls, mean"):
        load_encoder("nowhere/at-all", pooling="most")


def test_a_name_that_is_no_model_is_not_called_one_without_pooling(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(OpencseError, match="cannot be loaded"):
        load_encoder("nobody/no-such-model", pooling="backbone")


def test_a_panic_of_the_tokenizer_is_one_clear_line() -> None:
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(OpencseError, match=r"some/model: .*no entry found"), readable_errors("some/model"):
        raise panic("no entry found for key")
    with pytest.raises(KeyboardInterrupt), readable_errors("some/model"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("model_type", ["bert", "own"])
def test_code_in_a_model_folder_is_never_run(tmp_path, monkeypatch, model_type) -> None:
    folder = tiny_bert(tmp_path / "bert")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": model_type, "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nothing is asked"))
    if model_type == "bert":  # transformers has the class itself
        load_encoder(folder, pooling="mean")
    else:
        with pytest.raises(OpencseError, match="cannot be loaded"):
            load_encoder(folder, pooling="mean")
    assert not (tmp_path / "ran").exists()


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
