from __future__ import annotations

from opencse.commands.reproduction.details import training_pairs
from opencse.recipes import load_recipe
from opencse.text.corpus import Corpus


def rows(tmp_path, *lines: str) -> Corpus:
    path = tmp_path / "rows.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Corpus(path)


def pairs(recipe: str, corpus: Corpus, limit: int = 10) -> dict[str, list[tuple[str, str]]]:
    found = training_pairs(load_recipe(recipe), corpus, limit)
    return {role: list(zip(each.first, each.second, strict=True)) for role, each in found.items()}


def test_a_sentence_is_its_own_positive_and_the_next_one_its_negative(tmp_path) -> None:
    corpus = rows(tmp_path, "text", "a", "b", "c")
    assert pairs("simcse", corpus) == {
        "positive": [("a", "a"), ("b", "b"), ("c", "c")],
        "negative": [("a", "b"), ("b", "c")],
    }
    assert {len(each) for each in pairs("simcse", corpus, limit=1).values()} == {1}


def test_labels_are_pairs(tmp_path) -> None:
    corpus = rows(tmp_path, "text\tentailment\tcontradiction", "a\tb\tc")
    assert pairs("simcse-sup", corpus) == {"positive": [("a", "b")], "negative": [("a", "c")]}


def test_mined_pairs_that_a_row_lacks_are_left_out(tmp_path) -> None:
    header = "text\tpositive_1\tpositive_2\tnegative_1\tnegative_2"
    corpus = rows(tmp_path, header, "a\tp\tq\tm\tn", "b\t\t\to\t")
    assert pairs("debcse", corpus) == {
        "positive": [("a", "p"), ("a", "q")],
        "negative": [("a", "m"), ("a", "n"), ("b", "o")],
    }
