from __future__ import annotations

import gzip

import pytest

from opencse.evaluation import load_sts, sts
from opencse.foundation.errors import OpencseError


@pytest.fixture
def small_counts(monkeypatch):
    """Let the miniature folders below pass the count check."""
    monkeypatch.setattr(
        sts,
        "PUBLISHED_ROWS",
        {("STS13", "test"): 4, ("STS-B", "test"): 2, ("STS-B", "dev"): 1, ("SICK-R", "test"): 2, ("SICK-R", "dev"): 1},
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
    (bench / "sts-test.csv").write_text(f"{head}2.5\ta girl .\tb girl\tlicence\n{head}0.0\tc\td\n", encoding="utf-8")
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
        assert (sts13.sentence1, sts13.sentence2) == (("a cat .", 'say "x"', "d", "f"), ("the dog", "y z", "e", "g"))
        assert (sts13.scores, sts13.subsets) == ((1.5, 0.0, 5.0, 4.0), ("FNWN", "headlines", "OnWN", "OnWN"))
        assert (stsb.sentence1, stsb.scores, stsb.subsets) == (("a girl .", "c"), (2.5, 0.0), None)
        assert sick.sentence2 == ("A group", "y")
        assert {pairs.text for pairs in (sts13, stsb, sick)} == {"senteval"}
    stsb, sick = load_sts(senteval, tasks=["STS-B", "SICK-R"], split="dev")
    assert (stsb.sentence1, sick.sentence1, sick.scores) == (("e",), ("a cat",), (3.5,))


@pytest.mark.parametrize(
    ("task", "file", "text", "message"),
    [
        ("STS-B", "STS/STSBenchmark/sts-test.csv", "x\ty\n", r"sts-test\.csv, line 1: 2 .* too few"),
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
        assert [len(pairs) for pairs in load_sts(data_folder, text=text)] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]
    assert len(load_sts(data_folder, tasks=["STS-B"], split="dev")[0]) == 1500


def test_the_development_set_of_sick_is_its_trial_split(small_counts, tmp_path):
    folder = tmp_path / "SICKR"
    folder.mkdir()
    (tmp_path / "STSB").mkdir()
    with gzip.open(folder / "trial.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("sentence1\tsentence2\tscore\tsentence1_senteval\tsentence2_senteval\nA\tB\t2\ta\tb\n")
    (dev,) = load_sts(tmp_path, tasks=["SICK-R"], split="dev")
    assert (dev.sentence1, dev.scores) == (("a",), (2.0,))
