from __future__ import annotations

import pytest

from opencse.commands import run as module
from opencse.commands.options import RunOptions
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert


def plan(*arguments, **options) -> list[str]:
    return module.plan(RunOptions(*arguments, out="out", **options))


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("bert")))


def test_a_plan_has_the_sizes_of_the_run(backbone) -> None:
    read, language, build, rows, steps, probes = plan("debias", "demo", backbone=backbone)
    assert read == "reads 1,171 sentences of demo"
    assert "the texts look English" in language
    assert "negation" in build
    assert build.endswith("for all of them"), "fewer than the recipe would take"
    assert rows == "draws up to 18,000 rows to train on"
    assert steps == "trains for 600 steps, 24 rows each"
    assert "report" in probes
    assert "trains for 20 steps, 24 rows each" in plan("debias", "demo", backbone=backbone, quick=True)


def test_without_text_a_block_is_appended(backbone) -> None:
    assert plan("debias", backbone=backbone) == [
        f"appends the meaning block that comes with opencse for {backbone}; nothing is trained"
    ]


def test_a_plan_names_the_language(backbone) -> None:
    french = [f"La maison n'est pas très vieille et nous ne l'avons pas avant {i} jours." for i in range(8)]
    found = plan("debias", french, backbone=backbone)
    assert "the texts look French, for which there are no rules: only numbers are changed" in found[2]
    assert "left out: negation, " in found[2]
    assert found[1].startswith("8 different sentences are few to train on")


def test_a_recipe_without_rules_trains_on_every_sentence(backbone) -> None:
    texts = [f"the cat sits in house {i}" for i in range(6400)]
    assert plan("simcse", texts, backbone=backbone) == [
        "reads 6,400 sentences of texts in memory (list)",
        "trains for 100 steps, 64 rows each",
        "probes the model before and after, and writes a report",
    ]


def test_a_mistake_is_found_without_a_run(backbone) -> None:
    with pytest.raises(OpencseError, match="unknown key"):
        plan("simcse", "demo", backbone=backbone, overrides=["optimizer.rate=1"])


def test_a_plan_names_labels_and_finds_their_mistakes(backbone, tmp_path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("sentence1,sentence2,label\na,b,same\n")
    assert "adds labels: 1 of labels.csv (1 same)" in plan("debias", "demo", backbone=backbone, labels=labels)
    labels.write_text("sentence1,sentence2,label\na,b,maybe\n")
    with pytest.raises(OpencseError, match="line 2: unknown label 'maybe'"):
        plan("debias", "demo", backbone=backbone, labels=labels)


def test_a_view_whose_model_is_missing_is_said_before_anything_else(backbone, monkeypatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network is not asked"))
    with pytest.raises(OpencseError, match=r"facebook/wmt19-en-ru, which is not on this machine.*--paraphrases"):
        plan("osscse", "demo", backbone=backbone)
