from __future__ import annotations

import math

import numpy as np
import pytest
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, ScoredPairs, TextEmbeddings, distinct_texts, evaluate_tasks, load_sts, score
from opencse.evaluation.sts import paired_cosine
from opencse.foundation.errors import OpencseError
from tests.evaluation.toy import sentences


@pytest.mark.parametrize("real", [False, True])
def test_equals_sentence_transformers(tiny_model, some_pairs, request, real):
    pairs = load_sts(request.getfixturevalue("data_folder"), tasks=["STS16"])[0] if real else some_pairs
    result = evaluate_tasks(Embedder(tiny_model), [PairsTask(pairs=pairs)])[pairs.name]
    columns = (list(pairs.sentence1), list(pairs.sentence2), list(pairs.scores))
    expected = EmbeddingSimilarityEvaluator(*columns, name="x")(tiny_model)  # with its defaults
    assert result.metrics["spearman"] == pytest.approx(100 * expected["x_spearman_cosine"], abs=1e-4)
    assert result.metrics["pearson"] == pytest.approx(100 * expected["x_pearson_cosine"], abs=1e-4)
    rho = result.details["subsets"]
    assert [each["rows"] for each in rho.values()] == ([254, 249, 230, 244, 209] if real else [20, 40])


def test_every_text_is_encoded_once_for_all_tasks(some_pairs):
    other = ScoredPairs(name="b", sentence1=some_pairs.sentence2, sentence2=sentences(60, 5), scores=some_pairs.scores)
    seen: list[str] = []

    def encode(texts):
        seen.extend(texts)
        return np.random.default_rng(0).normal(size=(len(texts), 8))

    tasks = [PairsTask(pairs=some_pairs), PairsTask(pairs=other)]
    results = evaluate_tasks(encode, tasks)
    assert len(seen) == len(set(seen)) == len(distinct_texts(tasks))
    again = score(tasks, TextEmbeddings(distinct_texts(tasks), np.random.default_rng(0).normal(size=(len(seen), 8))))
    assert again.results == results.results
    assert results.average == pytest.approx(np.mean([r.score for r in results.results]))


def test_undefined_is_named_and_never_averaged(some_pairs):
    constant = ScoredPairs(name="flat", sentence1=["a", "b"], sentence2=["c", "d"], scores=[3, 3])
    half = ScoredPairs(
        name="half", sentence1=["a", "b", "c"], sentence2=["d", "e", "f"], scores=[1, 2, 3], subsets=["u", "u", "v"]
    )
    rng, sets = np.random.default_rng(0), (some_pairs, constant, half)
    results = evaluate_tasks(lambda texts: rng.normal(size=(len(texts), 4)), [PairsTask(pairs=each) for each in sets])
    assert results["flat"].score is None
    assert results["flat"].undefined["spearman"] == "all gold scores are equal"
    assert results["half"].score is not None
    single = results["half"].details["subsets"]["v"]
    assert (single["rows"], single["spearman"]) == (1, None)
    assert results.average is None
    collapsed = evaluate_tasks(lambda texts: np.ones((len(texts), 4), dtype=np.float32), [PairsTask(pairs=some_pairs)])
    assert collapsed["toy"].undefined["pearson"] == "the model gives all pairs the same score"


def test_cosine_of_a_zero_vector_is_zero():
    assert paired_cosine(np.zeros((1, 3)), np.ones((1, 3))).tolist() == [0.0]


def test_damaged_output_of_a_model_is_an_error():
    with pytest.raises(OpencseError, match="not finite, for the text 'b'"):
        TextEmbeddings(["a", "b"], np.array([[1.0], [math.nan]]))
    with pytest.raises(OpencseError, match="1 vectors for 2"):
        TextEmbeddings(["a", "b"], np.ones((1, 2)))
    with pytest.raises(OpencseError, match="nothing to evaluate"):
        evaluate_tasks(lambda texts: np.ones((len(texts), 1)), [])
