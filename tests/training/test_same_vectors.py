"""One vector everywhere: training, `model.encode`, the embedder and the saved folder, over a family of models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    LayerNorm,
    Normalize,
    Pooling,
    Router,
    StaticEmbedding,
    Transformer,
    WeightedLayerPooling,
)
from tokenizers import normalizers, processors

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.invariant import TOLERANCE, encode_alone, largest_difference
from opencse.training import train as train_module
from opencse.training.loop import TrainingLoop
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import run, write_corpus

Build = Callable[[Path], SentenceTransformer]
TEXTS = ["The cat sits on the red house.", " two  spaces ", "no", "a dog runs " * 60]


def transformer(folder: Path, kind: Any = tiny_bert, **settings: Any) -> Transformer:
    return Transformer(str(kind(folder / "plain", layers=2, width=32)), **settings)


def model(*tail: Any, kind: Any = tiny_bert, first: Any = None, **settings: Any) -> Build:
    """A model whose later modules are made by functions, so that each gets its own."""
    return lambda folder: SentenceTransformer(
        modules=[transformer(folder, kind, **(first or {})), *(make() for make in tail)],
        device="cpu",
        **settings,
    )


def pooling(*args: Any, **settings: Any) -> Callable[[], Pooling]:
    return lambda: Pooling(32, *args, **settings)


def changed(build: Build, change: Callable[[SentenceTransformer], Any]) -> Build:
    def make(folder: Path) -> SentenceTransformer:
        built = build(folder)
        change(built)
        return built

    return make


def first_last(folder: Path) -> SentenceTransformer:
    first = transformer(folder, config_kwargs={"output_hidden_states": True})
    layers = WeightedLayerPooling(32, num_hidden_layers=2, layer_start=0)
    return SentenceTransformer(modules=[first, layers, Pooling(32, "mean")], device="cpu")


def tokenizer_option(**options: Any) -> Callable[[SentenceTransformer], None]:
    def change(built: SentenceTransformer) -> None:
        for name, value in options.items():
            setattr(built.tokenizer, name, value)

    return change


def backend(name: str, value: Any) -> Callable[[SentenceTransformer], None]:
    return lambda built: setattr(built.tokenizer.backend_tokenizer, name, value)


def add_word(built: SentenceTransformer) -> None:
    built.tokenizer.add_tokens(["house cat"])
    built[0].auto_model.resize_token_embeddings(len(built.tokenizer))


MEAN = model(pooling("mean"))
QUERY = {"prompts": {"query": "the house : ", "document": ""}, "default_prompt_name": "query"}
ONLY_END = processors.TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", 3)])
NOTHING = processors.TemplateProcessing(single="$A", special_tokens=[])
TRAINABLE: dict[str, Build] = {
    **{mode: model(pooling(mode)) for mode in Pooling.POOLING_MODES},
    "roberta": model(pooling("mean"), kind=tiny_roberta),
    "roberta, last token": model(pooling("lasttoken"), kind=tiny_roberta),
    "two poolings": model(pooling(("mean", "cls"))),
    "layers": first_last,
    "dense": model(pooling("mean"), lambda: Dense(32, 16), Normalize),
    "dense of tokens": model(
        lambda: Dense(32, 16, module_input_name="token_embeddings"), lambda: Pooling(16, "mean")
    ),
    "residual": model(pooling("mean"), lambda: Dense(32, 16, use_residual=True)),
    "layer norm": model(pooling("cls"), lambda: LayerNorm(32), Normalize),
    "cut vectors": model(pooling("mean"), truncate_dim=12),
    "cut and normalised": model(pooling("mean"), Normalize, truncate_dim=12),
    "prompt": model(pooling("mean"), **QUERY),
    "prompt left out": model(pooling("mean", include_prompt=False), **QUERY),
    "prompt left out, roberta": model(
        pooling("mean", include_prompt=False), kind=tiny_roberta, **QUERY
    ),
    "prompt left out, weighted": model(pooling("weightedmean", include_prompt=False), **QUERY),
    "prompt left out, cut on the left": changed(
        model(pooling("mean", include_prompt=False), **QUERY),
        tokenizer_option(truncation_side="left"),
    ),
    "prompts without a default": model(pooling("mean"), prompts={"query": "the house : "}),
    "cut on the left": changed(MEAN, tokenizer_option(truncation_side="left")),
    "cut on the left, roberta": changed(
        model(pooling("cls"), kind=tiny_roberta), tokenizer_option(truncation_side="left")
    ),
    "padded on the left": changed(MEAN, tokenizer_option(padding_side="left")),
    "padded on the left, roberta": changed(
        model(pooling("lasttoken"), kind=tiny_roberta), tokenizer_option(padding_side="left")
    ),
    "lower case": model(pooling("mean"), first={"do_lower_case": True}),
    "short": model(pooling("mean"), first={"max_seq_length": 24}),
    "no special tokens": model(
        pooling("mean"), first={"processing_kwargs": {"text": {"add_special_tokens": False}}}
    ),
    "short by processing": model(
        pooling("mean"), first={"processing_kwargs": {"text": {"max_length": 24}}}
    ),
    "padded to a length": model(
        pooling("mean"),
        first={"processing_kwargs": {"text": {"padding": "max_length", "max_length": 24}}},
    ),
    "query and document lengths": model(
        pooling("mean"), first={"query_length": 5, "document_length": 9}
    ),
    "dot product": model(pooling("mean"), similarity_fn_name="dot"),
    "half": changed(MEAN, lambda built: built.half()),
    "end token alone": changed(model(pooling("lasttoken")), backend("post_processor", ONLY_END)),
    "no template": changed(MEAN, backend("post_processor", NOTHING)),
    "accents kept": changed(
        MEAN, backend("normalizer", normalizers.Sequence([normalizers.NFD(), normalizers.Strip()]))
    ),
    "new word": changed(MEAN, add_word),
}


def static(folder: Path) -> StaticEmbedding:
    tokenizer = transformer(folder).tokenizer.backend_tokenizer
    torch.manual_seed(0)
    return StaticEmbedding(tokenizer, embedding_dim=32)


def router(folder: Path, **settings: Any) -> SentenceTransformer:
    routes = [static(folder)], [transformer(folder), Pooling(32, "mean")]
    return SentenceTransformer(
        modules=[Router.for_query_document(*routes, **settings)], device="cpu"
    )


SAVED_ONLY: dict[str, Build] = {
    "static": lambda folder: SentenceTransformer(modules=[static(folder)], device="cpu"),
    "static, cut": lambda folder: SentenceTransformer(
        modules=[static(folder), Normalize()], device="cpu", truncate_dim=8
    ),
    "router": router,
    "router, queries by default": lambda folder: router(folder, default_route="query"),
    "router without a default": lambda folder: router(
        folder, default_route=None, allow_empty_key=False
    ),
}
FAMILY = TRAINABLE | SAVED_ONLY


class _Checked(Exception):
    pass


@pytest.fixture
def differences(monkeypatch) -> Iterator[list[float]]:
    """The differences that runs measure at their start; they end there."""
    found: list[float] = []
    check = train_module.check_same_vectors

    def record(*args: Any, **settings: Any) -> float:
        found.append(check(*args, **settings))
        return found[-1]

    def stop(self: TrainingLoop) -> None:
        raise _Checked

    monkeypatch.setattr(train_module, "check_same_vectors", record)
    monkeypatch.setattr(TrainingLoop, "run", stop)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Sentences of which the longest is cut by a limit of 16 tokens."""
    path = write_corpus(tmp_path_factory.mktemp("corpus"), 12)
    with path.open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"text": "the cat sits in the red garden under a big house " * 8}) + "\n"
        )
        file.write(json.dumps({"text": " Spaces around, and Capitals. "}) + "\n")
    return path


@pytest.mark.parametrize("name", FAMILY)
def test_one_vector_in_memory_in_the_folder_and_by_the_embedder(name: str, tmp_path) -> None:
    built = FAMILY[name](tmp_path)
    save_encoder(built, tmp_path / "saved")  # compares by itself
    loaded = load_encoder(tmp_path / "saved", device="cpu")
    if "without a default" in name and name in SAVED_ONLY:
        return
    expected = encode_alone(built.float(), TEXTS)
    assert largest_difference(encode_alone(loaded, TEXTS), expected) < TOLERANCE
    embedded = Embedder(loaded, token_budget=1).encode(TEXTS)
    assert largest_difference(embedded, expected) < TOLERANCE


@pytest.mark.parametrize("name", TRAINABLE)
def test_training_sees_the_vector_of_encode(name: str, tmp_path, corpus, differences) -> None:
    save_encoder(TRAINABLE[name](tmp_path), tmp_path / "saved")
    with pytest.raises(_Checked):
        run(corpus, tmp_path / "saved", tmp_path / "out", "encoder.max_length=16")
    assert len(differences) == 1
    assert differences[0] < TOLERANCE
