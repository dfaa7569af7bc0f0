"""Loading of backbones and of the masked language model that comes with the package."""

from __future__ import annotations

import copy
import json
import pickle
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Pooling,
    StaticEmbedding,
    Transformer,
    WeightedLayerPooling,
)
from transformers import AutoTokenizer, BertForSequenceClassification, GPT2Config, GPT2Model

from opencse.encoder import load_encoder, names, save_encoder
from opencse.encoder.backbone import Backbone, model_source, pooling_name, weights_hash
from opencse.encoder.dropout import set_rates
from opencse.encoder.embedder import Embedder
from opencse.encoder.folder_check import check_model_folder
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
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "model")).encode(TEXTS), vectors, atol=1e-6
    )


def test_a_model_saved_in_half_precision_is_one_of_fp32(tmp_path) -> None:
    """fp16 does not train on a CPU, and Adam loses small steps in bf16."""
    folder = tiny_bert(tmp_path / "bert")
    load_encoder(folder, pooling="mean").half().save(str(tmp_path / "half"))
    assert {each.dtype for each in SentenceTransformer(str(tmp_path / "half")).parameters()} == {
        torch.float16
    }
    assert {each.dtype for each in load_encoder(tmp_path / "half").parameters()} == {torch.float32}


def test_unknown_poolings_and_models_are_named(monkeypatch) -> None:
    with pytest.raises(OpencseError, match=r"no pooling 'most'.*cls, mean"):
        load_encoder("nowhere/at-all", pooling="most")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(OpencseError, match="cannot be loaded"):
        load_encoder("nobody/no-such-model", pooling="backbone")


def test_a_hub_that_cannot_be_reached_is_told_at_once(monkeypatch) -> None:
    asked: list[str] = []

    class Unreachable:
        def head(self, url: str, timeout: float) -> None:
            asked.append(url)
            raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.get_session", Unreachable)
    with pytest.raises(
        OpencseError, match=r"out/modle: no such folder, and the hub .*no network.*Check the name"
    ):
        load_encoder("out/modle")
    assert len(asked) == 1


def test_a_panic_of_the_tokenizer_is_one_clear_line() -> None:
    panic = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(OpencseError, match=r"some/model: .*no entry found"),
        readable_errors("some/model"),
    ):
        raise panic("no entry found for key")
    with pytest.raises(KeyboardInterrupt), readable_errors("some/model"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("model_type", ["bert", "own"])
def test_code_in_a_model_folder_is_never_run(tmp_path, monkeypatch, model_type) -> None:
    folder = tiny_bert(tmp_path / "bert")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": model_type,
        "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"},
    }
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
    files = {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert {f.name for f in FOLDER.iterdir()} == files
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Wikipedia contributors" in card
    assert "CC BY-SA" in card
    vocabulary = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"][
        "vocab"
    ]
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


MODULE = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


class Evil:
    def __reduce__(self):
        return pytest.fail, ("foreign code ran",)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", "[" * 100_000, "not JSON"),
        ("modules.json", "3", "not a list of modules"),
        ("config.json", '{"num_hidden_layers": 1000000000}', "more than any model has"),
        ("config.json", '{"hidden_dropout_prob": NaN}', "hidden_dropout_prob is nan, not a share"),
        ("modules.json", json.dumps([{**MODULE, "path": "../x"}]), "outside the model's folder"),
        ("modules.json", json.dumps([{**MODULE, "path": "/etc"}]), "outside the model's folder"),
        (
            "modules.json",
            json.dumps([{**MODULE, "type": "os.system"}]),
            "not a module of sentence-transformers",
        ),
        ("modules.json", json.dumps([{**MODULE, "path": 3}]), "without a path or a type"),
        ("config.json", "[]", "not a JSON object"),
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
    save_file(
        {**tensors, name: change(tensors[name])},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )


@pytest.mark.parametrize(
    ("stored", "lacks"), [("bert.", None), ("model.bert.", "lack 21 weights"), ("", "lack 1 w")]
)
def test_weights_that_would_be_drawn_at_random_are_refused(
    folder, stored: str, lacks: str | None
) -> None:
    tensors = {
        name.removeprefix("bert."): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    if not stored:
        del tensors["encoder.layer.0.output.dense.bias"]
    renamed = {
        stored + name.replace("Norm.weight", "Norm.gamma"): tensor
        for name, tensor in tensors.items()
    }
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(OpencseError, match=lacks) if lacks else nullcontext():
        load_encoder(folder, pooling="cls")


def test_weights_that_are_not_finite_are_refused(folder) -> None:
    change_weights(folder, lambda tensor: tensor.fill_(torch.nan))
    with pytest.raises(OpencseError, match="not finite"):
        load_encoder(folder, pooling="cls")


def test_a_tokenizer_that_knows_other_tokens_than_the_model_is_refused(folder) -> None:
    change_weights(folder, lambda tensor: tensor[:20].clone())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 20}))
    with pytest.raises(OpencseError, match="the model only 20"):
        load_encoder(folder, pooling="cls")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    (folder / "tokenizer.json").unlink()
    with pytest.raises(OpencseError, match="the tokenizer has no words"):
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


@pytest.fixture
def folder(tmp_path):
    return tiny_bert(tmp_path / "my model", layers=1)


def test_an_adapter_is_not_a_model(tmp_path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(OpencseError, match=r"an adapter \(LoRA\), not a model. Merge it"):
        check_model_folder(tmp_path)


def test_pickled_weights_are_saved_as_safetensors_by_the_command(folder) -> None:
    whole = load_file(folder / "model.safetensors")
    whole["tied"] = next(iter(whole.values()))  # shares memory with another
    torch.save(whole, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(OpencseError, match="pickled weights") as error:
        check_model_folder(folder)
    command = re.search("`(.*)`", error.value.remedy)[1]
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True)
    check_model_folder(folder)
    found = load_file(folder / "model.safetensors")
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in whole.items())


