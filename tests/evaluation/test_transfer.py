"""Tasks of labelled texts, and SentEval's protocol against its plain loops."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from opencse.evaluation import TextEmbeddings, evaluate_tasks
from opencse.evaluation import labelled as labelled_module
from opencse.evaluation.cross_validation import (
    CrossValidation,
    Fit,
    cross_validate,
    train_classifiers,
)
from opencse.evaluation.labelled import (
    CLASSIFICATION_TASKS,
    TRANSFER_TASKS,
    ClassificationTask,
    LabelledSet,
    TransferTask,
    features,
    load_labelled,
)
from opencse.foundation.errors import OpencseError
from tests.reference import senteval

HOW = CrossValidation(folds=3, epochs_per_round=1, patience=0, max_epochs=2)


def labelled(
    count: int, start: int = 0, *, pairs: bool = False, classes: int = 2
) -> list[tuple[str, ...]]:
    return [
        (str(i % classes), f"t{i}", f"s{i}")[: 3 if pairs else 2]
        for i in range(start, start + count)
    ]


def encode(texts):
    """Vectors that tell the class of a text (its number modulo 2)."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(texts), 4))
    return noise + 60 * np.array([[int(text[1:]) % 2 - 0.5, 0, 0, 0] for text in texts])


@pytest.mark.parametrize(
    "parts",
    [
        {"train": labelled(60)},
        {"train": labelled(60), "test": labelled(30, 60)},
        {"train": labelled(60), "dev": labelled(20, 60), "test": labelled(30, 80)},
    ],
)
def test_parts_choose_the_protocol(parts):
    task = TransferTask(name="toy", parts=parts, protocol=CrossValidation(folds=3, max_epochs=40))
    result = evaluate_tasks(encode, [task])["toy"]
    assert result.score > 80
    assert result.rows == len(parts.get("test", parts["train"]))
    assert result.details["folds"] == (None if "dev" in parts else 3)


def test_pairs_have_senteval_features_and_f1():
    train, test = labelled(40, pairs=True), labelled(30, 40, pairs=True)
    task = TransferTask(name="MRPC", parts={"train": train, "test": test}, protocol=HOW)
    texts = list(task.texts())
    embeddings = TextEmbeddings(texts, np.asarray(encode(texts)))
    u, v = (embeddings([row[side] for row in test]) for side in (1, 2))
    assert features(embeddings, test) == pytest.approx(
        np.hstack([abs(u - v), u * v]), rel=1e-5, abs=1e-5
    )
    found, _ = task.predict(embeddings)
    gold = [int(label) for label, *_ in test]
    assert task.score(embeddings).metrics["f1"] == pytest.approx(
        100 * f1_score(gold, found.classes)
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": labelled(9, classes=1)}, "all texts are of one class, '0'"),
        ({"train": labelled(0)}, "x train holds no text"),
        (
            {"train": labelled(9), "test": labelled(9, classes=3)},
            "x test: the class '2' does not occur",
        ),
        (
            {"train": labelled(5)},
            "class '1' has 2 training texts, and cross-validation in 3 folds needs 3",
        ),
    ],
)
def test_data_that_cannot_be_scored_is_named(parts, message):
    with pytest.raises(OpencseError, match=message):
        evaluate_tasks(encode, [TransferTask(name="x", parts=parts, protocol=HOW)])


def test_the_hash_sees_texts_labels_and_parts():
    sets = [
        {"train": labelled(8), "test": labelled(4)},
        {"train": labelled(8)},
        {"train": labelled(8), "dev": labelled(4)},
        {"train": labelled(8, pairs=True), "test": labelled(4)},
        {"train": labelled(8, 1), "test": labelled(4)},
    ]
    assert len({LabelledSet(name="x", parts=parts).sha256 for parts in sets}) == 5


def test_classification_scores_the_test_part():
    task = ClassificationTask(name="toy", parts={"train": labelled(90), "test": labelled(30, 90)})
    result = evaluate_tasks(encode, [task])["toy"]
    assert (result.main, result.rows, result.score) == ("accuracy", 30, 100)
    assert set(result.metrics) == {"accuracy", "f1"}
    with pytest.raises(OpencseError, match="toy has no test part"):
        ClassificationTask(name="toy", parts={"train": labelled(9)})


SHORT = CrossValidation(folds=3, epochs_per_round=2, patience=1, max_epochs=8)
LOOPS = {"passes": 2, "patience": 1, "limit": 8}


