from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from opencse.commands.probe import reranked_examples
from opencse.commands.reports.examples import pick_examples
from opencse.debias.payload import Parts
from opencse.evaluation.probes import ProbeData, ProbeSentences

VECTORS = {
    "open": (1.0, 0.0),
    "closed": (0.9, 0.1),
    "not shut": (0.5, 0.5),
    "wet": (0.0, 1.0),
    "dry": (0.1, 0.9),
    "moist": (0.0, 1.0),
}
SIGN = {"closed": -1.0, "dry": -1.0, "moist": -1.0}


class Reranks:
    """A reranker that knows the sign of every text, and is wrong about one."""

    def parts(self, texts):
        vectors = np.array([VECTORS[text] for text in texts], np.float32)
        code = np.array([[SIGN.get(text, 1.0), 0.0] for text in texts], np.float32)
        topic = np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))
        return Parts(vectors=vectors, code=code, topic=topic, asks=np.zeros(len(texts), bool))


def encode(texts):
    return np.array([VECTORS[text] for text in texts])


def test_most_examples_are_mended_and_one_stays_wrong() -> None:
    triples = [("wet", "moist", "dry"), ("open", "not shut", "closed")]
    found = pick_examples(triples, encode, Reranks(), wanted=2)
    assert [example.text for example in found] == ["open", "wet"]
    mended, wrong = found
    assert (mended.solved_before, mended.solved_after) == (False, True)
    right, opposite = mended.candidates
    assert (right.agreement, opposite.agreement) == (1.0, -1.0)
    assert right.before < opposite.before
    assert not wrong.solved_after or wrong.solved_before


def test_without_triples_there_are_no_examples() -> None:
    assert pick_examples([], encode, Reranks()) == []


def test_a_probe_of_a_model_with_a_block_has_examples_of_its_sentences(monkeypatch) -> None:
    sentences = ProbeSentences(
        name="own",
        anchors=["open", "wet"],
        versions={"paraphrase": ["not shut", None], "negation": ["closed", "dry"]},
        total=2,
    )
    before = SimpleNamespace(encode=encode)
    after = SimpleNamespace(model=None)
    data = ProbeData(sentences=sentences)
    monkeypatch.setattr("opencse.commands.probe.reranker_of", lambda model: Reranks())
    (example,) = reranked_examples(before, after, data)
    assert example.text == "open"
    monkeypatch.setattr("opencse.commands.probe.reranker_of", lambda model: None)
    assert reranked_examples(before, after, data) == []
