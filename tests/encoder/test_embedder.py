"""The embedder: the vectors of `encode`, whatever the order, the prompt and the threads; and their cache."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    StaticEmbedding,
    Transformer,
    WeightedLayerPooling,
)

from opencse.encoder import embedder as embedder_module
from opencse.encoder.embedder import Embedder, TokenTable, cached_vectors, cut_note, plan_batches
from opencse.foundation.cache import Together
from opencse.foundation.errors import OpencseError
from opencse.text.views.registry import texts_hash
from tests.tiny import WORDS, tiny_bert, tiny_roberta

TEXTS = [
    "The cat sits on the red house.",
    "",
    "   ",
    "doctor " * 10_000,
    "a dog",
    "a dog",
    "naïve café \u2028 \x12 \U0001f600",
    "[MASK] <mask> [SEP]",
]


def many_texts(count: int = 150) -> list[str]:
    rng = np.random.default_rng(0)
    return (
        TEXTS
        + [" ".join(rng.choice(WORDS, rng.integers(1, 80))) for _ in range(count)]
        + TEXTS[::-1]
    )


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta])
def folder(request, tmp_path_factory) -> Path:
    return request.param(tmp_path_factory.mktemp(request.param.__name__))


@pytest.fixture(scope="module")
def loaded(folder) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu")


@pytest.fixture
def model(loaded) -> SentenceTransformer:
    return copy.deepcopy(loaded)


def stack(folder: Path, kind: str) -> SentenceTransformer:
    """Encoders whose later modules differ."""
    if kind == "first_last":
        transformer = Transformer(str(folder), config_kwargs={"output_hidden_states": True})
        layers = WeightedLayerPooling(32, num_hidden_layers=2, layer_start=0)
        return SentenceTransformer(modules=[transformer, layers, Pooling(32, "mean")], device="cpu")
    transformer = Transformer(str(folder))
    tail = {
        "cls": [Pooling(32, "cls")],
        "max": [Pooling(32, "max")],
        "lasttoken": [Pooling(32, "lasttoken")],
        "weightedmean": [Pooling(32, "weightedmean")],
        "dense": [Pooling(32, "mean"), Dense(32, 8), Normalize()],
    }[kind]
    return SentenceTransformer(modules=[transformer, *tail], device="cpu")


def close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-6) -> None:
    """Equal to `tolerance` of the vectors' size: these random models have norms of about 6."""
    assert actual.shape == expected.shape
    assert actual.dtype == np.float32
    assert np.abs(actual - expected).max() <= tolerance * max(
        1.0, np.linalg.norm(expected, axis=1).max()
    )


def test_equals_encode_for_any_order_and_repetition(model):
    texts = many_texts()
    expected = model.encode(texts)
    close(Embedder(model).encode(texts), expected)
    order = np.random.default_rng(1).permutation(len(texts))
    close(Embedder(model)([texts[i] for i in order]), expected[order])


@pytest.mark.parametrize("kind", ["cls", "max", "lasttoken", "weightedmean", "dense", "first_last"])
def test_equals_encode_with_any_modules(folder, kind):
    model = stack(folder, kind)
    texts = many_texts(40)
    expected = model.encode(texts)
    close(Embedder(model, token_budget=100).encode(texts), expected)
    half = Embedder(model, precision="bf16").encode(texts)
    cosine = (half * expected).sum(1) / (
        np.linalg.norm(half, axis=1) * np.linalg.norm(expected, axis=1)
    )
    assert cosine.min() > 0.999
    assert not np.array_equal(half, expected)  # bf16 did run


def test_default_prompt_maximum_length_and_truncated_width(folder):
    model = SentenceTransformer(
        str(folder),
        device="cpu",
        prompts={"query": "the house : "},
        default_prompt_name="query",
        truncate_dim=12,
    )
    model.max_seq_length = 17
    texts = many_texts(30)
    plain = SentenceTransformer(str(folder), device="cpu").encode(texts)
    close(Embedder(model).encode(texts), model.encode(texts))
    assert not np.allclose(model.encode(texts), plain[:, :12])
    model[1].include_prompt = False
    close(Embedder(model).encode(texts), model.encode(texts))
    embedder = Embedder(model)
    embedder.prompt = "a dog "
    close(embedder.encode(texts), model.encode(texts, prompt="a dog "))


