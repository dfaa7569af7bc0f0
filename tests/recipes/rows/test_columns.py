from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.recipes.rows.prepare import add_columns, built_by_opencse, chosen_specs, missing_specs, with_models
from opencse.text.corpus import Corpus
from opencse.text.views.registry import (
    AntonymSwap,
    CandidateTable,
    DebiasedNegatives,
    DebiasedPositives,
    Deletion,
    Negation,
    Substitution,
    build_views,
)

SPECS = {
    "negation": Negation(),
    "substitution": Substitution(model="m", fallback="negation"),
    "negative": DebiasedNegatives(model="m", count=2),
    "shorter": Deletion(),
    "antonym": AntonymSwap(),
    "negated_antonym": Negation(of="antonym"),
}


def names(wanted: list[str], present: list[str]) -> list[str]:
    return list(missing_specs(SPECS, wanted, present))


def test_only_what_is_wanted_and_missing_is_built_and_what_it_needs() -> None:
    assert names(["text", "substitution"], ["text"]) == ["negation", "substitution"]
    assert names(["text", "substitution"], ["text", "substitution"]) == []
    assert names(["text", "negation"], ["text", "substitution"]) == ["negation"]
    assert names(["text", "negated_antonym"], ["text"]) == ["antonym", "negated_antonym"]
    assert names(["text", "unknown"], ["text"]) == []


def test_one_constructor_may_make_several_columns() -> None:
    assert names(["negative_1", "negative_2"], ["text"]) == ["negative"]
    assert names(["negative_1", "negative_2"], ["text", "negative_1"]) == ["negative"]


def test_a_chosen_column_brings_what_it_is_made_of() -> None:
    assert list(chosen_specs(SPECS, ["negated_antonym"])) == ["antonym", "negated_antonym"]
    with pytest.raises(OpencseError, match="no such column"):
        chosen_specs(SPECS, ["absent"])


def test_mining_with_the_model_that_is_trained() -> None:
    source = CandidateTable(path="x")
    specs = SPECS | {
        "related": DebiasedNegatives(model="backbone"),
        "positive": DebiasedPositives(model="backbone", source=source, pooling="mean"),
        "mined": DebiasedNegatives(model="simcse"),
        "other": DebiasedNegatives(model="minilm"),
    }
    found = with_models(
        specs, {"backbone": SimpleNamespace(name="some/model"), "simcse": SimpleNamespace(name="first/stage")}, "cls"
    )
    assert (found["related"].model, found["related"].pooling) == ("some/model", "cls")
    assert (found["positive"].model, found["positive"].pooling) == ("some/model", "mean")
    assert (found["mined"].model, found["mined"].pooling) == ("first/stage", "backbone")
    assert found["other"] == specs["other"]
    assert {name: found[name] for name in SPECS} == SPECS


def test_columns_of_the_corpus_are_put_beside_the_built_ones(tmp_path) -> None:
    rows = [{"text": f"the small cat number {i}", "paraphrase": f"cat {i}" if i % 2 else None} for i in range(5)]
    rows.insert(2, {"text": "  ", "paraphrase": "of a blank line"})
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus, views = tmp_path / "corpus.jsonl", tmp_path / "views"
    build_views(corpus, {"shorter": Deletion()}, views)
    assert add_columns(Corpus(corpus), views, ["text", "shorter"]).path == views
    joined = pq.read_table(add_columns(Corpus(corpus), views, ["text", "paraphrase", "shorter"]).path).to_pylist()
    assert [row["paraphrase"] for row in joined] == [None, "cat 1", None, "cat 3", None]
    assert all(len(row["shorter"].split()) == 4 for row in joined)


def test_a_column_of_the_same_name_does_not_make_a_table_built_views() -> None:
    specs = load_recipe("debias").build
    assert not built_by_opencse(specs, ["text", "number", "paraphrase"])
    assert built_by_opencse(specs, ["text", "number", "number.rule"])
