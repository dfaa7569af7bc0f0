"""The probes, their data and their estimates."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.evaluation import evaluate_tasks, load_sts
from opencse.evaluation.estimate import Estimate, mean_estimate, rate_estimate, weighted
from opencse.evaluation.probes import (
    ProbeData,
    load_probe_data,
    load_probe_sts,
    read_sentences,
    run_probes,
)
from opencse.evaluation.probes.probe_suite import short_names
from opencse.evaluation.probes.probes import (
    KINDS,
    SPLITS,
    search_versions,
    split_results,
    transformation_cosines,
)
from opencse.evaluation.sts import PUBLISHED_ROWS, spearman
from opencse.evaluation.written_sets import Triplet, TripletSet
from opencse.foundation.errors import OpencseError
from opencse.text.surface import match_error_rate
from tests.evaluation.probes.helpers import ROWS, bag_of_words, embedded, pairs, write_sentences


@pytest.fixture
def sentences(tmp_path):
    return read_sentences(write_sentences(tmp_path / "mine.tsv"))


def by_meaning(texts):
    """Sentence and paraphrase alike, everything else apart."""
    vectors = np.eye(64)
    place = {text: i for i, row in enumerate(ROWS) for text in row[:2]}
    return np.array([vectors[place.get(text, 10 + i % 50)] for i, text in enumerate(texts)])


def test_wording_prefers_every_negation_and_meaning_every_paraphrase(sentences):
    for encode, rate in ((bag_of_words, 0.0), (by_meaning, 1.0)):
        found = transformation_cosines(sentences, embedded(sentences, encode=encode))
        assert found.paraphrase_above_negation.value == rate
        assert found.paraphrase_above_negation.rows == len(ROWS)
    tied = transformation_cosines(
        sentences, embedded(sentences, encode=lambda texts: np.ones((len(texts), 3)))
    )
    assert tied.paraphrase_above_negation.value == 0.0
    kinds = {kind.kind: kind for kind in found.kinds}
    assert kinds["paraphrase"].cosines == (1.0,) * 4
    expected = match_error_rate([r[0] for r in ROWS], [r[2] for r in ROWS])
    assert kinds["negation"].error_rates == pytest.approx(expected, abs=1e-4)


def test_triplets_by_group():
    triplets = [
        Triplet(
            id=str(i),
            anchor=a,
            positive=p,
            negative=n,
            groups={"kind": "first" if i == 0 else "rest"},
        )
        for i, (a, p, n, _) in enumerate(ROWS)
    ]
    data = ProbeData(triplets=[TripletSet(name="written", triplets=tuple(triplets))])
    (found,), (worded,) = (
        run_probes(data, encode).triplets for encode in (by_meaning, bag_of_words)
    )
    assert (found.name, found.accuracy.value, found.rows_right) == ("written", 1.0, (True,) * 4)
    assert {name: group.rows for name, group in found.groups.items()} == {
        "kind: first": 1,
        "kind: rest": 3,
    }
    assert (worded.accuracy.value, worded.accuracy.low, worded.groups["kind: rest"].value) == (
        0.0,
        0.0,
        0.0,
    )


def test_search_against_a_literal_one(sentences):
    found = search_versions(sentences, embedded(sentences))
    corpus = list(dict.fromkeys(text for row in ROWS for text in row[:3]))
    assert found.corpus == len(corpus)
    vectors = bag_of_words(corpus)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for row, hits in zip(ROWS, found.hits, strict=True):
        query = vectors[corpus.index(row[0])]
        ranked = sorted(
            (text for text in corpus if text != row[0]),
            key=lambda t: -(vectors[corpus.index(t)] @ query),
        )
        assert [hit.text for hit in hits] == ranked[:3]
        assert hits[0].relation == "negation"
    assert (found.negation_first.value, found.paraphrase_first.value) == (1.0, 0.0)


def test_one_pass_over_distinct_texts_serves_everything_and_agrees_with_evaluate(sentences):
    rng = np.random.default_rng(1)
    words = [row[0] for row in ROWS] + [row[1] for row in ROWS]
    toy = pairs([(words[i], words[j], float(s)) for i, j, s in rng.integers(0, 6, (40, 3))], "toy")
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return bag_of_words(texts)

    own = pairs(list(zip(words[:4], words[:4], range(4), strict=True)), "own")
    data = ProbeData(sts=[toy], split_sets=[toy], pairs=[own], sentences=sentences)
    found = run_probes(data, encode)
    assert len(calls) == 1
    assert len(calls[0]) == len(set(calls[0]))
    assert found.sts[0] == evaluate_tasks(bag_of_words, [toy]).results[0]
    assert [result.task for result in found.sts] == ["toy", "own"]
    assert found.splits[-1].opposed.low < found.splits[-1].opposed.value
    assert spearman(found.pairs["toy"].gold, found.pairs["toy"].predicted) == pytest.approx(
        found.sts[0].score / 100
    )
    json.dumps(found.plain(), allow_nan=False)  # plain JSON, and no NaN anywhere


def test_two_sets_of_one_name_or_none_are_refused():
    toy = pairs([("a", "b", 1.0), ("c", "d", 2.0)], "STS12")
    with pytest.raises(OpencseError, match="two tasks are named 'STS12'"):
        run_probes(ProbeData(sts=[toy], pairs=[toy]), bag_of_words)
    with pytest.raises(OpencseError, match="nothing to probe"):
        run_probes(ProbeData(), bag_of_words)


def test_reads_a_table_of_which_a_limit_draws_rows(tmp_path):
    path = write_sentences(tmp_path / "mine.tsv")
    found = read_sentences(path)
    assert (found.kinds, [*found.anchors]) == (KINDS, [row[0] for row in ROWS])
    rows, first, second = found.pairs("negation")
    assert (rows.tolist(), first, second) == (
        [0, 1, 2, 3],
        [*found.anchors],
        [row[2] for row in ROWS],
    )
    drawn = read_sentences(path, limit=2)
    assert (len(drawn), drawn.total) == (2, 4)
    assert read_sentences(path, limit=2) == drawn


def test_reads_built_views(tmp_path):
    table = {
        "id": [0, 1, 2],
        "text": ["a b", "c d", "e f"],
        "negation": ["not a b", None, None],
        "negation.rule": ["x", "y", "z"],
    }
    pq.write_table(pa.table(table), tmp_path / "part-00000.parquet")
    found = read_sentences(tmp_path)
    assert (found.kinds, found.pairs("negation")[2]) == (("negation",), ["not a b"])


def test_a_substitution_of_san_is_no_transformation(tmp_path):
    table = {"text": ["a b", "c d"], "negation": ["x", "y"], "substitution": ["a x", "y d"]}
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    assert "substitution" in read_sentences(tmp_path / "mine.parquet").kinds
    pq.write_table(
        pa.table(table | {"substitution.overlap": ["0.5", "0.5"]}), tmp_path / "mine.parquet"
    )
    assert "substitution" not in read_sentences(tmp_path / "mine.parquet").kinds


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a\tb\nx\ty\n", "no column 'sentence' or 'text'"),
        ("text\tother\nx\ty\n", "no transformed version"),
        ("text\tnegation\n", "holds no sentence"),
        ("text\tnegation\nx\t\n", "negation are empty"),
        ("", "no column"),
    ],
)
def test_bad_tables_are_named(tmp_path, content, problem):
    path = tmp_path / "bad.tsv"
    path.write_text(content)
    with pytest.raises(OpencseError, match=problem):
        read_sentences(path)


def test_estimates_have_intervals_and_are_undefined_where_a_part_is():
    values = np.repeat([1.0, 0.0], [60, 140])
    estimate = mean_estimate(values)
    assert estimate.value == pytest.approx(0.3)
    half = 1.96 * (0.3 * 0.7 / 200) ** 0.5
    assert estimate.low == pytest.approx(0.3 - half, abs=0.01)
    assert estimate.high == pytest.approx(0.3 + half, abs=0.01)
    assert mean_estimate(values) == estimate
    share = rate_estimate(0, 10)
    assert (share.value, share.low, share.high) == pytest.approx((0, 0, 0.2775), abs=1e-4)
    assert mean_estimate(np.zeros(0), empty="no pair") == Estimate(
        value=None, rows=0, undefined="no pair"
    )
    some = Estimate(value=0.5, rows=10)
    assert weighted([some, Estimate(value=0.8, rows=30)]).value == pytest.approx(0.725)
    assert (
        weighted([some, Estimate(value=None, rows=3, undefined="x")]).undefined
        == "undefined in 1 of 2 sets"
    )
    assert weighted([]).undefined == "no set"


ANTONYMS = load_probe_data().triplets[-1]


def test_quadruples_are_two_sentences_and_their_negations() -> None:
    triplets = ANTONYMS.triplets
    forms = [each.groups["form"] for each in triplets[::2]]
    assert {form: forms.count(form) for form in forms} == {
        "affirmed": 160,
        "negated": 160,
        "verbs": 40,
    }
    first, second = triplets[:2]
    assert (first.anchor, second.negative) == ("The soup is hot.", "The soup is cold.")
    assert first.positive in ("The soup isn't cold.", "The soup is not cold.")
    assert (second.anchor, second.positive) == (first.anchor, first.positive)
    assert triplets[2].positive == triplets[320].anchor == first.negative


def measured(vector) -> list[float]:
    data = ProbeData(triplets=[ANTONYMS])
    (result,) = run_probes(
        data, lambda texts: np.array([vector(text) for text in texts], dtype=np.float32)
    ).triplets
    assert [*result.groups] == ["form: affirmed", "form: negated", "form: verbs"]
    return [result.accuracy.value, *(group.value for group in result.groups.values())]


def test_meaning_is_right_and_wording_is_wrong() -> None:
    rows = [(each.anchor, each.positive) for each in ANTONYMS.triplets]
    meaning = {text: min(row) for row in rows for text in row}
    number = {name: i for i, name in enumerate(sorted(set(meaning.values())))}
    assert measured(lambda text: np.eye(len(number))[number[meaning[text]]]) == [1.0] * 4
    words = sorted({word for text in meaning for word in text.split()})
    assert max(measured(lambda text: np.isin(words, text.split()).astype(float))) < 0.1
    assert measured(lambda text: [1.0, 0.0]) == [0.0] * 4, "a tie is not right"


def test_the_probe_of_the_package_includes_them() -> None:
    scores = run_probes(
        load_probe_data(), lambda texts: np.random.default_rng(0).normal(size=(len(texts), 16))
    )
    assert scores.triplets[-1].name == "negated antonyms"
    assert 0.2 < scores.triplets[-1].accuracy.value < 0.5


def test_names_are_as_short_as_tells_them_apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("a/run/model", "b/run/model", "c"):
        (tmp_path / folder).mkdir(parents=True)
    assert short_names(["minilm"]) == ["minilm"]
    assert short_names(["minilm", "c", "owner/name"]) == ["minilm", "c", "name"]
    assert short_names(["a/run", "c"]) == ["run", "c"]
    assert short_names(["a/run", "b/run/model"]) == ["run", "run/model"]
    assert short_names(["a/run/model"]) == ["run/model"]
    for doubled in (["c", "./c"], ["a/run", "a/run/model"], ["minilm", "minilm"]):
        with pytest.raises(OpencseError, match="named twice"):
            short_names(doubled)


def test_wording_alone_serves_consistent_pairs_and_fails_opposed_ones():
    rows = [
        ("a b c d e", "a b c d e", 5),
        ("a b c d e", "a b c d f", 4.5),
        ("k l m n", "k l m o", 4),
    ]
    rows += [("a b c", "x y z", 0), ("k l m", "k q r", 0.5), ("k l m n", "k l p q", 1)]
    rows += [
        ("a b c d", "a b c not", 1),
        ("a b c d", "t u v w", 4.4),
        ("f g h i", "f g h j", 0.2),
        ("m n", "q r", 4.8),
    ]
    results = split_results([pairs(rows)], embedded(pairs(rows)))[-1]
    assert results.consistent.value > 0.6
    assert results.opposed.value < -0.4
    assert results.consistent.rows + results.opposed.rows == len(rows)


def test_constant_scores_make_the_average_undefined_and_say_so():
    fine = pairs(
        [("a b", "a b", 5), ("a", "c", 0), ("a b c", "a b d", 2), ("q r", "a q", 1), ("x", "y", 4)],
        "fine",
    )
    flat = pairs([("a b", "a b", 3), ("a", "c", 3), ("d", "e", 3)], "flat")
    results = split_results([fine, flat], embedded(fine, flat))
    assert results[1].opposed.undefined == "all gold scores are equal"
    assert results[-1].opposed.value is None
    assert "1 of 2" in results[-1].opposed.undefined


def test_sets_of_the_table_on_real_data(data_folder, monkeypatch):
    monkeypatch.setitem(PUBLISHED_ROWS, ("STS-B", "train"), 5749)
    _, sets, missing = load_probe_sts(data_folder)
    assert missing == {}
    assert {each.name for each in sets} == set(SPLITS)
    results = split_results(sets, embedded(*sets))
    for each in results[:-1]:
        if not each.name.startswith("STS-B"):  # the authors' text of STS-B is not known
            row = SPLITS[each.name]
            # For two pairs of one set the MER depends on which text is the reference
            # (tests/text/test_surface.py).
            assert each.consistent.rows == row[0] - (each.name == "STS15 answers-students")
            assert (each.median_score, each.median_error_rate) == pytest.approx(row[2:], abs=1e-3)


def test_without_the_training_part_its_absence_is_named(data_folder, monkeypatch):
    monkeypatch.delitem(PUBLISHED_ROWS, ("STS-B", "train"), raising=False)
    tasks, sets, missing = load_probe_sts(data_folder)
    assert list(missing) == ["STS-B train"]
    assert len(sets) == len(SPLITS) - 1
    assert [task.sha256 for task in tasks] == [task.sha256 for task in load_sts(data_folder)]
