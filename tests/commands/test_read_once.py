"""What a run reads: the recipe's file and the backbone's weights once, whoever uses them."""

from __future__ import annotations

from collections import Counter

import pytest

import opencse
from opencse.encoder import backbone as backbone_module
from opencse.recipes.load import RecipeFile
from tests.tiny import WORDS, tiny_bert

RECIPE = """
extends = "simcse"
[views.near]
text = "near_1"
optional = true
[build.near]
kind = "hard_negatives"
model = "backbone"
count = 1
pooling = "mean"
ranks = [0, 5]
[teachers.same]
model = "backbone"
pooling = "mean"
[[terms]]
kind = "info_nce"
anchor = "anchor"
positive = "twin"
negatives = ["near"]
[[terms]]
kind = "list_net"
teachers = ["same"]
"""


@pytest.fixture
def read(monkeypatch) -> Counter[str]:
    """How often each recipe and each model of a `Backbone` was read."""
    counts: Counter[str] = Counter()
    open_model, read_recipe = backbone_module.open_model, RecipeFile.read.__func__

    def counted(name, *args, **options):
        counts[str(name)] += 1
        return open_model(name, *args, **options)

    def counted_recipe(cls, name):
        counts[str(name)] += 1
        return read_recipe(cls, name)

    monkeypatch.setattr(backbone_module, "open_model", counted)
    monkeypatch.setattr(RecipeFile, "read", classmethod(counted_recipe))
    return counts


def test_a_run_reads_recipe_and_backbone_once(tmp_path, read) -> None:
    backbone, recipe = str(tiny_bert(tmp_path / "bert")), tmp_path / "mine.toml"
    recipe.write_text(RECIPE)
    corpus = [f"the {a} {b} {c}" for a, b, c in zip(WORDS, WORDS[3:], WORDS[7:], strict=False)]
    settings = ["training.max_steps=1", "training.batch_size=4", "encoder.pooling='mean'"]
    opencse.run(recipe, corpus, backbone=backbone, out=tmp_path / "out", overrides=settings, progress=False)
    assert read == {str(recipe): 1, backbone: 1}


def test_a_view_of_another_column_set_by_the_user_keeps_a_table_whole(tmp_path) -> None:
    """The columns that a table must have are those of the recipe with the user's settings."""
    backbone, table = tiny_bert(tmp_path / "bert"), tmp_path / "table.csv"
    long = ". ".join(["The cat sits in the house"] * 12)
    rows = "".join(f'"{long} {a}.","the {b}"\n' for a, b in zip(WORDS, WORDS[3:], strict=False))
    table.write_text(f"text,summary\n{rows}")
    settings = ["training.max_steps=1", "training.batch_size=4", "views.twin.text='summary'"]
    result = opencse.run("simcse", table, backbone=backbone, out=tmp_path / "out", overrides=settings, progress=False)
    assert result.run.outcome.steps == 1
