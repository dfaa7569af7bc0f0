"""Measures of an encoder that trains: the scores of its current weights, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import GeometryTask, PairsTask, ScoredPairs, evaluate_tasks
from opencse.evaluation.measures import PairGeometry, TaskScores, TrainingGeometry
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.text.corpus import Corpus
from tests.tiny import tiny_bert

FIRST = ["the cat sits", "a dog runs", "the bird sings", "a child eats", "a red house"]
SECOND = ["the cat sits down", "a dog runs", "a man under a house", "a bird eats", "the blue garden"]


def pairs(name: str, scores: list[float]) -> ScoredPairs:
    return ScoredPairs(name=name, sentence1=FIRST, sentence2=SECOND, scores=scores)


SETS = [pairs("one", [4.5, 5.0, 1.0, 2.0, 0.5]), pairs("two", [1.0, 2.0, 3.0, 4.0, 5.0])]


@pytest.fixture
def encoder(tmp_path):
    return load_encoder(tiny_bert(tmp_path), pooling="mean")


def test_the_development_score_is_the_mean_of_the_tasks_on_the_current_weights(encoder, monkeypatch) -> None:
    tasks = [PairsTask(pairs=each) for each in SETS]
    measures = Measures(development=TaskScores(tasks, "fp32"))
    measures.start(encoder)
    sizes, encode = [], Embedder.encode
    for _ in range(2):
        expected = evaluate_tasks(Embedder(encoder), tasks)
        with monkeypatch.context() as patched:
            patched.setattr(
                Embedder, "encode", lambda self, texts: sizes.append(len(texts.texts)) or encode(self, texts)
            )
            assert measures.development.scores() == {each.task: each.score for each in expected.results}
        assert measures.development_score() == expected.average
        for parameter in encoder.parameters():
            parameter.data.normal_()
    assert sizes == [len({*FIRST, *SECOND})] * 2, "the texts of all tasks are encoded once"


def test_an_undefined_score_is_an_error_of_development_and_left_out_of_what_is_watched(encoder) -> None:
    constant = pairs("constant", [2.0] * 5)
    development = TaskScores([PairsTask(pairs=constant)], "fp32")
    development.start(encoder)
    with pytest.raises(OpencseError, match="constant: the development score is undefined"):
        development.scores()
    watched = PairGeometry(constant, ("geometry",), "fp32")
    watched.start(encoder)
    assert list(watched.scores()) == ["uniformity"]


def test_what_is_watched_of_the_pairs_has_the_names_of_the_log(encoder) -> None:
    measures = Measures(watch=[PairGeometry(SETS[0], ("geometry", "splits"), "fp32")])
    measures.start(encoder)
    found = measures.watched()
    assert {"alignment", "uniformity"} < set(found) <= {"alignment", "uniformity", "Cont.", "Oppn."}
    expected = evaluate_tasks(Embedder(encoder), [GeometryTask(pairs=SETS[0])]).results[0].metrics
    assert {name: found[name] for name in ("alignment", "uniformity")} == {
        name: expected[name] for name in ("alignment", "uniformity")
    }


def test_the_geometry_of_training_sentences_leaves_the_training_as_it_was(encoder, tmp_path) -> None:
    path = Path(tmp_path) / "corpus.txt"
    path.write_text("\n".join(FIRST))
    measure = TrainingGeometry(Corpus(path))
    measure.start(encoder)
    for mode in (True, False):
        encoder.train(mode)
        before = torch.get_rng_state()
        found = measure.scores()
        assert torch.equal(torch.get_rng_state(), before)
        assert encoder.training == mode
        assert found == measure.scores(), "the masks of dropout are those of a fixed seed"
        assert found["training alignment"] > 0 > found["training uniformity"]
