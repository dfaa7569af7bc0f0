from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from opencse.evaluation import PairsTask, Triplet, TripletSet, evaluate_tasks
from opencse.evaluation.probes import ProbeData, probe_encoders, read_sentences
from opencse.evaluation.probes.probe_suite import TripletProbe
from opencse.evaluation.probes.sentence_versions import RetrievalProbe, TransformationProbe
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
    part = TransformationProbe(sentences)
    for encode, rate in ((bag_of_words, 0.0), (by_meaning, 1.0)):
        found = part.measure(embedded(part, encode))
        assert found.paraphrase_above_negation.value == rate
        assert found.paraphrase_above_negation.rows == len(ROWS)
    tied = part.measure(embedded(part, lambda texts: np.ones((len(texts), 3))))
    assert tied.paraphrase_above_negation.value == 0.0
    kinds = {kind.kind: kind for kind in found.kinds}
    assert kinds["paraphrase"].cosines == (1.0,) * 4
    expected = match_error_rate([r[0] for r in ROWS], [r[2] for r in ROWS])
    assert kinds["negation"].error_rates == pytest.approx(expected, abs=1e-4)


def test_triplets_by_group():
    triplets = [
        Triplet(id=str(i), anchor=a, positive=p, negative=n, groups={"kind": "first" if i == 0 else "rest"})
        for i, (a, p, n, _) in enumerate(ROWS)
    ]
    part = TripletProbe([TripletSet(name="written", triplets=tuple(triplets))])
    (found,) = part.measure(embedded(part, by_meaning))
    assert (found.name, found.accuracy.value, found.rows_right) == ("written", 1.0, (True,) * 4)
    assert {name: group.rows for name, group in found.groups.items()} == {"kind: first": 1, "kind: rest": 3}
    (worded,) = part.measure(embedded(part))
    assert (worded.accuracy.value, worded.accuracy.low, worded.groups["kind: rest"].value) == (0.0, 0.0, 0.0)


def test_search_against_a_literal_one(sentences):
    part = RetrievalProbe(sentences)
    found = part.measure(embedded(part))
    corpus = list(dict.fromkeys(text for row in ROWS for text in row[:3]))
    assert found.corpus == len(corpus)
    vectors = bag_of_words(corpus)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for row, hits in zip(ROWS, found.hits, strict=True):
        query = vectors[corpus.index(row[0])]
        ranked = sorted((text for text in corpus if text != row[0]), key=lambda t: -(vectors[corpus.index(t)] @ query))
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
    found = probe_encoders({"one": encode}, data)["one"]
    assert len(calls) == 1
    assert len(calls[0]) == len(set(calls[0]))
    assert found.sts[0] == evaluate_tasks(bag_of_words, [PairsTask(pairs=toy)]).results[0]
    assert [result.task for result in found.sts] == ["toy", "own"]
    json.dumps(asdict(found), allow_nan=False)  # plain JSON, and no NaN anywhere


def test_two_sets_of_one_name_or_none_are_refused():
    toy = pairs([("a", "b", 1.0), ("c", "d", 2.0)], "STS12")
    with pytest.raises(OpencseError, match="two sets of pairs are named 'STS12'"):
        probe_encoders({"one": bag_of_words}, ProbeData(sts=[toy], pairs=[toy]))
    with pytest.raises(OpencseError, match="nothing to probe"):
        probe_encoders({"one": bag_of_words}, ProbeData())
