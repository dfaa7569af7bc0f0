"""Model folders of strangers: nothing is unpickled, no code runs, nothing outside is read, and sizes are bounded."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Router

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.folder_check import check_model_folder, closed_folder
from opencse.encoder.loading import load_masked_lm
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import stay_inside
from tests.tiny import saved_encoder


class Planted:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return saved_encoder(tmp_path_factory.mktemp("made"))


@pytest.fixture
def saved(made, tmp_path) -> Path:
    """A sentence-transformers model."""
    return Path(shutil.copytree(made, tmp_path / "model"))


@pytest.fixture
def plain(made, tmp_path) -> Path:
    """A transformers folder."""
    return Path(shutil.copytree(made.parent / "bert", tmp_path / "bert"))


@pytest.fixture
def marker(tmp_path) -> Path:
    return tmp_path / "planted code ran"


def plant(path: Path, marker: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps({"weight": Planted(marker)}))


def change(path: Path, **values: Any) -> None:
    path.write_text(
        json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **values})
    )


def test_a_module_without_settings_needs_no_folder(saved) -> None:
    """Wheels leave empty folders out, so the bundled model has none for its last module."""
    path = saved / "modules.json"
    modules = json.loads(path.read_text())
    last = {"idx": len(modules), "name": "2", "path": "2_Normalize"}
    modules.append({**last, "type": "sentence_transformers.models.Normalize"})
    path.write_text(json.dumps(modules))
    check_model_folder(saved)


def refused(folder: Path, message: str, marker: Path | None = None) -> None:
    """Every way of opening the folder refuses it in one line."""
    with pytest.raises(OpencseError, match=message):
        load_encoder(folder, pooling="mean")
    with pytest.raises(OpencseError, match=message):
        Backbone(folder).encoder("mean")
    with pytest.raises(OpencseError, match=message):
        load_masked_lm(folder)
    assert marker is None or not marker.exists()


def index(folder: Path, shard: str) -> None:
    names = load_file(folder / "model.safetensors").keys()
    (folder / "model.safetensors").unlink()
    table = {"metadata": {}, "weight_map": dict.fromkeys(names, shard)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(table))


# Pickled weights


@pytest.mark.parametrize(
    "other", ["other.safetensors", "model.fp16.safetensors", "x.safetensors.bak"]
)
def test_another_safetensors_file_next_to_pickled_weights(plain, marker, other) -> None:
    (plain / "model.safetensors").rename(plain / other)
    plant(plain / "pytorch_model.bin", marker)
    refused(plain, "pickled weights", marker)


@pytest.mark.parametrize("shard", ["shard.bin", "model.safetensors.bin", "shard.pt", "shard"])
def test_an_index_that_names_pickled_shards(plain, marker, shard) -> None:
    index(plain, shard)
    plant(plain / shard, marker)
    refused(plain, "pickled weights", marker)


def test_an_index_of_pickled_shards_alone(plain, marker) -> None:
    index(plain, "shard.bin")
    (plain / "model.safetensors.index.json").rename(plain / "pytorch_model.bin.index.json")
    plant(plain / "shard.bin", marker)
    refused(plain, "pickled weights", marker)


def test_a_pickle_that_is_called_safetensors(plain, marker) -> None:
    plant(plain / "model.safetensors", marker)
    refused(plain, "cannot be loaded", marker)


def test_weights_by_another_name_in_the_configuration(plain, marker) -> None:
    plant(plain / "adapter_model.bin", marker)
    change(plain / "config.json", transformers_weights="adapter_model.bin")
    refused(plain, "transformers_weights names", marker)


@pytest.mark.parametrize(
    "kind", ["Dense", "LayerNorm", "CNN", "LSTM", "WeightedLayerPooling", "WordWeights"]
)
def test_pickled_weights_of_a_later_module(saved, marker, kind) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    added = {
        "idx": 2,
        "name": "2",
        "path": "2_More",
        "type": f"sentence_transformers.models.{kind}",
    }
    (saved / "modules.json").write_text(json.dumps([*modules, added]))
    plant(saved / "2_More" / "pytorch_model.bin", marker)
    change(saved / "2_More" / "config.json", in_features=32, out_features=8)
    with pytest.raises(OpencseError, match="pickled weights"):
        load_encoder(saved)
    assert not marker.exists()


def test_modules_without_settings_need_no_folder(saved) -> None:
    """As in many published models, whose empty folders are not kept."""
    modules = json.loads((saved / "modules.json").read_text())
    added = {
        "idx": 2,
        "name": "2",
        "path": "2_Normalize",
        "type": "sentence_transformers.models.Normalize",
    }
    (saved / "modules.json").write_text(json.dumps([*modules, added]))
    assert load_encoder(saved).get_embedding_dimension() == 32


@pytest.fixture
def routed(saved, tmp_path) -> Path:
    transformer, pooling = SentenceTransformer(str(saved), device="cpu")
    route = [transformer, pooling, Dense(32, 8)]
    SentenceTransformer(modules=[Router({"query": route, "document": route})]).save(
        str(tmp_path / "routed")
    )
    return tmp_path / "routed"


def test_a_router_loads(routed) -> None:
    assert load_encoder(routed).encode(["a dog"]).shape == (1, 8)


@pytest.mark.parametrize("inner", ["query_0_Transformer", "query_2_Dense"])
def test_pickled_weights_inside_a_router(routed, marker, inner) -> None:
    (folder,) = routed.rglob(inner)
    (folder / "model.safetensors").unlink()
    plant(folder / "pytorch_model.bin", marker)
    with pytest.raises(OpencseError, match="pickled weights"):
        load_encoder(routed)
    assert not marker.exists()


def test_a_router_inside_a_router_is_looked_into(routed, marker) -> None:
    (path,) = routed.rglob("router_config.json")
    outer = {
        "types": {"inner": "sentence_transformers.models.Router"},
        "structure": {"query": ["inner"]},
        "parameters": {},
    }
    inner = path.parent / "inner"
    shutil.copytree(path.parent, inner, ignore=lambda *_: ["modules.json", "inner"])
    path.write_text(json.dumps(outer))
    (dense,) = inner.rglob("query_2_Dense")
    (dense / "model.safetensors").unlink()
    plant(dense / "pytorch_model.bin", marker)
    with pytest.raises(OpencseError, match="pickled weights"):
        load_encoder(routed)
    assert not marker.exists()


def test_the_second_lock(tmp_path, marker) -> None:
    """What a later version of a library may unpickle, or fetch from a hub, fails as well."""
    from huggingface_hub import get_session

    plant(tmp_path / "weights.bin", marker)
    with closed_folder(tmp_path):
        with pytest.raises(OpencseError, match="would be unpickled"):
            torch.load(tmp_path / "weights.bin", weights_only=False)
        with (
            pytest.raises(OpencseError, match="would be unpickled"),
            (tmp_path / "weights.bin").open("rb") as file,
        ):
            pickle.load(file)
        with pytest.raises(Exception, match="offline mode"):
            get_session().get("http://127.0.0.1:9/")
    assert not marker.exists()
    assert pickle.loads(pickle.dumps(3)) == 3


# Paths that leave the folder


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/passwd", "C:\\x", "..\\x", "\\\\host\\x", "a\0b", 3, None, ["a"]],
)
def test_names_that_leave_a_folder(tmp_path, name) -> None:
    with pytest.raises(OpencseError, match=r"outside the folder|not the name of a file"):
        stay_inside(tmp_path, name)


def test_links_that_leave_a_folder(tmp_path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "out").mkdir()
    (folder / "link").symlink_to(tmp_path / "out")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "in").mkdir()
    (folder / "within").symlink_to("in")
    assert stay_inside(folder, "within/x") == folder / "within/x"
    assert stay_inside(folder, "") == folder
    for name in ("link", "link/x"):
        with pytest.raises(OpencseError, match="leads out of the folder"):
            stay_inside(folder, name)


def test_a_snapshot_of_the_hub_links_to_its_own_blobs(saved, tmp_path) -> None:
    cache = tmp_path / "models--owner--name"
    (cache / "blobs").mkdir(parents=True)
    (cache / "snapshots").mkdir()
    snapshot = Path(shutil.move(saved, cache / "snapshots" / "abc"))
    (snapshot / "model.safetensors").rename(cache / "blobs" / "123")
    (snapshot / "model.safetensors").symlink_to("../../blobs/123")
    assert load_encoder(snapshot).get_embedding_dimension() == 32
    (snapshot / "model.safetensors").unlink()
    (cache / "blobs" / "123").rename(cache / "123")
    (snapshot / "model.safetensors").symlink_to("../../123")
    refused(snapshot, "leads out of the folder")


@pytest.mark.parametrize("shard", ["../other.safetensors", "absolute", "link.safetensors"])
def test_shards_outside(plain, tmp_path, shard) -> None:
    weights = tmp_path / "other.safetensors"
    shutil.copy(plain / "model.safetensors", weights)
    index(plain, str(weights) if shard == "absolute" else shard)
    if shard.startswith("link"):
        (plain / shard).symlink_to(weights)
    refused(plain, "outside the folder|leads out of the folder")


@pytest.mark.parametrize(
    "path", ["../outside", "absolute", "1_Link", "..\\outside", "1_Pooling/../../outside"]
)
def test_modules_outside(saved, tmp_path, path) -> None:
    shutil.copytree(saved / "1_Pooling", tmp_path / "outside")
    (saved / "1_Link").symlink_to(tmp_path / "outside")
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["path"] = str(tmp_path / "outside") if path == "absolute" else path
    (saved / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(OpencseError, match=r"outside the model's folder|leads out of the folder"):
        load_encoder(saved)


@pytest.mark.parametrize(
    "file", ["tokenizer.json", "config.json", "model.safetensors", "README.md"]
)
def test_linked_files(plain, tmp_path, file) -> None:
    (plain / "README.md").touch()
    shutil.move(plain / file, tmp_path / "elsewhere")
    (plain / file).symlink_to(tmp_path / "elsewhere")
    refused(plain, "leads out of the folder")


@pytest.mark.parametrize("base", ["a local folder", "owner/name"])
@pytest.mark.parametrize("with_modules", [True, False])
def test_an_adapter_names_another_model(saved, plain, base, with_modules) -> None:
    folder = saved if with_modules else plain
    base = str(plain) if base == "a local folder" else base
    (folder / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": base})
    )
    refused(folder, "an adapter")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("tokenizer_name_or_path", "owner/name"),
        ("processor_name", "../elsewhere"),
        ("model_args", {"cache_dir": "/tmp", "gguf_file": "../x.gguf"}),
        ("model_kwargs", {"adapter_kwargs": {"_adapter_model_path": "../x"}}),
        ("tokenizer_args", {"tokenizer_file": "/etc/passwd"}),
        ("config_kwargs", {"code_revision": "main"}),
        ("backend", "onnx"),
        ("transformer_task", "retrieval"),
        ("modality_config", {"text": {"method": "save_pretrained", "method_output_name": "x"}}),
    ],
)
def test_settings_that_name_files_or_code(saved, setting, value) -> None:
    change(saved / "sentence_bert_config.json", **{setting: value})
    refused(saved, "unknown setting|unknown argument|not feature-extraction|no known method")


# Code from elsewhere


@pytest.mark.parametrize(
    "kernel", ["owner/kernel", "owner/kernel@v1:f", "flash_attention_2", "x", {"": "owner/k"}]
)
@pytest.mark.parametrize(
    "key", ["attn_implementation", "_attn_implementation", "_experts_implementation"]
)
def test_kernels_of_a_hub(plain, key, kernel) -> None:
    change(plain / "config.json", **{key: kernel})
    refused(plain, "not part of transformers")


def test_a_kernel_in_a_nested_configuration_or_an_argument(plain, saved) -> None:
    change(plain / "config.json", text_config={"attn_implementation": "owner/kernel"})
    refused(plain, "not part of transformers")
    change(saved / "sentence_bert_config.json", model_args={"attn_implementation": "owner/kernel"})
    refused(saved, "not part of transformers")


@pytest.mark.parametrize("name", ["eager", "sdpa", None])
def test_known_attention_is_taken(plain, name) -> None:
    change(plain / "config.json", attn_implementation=name)
    load_encoder(plain, pooling="mean")


@pytest.mark.parametrize(
    "settings",
    [
        {"quantization_config": {"quant_method": "gptq"}},
        {"use_timm_backbone": True, "backbone": "resnet18"},
        {"use_pretrained_backbone": True, "backbone": "owner/name"},
        {"text_model_name_or_path": "owner/name"},
    ],
)
def test_other_models_and_packages(plain, settings) -> None:
    change(plain / "config.json", **settings)
    refused(plain, "need other packages|is another model")


@pytest.mark.parametrize(
    "kind",
    [
        "os.system",
        "sentence_transformers.base.modules.module.torch",
        "sentence_transformers.util.file_io.os",
        "sentence_transformers..Transformer",
        "own.Transformer",
        "sentence_transformers_evil.Transformer",
    ],
)
def test_types_of_modules(saved, kind) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    modules[1]["type"] = kind
    (saved / "modules.json").write_text(json.dumps(modules))
    refused(saved, "is not a module of sentence-transformers")


@pytest.mark.parametrize(
    "name", ["os.system", "torch.nn.modules.activation.Nonsense", "builtins.eval", "torch.load", 3]
)
def test_unknown_activations(saved, name) -> None:
    model = SentenceTransformer(str(saved), device="cpu")
    model.append(Dense(32, 8))
    model.save(str(saved.parent / "dense"))
    (path,) = saved.parent.glob("dense/*Dense/config.json")
    assert load_encoder(path.parents[1]).get_embedding_dimension() == 8
    change(path, activation_function=name)
    refused(path.parents[1], "not an activation of torch")


# Sizes


@pytest.mark.parametrize(
    "settings",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 900},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": -1},
        {"vocab_size": 10**12},
        {"hidden_size": 10**7},
        {"intermediate_size": 10**8},
        {"max_position_embeddings": 10**11},
        {"type_vocab_size": 10**10},
        {"num_labels": 10**9},
        {"num_attention_heads": 10**9},
        {"vocab_size": -1},
        {"hidden_size": "32"},
    ],
)
def test_sizes_in_a_configuration(plain, settings) -> None:
    change(plain / "config.json", **settings)
    refused(plain, "more than any model has|hold|asks for|cannot be loaded|not a number of layers")


def test_a_wrong_shape_is_named(plain) -> None:
    change(plain / "config.json", intermediate_size=48)
    refused(
        plain,
        r"asks for bert\.encoder\.layer\.0\.intermediate\.dense\.bias of 48, the file holds 64|asks for .*dense.weight of",
    )


def test_a_router_with_ten_million_modules(routed) -> None:
    (path,) = routed.rglob("router_config.json")
    types = {f"m{i}": "sentence_transformers.models.Normalize" for i in range(20_000)}
    path.write_text(json.dumps({"types": types, "structure": {}, "parameters": {}}))
    with pytest.raises(OpencseError, match="at most 100 modules"):
        load_encoder(routed)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("CNN", {"in_embedding_dimension": 32, "out_channels": 10**8, "kernel_sizes": [1] * 50}),
        ("LSTM", {"embedding_dimension": 32, "hidden_dim": 10**7, "num_layers": 900}),
        ("LayerNorm", {"dimension": 10**8}),
        ("WeightedLayerPooling", {"embedding_dimension": 32, "num_hidden_layers": 10**8}),
        ("Dense", {"in_features": 10**8, "out_features": 10**8}),
    ],
)
def test_sizes_of_other_modules(saved, kind, settings) -> None:
    modules = json.loads((saved / "modules.json").read_text())
    added = {
        "idx": 2,
        "name": "2",
        "path": "2_More",
        "type": f"sentence_transformers.models.{kind}",
    }
    (saved / "modules.json").write_text(json.dumps([*modules, added]))
    (saved / "2_More").mkdir()
    save_file({"x": torch.ones(3)}, saved / "2_More" / "model.safetensors")
    file = {"CNN": "cnn_config.json", "LSTM": "lstm_config.json"}.get(kind, "config.json")
    change(saved / "2_More" / file, **settings)
    with pytest.raises(OpencseError, match=r"more than any model has|asks for|cannot be loaded"):
        load_encoder(saved)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_weights_that_are_no_floating_point_numbers(plain, dtype) -> None:
    tensors = load_file(plain / "model.safetensors")
    changed = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    save_file(changed, plain / "model.safetensors", metadata={"format": "pt"})
    refused(plain, "not floating-point numbers")


@pytest.mark.parametrize("name", ["evil", ["cosine"], 5])
def test_a_similarity_that_nobody_knows(saved, name) -> None:
    change(saved / "config_sentence_transformers.json", similarity_fn_name=name)
    refused(saved, "similarity_fn_name is")


@pytest.mark.parametrize("key", ["max_length", "pad_to_multiple_of"])
def test_texts_that_are_padded_to_a_length_without_bound(saved, key) -> None:
    arguments = {"text": {"padding": "max_length", key: 10**9}}
    change(saved / "sentence_bert_config.json", processing_kwargs=arguments)
    refused(saved, f"{key} is 1000000000")


@pytest.mark.parametrize("cut", [-3, 0, 1.5, "8", True, 10**12])
def test_a_truncated_dimension_that_cannot_be(saved, cut) -> None:
    change(saved / "config_sentence_transformers.json", truncate_dim=cut)
    refused(saved, "not a number of dimensions")


@pytest.mark.parametrize(
    "file", ["config.json", "tokenizer.json", "README.md", "model.safetensors", "vocab.txt"]
)
def test_a_pipe_in_place_of_a_file(plain, file) -> None:
    (plain / file).unlink(missing_ok=True)
    os.mkfifo(plain / file)
    refused(plain, "is a device, a pipe or a socket|contains no model")


@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "Replace", "pattern": {"String": "a"}, "content": "x" * 10_000}],
        [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 30,
        [{"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 1000}],
        [{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * 500}]}],
    ],
)
def test_a_tokenizer_that_makes_texts_longer(plain, steps) -> None:
    change(plain / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": steps})
    refused(plain, "times longer")


def test_a_tokenizer_that_fails_at_unknown_words(plain) -> None:
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}
    change(plain / "tokenizer.json", model=unigram)
    change(plain / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    with pytest.raises(OpencseError, match="cannot be loaded"):
        load_encoder(plain, pooling="mean")


def test_a_prompt_without_end(saved) -> None:
    change(saved / "config_sentence_transformers.json", prompts={"query": "x" * 10**6})
    refused(saved, "a prompt has more than 10,000 characters")


def test_texts_are_cut_at_the_positions_of_the_model(saved, capfd) -> None:
    change(saved / "sentence_bert_config.json", max_seq_length=1000)
    model = load_encoder(saved)
    assert model.max_seq_length == 64
    assert "positions for 64 tokens" in capfd.readouterr().err
    assert model.encode(["cat " * 200]).shape == (1, 32)


def test_nothing_outside_the_folder_is_opened(saved) -> None:
    """A check of the checks: a process that loads a model reports every file that it opens."""
    script = """
import os, sys
from pathlib import Path
from opencse.encoder import load_encoder
import sentence_transformers.models, torch, transformers
opened = []
sys.addaudithook(lambda name, values: opened.append(values[0]) if name == "open" else None)
load_encoder(sys.argv[1])
home = os.path.realpath(sys.argv[1])
for name in opened:
    name = os.path.realpath(name) if isinstance(name, str) else home
    if not name.startswith((home, sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev")):
        print(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(saved)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    outside = [
        line
        for line in done.stdout.splitlines()
        if "site-packages" not in line
        and not line.startswith(("/usr", "/lib", "/etc/ssl", "/etc/mime"))
    ]
    assert outside == []
