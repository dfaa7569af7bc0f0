from __future__ import annotations

from dataclasses import replace

import pytest

from opencse.commands.reproduction.details import PairGroup, load_group
from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes import ProbeData, load_probe_data
from opencse.foundation.errors import OpencseError

PAIRS = ScoredPairs(
    name="STS12",
    sentence1=["a b c d", "a b c d", "e f g h", "e f g h", "k"],
    sentence2=["a b c d", "w x y z", "e x y z", "e x y z", "m"],
    scores=[5.0, 4.0, 4.8, 4.8, 1.0],
)


def test_pairs_that_say_the_same_in_other_words_are_chosen_once_the_highest_score_first() -> None:
    group = PairGroup(name="x", least_score=4.0, below_overlap=0.6)
    found = load_group(group, ProbeData(sts=[PAIRS, replace(PAIRS, name="STS-B")]))
    assert list(zip(found.first, found.second, found.scores, strict=True)) == [
        ("e f g h", "e x y z", 4.8),
        ("a b c d", "w x y z", 4.0),
    ]
    assert len(load_group(PairGroup(name="x", least_score=4.0), ProbeData(sts=[PAIRS])).first) == 3


def test_scores_on_another_scale_are_left_out() -> None:
    shares = ScoredPairs(name="own", sentence1=["a", "b"], sentence2=["c", "d"], scores=[0.2, 1.0])
    with pytest.raises(OpencseError, match="no pair has a score of at least 4"):
        load_group(PairGroup(name="x", least_score=4.0), ProbeData(pairs=[shares]))


def test_a_transformation_is_that_of_the_probe_and_versions_belong_to_one_sentence() -> None:
    data = load_probe_data()
    negations = load_group(PairGroup(name="x", transformation="negation"), data)
    assert len(negations.first) == len(negations.second) > 100
    written = load_group(PairGroup(name="x", sentence="s", versions=("t", "u")), data)
    assert (list(written.first), list(written.second)) == (["s", "s"], ["t", "u"])
    with pytest.raises(OpencseError, match="'rumour'"):
        load_group(PairGroup(name="x", transformation="rumour"), data)


def test_pairs_may_be_those_of_one_task_within_a_range_of_scores() -> None:
    other = replace(PAIRS, name="STS-B", sentence1=["q", *PAIRS.sentence1[1:]])
    group = PairGroup(name="x", least_score=5.0, below_score=5.01, task="STS-B")
    assert load_group(group, ProbeData(sts=[PAIRS, other])).first == ["q"]
    assert load_group(PairGroup(name="x", least_score=4.0, below_score=4.5), ProbeData(sts=[PAIRS])).scores == [4.0]


def test_a_pair_is_looked_up_by_its_place(monkeypatch) -> None:
    monkeypatch.setattr("opencse.commands.reproduction.details.load_sts", lambda *_, **options: [PAIRS])
    group = PairGroup(name="x", place=("STS12", "test", 3))
    found = load_group(group, ProbeData(), "data")
    assert (found.first, found.second, found.scores) == (["e f g h"], ["e x y z"], [4.8])
    with pytest.raises(OpencseError, match="a pair of STS12"):
        load_group(group, ProbeData())
