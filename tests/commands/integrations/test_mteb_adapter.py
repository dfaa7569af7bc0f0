from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from opencse.commands.integrations.mteb import MtebEncoder, local_task, mteb_name
from opencse.encoder.embedder import Embedder
from opencse.evaluation import (
    PairsTask,
    ScoredPairs,
    distinct_texts,
    evaluate_tasks,
    load_sts,
)

mteb = pytest.importorskip("mteb", reason="the extra `mteb` is not installed")


@pytest.mark.parametrize("real", [False, True])
def test_sts_equals_mteb_on_the_same_rows(tiny_model, some_pairs, request, real):
    pairs = load_sts(request.getfixturevalue("data_folder"), tasks=["STS-B"], text="raw")[0] if real else some_pairs
    vectors = Kept(tiny_model, [PairsTask(pairs=pairs)])
    ours = evaluate_tasks(vectors, [PairsTask(pairs=pairs)])[pairs.name].metrics
    theirs = mteb_scores(tiny_model, "STSBenchmark", rows_of(pairs), vectors)
    assert ours["spearman"] == pytest.approx(100 * theirs["spearman"], abs=1e-6)
    assert ours["pearson"] == pytest.approx(100 * theirs["pearson"], abs=1e-4)  # float32 inside mteb
    # Its main score is by another formula of the cosine, which sets near ties in another order.
    assert ours["spearman"] == pytest.approx(100 * theirs["cosine_spearman"], abs=2e-3)


def test_two_models_of_one_name_keep_their_own_scores(tiny_model, some_pairs, tmp_path):
    cache = mteb.ResultCache(tmp_path)
    scores, weight = [], tiny_model[0].auto_model.embeddings.word_embeddings.weight
    before = weight.detach().clone()
    try:
        for _ in range(2):
            model = MtebEncoder(tiny_model, name="runs/model")
            task = local_task("STSBenchmark", rows_of(some_pairs))
            scores.append(mteb.evaluate(model, task, cache=cache, show_progress_bar=False).task_results[0].get_score())
            with torch.no_grad():
                weight.mul_(-1).add_(torch.randn_like(weight))
    finally:
        with torch.no_grad():
            weight.copy_(before)
    assert scores[0] != scores[1]
    files = list((tmp_path / "results").glob("runs__model/*/STSBenchmark.json"))
    assert len(files) == 2
    kept = sorted(json.loads(file.read_text())["scores"]["test"][0]["main_score"] for file in files)
    assert kept == pytest.approx(sorted(scores), abs=1e-5)


def test_names():
    assert mteb_name("me/mine") == "me/mine"
    assert mteb_name("minilm") == "local/minilm"
    assert mteb_name("/a/b/my model/") == "local/my-model"


def rows_of(pairs: ScoredPairs):
    columns = {"sentence1": list(pairs.sentence1), "sentence2": list(pairs.sentence2), "score": list(pairs.scores)}
    return {"test": columns}


class Kept:
    """A model that gives a text the same vector whatever it is encoded with, to the last bit."""

    def __init__(self, model, tasks) -> None:
        texts = distinct_texts(tasks)
        self.vectors = dict(zip(texts, Embedder(model)(texts), strict=True))

    def __call__(self, texts):
        return np.stack([self.vectors[text] for text in texts])


def mteb_scores(model, task: str, rows, vectors=None) -> dict[str, float]:
    encoder = MtebEncoder(model, name="local/tiny")
    if vectors is not None:
        encoder._encode = vectors
    found = mteb.evaluate(encoder, local_task(task, rows), cache=None, show_progress_bar=False)
    (scores,) = found.task_results[0].scores["test"]
    assert np.isfinite(scores["main_score"])
    return scores