def data(rows: int, width: int = 6, classes: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return (rng.normal(size=(rows, width)) + 2 * np.eye(classes, width)[y]).astype(np.float32), y


def test_every_classifier_is_what_it_would_be_alone():
    x, y = data(211)
    rng = np.random.default_rng(1)
    sizes = [
        (100, 30),
        (97, 31),
        (130, 29),
        (64, 12),
    ]  # whole and ragged batches, and other numbers of steps
    picks = [rng.permutation(len(x)) for _ in sizes]
    rows = [(order[:a], order[a : a + b]) for order, (a, b) in zip(picks, sizes, strict=True)]
    penalties = (1e-5, 1e-1)
    fits = [
        Fit(train=a, dev=b, penalties=penalties, random=np.random.RandomState(1111))
        for a, b in rows
    ]
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    fitted = train_classifiers((x, y), fits, SHORT)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    for (a, b), each in zip(rows, fitted, strict=True):
        for place, penalty in enumerate(penalties):
            alone = senteval.Classifier(6, 3, penalty, **LOOPS).fit(x[a], y[a], dev=(x[b], y[b]))
            weights = (
                torch.cat([alone.layer.weight, alone.layer.bias[:, None]], dim=1).detach().numpy()
            )
            assert each.weights[place] == pytest.approx(weights, abs=2e-6)
            assert each.accuracy[place] == pytest.approx(alone.score(x[b], y[b]))
            assert (each.predict(x, place) == alone.predict(x)).all()


def test_the_three_protocols_equal_the_loops():
    x, y = data(160, seed=2)
    found = cross_validate([(x, y)], SHORT)
    assert found.accuracy == pytest.approx(
        np.mean(senteval.nested(x, y, 3, count=3, **LOOPS)), abs=0.005
    )
    assert len(found.penalties) == 3
    x_test, y_test = data(90, seed=3)
    found = cross_validate([(x, y), (x_test, y_test)], SHORT)
    predicted, penalty = senteval.cross_validated(x, y, x_test, 3, count=3, **LOOPS)
    assert (found.classes == predicted).all()
    assert found.penalties == (penalty,)
    x_dev, y_dev = data(50, seed=4)
    found = cross_validate([(x, y), (x_dev, y_dev), (x_test, y_test)], SHORT)
    predicted, penalty = senteval.split(x, y, (x_dev, y_dev), x_test, 3, **LOOPS)
    assert (found.classes == predicted).all()
    assert found.penalties == (penalty,)
    assert found.accuracy == 100 * (predicted == y_test).mean()


@pytest.fixture(autouse=True)
def any_count(monkeypatch, request):
    """Let the miniature folders below pass the count check."""
    if "data_folder" not in request.fixturenames:
        monkeypatch.setattr(
            labelled_module, "PUBLISHED_ROWS", {("TREC", "train"): 3, ("TREC", "test"): 2}
        )


@pytest.fixture
def downstream(tmp_path):
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


def test_reads_a_senteval_folder_in_its_order(downstream):
    cr = load_labelled(downstream, "CR")
    assert cr.parts["train"] == [
        ("0", "bad"),
        ("1", "fine"),
        ("0", "café was bad"),
        ("1", "three words here ."),
    ]
    assert (list(cr.parts), cr.text) == (["train"], "senteval")
    sst = load_labelled(downstream.parent, "SST2")
    assert list(sst.parts.values()) == [
        [("0", "bad"), ("1", "good film")],
        [("0", "bad film")],
        [("1", "good")],
    ]
    trec = load_labelled(downstream, "TREC")
    assert trec.parts["train"] == [
        ("LOC", "Where ?"),
        ("ABBR", "What is it ?"),
        ("NUM", "How far is it ?"),
    ]
    assert trec.classes == ["ABBR", "LOC", "NUM"]
    assert trec.indices(trec.parts["test"]).tolist() == [1, 2]
    mrpc = load_labelled(downstream, "MRPC")
    assert mrpc.parts["train"] == [("0", "a", "d e"), ("1", "a b", "c")]


@pytest.mark.parametrize(
    ("task", "file", "text", "message"),
    [
        (
            "TREC",
            "TREC/train_5500.label",
            "LOC:city Where ?\nnothing\n",
            "line 2: no class and question",
        ),
        (
            "TREC",
            "TREC/train_5500.label",
            "LOC:city Where ?\nNUM:a b\n",
            "TREC train has 2 rows .* published 3",
        ),
        (
            "MRPC",
            "MRPC/msr_paraphrase_test.txt",
            "header\n1\t2\n",
            r"test\.txt, line 2: 2 .* too few",
        ),
        ("CR", "CR/custrev.neg", None, r"custrev\.neg: no such file"),
        ("MR", None, None, "holds no MR"),
    ],
)
def test_senteval_folders_that_cannot_be_trusted(downstream, task, file, text, message):
    if text is not None:
        (downstream / file).write_text(text)
    elif file is not None:
        (downstream / file).unlink()
    with pytest.raises(OpencseError, match=message):
        load_labelled(downstream, task)
    with pytest.raises(OpencseError, match="SentEval text only"):
        load_labelled(downstream, "SST2", text="raw")


def test_tables_may_have_both_texts_and_any_folder_with_labelled_parts_is_a_task(tmp_path):
    folder = tmp_path / "eval" / "CR"
    folder.mkdir(parents=True)
    text = "label\ttext\ttext_senteval\n1\tA good one!\ta  good one !\n0\tBad.\tbad .\n"
    (folder / "data.tsv.gz").write_bytes(gzip.compress(text.encode()))
    found = load_labelled(tmp_path, "CR")
    assert (found.parts["train"], found.text) == (
        [("0", "bad ."), ("1", "a good one !")],
        "senteval",
    )
    found = load_labelled(tmp_path / "eval", "CR", text="raw")
    assert (found.parts["train"], found.text) == ([("0", "Bad."), ("1", "A good one!")], "raw")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.csv").write_text('text,label\n"one, two",x\n\nthree ,y\n')
    (folder / "test.jsonl").write_text(json.dumps({"text": "four", "label": "y"}) + "\n\n")
    mine = load_labelled(tmp_path, "mine")
    assert mine.parts["train"] == [("x", "one, two"), ("y", "three ")]
    assert (mine.parts["test"], mine.text) == ([("y", "four")], "released")


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