def test_left_padding(model):
    model.tokenizer.padding_side = "left"
    model[1].pooling_mode = "lasttoken"
    texts = many_texts(40)
    # BERT counts positions from the left edge, so left padding shifts them: only unpadded batches
    # are well defined.
    one_by_one = "Roberta" not in type(model[0].model).__name__
    expected = model.encode(texts, batch_size=1 if one_by_one else 32)
    close(Embedder(model, token_budget=1 if one_by_one else 300).encode(texts), expected)


def test_static_embeddings_fall_back_to_encode(folder):
    tokenizer = SentenceTransformer(str(folder), device="cpu").tokenizer.backend_tokenizer
    model = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu"
    )
    texts = many_texts(20)
    close(Embedder(model).encode(texts), model.encode(texts))


def test_leaves_modes_random_state_and_weights_alone(model):
    model.train()
    model[0].model.encoder.layer[1].eval()
    modes = {name: module.training for name, module in model.named_modules()}
    weights = copy.deepcopy(model.state_dict())
    storage = {name: tensor.data_ptr() for name, tensor in model.state_dict().items()}
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    numpy_state = np.random.get_state()[1].copy()
    for precision in ("fp32", "bf16"):
        Embedder(model, precision=precision).encode(TEXTS)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)
    assert torch.get_num_threads() == threads
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, weights[name])
        assert tensor.data_ptr() == storage[name]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_prepared_texts_follow_changing_weights(model, precision):
    embedder = Embedder(model, precision=precision)
    prepared = embedder.prepare(TEXTS)
    before = embedder.encode(prepared)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    after = embedder.encode(prepared)
    assert not np.allclose(before, after, atol=0.1)
    close(after, Embedder(model, precision=precision).encode(TEXTS))


def test_gradient_accumulators_survive_bf16(model):
    """Distributed training hangs its hooks on them; casting parameters in place would lose the hooks."""
    parameter = next(model.parameters())
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    Embedder(model, precision="bf16").encode(TEXTS)
    assert parameter.expand_as(parameter).grad_fn.next_functions[0][0] is accumulator


def test_autocast_around_it_or_wrapped_into_the_model_has_no_effect(model):
    """Training frameworks replace `forward` by one that runs under autocast."""
    expected = Embedder(model).encode(TEXTS)
    model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        close(Embedder(model).encode(TEXTS), expected)


@pytest.mark.parametrize("change", ["weights", "prompt", "precision", "order"])
def test_anything_that_moves_a_vector_is_another_entry(
    model, tmp_path, monkeypatch, change: str
) -> None:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path))
    embedder, texts = Embedder(copy.deepcopy(model)), ["a red house", "a dog", "the sea"]
    first = cached_vectors(embedder, texts, texts_hash(texts))
    assert (first.dtype, np.array_equal(first, embedder.encode(texts))) == (np.float32, True)
    if change == "weights":
        with torch.no_grad():
            next(iter(embedder.model.parameters())).add_(0.1)
    elif change == "order":
        texts = texts[::-1]
    else:
        embedder = Embedder(embedder.model, precision="bf16" if change == "precision" else "fp32")
        embedder.prompt = "red: " if change == "prompt" else None
    found = cached_vectors(embedder, texts, texts_hash(texts))
    assert np.array_equal(found, embedder.encode(texts))
    assert len(list((tmp_path / "vectors").iterdir())) == 2


def test_several_processes_share_the_encoding_of_a_store(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(embedder_module, "_BLOCK", 3)
    monkeypatch.setattr(embedder_module, "_SHARD", 2)
    texts = [None if i % 5 == 2 else f"text {i}" for i in range(40)]
    hashed = texts_hash(text or "" for text in texts)
    encoded: dict[int, list[str]] = {0: [], 1: [], 2: []}

    def vectors_by(count: int, folder: Path) -> list[np.ndarray]:
        monkeypatch.setenv("OPENCSE_CACHE", str(folder))
        barrier = threading.Barrier(count)

        def encode(rank: int) -> np.ndarray:
            stand_in: Any = Numbers(encoded[rank])
            return cached_vectors(
                stand_in, texts, hashed, together=Together(rank, count, barrier.wait)
            )

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(encode, range(count)))

    (alone,) = vectors_by(1, tmp_path / "one")
    assert len(encoded[0]) == 32
    encoded[0].clear()
    for together in vectors_by(3, tmp_path / "three"):
        np.testing.assert_array_equal(together, alone)
    # Seven shards of six texts: each process encoded its own, and nobody encoded a text again.
    assert sorted(encoded[0] + encoded[1] + encoded[2]) == sorted(filter(None, texts))
    assert [len(encoded[rank]) for rank in range(3)] == [13, 10, 9]
    assert len(list((tmp_path / "three" / "vectors").iterdir())) == 1


