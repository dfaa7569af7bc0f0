from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chisquare, zscore

from opencse.foundation.errors import OpencseError
from opencse.recipes import dump_recipe, load_recipe
from opencse.text.views.registry import CandidateTable, DebiasedPositives, build_views
from tests.text.mined.helpers import vectors, word_similarity

TABLE = {
    "the cat sits in the garden": [
        "a cat is in the garden",
        "in the garden sits the cat",
        "The cat  sits in the garden",
    ],
    "the dog runs": [
        "the dog runs",
        "quickly runs the dog",
        "a dog is in the street",
        "a big dog runs",
        "the dog reads",
    ],
    "she sings": [],
}


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "table.jsonl"
    path.write_text("".join(json.dumps({"text": text, "candidate": few}) + "\n" for text, few in TABLE.items()))
    return path


@pytest.fixture
def texts(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TABLE) + "\n")
    return path


def draw(texts, table, encoder, out, **options) -> list[dict]:
    spec = DebiasedPositives(model=encoder, source=CandidateTable(path=str(table)), precision="fp32", **options)
    return pq.read_table(build_views(texts, {"positive": spec}, out)).to_pylist()


def test_drawn_from_the_rows_own_candidates(texts, table, encoder, tmp_path):
    rows = draw(texts, table, encoder, tmp_path / "v", count=3)
    assert [row["positive_1.candidates"] for row in rows] == [2, 4, 0]  # copies are none
    for row in rows:
        drawn = [row[f"positive_{k}"] for k in (1, 2, 3) if row[f"positive_{k}"]]
        assert len(set(drawn)) == len(drawn) == min(3, row["positive_1.candidates"])
        assert set(drawn) <= set(TABLE[row["text"]])
        a, b = vectors(encoder, [row["text"], *(["x"] * 9)])[0], vectors(encoder, [*drawn, *(["x"] * 11)])
        for k, _ in enumerate(drawn):
            assert row[f"positive_{k + 1}.cosine"] == pytest.approx(a @ b[k], abs=2e-3)
    assert rows[0]["positive_3.rule"] == "pool exhausted"
    assert rows[2]["positive_1.rule"] == "no candidate"


def test_probabilities(texts, table, encoder, tmp_path):
    text, pool = "the dog runs", TABLE["the dog runs"][1:]
    matrix = vectors(encoder, [text, *pool, *(["x"] * 6)])
    cosine = matrix[1 : 1 + len(pool)] @ matrix[0]
    surface = word_similarity(text, pool)
    score = -0.2 * zscore(surface) + 0.8 * zscore(cosine)
    expected = np.exp(score / 0.7) / np.exp(score / 0.7).sum()
    many = tmp_path / "many.txt"
    many.write_text("the dog runs\n" * 300)
    rows = draw(many, table, encoder, tmp_path / "v", temperature=0.7, count=1)
    drawn = [row["positive_1"] for row in rows]
    assert chisquare([drawn.count(one) for one in pool], 300 * expected).pvalue > 0.001


def test_in_a_recipe(table, tmp_path):
    path = tmp_path / "r.toml"
    head = 'extends = "simcse"\n[build.positive]\nkind = "debiased_positives"\nmodel = "minilm"\n'
    path.write_text(f'{head}source = {{ kind = "candidate_table", path = "{table}" }}\n')
    recipe = load_recipe(path)
    assert recipe.build["positive"].source == CandidateTable(path=str(table))
    path.write_text(dump_recipe(recipe))
    assert load_recipe(path).build == recipe.build
    for line, match in (
        ("", "the key 'source' is missing"),
        ('source = { kind = "deletion" }', "source must be a back_translation"),
        ('source = { kind = "candidate_table", wrong = 1 }', "build.positive.source: unknown key 'wrong'"),
    ):
        path.write_text(f"{head}{line}\n")
        with pytest.raises(OpencseError, match=match):
            load_recipe(path)
