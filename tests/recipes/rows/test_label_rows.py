from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import opencse
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.recipes.rows.label_rows import join_labels, labels_note, with_labels
from opencse.recipes.rows.labels import Labels, read_labels
from opencse.text.corpus import Corpus
from tests.recipes.rows.test_labels import JUDGED, PAIRS
from tests.tiny import tiny_bert


@pytest.fixture
def pairs(tmp_path) -> Labels:
    (tmp_path / "labels.csv").write_text(PAIRS)
    return read_labels(tmp_path / "labels.csv")


def test_labels_are_parts_of_a_mixture(pairs) -> None:
    debias = load_recipe("debias")
    parts = with_labels(debias, pairs).corpus.parts
    assert (parts["label_sames"].rows, parts["label_opposites"].rows) == (20, 20)
    assert parts["label_sames"].needs == ("label_same",)
    assert {name: part for name, part in parts.items() if name in debias.corpus.parts} == debias.corpus.parts


def test_judged_searches_are_an_order(tmp_path) -> None:
    (tmp_path / "judgements.csv").write_text(JUDGED)
    recipe = with_labels(load_recipe("debias"), read_labels(tmp_path / "judgements.csv"))
    assert [term.name for term in recipe.terms][-1] == "labels_order"
    assert recipe.terms[-1].closer == (("anchor", "label_better"),)
    assert recipe.terms[-1].farther == (("anchor", "label_worse"),)


def test_a_recipe_that_needs_other_columns_is_refused(pairs) -> None:
    with pytest.raises(OpencseError, match="simcse-sup cannot be trained on labels: it needs the column contradiction"):
        with_labels(load_recipe("simcse-sup"), pairs)


def test_labels_are_drawn_among_rows_without_parts(pairs, tmp_path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"sentence {i}\n" for i in range(36)))
    out, recipe = tmp_path / "out.parquet", with_labels(load_recipe("simcse"), pairs)
    rows = join_labels(Corpus(corpus), pairs, out, columns=recipe.columns, drawn=True, seed=0)
    texts = [text for (text,) in rows.rows(("text",))]
    assert texts.count("Refunds are allowed.") == 4, "two labels, twice each"
    assert len(texts) == 40
    assert texts[-4:] != ["Refunds are allowed."] * 4
    assert labels_note(recipe, pairs, rows.rows(pairs.columns)) == (
        "Labels: 2 of labels.csv (1 same, 1 opposite), in 4 of 40 training rows (10.0%). "
        "Weights of their terms: labels_same 3, labels_opposite 3."
    )


@pytest.mark.parametrize("recipe", ["debias", "simcse"])
def test_a_run_trains_on_labels_and_its_report_says_how_many(recipe: str, pairs, tmp_path) -> None:
    corpus = ["The bridge is safe.", "The soup is hot and the bread is fresh.", "Anna sold the house in 1990."] * 4
    out, notes = tmp_path / "out", []
    result = opencse.run(
        recipe,
        corpus,
        backbone=str(tiny_bert(tmp_path / "bert")),
        out=out,
        labels=pairs.path,
        overrides=["training.max_steps=2", "training.batch_size=4", "training.precision=fp32", "encoder.pooling=cls"],
        progress=False,
        notify=notes.append,
    )
    assert result.run.outcome.steps == 2
    rows = pq.read_table(out / ("mixture.parquet" if recipe == "debias" else "labelled.parquet"))
    assert rows["label_opposite"].drop_null().to_pylist()[0] == "Refunds are refused."
    (note,) = (note for note in notes if note.startswith("Labels: "))
    assert f"of {len(rows):,} training rows" in note
    assert note in (out / "report.html").read_text()
    losses = (out / "metrics.jsonl").read_text()
    assert "labels_same" in losses
    assert "labels_opposite" in losses
