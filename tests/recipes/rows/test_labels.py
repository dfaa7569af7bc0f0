from __future__ import annotations

import gzip

import pyarrow.parquet as pq
import pytest

import opencse
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from opencse.recipes.rows.labels import Labels, join_labels, labels_note, read_labels, with_labels
from opencse.text.corpus import Corpus
from tests.tiny import tiny_bert

PAIRS = (
    "sentence1,sentence2,label\n"
    "Refunds are allowed.,You get your money back.,same\n"
    "Refunds are allowed.,Refunds are refused.,Opposite\n"
)
JUDGED = (
    "sentence1,sentence2,score,judgement\n"
    "open shop,The shop is open.,5,new is better\n"
    "open shop,The shop is closed.,0,new is better\n"
    "late train,The train is late.,2.5,same\n"
    "late train,The train was late.,2.5,same\n"
)


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "labels.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_pairs_become_rows_by_their_relation(file) -> None:
    labels = read_labels(file(PAIRS))
    assert labels.rows == (
        ("Refunds are allowed.", "You get your money back.", None, None, None),
        ("Refunds are allowed.", None, "Refunds are refused.", None, None),
    )
    assert labels.columns == ("label_same", "label_opposite")
    assert labels.describe() == "2 of labels.csv (1 same, 1 opposite)"


def test_judged_searches_become_an_order_and_equal_ones_nothing(file) -> None:
    labels = read_labels(file(JUDGED))
    assert labels.rows == (("open shop", None, None, "The shop is open.", "The shop is closed."),)
    assert labels.describe() == "1 of labels.csv (1 judged)"


def test_pairs_and_judgements_in_one_compressed_file(tmp_path) -> None:
    path = tmp_path / "both.jsonl.gz"
    rows = (
        '{"sentence1": "a", "sentence2": "b", "label": "same"}',
        '{"sentence1": "q", "sentence2": "good", "score": 5}',
        '{"sentence1": "q", "sentence2": "bad", "score": 0}',
    )
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    assert read_labels(path).rows == (("a", "b", None, None, None), ("q", None, None, "good", "bad"))


def test_a_label_given_twice_counts_once(file) -> None:
    assert len(read_labels(file(PAIRS + "You get your money back.,Refunds are allowed.,same\n")).rows) == 3, "turned"
    assert len(read_labels(file(PAIRS + "Refunds are allowed.,You get your money back.,same\n")).rows) == 2


def test_the_share_is_kept_up_to_twenty_of_each(file) -> None:
    labels = read_labels(file(PAIRS), 0.2)
    assert labels.training_rows(40) == {"label_same": 5, "label_opposite": 5}, "10 of 50 rows"
    assert labels.training_rows(100_000) == {"label_same": 20, "label_opposite": 20}
    assert labels.training_rows(1) == {"label_same": 1, "label_opposite": 1}
    many = "".join(f"text {i},other {i},same\n" for i in range(100))
    assert read_labels(file(PAIRS + many), 0.2).training_rows(40)["label_same"] == 10, "not all of them are used"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1,sentence2,label\na,b,other\n", "line 2: unknown label 'other'"),
        ("sentence1,sentence2,label\na,,same\n", "line 2: sentence2 is empty"),
        ("sentence1,text,label\na,b,same\n", "line 2: no column 'sentence2' among sentence1, text, label"),
        ("sentence1,sentence2\na,b\n", "line 2: no label"),
        ("sentence1,sentence2,label,score\na,b,,\n", "line 2: score '' is not a number"),
        ("", "no label to train on"),
        ("sentence1,sentence2,label\n", "no label to train on"),
        ("sentence1,sentence2,score\na,b,3\n", "no label to train on"),
        ("sentence1,sentence2,score\na,b,much\n", "line 2: score 'much' is not a number"),
        ("sentence1,sentence2,label\na,a,opposite\n", "line 2: a text is its own opposite"),
        (PAIRS + "Refunds are allowed.,Refunds are refused.,same\n", "line 4: .* 'same', but 'opposite' in line 3"),
        (PAIRS + "Refunds are refused.,Refunds are allowed.,same\n", "line 4: .* 'same', but 'opposite' in line 3"),
        (JUDGED + "open shop,The shop is closed.,5,\n", "line 6: .* 5.0, but 0.0 in line 3"),
        ("sentence1,sentence2,label\nDas Café,b,same\n".encode("latin-1"), "line 2: not valid UTF-8"),
    ],
)
def test_mistakes_name_the_line(file, content: str | bytes, message: str) -> None:
    with pytest.raises(OpencseError, match=message):
        read_labels(file(content))


