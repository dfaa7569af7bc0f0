from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes import ProbeData, load_probe_data
from opencse.foundation.errors import OpencseError
from opencse.papers.details import (
    PairGroup,
    detail_figures,
    detail_listing,
    find_neighbours,
    load_group,
    pair_cosines,
    project,
    training_pairs,
)
from opencse.papers.entries import Entry, NeighbourQuery, System
from opencse.papers.scores import EntryColumn, Missing
from opencse.recipes import load_recipe
from opencse.text.corpus import Corpus

GROUPS = {
    "paraphrase": [("a b", "c d", 5.0), ("a b", "a d", 4.5)],
    "negation": [("a b", "not a b", None)],
}
QUANTITIES = ("cosine", "deviation", "error rate", "overlap", "count")
VECTORS = {"a b": [1, 0], "c d": [0, 1], "a d": [1, 1], "not a b": [1, 0]}


def measured(scale: float = 1.0):
    return pair_cosines(GROUPS, lambda texts: np.array([VECTORS[text] for text in texts]) * scale)


def entry(**settings) -> Entry:
    groups = tuple(PairGroup(name=name, transformation=name) for name in GROUPS)
    systems = (System(label="A", recipe="simcse"), System(label="B", recipe="osscse"))
    return Entry(
        **{
            "name": "x/y",
            "title": "T",
            "kind": "pairs",
            "groups": groups,
            "systems": systems,
            **settings,
        }
    )


def test_cosines_and_wording_of_each_group() -> None:
    titles = [f"{group}: {each}" for group in GROUPS for each in QUANTITIES]
    pairs = measured()
    scores = {title: pairs.value(EntryColumn.parse(title)) for title in titles}
    assert scores["paraphrase: cosine"] == pytest.approx(np.sqrt(0.5) / 2)
    assert scores["paraphrase: deviation"] == pytest.approx(0.5)
    assert scores["paraphrase: error rate"] == pytest.approx(
        0.75
    )  # two of two words, and one of two
    assert scores["paraphrase: overlap"] == pytest.approx(0.25)
    assert (scores["negation: cosine"], scores["negation: deviation"]) == (1.0, 0.0)
    assert (scores["paraphrase: count"], scores["negation: count"]) == (2.0, 1.0)


def test_a_scatter_has_both_models_for_each_group_and_both_groups_for_the_first() -> None:
    figures = detail_figures(entry(plot="scatter"), {"A": measured(), "B": measured(2.0)})
    assert list(figures) == ["-paraphrase", "-negation", "-a"]
    (axes,) = figures["-paraphrase"]().axes
    assert [cloud.get_label() for cloud in axes.collections] == ["A", "B"]
    assert np.allclose(axes.collections[0].get_offsets(), [[0, 1], [np.sqrt(0.5), 0.5]])
    assert axes.get_xlim() == (-0.02, 1.02)
    (axes,) = figures["-a"]().axes
    assert [cloud.get_label() for cloud in axes.collections] == ["paraphrase", "negation"]


def test_pairs_are_listed_with_their_scores_and_the_cosines_of_each_model() -> None:
    header, *rows = detail_listing(entry(texts=1), {"A": measured(), "B": measured()})
    assert header == ("", "sentence", "compared with", "human score", "A", "B")
    assert rows == [
        ("paraphrase", "a b", "c d", "5", "0.0000", "0.0000"),
        ("negation", "a b", "not a b", "", "1.0000", "1.0000"),
    ]
    assert detail_listing(entry(), {"A": measured()}) == ()


def test_pairs_of_one_system_alone_have_no_cosine_under_the_other() -> None:
    other = replace(measured(), pairs={"negation": GROUPS["negation"]})
    listed = detail_listing(
        entry(kind="training_pairs", groups=(), texts=1), {"A": measured(), "B": other}
    )
    assert listed[1] == ("paraphrase", "a b", "c d", "5", "0.0000", "")


def test_the_answer_has_a_rank_and_a_query_does_not_find_itself() -> None:
    pairs = ScoredPairs(
        name="STS-B", sentence1=["Go.", "Stop."], sentence2=["Leave.", "Halt."], scores=[5, 5]
    )
    queries = (NeighbourQuery(text="go.", answer=(0, 2)), NeighbourQuery(text="stop."))
    vectors = {
        "Go.": [1, 0],
        "go.": [1, 0],
        "Leave.": [3, 3],
        "Stop.": [2, 1],
        "stop.": [2, 1],
        "Halt.": [0, 1],
    }
    found = find_neighbours(
        pairs, queries, lambda texts: np.array([vectors[text] for text in texts])
    )
    assert found.value(EntryColumn.parse("query 1: rank")) == 2.0
    assert found.value(EntryColumn.parse("query 2: rank")) == Missing("no answer is known")
    assert [text for text, _ in found.nearest[0]] == ["Stop.", "Leave.", "Halt."]
    listed = detail_listing(entry(kind="neighbours", groups=(), queries=queries), {"A": found})
    assert listed[:3] == (
        ("query", "rank", "A"),
        ("go.", "1", "Stop. (0.894)"),
        ("go.", "2", "Leave. (0.707)"),
    )