def test_a_model_without_a_padding_token_gets_one_and_keeps_it(tmp_path) -> None:
    """As GPT-2 has none, a trained model could not encode two texts at once."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_roberta(tmp_path / "roberta"))
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path / "gpt2")
    GPT2Model(
        GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=4)
    ).save_pretrained(tmp_path / "gpt2")
    save_encoder(load_encoder(tmp_path / "gpt2", pooling="mean"), tmp_path / "saved")
    plain = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    one_by_one = np.stack([plain.encode(text) for text in TEXTS])
    np.testing.assert_allclose(plain.encode(TEXTS), one_by_one, atol=1e-5)


def test_static_embeddings_are_no_backbone(folder, tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)]).save(
        str(tmp_path / "static")
    )
    assert load_encoder(tmp_path / "static").get_embedding_dimension() == 8
    with pytest.raises(OpencseError, match="begins with a StaticEmbedding, not a transformer"):
        Backbone(tmp_path / "static")


def test_recipes_keep_the_pooling_of_a_model_that_has_one(folder, tmp_path) -> None:
    save_encoder(load_encoder(folder, pooling="mean"), tmp_path / "pooled")
    assert [Backbone(model).family for model in (folder, tmp_path / "pooled")] == [
        "other",
        "minilm",
    ]


def test_a_cross_encoder_is_said_and_a_sparse_encoder_refused(folder, tmp_path, capfd) -> None:
    BertForSequenceClassification.from_pretrained(folder, num_labels=1).save_pretrained(
        tmp_path / "cross"
    )
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "cross")
    load_encoder(tmp_path / "cross", pooling="mean")
    assert "a classifier or cross-encoder; its head is left out" in capfd.readouterr().err
    save_encoder(load_encoder(folder, pooling="mean"), tmp_path / "sparse")
    (tmp_path / "sparse" / "config_sentence_transformers.json").write_text(
        '{"model_type": "SparseEncoder"}'
    )
    with pytest.raises(OpencseError, match="a SparseEncoder, which has no dense vectors"):
        load_encoder(tmp_path / "sparse")


def test_a_width_or_length_that_cannot_be_is_refused(folder, tmp_path) -> None:
    save_encoder(load_encoder(folder, pooling="mean"), tmp_path / "model")
    (path,) = tmp_path.glob("model/*Pooling/config.json")
    settings = json.loads(path.read_text())
    key = next(name for name in settings if "dimension" in name)
    path.write_text(json.dumps(settings | {key: 64}))
    with pytest.raises(
        OpencseError, match="its settings say 64 dimensions, but its vectors have 32"
    ):
        load_encoder(tmp_path / "model")
    (tmp_path / "model" / "sentence_bert_config.json").write_text('{"max_seq_length": "8"}')
    with pytest.raises(OpencseError, match="maximum length is '8', not a length"):
        load_encoder(tmp_path / "model")


def test_survives_use_saving_and_the_random_head(tiny_model, tmp_path):
    before = weights_hash(tiny_model)
    tiny_model.encode(
        ["a dog", "the cat sits on the house"]
    )  # the tokenizer now remembers truncation and padding
    assert weights_hash(tiny_model) == before
    tiny_model.save(str(tmp_path / "saved"))
    assert weights_hash(SentenceTransformer(str(tmp_path / "saved"), device="cpu")) == before
    folder = tiny_bert(tmp_path / "bert")  # has no pooler: every load draws another
    hashes = {weights_hash(SentenceTransformer(str(folder), device="cpu")) for _ in range(2)}
    assert hashes == {before}


@pytest.mark.parametrize(
    "change", ["weight", "pooling", "length", "prompt", "vocabulary", "dtype", "width", "causal"]
)
def test_sees_every_change(tiny_model, change):
    before = weights_hash(tiny_model)
    model = copy.deepcopy(tiny_model)
    match change:
        case "weight":
            with torch.no_grad():
                next(model.parameters())[3, 3] += 1e-3
        case "pooling":
            model[1].pooling_mode = "cls"
        case "length":
            model.max_seq_length = 9
        case "prompt":
            model.prompts["q"] = "query: "
        case "vocabulary":
            model.tokenizer.add_tokens(["zebra"])
        case "dtype":
            model.half()
        case "width":
            model.truncate_dim = 8
        case "causal":
            model[0].auto_model.config.is_causal = True
    assert weights_hash(model) != before


def test_models_that_differ_in_dropout_have_copies_of_their_own(tiny_model):
    other = copy.deepcopy(tiny_model)
    set_rates(other, 0.3)
    assert model_source(other) != model_source(tiny_model)


def test_pooling_names(tiny_model, tmp_path):
    assert pooling_name(tiny_model) == "mean"
    transformer = Transformer(
        str(tiny_bert(tmp_path)), config_kwargs={"output_hidden_states": True}
    )
    layers = WeightedLayerPooling(32, num_hidden_layers=2, layer_start=0)
    assert (
        pooling_name(SentenceTransformer(modules=[transformer, layers, Pooling(32, "mean")]))
        == "layers+mean"
    )
    assert (
        pooling_name(SentenceTransformer(modules=[transformer, Pooling(32, ("mean", "cls"))]))
        == "mean+cls"
    )


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_the_current_folder(tmp_path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tiny_bert(tmp_path / "bert"))
    with pytest.raises(OpencseError, match="name of the model is empty"):
        load_encoder(name, pooling="cls")


def test_a_file_is_not_looked_up_on_a_hub(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("some-model").write_text("weights")
    with pytest.raises(OpencseError, match="some-model: is not a folder"):
        load_encoder("some-model", pooling="cls")
