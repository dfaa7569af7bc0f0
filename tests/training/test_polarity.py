"""The polarity teacher: learns from constructed pairs, is cached, and stands in for a teacher."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from opencse.data.token_store import TokenSource, UsableRows
from opencse.errors import OpencseError
from opencse.io.corpus import Corpus
from opencse.recipes import PolarityHead, Recipe, Teacher, load_recipe
from opencse.training import polarity as module
from opencse.training.polarity import PolarityProjection, constructed_pairs, train_head
from opencse.training.teachers import load_teachers, teacher_vectors
from tests.tiny import tiny_bert
from tests.training.helpers import Imitate, metrics, run

SETTINGS = PolarityHead(
    same=(("anchor", "paraphrase"),), opposite=(("anchor", "other"),), steps=60, hidden=0, batch_size=64
)
SOURCES = [TokenSource("text"), TokenSource("other", optional=True)]


def signed(count: int = 200) -> tuple[torch.Tensor, list[tuple[float, np.ndarray]]]:
    """Vectors in which one dimension of many holds the sign of a statement; the others say what it is about."""
    rng = np.random.default_rng(0)
    topics, signs = rng.normal(size=(count, 16)), rng.choice([-1.0, 1.0], size=(count, 1))
    noise = 0.3 * rng.normal(size=(3, count, 17))
    said = [np.hstack([topics, 2 * sign]) for sign in (signs, signs, -signs)]
    means = torch.tensor(np.concatenate([a + b for a, b in zip(said, noise, strict=True)]), dtype=torch.float32)
    at = np.arange(count)
    return means, [(1.0, np.stack([at, at + count], 1)), (-1.0, np.stack([at, at + 2 * count], 1))]


@pytest.mark.parametrize("hidden", [0, 16])
def test_the_head_tells_the_same_from_the_opposite(hidden) -> None:
    means, pairs = signed()
    known = [(polarity, numbers[:150]) for polarity, numbers in pairs]
    head = PolarityProjection(17, 4, hidden)
    train_head(head, means, known, replace(SETTINGS, steps=300))
    with torch.no_grad():
        vectors = head.encode(means)
    np.testing.assert_allclose(vectors.norm(dim=-1), 1, atol=1e-5)
    for polarity, numbers in pairs:
        inner = (vectors[numbers[150:, 0]] * vectors[numbers[150:, 1]]).sum(dim=-1)
        assert (inner * polarity > 0).float().mean() > 0.9


def test_the_seed_determines_the_head_and_the_callers_random_state_is_left_alone() -> None:
    means, pairs = signed(40)
    heads = [PolarityProjection(17, 4, 8) for _ in range(3)]
    state = torch.get_rng_state()
    for head, seed in zip(heads, (1, 1, 2), strict=True):
        train_head(head, means, pairs, SETTINGS, seed=seed)
    assert torch.equal(torch.get_rng_state(), state)
    weights = [head.layers[0].weight for head in heads]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_each_kind_of_pair_keeps_its_polarity_and_a_text_one_number() -> None:
    rows = [
        {"anchor": "a", "paraphrase": "b", "other": None},
        {"anchor": "a", "paraphrase": "b", "other": "c"},
        {"anchor": "b", "paraphrase": None, "other": "a"},
    ]
    texts, pairs = constructed_pairs(rows, SETTINGS)
    assert texts == ["a", "b", "c"]
    assert [(polarity, numbers.tolist()) for polarity, numbers in pairs] == [(1.0, [[0, 1]]), (-1.0, [[0, 2], [1, 0]])]


def test_without_any_opposite_there_is_nothing_to_learn() -> None:
    with pytest.raises(OpencseError, match="anchor-other"):
        constructed_pairs([{"anchor": "a", "paraphrase": "b", "other": None}], SETTINGS)


@pytest.fixture(scope="module")
def student(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    subjects, verbs = ("the cat", "a dog", "the child", "a doctor"), ("sits", "runs", "eats", "sings")
    rows = [
        {"text": f"{s} {v}", "other": f"{s} never {v}" if i else None, "paraphrase": f"today {s} {v}"}
        for i, (s, v) in enumerate((s, v) for s in subjects for v in verbs)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


OVERRIDES = ['views.other={text="other", optional=true}', 'views.paraphrase={text="paraphrase"}']


def recipe(head: PolarityHead = SETTINGS) -> Recipe:
    simcse = load_recipe("simcse", overrides=[*OVERRIDES, "training.precision=fp32"])
    teacher = Teacher(model="backbone", polarity=head)
    return replace(simcse, terms=(*simcse.terms, Imitate()), teachers={"wise": teacher})


def test_its_vectors_are_a_teachers(student, corpus, monkeypatch) -> None:
    made = recipe()
    loaded = load_teachers(made, student, "cpu", Corpus(corpus))
    found = teacher_vectors(made, loaded, UsableRows(Corpus(corpus), SOURCES), progress=False)["wise"]
    assert found["anchor"].shape == (16, SETTINGS.width)
    np.testing.assert_allclose(np.linalg.norm(found["anchor"], axis=1), 1, atol=1e-5)
    assert not found["other"][0].any()
    monkeypatch.setattr(module, "train_head", None)  # the cache has it
    assert load_teachers(made, student, "cpu", Corpus(corpus))["wise"].digest == loaded["wise"].digest
    with pytest.raises(TypeError):
        load_teachers(recipe(replace(SETTINGS, width=3)), student, "cpu", Corpus(corpus))


def test_columns_that_only_the_head_reads_are_part_of_the_recipe() -> None:
    assert recipe().columns == {"text": False, "other": True, "paraphrase": True}
    with pytest.raises(ValueError, match="needs the view 'missing'"):
        recipe(replace(SETTINGS, same=(("anchor", "missing"),)))


def test_a_run_with_a_polarity_teacher_is_the_same_twice(student, corpus, tmp_path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        """extends = "simcse"
[views.other]
text = "other"
optional = true
[views.paraphrase]
text = "paraphrase"
[teachers.untouched]
model = "backbone"
[teachers.polarity]
model = "backbone"
polarity = { same = [["anchor", "paraphrase"]], opposite = [["anchor", "other"]], steps = 20, batch_size = 16 }
[[terms]]
kind = "target_similarity"
teacher = "untouched"
polarity = "polarity"
opposite = [["anchor", "other"]]
across = ["anchor"]
"""
    )
    for name in ("one", "two"):
        run(corpus, student, tmp_path / name, "training.max_steps=4", recipe=str(file))
    assert metrics(tmp_path / "one") == metrics(tmp_path / "two")
    fingerprint = json.loads((tmp_path / "one" / "run.json").read_text())["fingerprint"]
    assert {"teacher untouched", "teacher polarity"} <= set(fingerprint)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"same": ()}, "at least one pair"),
        ({"depths": (1.5,)}, "shares"),
        ({"batch_size": 7}, "even"),
        ({"dropout": 1.0}, "dropout"),
        ({"steps": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **settings)