def test_a_narrow_cone_has_a_mean_cosine_near_one_and_little_spread() -> None:
    rng = np.random.default_rng(0)
    wide = project(rng.normal(size=(50, 8)))
    narrow = project(rng.normal(size=(50, 8)) + 30)
    assert abs(wide.mean_cosine) < 0.1 < 0.9 < narrow.mean_cosine
    assert np.abs(narrow.points).max() < 0.2 * np.abs(wide.points).max()
    plane = project(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]]))
    assert (plane.share, plane.mean_cosine) == (pytest.approx(1.0), pytest.approx(0.0))
    assert plane.value(EntryColumn.parse("variance shown, %")) == pytest.approx(100)


def test_projections_are_panels_on_one_scale() -> None:
    clouds = {
        name: project(np.random.default_rng(0).normal(size=(9, 4)) + shift)
        for name, shift in (("A", 0), ("B", 9))
    }
    figures = detail_figures(entry(kind="projection", groups=()), {**clouds, "C": clouds["A"]})
    assert list(figures) == [""]
    shown = [axes for axes in figures[""]().axes if axes.get_visible()]
    assert [axes.get_title().partition("\n")[0] for axes in shown] == ["A", "B", "C"]
    assert len({axes.get_xlim() for axes in shown}) == 1


PAIRS = ScoredPairs(
    name="STS12",
    sentence1=["a b c d", "a b c d", "e f g h", "e f g h", "k"],
    sentence2=["a b c d", "w x y z", "e x y z", "e x y z", "m"],
    scores=[5.0, 4.0, 4.8, 4.8, 1.0],
)


def test_pairs_that_say_the_same_in_other_words_are_chosen_once_the_highest_score_first() -> None:
    group = PairGroup(name="x", least_score=4.0, below_overlap=0.6)
    assert load_group(group, ProbeData(sts=[PAIRS, replace(PAIRS, name="STS-B")])) == [
        ("e f g h", "e x y z", 4.8),
        ("a b c d", "w x y z", 4.0),
    ]
    assert len(load_group(PairGroup(name="x", least_score=4.0), ProbeData(sts=[PAIRS]))) == 3


def test_a_transformation_is_that_of_the_probe_and_versions_belong_to_one_sentence() -> None:
    data = load_probe_data()
    negations = load_group(PairGroup(name="x", transformation="negation"), data)
    assert len(negations) > 100
    written = load_group(PairGroup(name="x", sentence="s", versions=("t", "u")), data)
    assert written == [("s", "t", None), ("s", "u", None)]
    with pytest.raises(OpencseError, match="'rumour'"):
        load_group(PairGroup(name="x", transformation="rumour"), data)


def test_pairs_may_be_those_of_one_task_within_a_range_of_scores() -> None:
    other = replace(PAIRS, name="STS-B", sentence1=["q", *PAIRS.sentence1[1:]])
    group = PairGroup(name="x", least_score=5.0, below_score=5.01, task="STS-B")
    assert load_group(group, ProbeData(sts=[PAIRS, other]))[0][0] == "q"
    ((*_, score),) = load_group(
        PairGroup(name="x", least_score=4.0, below_score=4.5), ProbeData(sts=[PAIRS])
    )
    assert score == 4.0
    shares = ScoredPairs(name="own", sentence1=["a", "b"], sentence2=["c", "d"], scores=[0.2, 1.0])
    with pytest.raises(OpencseError, match="no pair has a score of at least 4"):
        load_group(PairGroup(name="x", least_score=4.0), ProbeData(pairs=[shares]))


def test_a_pair_is_looked_up_by_its_place(monkeypatch) -> None:
    monkeypatch.setattr("opencse.papers.details.load_sts", lambda *_, **options: [PAIRS])
    group = PairGroup(name="x", place=("STS12", "test", 3))
    assert load_group(group, ProbeData(), "data") == [("e f g h", "e x y z", 4.8)]
    with pytest.raises(OpencseError, match="a pair of STS12"):
        load_group(group, ProbeData())


def rows(tmp_path, *lines: str) -> Corpus:
    path = tmp_path / "rows.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Corpus(path)


def pairs(recipe: str, corpus: Corpus, limit: int = 10) -> dict[str, list[tuple[str, str]]]:
    found = training_pairs(load_recipe(recipe), corpus, limit)
    return {role: [(first, second) for first, second, _ in each] for role, each in found.items()}


def test_training_pairs_are_those_of_the_columns_of_each_row(tmp_path) -> None:
    corpus = rows(tmp_path, "text", "a", "b", "c")
    assert pairs("simcse", corpus) == {
        "positive": [("a", "a"), ("b", "b"), ("c", "c")],
        "negative": [("a", "b"), ("b", "c")],
    }
    assert {len(each) for each in pairs("simcse", corpus, limit=1).values()} == {1}
    corpus = rows(tmp_path, "text\tentailment\tcontradiction", "a\tb\tc")
    assert pairs("simcse-sup", corpus) == {"positive": [("a", "b")], "negative": [("a", "c")]}
    header = "text\tpositive_1\tpositive_2\tnegative_1\tnegative_2"
    corpus = rows(tmp_path, header, "a\tp\tq\tm\tn", "b\t\t\to\t")
    assert pairs("debcse", corpus) == {
        "positive": [("a", "p"), ("a", "q")],
        "negative": [("a", "m"), ("a", "n"), ("b", "o")],
    }
