"""Queries are encoded as queries, and texts are compared by the model's own similarity, in every command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Pooling,
    Router,
    StaticEmbedding,
    Transformer,
)

import opencse
from opencse.commands.compare import compare_search
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.embedder import Embedder, own_similarity
from opencse.evaluation.retrieval import KeptHitsTask, RetrievalTask
from opencse.evaluation.task import evaluate_tasks
from opencse.foundation.roles import Document, Query, as_documents, as_queries, encode_roles
from tests.tiny import WORDS, tiny_bert

RNG = np.random.default_rng(3)
DOCUMENTS = [" ".join(RNG.choice(WORDS, 7)) for _ in range(40)]
QUERIES = [" ".join(RNG.choice(WORDS, 3)) for _ in range(25)]


def transformer(folder: Path) -> Transformer:
    return Transformer(str(tiny_bert(folder / "plain")))


def router(folder: Path) -> SentenceTransformer:
    tokenizer = transformer(folder).tokenizer.backend_tokenizer
    torch.manual_seed(0)
    query = StaticEmbedding(tokenizer, embedding_dim=32)
    documents = [transformer(folder), Pooling(32, "mean")]
    return SentenceTransformer(
        modules=[Router.for_query_document([query], documents)], device="cpu"
    )


def prompted(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(
        modules=[transformer(folder), Pooling(32, "mean")],
        device="cpu",
        prompts={"query": "the house in the garden : ", "passage": "a big red book : "},
    )


def shortened(folder: Path) -> SentenceTransformer:
    first = Transformer(str(tiny_bert(folder / "plain")), query_length=4, document_length=6)
    return SentenceTransformer(modules=[first, Pooling(32, "mean")], device="cpu")


KINDS = {"router": router, "prompts": prompted, "lengths": shortened}


@pytest.fixture(scope="module", params=KINDS)
def asymmetric(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    save_encoder(KINDS[request.param](folder), folder / "model")
    return folder / "model"


def hits(model: SentenceTransformer, count: int) -> np.ndarray:
    """The first hits, by sentence-transformers alone."""
    scores = model.similarity(model.encode_query(QUERIES), model.encode_document(DOCUMENTS))
    return np.argsort(-scores.numpy(), axis=1, kind="stable")[:, :count]


def test_the_embedder_encodes_each_role_as_sentence_transformers_does(asymmetric) -> None:
    model = SentenceTransformer(str(asymmetric), device="cpu")
    embedder = Embedder(load_encoder(asymmetric, device="cpu"))
    texts = [*as_queries(QUERIES), *as_documents(DOCUMENTS), *DOCUMENTS]
    expected = [
        model.encode_query(QUERIES),
        model.encode_document(DOCUMENTS),
        model.encode(DOCUMENTS),
    ]
    np.testing.assert_allclose(embedder(texts), np.concatenate(expected), atol=1e-5)
    prepared = embedder.prepare(texts)
    np.testing.assert_allclose(embedder.encode(prepared), np.concatenate(expected), atol=1e-5)


def test_retrieval_and_guards_search_with_queries(asymmetric) -> None:
    model = SentenceTransformer(str(asymmetric), device="cpu")
    first = hits(model, 1)[:, 0]
    retrieval = RetrievalTask(
        name="search",
        queries=QUERIES,
        corpus=DOCUMENTS,
        relevant=[{int(place): 1.0} for place in first],
        main="recall@1",
    )
    encode = Embedder(load_encoder(asymmetric, device="cpu"))
    assert evaluate_tasks(encode, [retrieval])["search"].score == 100
    kept = KeptHitsTask("kept", QUERIES, DOCUMENTS)
    evaluate_tasks(encode, [kept])
    np.testing.assert_array_equal(kept._first, first)


def test_compare_searches_with_queries(asymmetric, tmp_path) -> None:
    model = SentenceTransformer(str(asymmetric), device="cpu")
    symmetric = SentenceTransformer(
        modules=[transformer(tmp_path), Pooling(32, "mean")], device="cpu"
    )
    save_encoder(symmetric, tmp_path / "symmetric")
    shared = []
    for one, other in zip(hits(model, 10), hits(symmetric, 10), strict=True):
        shared.append(len(set(one) & set(other)) / 10)
    result = compare_search(asymmetric, tmp_path / "symmetric", DOCUMENTS, queries=QUERIES)
    assert result.overlap.value == pytest.approx(np.mean(shared))


def test_a_dot_product_model_is_ranked_by_the_dot_product(tmp_path) -> None:
    built = SentenceTransformer(
        modules=[transformer(tmp_path), Pooling(32, "mean")], device="cpu", similarity_fn_name="dot"
    )
    save_encoder(built, tmp_path / "dot")
    built.similarity_fn_name = "cosine"
    save_encoder(built, tmp_path / "cosine")
    by_dot = SentenceTransformer(str(tmp_path / "dot"), device="cpu")
    by_cosine = SentenceTransformer(str(tmp_path / "cosine"), device="cpu")
    shared = []
    for one, other in zip(hits(by_dot, 10), hits(by_cosine, 10), strict=True):
        shared.append(len(set(one) & set(other)) / 10)
    assert np.mean(shared) < 1
    result = compare_search(tmp_path / "dot", tmp_path / "cosine", DOCUMENTS, queries=QUERIES)
    assert result.overlap.value == pytest.approx(np.mean(shared))
    rows = [
        json.dumps({"sentence1": a, "sentence2": b, "score": i % 6})
        for i, (a, b) in enumerate(zip(DOCUMENTS[::2], DOCUMENTS[1::2], strict=True))
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(rows))
    scores = opencse.evaluate(str(tmp_path / "dot"), pairs=tmp_path / "pairs.jsonl")
    assert scores.settings["similarity"] == "dot, the model's own"
    similarity = own_similarity(load_encoder(tmp_path / "dot", device="cpu"))
    assert similarity is not None
    pair = built.encode(DOCUMENTS[:2])
    assert similarity(pair[:1], pair[1:])[0, 0] == pytest.approx(float(pair[0] @ pair[1]), rel=1e-5)
    assert own_similarity(load_encoder(tmp_path / "cosine", device="cpu")) is None


def test_a_role_makes_another_key_and_a_function_without_roles_sees_plain_texts() -> None:
    assert len({"a", Query("a"), Document("a"), Query("a")}) == 3
    seen = []

    def encode(texts):
        seen.extend(texts)
        return np.arange(len(texts))[:, None]

    assert encode_roles(encode, [Query("a"), "b", Document("a")]).ravel().tolist() == [0, 1, 0]
    assert [type(text) for text in seen] == [str, str]
