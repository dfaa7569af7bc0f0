from __future__ import annotations

import copy
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

from opencse.commands.integrations.onnx import OnnxEncoder, _linear_of_scaled_rows, export_onnx
from opencse.commands.main import main
from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.payload import score
from opencse.debias.reranker import Reranker
from opencse.debias.shipped import append_block
from opencse.encoder import load_encoder, save_encoder
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

ort = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")

TEXTS = [
    "the cat sits in the garden",
    "",
    "A Dog runs!",
    "unknown wörds are pieces",
    "no",
    "the small bird sings very quickly " * 40,  # longer than the maximum
]


def saved(folder, transformer, *after, **settings) -> str:
    """A sentence-transformers folder of a transformer and further modules."""
    save_encoder(
        SentenceTransformer(modules=[transformer, *after], device="cpu", **settings), folder
    )
    return str(folder)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return load_encoder(tiny_bert(tmp_path_factory.mktemp("bert"), layers=1), pooling="cls")[0]


@pytest.fixture(scope="module")
def normalised(tmp_path_factory, bert):
    """A tiny BERT with mean pooling, normalised; with prompts, one of them by default; and its export."""
    folder = tmp_path_factory.mktemp("normalised")
    settings = {"prompts": {"query": "a question : ", "plain": ""}, "default_prompt_name": "query"}
    model = saved(folder / "model", bert, Pooling(32, "mean"), Normalize(), **settings)
    difference, _ = export_onnx(model, folder / "onnx")
    assert 0 <= difference < 1e-5
    return model, folder / "onnx"


def test_a_meaning_block_is_part_of_the_graph(tmp_path, bert) -> None:
    model = SentenceTransformer(modules=[copy.deepcopy(bert), Pooling(32, "mean")], device="cpu")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        block = MeaningBlock.beside(model, code=3, inner=5, hidden=7, code_hidden=4)
    append_block(model, block)
    save_encoder(model, tmp_path / "model")
    difference, _ = export_onnx(tmp_path / "model", tmp_path / "onnx")
    assert difference < 1e-5
    vectors = OnnxEncoder(tmp_path / "onnx").encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 64)
    np.testing.assert_allclose(
        vectors, load_encoder(tmp_path / "model", device="cpu").encode(TEXTS), atol=1e-5
    )
    assert export_onnx(tmp_path / "model", tmp_path / "small", precision="int8")[1] > 0.9

    expected = Reranker(tmp_path / "model").parts(TEXTS)
    parts = OnnxEncoder(tmp_path / "onnx").parts(TEXTS)
    for name in ("vectors", "code", "topic", "asks"):
        np.testing.assert_allclose(getattr(parts, name), getattr(expected, name), atol=1e-5)
    exported = OnnxEncoder(tmp_path / "small").parts(TEXTS)
    # Code and topic come from matrices in 16 bits; only what they don't depend on has 8.
    for name in ("code", "topic"):
        np.testing.assert_allclose(getattr(exported, name), getattr(expected, name), atol=2e-2)
    stored = onnx.load(tmp_path / "small" / "model.onnx").graph.initializer
    types = {tensor.data_type for tensor in stored if len(tensor.dims) > 1}
    assert {onnx.TensorProto.INT8, onnx.TensorProto.FLOAT16} <= types
    small = exported.int8()
    np.testing.assert_allclose(score(small, small), score(expected, expected), atol=0.01)


def test_an_export_without_a_block_has_no_parts(normalised) -> None:
    encoder = OnnxEncoder(normalised[1])
    assert encoder.settings["outputs"] == ["sentence_embedding"]
    with pytest.raises(OpencseError, match="no meaning block"):
        encoder.parts(TEXTS)


def run_by_hand(folder, texts) -> list[np.ndarray]:
    """The outputs, with onnxruntime and tokenizers alone."""
    from tokenizers import Tokenizer

    session = ort.InferenceSession(folder / "model.onnx")
    batch = Tokenizer.from_file(str(folder / "tokenizer.json")).encode_batch(texts)
    values = {
        "input_ids": [t.ids for t in batch],
        "attention_mask": [t.attention_mask for t in batch],
        "token_type_ids": [t.type_ids for t in batch],
    }
    return session.run(None, {i.name: np.array(values[i.name]) for i in session.get_inputs()})


