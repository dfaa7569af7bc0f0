"""Evaluators of an encoder that trains, and geometry written out."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import attending_padding, build_projector
from opencse.evaluation import ScoredPairs, evaluate_tasks, evaluators
from opencse.evaluation.evaluators import (
    GeometryTask,
    PairGeometry,
    TaskEvaluator,
    TrainingGeometry,
)
from opencse.evaluation.retrieval import KeptHitsTask
from opencse.evaluation.sts import spearman
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.text.corpus import Corpus
from tests.tiny import tiny_bert

FIRST = ["the cat sits", "a dog runs", "the bird sings", "a child eats", "a red house"]
SECOND = [
    "the cat sits down",
    "a dog runs",
    "a man under a house",
    "a bird eats",
    "the blue garden",
]


def pairs(name: str, scores: list[float]) -> ScoredPairs:
    return ScoredPairs(name=name, sentence1=FIRST, sentence2=SECOND, scores=scores)


SETS = [pairs("one", [4.5, 5.0, 1.0, 2.0, 0.5]), pairs("two", [1.0, 2.0, 3.0, 4.0, 5.0])]


@pytest.fixture
def encoder(tmp_path):
    return load_encoder(tiny_bert(tmp_path), pooling="mean")


def test_the_development_score_is_the_mean_of_the_tasks_on_the_current_weights(
    encoder, monkeypatch
) -> None:
    evaluators = Evaluators(development=TaskEvaluator(SETS, "fp32"))
    evaluators.start(encoder)
    sizes, encode = [], Embedder.encode
    for _ in range(2):
        expected = evaluate_tasks(Embedder(encoder), SETS)
        with monkeypatch.context() as patched:
            patched.setattr(
                Embedder,
                "encode",
                lambda self, texts: sizes.append(len(texts.texts)) or encode(self, texts),
            )
            assert evaluators.development.scores() == {
                each.task: each.score for each in expected.results
            }
        assert evaluators.development_score() == expected.average
        for parameter in encoder.parameters():
            parameter.data.normal_()
    assert sizes == [len({*FIRST, *SECOND})] * 2, "the texts of all tasks are encoded once"


def test_an_encoder_that_attends_to_padding_is_scored_in_batches_of_the_file(
    tmp_path, monkeypatch
) -> None:
    """Each column of a batch of pairs is padded to its longest sentence, and nothing is sorted."""
    cls = load_encoder(tiny_bert(tmp_path), pooling="cls")
    # Untrained weights of the usual size hardly read anything but the first token.
    for parameter in cls.parameters():
        parameter.data.normal_()
    projector = build_projector("pooler_simcse", cls.get_embedding_dimension())
    encoder = attending_padding(cls, projector)
    monkeypatch.setattr(evaluators, "SENTEVAL_BATCH", 2)
    development = TaskEvaluator([SETS[0]], "fp32")
    development.start(encoder)

    def column(texts: list[str]) -> torch.Tensor:
        parts = []
        for start in (0, 2, 4):
            tokens = cls.tokenizer(texts[start : start + 2], padding=True, return_tensors="pt")
            tokens["attention_mask"] = torch.ones_like(tokens["attention_mask"])
            state = cls[0].auto_model(**tokens).last_hidden_state[:, 0]
            parts.append(projector[0](state).tanh())
        return torch.cat(parts)

    cls.eval()
    with torch.no_grad():
        cosines = torch.cosine_similarity(column(FIRST), column(SECOND))
    expected = 100 * spearman(SETS[0].gold, cosines.numpy())
    assert development.scores() == {"one": pytest.approx(expected)}
    batched = evaluators.BatchedPairs(encoder)
    np.testing.assert_allclose(batched.paired(FIRST, SECOND), cosines.numpy(), atol=1e-5)
    sorted_by_length = development.results(development.vectors())[0]
    assert sorted_by_length.metrics["pearson"] != pytest.approx(
        SETS[0].score(batched).metrics["pearson"], abs=1e-3
    )


def test_an_undefined_score_is_an_error_of_development_and_left_out_of_what_is_watched(
    encoder,
) -> None:
    constant = pairs("constant", [2.0] * 5)
    development = TaskEvaluator([constant], "fp32")
    development.start(encoder)
    with pytest.raises(OpencseError, match="constant: the development score is undefined"):
        development.scores()
    watched = PairGeometry(constant, ("geometry",), "fp32")
    watched.start(encoder)
    assert list(watched.scores()) == ["uniformity"]


def test_what_is_watched_of_the_pairs_has_the_names_of_the_log(encoder) -> None:
    geometry = PairGeometry(SETS[0], ("geometry", "splits"), "fp32")
    geometry.start(encoder)
    found = geometry.scores()
    assert {"alignment", "uniformity"} < set(found) <= {"alignment", "uniformity", "Cont.", "Oppn."}
    expected = evaluate_tasks(Embedder(encoder), [GeometryTask(pairs=SETS[0])]).results[0].metrics
    assert {name: found[name] for name in ("alignment", "uniformity")} == {
        name: expected[name] for name in ("alignment", "uniformity")
    }


def test_the_geometry_of_training_sentences_leaves_the_training_as_it_was(
    encoder, tmp_path, monkeypatch
) -> None:
    path = Path(tmp_path) / "corpus.txt"
    path.write_text("\n".join(FIRST))
    evaluator = TrainingGeometry(Corpus(path))
    evaluator.start(encoder)
    monkeypatch.setattr(
        torch.cuda, "device_count", lambda: 2
    )  # none of which is used, so none is asked for its state
    for mode in (True, False):
        encoder.train(mode)
        before = torch.get_rng_state()
        found = evaluator.scores()
        assert torch.equal(torch.get_rng_state(), before)
        assert encoder.training == mode
        assert found == evaluator.scores(), "the masks of dropout are those of a fixed seed"
        assert found["training alignment"] > 0 > found["training uniformity"]


PAIRS = ScoredPairs(
    name="p", sentence1=list("abca"), sentence2=list("dbef"), scores=[5, 4, 4.5, 0.2]
)
VECTORS = {text: np.random.default_rng(place).normal(size=3) for place, text in enumerate("abcdef")}


def encode(texts):
    return np.stack([VECTORS[text] for text in texts])


def test_the_published_definitions_written_out():
    unit = {text: vector / np.linalg.norm(vector) for text, vector in VECTORS.items()}
    distances = [float(((unit[x] - unit[y]) ** 2).sum()) for x, y in combinations("abcdef", 2)]
    positive = [float(((unit[x] - unit[y]) ** 2).sum()) for x, y in ("ad", "ce")]  # scores above 4
    result = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0]
    assert result.metrics["alignment"] == pytest.approx(np.mean(positive))
    assert result.metrics["uniformity"] == pytest.approx(
        math.log(np.mean([math.exp(-2 * d) for d in distances]))
    )
    assert result.metrics["anisotropy"] == pytest.approx(
        np.mean([unit[x] @ unit[y] for x, y in combinations(unit, 2)])
    )


def test_geometry_enters_no_average_and_its_blocks_change_nothing(monkeypatch):
    results = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS), PAIRS])
    assert results["geometry of p"].score is None
    assert results.average == results["p"].score
    assert results["geometry of p"].metrics["spearman"] == results["p"].score, (
        "the correlation is that of STS"
    )
    before = evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0].metrics
    monkeypatch.setattr("opencse.evaluation.evaluators._BLOCK", 4)
    assert evaluate_tasks(encode, [GeometryTask(pairs=PAIRS)]).results[0].metrics == pytest.approx(
        before
    )


def test_without_positive_pairs_alignment_is_undefined():
    pairs = ScoredPairs(name="p", sentence1=["a", "b"], sentence2=["c", "d"], scores=[1, 4])
    result = evaluate_tasks(encode, [GeometryTask(pairs=pairs)]).results[0]
    assert result.metrics["alignment"] is None
    assert result.undefined == {"alignment": "no pair has a score above 4"}
    assert result.metrics["uniformity"] is not None
    alone = ScoredPairs(name="p", sentence1=["a"], sentence2=["a"], scores=[5])
    result = evaluate_tasks(encode, [GeometryTask(pairs=alone)]).results[0]
    assert set(result.undefined) == {"uniformity", "anisotropy", "spearman"}


def test_sets_whose_texts_are_the_same_have_the_same_digest() -> None:
    def digest(*documents: str) -> str:
        texts = [f"Text {number}." for number in range(11)]
        return TaskEvaluator([KeptHitsTask("kept", ["A search."], [*texts, *documents])]).digest

    assert digest("One.") == digest("One.")
    assert digest("One.") != digest("Two.")
