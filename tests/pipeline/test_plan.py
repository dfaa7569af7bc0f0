from __future__ import annotations

import pytest

from opencse.errors import OpencseError
from opencse.pipeline import time_estimate
from opencse.pipeline.plan import plan
from opencse.pipeline.time_estimate import MachineSpeed
from tests.tiny import tiny_bert


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(autouse=True)
def speed(monkeypatch) -> None:
    """A machine on which a text takes 10 ms in training."""
    monkeypatch.setattr(time_estimate, "measure_speed", lambda inputs, texts: MachineSpeed(train=0.01, encode=1e-4))


def test_a_plan_has_the_sizes_of_the_run(backbone) -> None:
    found = plan("debias", "demo", backbone=backbone)
    assert found.sentences > 500
    assert found.sampled == found.sentences, "fewer than the recipe would take"
    assert {"negation", "swapped", "related"} <= set(found.build)
    short = plan("debias", "demo", backbone=backbone, quick=True)
    assert short.budget.steps == 20
    assert short.rows < found.rows
    assert any("for 20 steps" in line for line in short.lines())


def test_a_plan_names_the_language(backbone) -> None:
    french = ["La maison n'est pas très vieille et nous ne l'avons pas.", "Le retour est possible dans les dix jours."]
    found = plan("debias", french, backbone=backbone)
    assert "the texts look French, for which there are no rules: only numbers are changed" in found.lines()[1]
    assert "left out: negation, " in found.lines()[1]
    assert "the texts look English" in plan("debias", "demo", backbone=backbone).lines()[1]


def test_a_recipe_without_rules_has_no_line_about_the_language(backbone) -> None:
    found = plan("simcse", "demo", backbone=backbone)
    assert not any("look" in line for line in found.lines())
    assert found.build == ()
    assert found.rows is None


def test_a_mistake_is_found_without_a_run(backbone) -> None:
    with pytest.raises(OpencseError, match="unknown key"):
        plan("simcse", "demo", backbone=backbone, overrides=["optimizer.rate=1"])


def test_a_plan_ends_with_the_expected_time_and_its_largest_parts(backbone) -> None:
    texts = [f"the cat sits in house {i}" for i in range(6400)]
    found = plan("simcse", texts, backbone=backbone, pairs="demo")
    assert found.budget.steps == 100
    assert found.seconds["training"] == pytest.approx(100 * 64 * 2 * 0.01)
    assert found.lines()[-1] == "takes about 3 min on this machine: training 2 min, start and report 20 s"
    assert f"on {found.sizes.probed.texts:,} texts" in found.lines()[-2]
    assert found.sizes.probed.texts > plan("simcse", texts, backbone=backbone).sizes.probed.texts, (
        "the pairs are counted"
    )


def test_a_plan_within_minutes_has_the_steps_that_fit(backbone) -> None:
    texts = [f"the cat sits in house {i}" for i in range(6400)]
    found = plan("simcse", texts, backbone=backbone, minutes=2)
    assert 0 < found.budget.steps < 100
    assert "% of the recipe)" in found.lines()[-1]
    assert sum(found.seconds.values()) <= 120


def test_a_plan_names_labels_and_finds_their_mistakes(backbone, tmp_path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("sentence1,sentence2,label\na,b,same\n")
    assert "adds labels: 1 of labels.csv (1 same)" in plan("debias", "demo", backbone=backbone, labels=labels).lines()
    labels.write_text("sentence1,sentence2,label\na,b,maybe\n")
    with pytest.raises(OpencseError, match="line 2: unknown label 'maybe'"):
        plan("debias", "demo", backbone=backbone, labels=labels)
