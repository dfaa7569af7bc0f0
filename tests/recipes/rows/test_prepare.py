from __future__ import annotations

import json
from collections import Counter
from io import BufferedReader
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import FileTally, open_tallied
from opencse.recipes import load_recipe
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.prepare import (
    add_columns,
    built_by_opencse,
    chosen_specs,
    missing_specs,
    mix_rows,
    with_models,
)
from opencse.recipes.rows.sentence_sample import paraphrase_columns, paraphrase_settings, sample
from opencse.recipes.settings import CorpusSettings, MixturePart
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
    assert names(["negative_1", "negative_2"], ["text"]) == ["negative"]
    assert names(["negative_1", "negative_2"], ["text", "negative_1"]) == ["negative"]
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
        specs,
        {
            "backbone": SimpleNamespace(name="some/model"),
            "simcse": SimpleNamespace(name="first/stage"),
        },
        "cls",
    )
    assert (found["related"].model, found["related"].pooling) == ("some/model", "cls")
    assert (found["positive"].model, found["positive"].pooling) == ("some/model", "mean")
    assert (found["mined"].model, found["mined"].pooling) == ("first/stage", "backbone")
    assert found["other"] == specs["other"]
    assert {name: found[name] for name in SPECS} == SPECS


def test_columns_of_the_corpus_are_put_beside_the_built_ones(tmp_path) -> None:
    rows = [
        {"text": f"the small cat number {i}", "paraphrase": f"cat {i}" if i % 2 else None}
        for i in range(5)
    ]
    rows.insert(2, {"text": "  ", "paraphrase": "of a blank line"})
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus, views = tmp_path / "corpus.jsonl", tmp_path / "views"
    built = build_views(Corpus(corpus), {"shorter": Deletion()}, views)
    assert add_columns(Corpus(corpus), built, ["text", "shorter"]).path == views
    joined = pq.read_table(
        add_columns(Corpus(corpus), built, ["text", "paraphrase", "shorter"]).path
    ).to_pylist()
    assert [row["paraphrase"] for row in joined] == [None, "cat 1", None, "cat 3", None]
    assert all(len(row["shorter"].split()) == 4 for row in joined)
    assert len([*Corpus(views).texts()]) == 5, "a folder of views that is read holds each row once"


def test_a_column_of_the_same_name_does_not_make_a_table_built_views() -> None:
    specs = load_recipe("debias").build
    assert not built_by_opencse(specs, ["text", "number", "paraphrase"])
    assert built_by_opencse(specs, ["text", "number", "number.rule"])


SENTENCES = 60


@pytest.fixture
def built(tmp_path):
    """Every third sentence has an opposite, every second an exchange."""
    numbers = range(SENTENCES)
    table = {
        "text": [f"Sentence {i}" + " and more" * (i % 5) for i in numbers],
        "opposite": [f"opposite {i}" if i % 3 == 0 else None for i in numbers],
        "exchanged": [f"exchanged {i}" if i % 2 == 0 else None for i in numbers],
    }
    path = tmp_path / "built.parquet"
    pq.write_table(pa.table(table), path)
    return Corpus(path)


def rows(corpus):
    return pq.read_table(corpus.path).to_pylist()


def test_each_part_has_its_rows_and_its_views_only(built, tmp_path) -> None:
    parts = {
        "opposites": MixturePart(rows=10, needs=("opposite",)),
        "order": MixturePart(rows=20, needs=("exchanged",), keeps=("opposite",)),
        "plain": MixturePart(rows=30),
    }
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet"))
    assert Counter(row["part"] for row in found) == {"opposites": 10, "order": 20, "plain": 30}
    for row in found:
        number = int(row["text"].split()[1])
        opposite = f"opposite {number}" if number % 3 == 0 else None
        assert row["opposite"] == (None if row["part"] == "plain" else opposite)
        assert row["exchanged"] == (f"exchanged {number}" if row["part"] == "order" else None)
        assert row["part"] != "opposites" or opposite is not None
    assert [row["part"] for row in found] != sorted(row["part"] for row in found)


def test_too_few_sentences_are_repeated_and_long_ones_and_empty_parts_left_out(
    built, tmp_path
) -> None:
    found = rows(
        mix_rows(
            built,
            {"opposites": MixturePart(rows=50, needs=("opposite",))},
            tmp_path / "out.parquet",
        )
    )
    assert sorted(Counter(row["text"] for row in found).values()) == [2] * 10 + [3] * 10
    parts = {
        "short": MixturePart(rows=40, words=4),
        "none": MixturePart(rows=0, needs=("opposite",)),
    }
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet"))
    assert len(found) == 40
    assert max(len(row["text"].split()) for row in found) == 4
    assert "opposite" not in found[0]


