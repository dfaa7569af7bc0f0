from __future__ import annotations

import gzip
import json

import pytest

from opencse.evaluation import labelled, load_labelled
from opencse.evaluation.labelled import CLASSIFICATION_TASKS, TRANSFER_TASKS
from opencse.foundation.errors import OpencseError


@pytest.fixture(autouse=True)
def any_count(monkeypatch, request):
    """Let the miniature folders below pass the count check."""
    if "data_folder" not in request.fixturenames:
        monkeypatch.setattr(labelled, "PUBLISHED_PARTS", {"TREC": {"train": 3, "test": 2}})


@pytest.fixture
def senteval(tmp_path):
    """SentEval's data/downstream, in miniature, as its download script writes it."""
    root = tmp_path / "downstream"
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    files = {
        "CR/custrev.pos": "three words here .\nfine\n",
        "CR/custrev.neg": "bad\ncaf\xe9 was bad\n",
        "SST/binary/sentiment-train": "good  film\t1\nbad\t0\n",
        "SST/binary/sentiment-dev": "bad film \t0\n",
        "SST/binary/sentiment-test": "good\t1\n",
        "TREC/train_5500.label": "NUM:dist How far is it ?\nLOC:city Where ?\nABBR:exp What is it ?\n",
        "TREC/TREC_10.label": "NUM:date When was it ?\nLOC:other Where is it ?\n",
        "MRPC/msr_paraphrase_train.txt": head + "1\t7\t8\ta b\tc\n0\t9\t9\ta\td e\n",
        "MRPC/msr_paraphrase_test.txt": head + "1\t7\t8\tx\ty\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        encoding = "latin-1" if name.startswith(("CR", "TREC")) else "utf-8"
        (root / name).write_text(text, encoding=encoding)
    return root


def rows(part):
    columns = [part.labels, part.texts, *([] if part.seconds is None else [part.seconds])]
    return list(zip(*columns, strict=True))


def test_reads_a_senteval_folder_in_its_order(senteval):
    cr = load_labelled(senteval, "CR")
    assert rows(cr.train) == [("0", "bad"), ("1", "fine"), ("0", "café was bad"), ("1", "three words here .")]
    assert (cr.dev, cr.test, cr.text) == (None, None, "senteval")
    sst = load_labelled(senteval.parent, "SST2")
    assert [rows(part) for _, part in sst.parts()] == [
        [("0", "bad"), ("1", "good film")],
        [("0", "bad film")],
        [("1", "good")],
    ]
    trec = load_labelled(senteval, "TREC")
    assert rows(trec.train) == [("LOC", "Where ?"), ("ABBR", "What is it ?"), ("NUM", "How far is it ?")]
    assert trec.classes == ["ABBR", "LOC", "NUM"]
    assert trec.indices(trec.test).tolist() == [1, 2]
    mrpc = load_labelled(senteval, "MRPC")
    assert rows(mrpc.train) == [("0", "a", "d e"), ("1", "a b", "c")]


@pytest.mark.parametrize(
    ("task", "file", "text", "message"),
    [
        ("TREC", "TREC/train_5500.label", "LOC:city Where ?\nnothing\n", "line 2: no class and question"),
        ("TREC", "TREC/train_5500.label", "LOC:city Where ?\nNUM:a b\n", "TREC train has 2 rows .* published 3"),
        ("MRPC", "MRPC/msr_paraphrase_test.txt", "header\n1\t2\n", r"test\.txt, line 2: 2 .* too few"),
        ("CR", "CR/custrev.neg", None, r"custrev\.neg: no such file"),
        ("MR", None, None, "holds no MR"),
    ],
)
def test_senteval_folders_that_cannot_be_trusted(senteval, task, file, text, message):
    if text is not None:
        (senteval / file).write_text(text)
    elif file is not None:
        (senteval / file).unlink()
    with pytest.raises(OpencseError, match=message):
        load_labelled(senteval, task)
    with pytest.raises(OpencseError, match="SentEval text only"):
        load_labelled(senteval, "SST2", text="raw")


def test_reads_both_texts_of_the_table_layout(tmp_path):
    folder = tmp_path / "eval" / "CR"
    folder.mkdir(parents=True)
    text = "label\ttext\ttext_senteval\n1\tA good one!\ta  good one !\n0\tBad.\tbad .\n"
    (folder / "data.tsv.gz").write_bytes(gzip.compress(text.encode()))
    found = load_labelled(tmp_path, "CR")
    assert (rows(found.train), found.text) == ([("0", "bad ."), ("1", "a good one !")], "senteval")
    found = load_labelled(tmp_path / "eval", "CR", text="raw")
    assert (rows(found.train), found.text) == ([("0", "Bad."), ("1", "A good one!")], "raw")


def test_any_folder_with_labelled_parts_is_a_task(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.csv").write_text('text,label\n"one, two",x\n\nthree ,y\n')
    (folder / "test.jsonl").write_text(json.dumps({"text": "four", "label": "y"}) + "\n\n")
    mine = load_labelled(tmp_path, "mine")
    assert rows(mine.train) == [("x", "one, two"), ("y", "three ")]
    assert (rows(mine.test), mine.text) == ([("y", "four")], "released")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,class\na,x\n", "line 2: no label among text, class"),
        ("text,label\n", "holds no row"),
        ("text,label\na,x\nb,x\n", "all texts are of one class, 'x'"),
    ],
)
def test_bad_tables_are_named(tmp_path, text, message):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.csv").write_text(text)
    with pytest.raises(OpencseError, match=message) as error:
        load_labelled(tmp_path, "mine")
    assert error.value.remedy


def test_the_real_files_have_the_published_sizes(data_folder):
    for task in (*TRANSFER_TASKS, *CLASSIFICATION_TASKS):
        assert load_labelled(data_folder, task).name == task