def test_normalised_mean_with_prompts_in_any_batch(normalised):
    model, export = normalised
    assert sorted(p.name for p in export.iterdir()) == [
        "encoder.json",
        "model.onnx",
        "tokenizer.json",
    ]
    settings = json.loads((export / "encoder.json").read_text())
    assert (settings["max_length"], settings["dimension"], settings["pooling"]) == (64, 32, "mean")
    assert settings["prompts"]["query"] == settings["default_prompt"] == "a question : "
    assert settings["inputs"] == ["input_ids", "attention_mask", "token_type_ids"]
    torch_model, onnx_model = SentenceTransformer(model, device="cpu"), OnnxEncoder(export)
    expected = torch_model.encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-5)
    for batch_size in (1, 4, 32):
        np.testing.assert_allclose(
            onnx_model.encode(TEXTS, batch_size=batch_size), expected, atol=1e-5
        )
    plain = torch_model.encode(TEXTS, prompt_name="plain")
    assert np.abs(plain - expected).max() > 1e-3
    np.testing.assert_allclose(onnx_model.encode(TEXTS, prompt=""), plain, atol=1e-5)
    assert onnx_model.encode([]).shape == (0, 32)
    np.testing.assert_allclose(run_by_hand(export, TEXTS)[0], plain, atol=1e-5)


def test_roberta_whose_inputs_are_two_and_whose_padding_is_not_zero_truncated(tmp_path):
    """Of two layers, in three ways of pooling."""
    roberta = load_encoder(tiny_roberta(tmp_path / "roberta", layers=1), pooling="first_last")
    modules = (*[*roberta][:-1], Pooling(32, ("cls", "mean", "lasttoken")), Dense(96, 40))
    model = saved(tmp_path / "model", *modules, truncate_dim=8)
    folder = tmp_path / "onnx"
    export_onnx(model, folder)
    settings = json.loads((folder / "encoder.json").read_text())
    assert (settings["inputs"], settings["dimension"]) == (["input_ids", "attention_mask"], 8)
    np.testing.assert_allclose(
        run_by_hand(folder, TEXTS)[0],
        SentenceTransformer(model, device="cpu").encode(TEXTS),
        atol=1e-5,
    )


def test_a_prompt_around_the_text(tmp_path):
    prompt = 'this sentence of " {} " means {mask}'
    model = load_encoder(tiny_bert(tmp_path / "bert", layers=1), pooling="mask", prompt=prompt)
    save_encoder(model, tmp_path / "model")
    folder = tmp_path / "onnx"
    export_onnx(tmp_path / "model", folder)
    np.testing.assert_allclose(run_by_hand(folder, TEXTS)[0], model.eval().encode(TEXTS), atol=1e-5)


@pytest.fixture
def same_graph(normalised, monkeypatch):
    """Exporting takes seconds: here the graph is the one that was made before."""
    graph = (normalised[1] / "model.onnx").read_bytes()
    monkeypatch.setattr("torch.onnx.export", lambda *_, f, **__: Path(f).write_bytes(graph))


@pytest.mark.usefixtures("same_graph")
@pytest.mark.parametrize(
    ("precision", "pooling", "problem"),
    [
        ("fp32", "mean", r"in fp32, onnxruntime's vectors differ from PyTorch's by "),
        ("int8", "cls", r"in int8, .* the least cosine is .*export this model in fp32"),
    ],
)
def test_vectors_that_differ_are_refused_and_nothing_is_written(
    bert, tmp_path, precision, pooling, problem
):
    model = saved(
        tmp_path / "model", bert, Pooling(32, pooling)
    )  # the graph is that of a normalised mean
    with pytest.raises(OpencseError, match=problem):
        export_onnx(model, tmp_path / "onnx", precision=precision)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_row_divided_and_multiplied_by_its_largest_number_is_the_same_to_a_linear_layer():
    x = torch.randn(2, 4, 5, dtype=torch.float64) * torch.tensor([1.0, 1e3, 0.0, 1e-9])[:, None]
    for layer in (torch.nn.Linear(5, 3), torch.nn.Linear(5, 3, bias=False)):
        torch.testing.assert_close(
            _linear_of_scaled_rows(layer.double(), x), layer(x), rtol=1e-9, atol=1e-9
        )


