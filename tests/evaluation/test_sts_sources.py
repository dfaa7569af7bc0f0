from __future__ import annotations

import gzip

import pytest

from opencse.evaluation import load_sts, sts_sources
from opencse.foundation.errors import OpencseError


@pytest.fixture
def small_counts(monkeypatch):
    """Let the miniature folders below pass the count check."""
    monkeypatch.setattr(
        sts_sources,
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
    (sick / "SICK_test_annotated.txt").write_text(
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        "6\tThere is no boy\tA group\t3.3\tNEUTRAL\n7\tx\ty\t4\tENTAILMENT\n",
        encoding="utf-8",
    )
    return root


def test_reads_a_senteval_folder(senteval, small_counts):
    tasks = ["STS13", "STS-B", "SICK-R"]
    for source in (senteval, senteval.parent, senteval.parent.parent):
        sts13, stsb, sick = load_sts(source, tasks=tasks)
        assert sts13.sentence1 == ("a cat .", 'say "x"', "d", "f")
        assert sts13.sentence2 == ("the dog", "y z", "e", "g")
        assert sts13.scores == (1.5, 0.0, 5.0, 4.0)
        assert sts13.subsets == ("FNWN", "headlines", "OnWN", "OnWN")
        assert stsb.sentence1 == ("a girl .", "c")
        assert stsb.scores == (2.5, 0.0)
        assert stsb.subsets is None
        assert sick.sentence2 == ("A group", "y")
        assert {pairs.text for pairs in (sts13, stsb, sick)} == {"senteval"}
    (dev,) = load_sts(senteval, tasks=["STS-B"], split="dev")
    assert dev.sentence1 == ("e",)


def test_senteval_folders_that_cannot_be_trusted(senteval, small_counts):
    with pytest.raises(OpencseError, match="SentEval text only"):
        load_sts(senteval, tasks=["STS-B"], text="raw")
    (senteval / "STS" / "STSBenchmark" / "sts-test.csv").write_text("x\ty\n")
    with pytest.raises(OpencseError, match=r"sts-test.csv, line 1: 2 .* too few"):
        load_sts(senteval, tasks=["STS-B"])
    (senteval / "STS" / "STS13-en-test" / "STS.gs.FNWN.txt").write_text("1\n")
    with pytest.raises(OpencseError, match="has 2 lines"):
        load_sts(senteval, tasks=["STS13"])
    (senteval / "SICK" / "SICK_test_annotated.txt").unlink()
    with pytest.raises(OpencseError, match=r"SICK_test_annotated\.txt: no such file"):
        load_sts(senteval, tasks=["SICK-R"])


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


def test_hub_is_asked_for_raw_text_only(monkeypatch, small_counts):
    with pytest.raises(OpencseError, match="raw text only"):
        load_sts("hub", tasks=["STS-B"])
    import datasets

    asked = []

    def load_dataset(name, split):
        asked.append((name, split))
        return [{"sentence1": "A.", "sentence2": "B.", "score": 1}, {"sentence1": "C.", "sentence2": "D.", "score": 2}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    stsb, sick = load_sts("hub", text="raw", tasks=["STS-B", "SICK-R"])
    assert asked == [("mteb/stsbenchmark-sts", "test"), ("mteb/sickr-sts", "test")]
    assert stsb.sentence1 == sick.sentence1 == ("A.", "C.")

    def unreachable(name, split):
        raise ConnectionError

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(OpencseError, match="cannot be fetched"):
        load_sts("hub", text="raw", tasks=["STS-B"])


def test_the_real_files_have_the_published_sizes(data_folder):
    for text in ("senteval", "raw"):
        assert [len(pairs) for pairs in load_sts(data_folder, text=text)] == [3108, 1500, 3750, 3000, 1186, 1379, 4927]
    assert len(load_sts(data_folder, tasks=["STS-B"], split="dev")[0]) == 1500


def test_the_development_set_of_sick_is_its_trial_split(small_counts, senteval, tmp_path):
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"
    (senteval / "SICK" / "SICK_trial.txt").write_text(f"{head}4\ta cat\ta dog\t3.5\n", encoding="utf-8")
    (dev,) = load_sts(senteval, tasks=["SICK-R"], split="dev")
    assert (dev.sentence1, dev.scores) == (("a cat",), (3.5,))
    folder = tmp_path / "own" / "SICKR"
    folder.mkdir(parents=True)
    (folder.parent / "STSB").mkdir()
    with gzip.open(folder / "trial.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("sentence1\tsentence2\tscore\tsentence1_senteval\tsentence2_senteval\nA\tB\t2\ta\tb\n")
    (dev,) = load_sts(tmp_path / "own", tasks=["SICK-R"], split="dev")
    assert (dev.sentence1, dev.scores) == (("a",), (2.0,))
