from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes import CorpusSettings
from opencse.recipes.rows.sampling import sample
from opencse.text.corpus import Corpus

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
    path.write_text("text\tback_translation\tpivot\nIt is late.\tThe hour is late.\tde\nIt is late.\tLate it is.\tfr\n")
    return path


def test_a_sample_is_fair_and_the_seed_decides(corpus, tmp_path) -> None:
    everything = set(corpus.texts())
    draws = [
        list(sample(corpus, CorpusSettings(rows=10), tmp_path / f"{s}.parquet", seed=s).texts()) for s in range(40)
    ]
    assert all(len(set(draw)) == 10 and set(draw) <= everything for draw in draws)
    counts = [sum(text in draw for draw in draws) for text in sorted(everything)]
    assert min(counts) > 0  # 8 on average: each is left out of all with probability 1e-4
    assert draws[0] != draws[1]
    assert draws[3] == list(sample(corpus, CorpusSettings(rows=10), tmp_path / "again.parquet", seed=3).texts())


def test_sentences_are_cut_where_that_works(tmp_path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(f"{LONG}\nWhat a day\n")
    assert set(sample(Corpus(path), CorpusSettings(clauses=1.0), tmp_path / "out.parquet").texts()) == {
        CUT,
        "What a day",
    }
    assert set(sample(Corpus(path), CorpusSettings(), tmp_path / "raw.parquet").texts()) == {LONG, "What a day"}


def test_a_table_adds_its_sentences_once(corpus, table, tmp_path) -> None:
    texts = list(sample(corpus, CorpusSettings(rows=5), tmp_path / "out.parquet", table=table).texts())
    assert len(texts) == 6
    assert texts.count("It is late.") == 1


def test_a_large_table_is_sampled(corpus, tmp_path) -> None:
    path = tmp_path / "large.tsv"
    path.write_text("text\tback_translation\n" + "".join(f"Late {i}.\tLately {i}.\n" for i in range(40)))
    settings = [CorpusSettings(rows=5, paraphrases=most) for most in (10, 11, None)]
    draws = [list(sample(corpus, each, tmp_path / "out.parquet", table=path).texts()) for each in settings]
    assert [sum(text.startswith("Late") for text in draw) for draw in draws] == [10, 11, 40]
    assert any(int(text.split()[1].rstrip(".")) >= 11 for text in draws[0] if text.startswith("Late"))  # not the first


def test_the_same_input_is_not_assembled_twice_but_another_is(corpus, tmp_path) -> None:
    out = sample(corpus, CorpusSettings(rows=10), tmp_path / "out.parquet").path
    marked = pq.read_table(out)
    pq.write_table(pa.table({"text": ["mark"]}, schema=marked.schema), out)
    assert list(sample(corpus, CorpusSettings(rows=10), out).texts()) == ["mark"]
    assert len(list(sample(corpus, CorpusSettings(rows=11), out).texts())) == 11


def test_sentences_with_opposites_come_on_top_each_adjective_alike(tmp_path) -> None:
    safe = [f"The {thing} is safe." for thing in ("road", "cliff", "river", "drug", "dog", "bridge", "door", "car")]
    more = ["He saw the dirty water.", "All clean, all dangerous?", "It was thematic."]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([f"Sentence {i} says it." for i in range(50)] + safe + more))
    draws = [
        list(sample(Corpus(path), CorpusSettings(rows=8, opposites=4), tmp_path / f"{seed}.parquet", seed=seed).texts())
        for seed in range(20)
    ]
    for draw in draws:
        assert len(draw) == len(set(draw)) <= 12
        assert "The water was dirty." in draw
        assert 2 <= len(set(draw) & set(safe)) <= 8
    assert sum("It was thematic." in draw for draw in draws) < 10, "among the sentences drawn at random alone"
    assert {text for draw in draws for text in draw} >= set(safe)


def test_a_corpus_of_blank_lines_is_named_and_nothing_is_written(tmp_path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text("\n \n")
    with pytest.raises(OpencseError, match=r"blank\.txt has no sentence"):
        sample(Corpus(blank), CorpusSettings(rows=10), tmp_path / "out" / "corpus.parquet")
    assert not (tmp_path / "out").exists()


def test_verbs_with_opposites_come_more_often_than_adjectives(tmp_path) -> None:
    verbs = [
        f"They {verb} the {thing}." for verb in ("accepted", "rejected") for thing in ("plan", "gift", "bill", "job")
    ]
    adjectives = [f"The {thing} is {word}." for word in ("safe", "dangerous") for thing in ("road", "cliff", "door")]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*verbs, *adjectives, "Nothing else."]))
    draw = set(sample(Corpus(path), CorpusSettings(rows=2, opposites=10), tmp_path / "out.parquet", seed=1).texts())
    assert draw >= set(verbs)
    assert len(draw & set(adjectives)) >= 2