@pytest.mark.parametrize("share", [0, -1, 0.6, float("nan")])
def test_a_share_out_of_range_is_refused(file, share: float) -> None:
    with pytest.raises(OpencseError, match=r"--label-share .*: out of range"):
        read_labels(file(PAIRS), share)


def test_a_search_with_more_hits_than_can_be_compared_is_refused(file) -> None:
    rows = "".join(f"a,b {i},{i}\n" for i in range(201))
    with pytest.raises(OpencseError, match=r"line 202.* more than 200"):
        read_labels(file("sentence1,sentence2,score\n" + rows))


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


def test_labels_join_the_groups_of_views(pairs, tmp_path) -> None:
    (tmp_path / "judgements.csv").write_text(JUDGED)
    debias = load_recipe("debias")
    (term,) = with_labels(debias, pairs).terms
    assert (term.same[-1], term.opposed[-1]) == ("label_same", ("label_opposite",))
    assert term.exchanged == debias.terms[0].exchanged
    (term,) = with_labels(debias, read_labels(tmp_path / "judgements.csv")).terms
    assert (term.same[-1], term.exchanged[-1]) == ("label_better", "label_worse")
    assert term.opposed == debias.terms[0].opposed


def test_a_recipe_without_groups_is_refused(pairs) -> None:
    with pytest.raises(OpencseError, match="simcse cannot be trained on labels"):
        with_labels(load_recipe("simcse"), pairs)


def test_labels_stand_behind_the_other_rows(pairs, tmp_path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"sentence {i}\n" for i in range(36)))
    rows = join_labels(Corpus(corpus), pairs, tmp_path / "out.parquet", ["text"])
    texts = [text for (text,) in rows.rows(("text",))]
    assert texts[-2:] == ["Refunds are allowed."] * 2
    assert len(texts) == 38
    assert labels_note(pairs, rows.rows(pairs.columns)) == (
        "Labels: 2 of labels.csv (1 same, 1 opposite), in 2 of 38 training rows (5.3%)."
    )


@pytest.mark.slow
def test_a_run_trains_on_labels_and_its_report_says_how_many(pairs, tmp_path) -> None:
    corpus = [
        text.replace("The ", f"{start} ").replace("Anna", name)
        for start, name in (("The", "Anna"), ("This", "Otto"), ("That", "Mary"), ("Our", "Paul"))
        for text in ("The bridge is safe.", "The soup is hot and the bread is fresh.", "Anna sold the house in 1990.")
    ]
    out, notes = tmp_path / "out", []
    result = opencse.run(
        "debias",
        corpus,
        backbone=str(tiny_bert(tmp_path / "bert")),
        out=out,
        labels=pairs.path,
        overrides=[
            *("training.max_steps=2", "training.batch_size=4", "training.precision=fp32"),
            *("encoder.pooling=cls", "block.fit_steps=4"),
        ],
        progress=False,
        notify=notes.append,
    )
    assert result.run.outcome.steps == 2
    rows = pq.read_table(out / "mixture.parquet")
    assert rows["label_opposite"].drop_null().to_pylist()[0] == "Refunds are refused."
    (note,) = (note for note in notes if note.startswith("Labels: "))
    assert f"of {len(rows):,} training rows" in note
    assert note in (out / "report.html").read_text()
    assert "meaning/opposed" in (out / "metrics.jsonl").read_text()