class Numbers:
    """An encoder whose vectors hold the numbers of texts such as "text 7"."""

    dimension = 2

    def __init__(self, encoded: list[str]) -> None:
        self._encoded = encoded

    def key(self) -> list[str]:
        return ["numbers"]

    def encode(self, texts: list[str]) -> np.ndarray:
        self._encoded += texts
        numbers = [float(text.split()[1]) for text in texts]
        return np.array([[1 + number, -number] for number in numbers], dtype=np.float32)


def test_one_and_several_threads_agree(model):
    texts, threads = many_texts(), torch.get_num_threads()
    try:
        results = []
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(Embedder(model, token_budget=200).encode(texts))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    close(results[0], results[1])


def test_a_failing_forward_restores_threads_and_modes(model, monkeypatch):
    model.train()
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    model[1].forward = lambda features: 1 / 0
    with pytest.raises(OpencseError, match="division by zero"):
        Embedder(model, token_budget=50).encode(many_texts(20))
    monkeypatch.undo()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert model.training


def test_settings_that_fail_when_a_text_is_encoded_are_one_line(folder):
    model = SentenceTransformer(str(folder))
    for layer in model[0].auto_model.encoder.layer:
        layer.chunk_size_feed_forward = 7
    with pytest.raises(OpencseError, match=r"cannot encode texts .*chunk size 7"):
        Embedder(model).encode(["the cat sits in the garden"])


def test_nothing_not_text_and_no_padding_token(model):
    assert Embedder(model).encode([]).shape == (0, 32)
    with pytest.raises(OpencseError, match="text 1 is None"):
        Embedder(model).encode(["a", None])
    with pytest.raises(OpencseError, match="fp32, bf16"):
        Embedder(model, precision="int4")
    model.tokenizer.pad_token = None
    assert Embedder(model).encode(["a dog", "a dog"]).shape == (2, 32)
    with pytest.raises(OpencseError, match="padding"):
        Embedder(model).encode(["a dog", "the cat sits"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=80), st.integers(1, 400), st.integers(1, 4)
)
def test_batches_hold_every_text_once_within_the_budget(lengths, budget, workers):
    lengths = np.array(lengths)
    batches = plan_batches(lengths, budget, workers=workers)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
    longest = [lengths[batch].max() for batch in batches]
    assert longest == sorted(longest, reverse=True)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=7), min_size=1, max_size=9),
    st.booleans(),
)
def test_token_table_pads_as_written(rows, left):
    lengths = np.array([len(row) for row in rows])
    table = TokenTable(
        lengths=lengths,
        columns={
            "input_ids": np.concatenate(rows).astype(np.int32),
            "attention_mask": np.ones(lengths.sum()),
        },
        padding={"input_ids": 77, "attention_mask": 0},
        left=left,
    )
    batch = table.batch(np.arange(len(rows))[::-1])
    width = lengths.max()
    for ids, mask, row in zip(
        batch["input_ids"].tolist(), batch["attention_mask"].tolist(), rows[::-1], strict=True
    ):
        fill = width - len(row)
        assert ids == ([77] * fill + row if left else row + [77] * fill)
        assert mask == ([0] * fill + [1] * len(row) if left else [1] * len(row) + [0] * fill)


def test_texts_whose_ends_are_not_read_are_said(model, capfd):
    model.max_seq_length = 8
    Embedder(model, progress="encoding").encode(
        ["doctor " * 20, "doctor " * 30, *("a dog " * i for i in range(3))]
    )
    assert (
        "2 of 5 texts reach the limit of 8 tokens: the text after it is not read"
        in capfd.readouterr().err
    )
    assert not cut_note(1, 10, 8)
    assert cut_note(2, 10, 8)


SENTENCES = ["a dog", "The cat sits on the red house.", "a dog", "the red house"]