def test_the_seed_decides_and_equal_input_gives_the_same_file(built, tmp_path) -> None:
    parts = {"plain": MixturePart(rows=10)}
    first = mix_rows(built, parts, tmp_path / "first.parquet", seed=1)
    assert rows(first) == rows(mix_rows(built, parts, tmp_path / "second.parquet", seed=1))
    other = rows(mix_rows(built, parts, tmp_path / "third.parquet", seed=2))
    assert {row["text"] for row in rows(first)} != {row["text"] for row in other}
    content = first.path.read_bytes()
    assert mix_rows(built, parts, first.path, seed=1).path.read_bytes() == content
    assert len(rows(mix_rows(built, {"plain": MixturePart(rows=11)}, first.path, seed=1))) == 11


def test_parts_that_nothing_fits_are_left_out_but_not_all_of_them(built, tmp_path) -> None:
    with pytest.raises(OpencseError, match="none of the 60 sentences fits any part"):
        mix_rows(built, {"short": MixturePart(rows=5, words=1)}, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    notes = []
    parts = {"short": MixturePart(rows=5, words=1), "plain": MixturePart(rows=7)}
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet", notify=notes.append))
    assert {row["part"] for row in found} == {"plain"}
    assert len(found) == 7
    assert notes == [
        "no sentence fits the part short (at most 1 words) of the training rows: it is left out"
    ]


def test_a_folder_is_refused_at_once(tmp_path) -> None:
    (tmp_path / "table.csv").write_text(
        "text,paraphrase\nIt rains.,Rain falls.\n", encoding="utf-8"
    )
    assert paraphrase_columns(tmp_path / "table.csv") == ("text", "paraphrase")
    with pytest.raises(OpencseError, match="is a folder, not a file"):
        paraphrase_settings(tmp_path, {})
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(OpencseError, match="its columns are a, b"):
        paraphrase_columns(tmp_path / "other.tsv")


@pytest.mark.parametrize(
    ("recipe", "place"), [("osscse", "build.paraphrase"), ("debcse", "build.positive.source")]
)
def test_a_table_takes_the_place_of_the_recipes_own_candidates(
    tmp_path, recipe: str, place: str
) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("text\tcandidate\na\tb\n")
    layer = RecipeFile.read(recipe).layers["with"]["paraphrases"]
    settings = [f"path={table}", "text_column=text", "candidate_column=candidate"]
    assert paraphrase_settings(table, layer) == [f"{place}.{each}" for each in settings]


LONG = "When the rain stopped, the old man left the house."
CUT = "The old man left the house."


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(f"Sentence number {i} is here." for i in range(50)) + "\n")
    return Corpus(path)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text(
        "text\tback_translation\tpivot\nIt is late.\tThe hour is late.\tde\nIt is late.\tLate it is.\tfr\n"
    )
    return path


def test_a_sample_is_fair_and_the_seed_decides(corpus, tmp_path) -> None:
    everything = set(corpus.texts())
    draws = [
        list(sample(corpus, CorpusSettings(rows=10), tmp_path / f"{s}.parquet", seed=s).texts())
        for s in range(40)
    ]
    assert all(len(set(draw)) == 10 and set(draw) <= everything for draw in draws)
    counts = [sum(text in draw for draw in draws) for text in sorted(everything)]
    assert min(counts) > 0  # 8 on average: each is left out of all with probability 1e-4
    assert draws[0] != draws[1]
    assert draws[3] == list(
        sample(corpus, CorpusSettings(rows=10), tmp_path / "again.parquet", seed=3).texts()
    )
    path = tmp_path / "own.tsv"
    path.write_text(
        "text\tparaphrase\tnote\n" + "".join(f"{text}\t{text} again\t\n" for text in everything)
    )
    own = sample(
        Corpus(path),
        CorpusSettings(rows=3),
        tmp_path / "own.parquet",
        columns=("text", "paraphrase"),
    )
    assert own.columns == ("text", "paraphrase")
    assert all(paraphrase == f"{text} again" for text, paraphrase in own.rows(own.columns))