@pytest.mark.usefixtures("same_graph")
def test_int8_is_smaller_and_near(normalised, tmp_path):
    model, fp32 = normalised
    export = tmp_path / "onnx"
    _, cosine = export_onnx(model, export, precision="int8")
    assert sorted(p.name for p in export.iterdir()) == [
        "encoder.json",
        "model.onnx",
        "tokenizer.json",
    ]
    assert json.loads((export / "encoder.json").read_text())["precision"] == "int8"
    assert (export / "model.onnx").stat().st_size < (fp32 / "model.onnx").stat().st_size
    expected = SentenceTransformer(model, device="cpu").encode(TEXTS, prompt="")
    (vectors,) = run_by_hand(export, TEXTS)
    assert vectors.dtype == np.float32
    cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(vectors, axis=1)
    assert cosines.min() > 0.97
    assert 0.97 < cosine <= 1
    assert np.abs(vectors - expected).max() > 1e-5, "not the fp32 graph"


@pytest.mark.usefixtures("same_graph")
def test_fp16_is_half_the_size_and_nearly_equal(normalised, tmp_path):
    model, fp32 = normalised
    export = tmp_path / "onnx"
    difference, cosine = export_onnx(model, export, precision="fp16")
    assert 0 < difference < 5e-3
    assert cosine > 0.999
    before = (fp32 / "model.onnx").stat().st_size
    assert (export / "model.onnx").stat().st_size < before
    assert json.loads((export / "encoder.json").read_text())["precision"] == "fp16"


def test_a_pooling_without_the_prompt_is_refused(bert, tmp_path):
    prompts = {"query": "a question : "}
    model = saved(
        tmp_path / "instructed", bert, Pooling(32, "mean", include_prompt=False), prompts=prompts
    )
    with pytest.raises(OpencseError, match="leaves the prompt's tokens out"):
        export_onnx(model, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_block_that_cuts_texts_anew_is_refused(bert, tmp_path):
    model = SentenceTransformer(modules=[bert, Pooling(32, "mean")], device="cpu")
    own = model.tokenizer.backend_tokenizer
    append_block(model, MeaningBlock.beside(model).beside_another(bert.auto_model, 32, (own, own)))
    save_encoder(model, tmp_path / "model")
    with pytest.raises(OpencseError, match="cut into other tokens, which a graph cannot do"):
        export_onnx(tmp_path / "model", tmp_path / "onnx")


def test_a_missing_package_comes_with_its_remedy(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "onnxscript" else find(name)
    )
    with pytest.raises(
        OpencseError, match=r'onnxscript is not installed. pip install "opencse\[onnx\]"'
    ):
        export_onnx("minilm", tmp_path / "onnx")
    with pytest.raises(
        OpencseError, match=r"no precision 'int4' for ONNX. Choose one of fp32, fp16, int8"
    ):
        export_onnx("minilm", tmp_path / "onnx", precision="int4")


@pytest.mark.usefixtures("same_graph")
def test_the_command(normalised, tmp_path, monkeypatch, capsys):
    model, export = normalised

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["opencse", "export", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return (int(stop.value.code or 0), *capsys.readouterr())

    code, _, error = call(model, "-o", export)
    assert (code, error.count("\n")) == (2, 1)
    assert "already holds an export" in error
    code, _, error = call(model, "-o", model, "--overwrite")  # never in place of a model
    assert code == 2
    assert "already holds other files" in error
    code, _, error = call(tmp_path / "none", "-o", tmp_path / "x")
    assert (code, error.count("\n")) == (2, 1)
    before = (export / "model.onnx").stat().st_mtime_ns
    code, printed, error = call(model, "-o", export, "--overwrite")
    assert (code, error) == (0, "")
    assert "largest difference" in printed
    assert (export / "model.onnx").stat().st_mtime_ns > before
    assert len(list(export.parent.iterdir())) == 2