def test_sentences_are_cut_where_that_works(tmp_path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(f"{LONG}\nWhat a day\n")
    assert set(
        sample(Corpus(path), CorpusSettings(clauses=1.0), tmp_path / "o.parquet").texts()
    ) == {CUT, "What a day"}
    assert set(sample(Corpus(path), CorpusSettings(), tmp_path / "raw.parquet").texts()) == {
        LONG,
        "What a day",
    }


def test_a_table_adds_its_sentences_once_and_a_large_one_is_sampled(
    corpus, table, tmp_path
) -> None:
    texts = list(
        sample(corpus, CorpusSettings(rows=5), tmp_path / "out.parquet", table=table).texts()
    )
    assert len(texts) == 6
    assert texts.count("It is late.") == 1
    path = tmp_path / "large.tsv"
    path.write_text(
        "text\tback_translation\n" + "".join(f"Late {i}.\tLately {i}.\n" for i in range(40))
    )
    settings = [CorpusSettings(rows=5, paraphrases=most) for most in (10, 11, None)]
    draws = [
        list(sample(corpus, each, tmp_path / "out.parquet", table=path).texts())
        for each in settings
    ]
    assert [sum(text.startswith("Late") for text in draw) for draw in draws] == [10, 11, 40]
    assert any(
        int(text.split()[1].rstrip(".")) >= 11 for text in draws[0] if text.startswith("Late")
    )  # not the first


def test_the_same_input_is_not_assembled_twice_but_another_is(corpus, tmp_path) -> None:
    out = sample(corpus, CorpusSettings(rows=10), tmp_path / "out.parquet").path
    marked = pq.read_table(out)
    pq.write_table(pa.table({"text": ["mark"]}, schema=marked.schema), out)
    assert list(sample(corpus, CorpusSettings(rows=10), out).texts()) == ["mark"]
    assert len(list(sample(corpus, CorpusSettings(rows=11), out).texts())) == 11


def test_sentences_with_opposites_come_on_top_each_adjective_alike(tmp_path) -> None:
    safe = [
        f"The {thing} is safe."
        for thing in ("road", "cliff", "river", "drug", "dog", "bridge", "door", "car")
    ]
    more = ["He saw the dirty water.", "All clean, all dangerous?", "It was thematic."]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([f"Sentence {i} says it." for i in range(50)] + safe + more))
    draws = [
        list(
            sample(
                Corpus(path),
                CorpusSettings(rows=8, opposites=4),
                tmp_path / f"{seed}.parquet",
                seed=seed,
            ).texts()
        )
        for seed in range(20)
    ]
    for draw in draws:
        assert len(draw) == len(set(draw)) <= 12
        assert "The water was dirty." in draw
        assert 2 <= len(set(draw) & set(safe)) <= 8
    assert sum("It was thematic." in draw for draw in draws) < 10, (
        "among the sentences drawn at random alone"
    )
    assert {text for draw in draws for text in draw} >= set(safe)


def test_a_corpus_of_blank_lines_is_named_and_nothing_is_written(tmp_path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text("\n \n")
    with pytest.raises(OpencseError, match=r"blank\.txt has no sentence"):
        sample(Corpus(blank), CorpusSettings(rows=10), tmp_path / "out" / "corpus.parquet")
    assert not (tmp_path / "out").exists()


def test_verbs_with_opposites_come_more_often_than_adjectives(tmp_path) -> None:
    verbs = [
        f"They {verb} the {thing}."
        for verb in ("accepted", "rejected")
        for thing in ("plan", "gift", "bill", "job")
    ]
    adjectives = [
        f"The {thing} is {word}."
        for word in ("safe", "dangerous")
        for thing in ("road", "cliff", "door")
    ]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*verbs, *adjectives, "Nothing else."]))
    draw = set(
        sample(
            Corpus(path), CorpusSettings(rows=2, opposites=10), tmp_path / "out.parquet", seed=1
        ).texts()
    )
    assert draw >= set(verbs)
    assert len(draw & set(adjectives)) >= 2


def test_a_new_sample_reads_the_corpus_once(tmp_path, monkeypatch) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(f"Sentence number {i}." for i in range(40)))
    opened = []

    def counted(file: Path, tally: FileTally) -> BufferedReader:
        opened.append(file)
        return open_tallied(file, tally)

    def hashed(_: object) -> str:
        raise AssertionError("the corpus is read for its hash alone")

    monkeypatch.setattr("opencse.foundation.tables.open_tallied", counted)
    monkeypatch.setattr("opencse.text.corpus.content_hash", hashed)
    sample(Corpus(path), CorpusSettings(rows=10), tmp_path / "out.parquet")
    assert opened == [path]
