"""The score of stored payloads against a literal transcription, and the rule for yes/no questions."""

import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

from opencse.debias.payload import (
    CACHING,
    RANKING,
    Parts,
    agreement,
    from_payloads,
    is_yes_no_question,
    readings,
    score,
    score_pairs,
)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def some_parts(seed, count, asks=None):
    rng = np.random.default_rng(seed)
    topic = rng.normal(size=192)  # shared, so that topics are alike
    return Parts(
        vectors=unit(rng.normal(size=(count, 12))).astype(np.float32),
        code=unit(rng.normal(size=(count, 8))).astype(np.float32),
        topic=unit(topic + 0.3 * rng.normal(size=(count, 192))).astype(np.float32),
        asks=np.zeros(count, bool) if asks is None else np.array(asks),
    )


@pytest.mark.parametrize("penalty", [RANKING, CACHING])
def test_the_score_equals_its_formula(penalty):
    parts = some_parts(1, 7)
    first, second = parts[:3], parts[3:]
    found = score(first, second, penalty)
    lowered = 0
    for i in range(3):
        for j in range(4):
            cosine = first.vectors[i] @ second.vectors[j]
            codes = first.code[i] @ second.code[j]
            topics = first.topic[i] @ second.topic[j]
            doubt = max(0, penalty.least - codes) * max(0, topics) ** 6
            loss = penalty.size * doubt
            if penalty is RANKING:
                loss = 0.7 * math.log(1 + (doubt / 0.35) ** 2)
            assert found[i, j] == pytest.approx(cosine - loss, abs=1e-5)
            lowered += loss > 0.1
    assert lowered > 0
    pairs = score_pairs(first, second[:3], penalty)
    np.testing.assert_allclose(pairs, np.diagonal(found), atol=1e-6)


def test_a_yes_no_question_and_a_statement_keep_their_cosine():
    parts = some_parts(2, 4, asks=[True, True, False, False])
    parts.code[1::2] = -parts.code[::2]  # each side contradicts itself
    asked, said = parts[:2], parts[2:]
    np.testing.assert_allclose(score(asked, said), asked.vectors @ said.vectors.T, atol=1e-6)
    for side in (asked, said):  # two questions, or two statements, are compared
        assert (side.vectors @ side.vectors.T - score(side, side)).max() > 0.01
    assert readings(asked, said) == ["a question and an answer"] * 2


def test_readings_follow_the_agreement_on_the_same_topic():
    code, other = np.eye(8)[:1], np.eye(8)[1:2]
    topic, elsewhere = np.eye(192)[:1], np.eye(192)[1:2]

    def one(code, topic):
        return Parts(vectors=np.ones((1, 2)), code=code, topic=topic, asks=np.array([False]))

    said = one(code, topic)
    assert agreement(said, one(-code, topic)) == pytest.approx(-1)
    assert readings(said, one(-code, topic)) == ["says the opposite"]
    assert readings(said, one(code, topic)) == ["says the same"]
    assert readings(said, one(other, topic)) == ["can't tell"]
    assert readings(said, one(-code, elsewhere)) == ["about something else"]


def test_payloads_come_back_from_a_database_as_8_bit_integers():
    parts = some_parts(3, 50)
    small = parts.int8()
    assert small.code.dtype == small.topic.dtype == np.int8
    stored = [small.payload(row) for row in range(len(small))]
    assert all(isinstance(number, int) for number in stored[0]["code"] + stored[0]["topic"])
    read = from_payloads(parts.vectors.tolist(), stored)
    np.testing.assert_allclose(score(read, parts), score(parts, parts), atol=0.02)
    np.testing.assert_allclose(agreement(read, parts), 1, atol=0.001)


def test_texts_without_a_block_and_of_other_models_are_refused():
    parts = some_parts(4, 3)
    old = Parts(
        vectors=parts.vectors,
        code=np.zeros((3, 8)),
        topic=np.zeros((3, 192)),
        asks=np.zeros(3, bool),
    )
    for compare in (score, score_pairs, agreement, readings):
        with pytest.raises(ValueError, match="text 0 has no code"):
            compare(parts, old)
    longer = Parts(
        vectors=np.ones((3, 13)), code=parts.code, topic=parts.topic, asks=np.zeros(3, bool)
    )
    with pytest.raises(ValueError, match="of two models"):
        score(parts, longer)
    with pytest.raises(ValueError, match="one row for each"):
        Parts(vectors=np.ones((2, 3)), code=parts.code, topic=parts.topic, asks=np.zeros(3, bool))


def test_it_needs_neither_torch_nor_opencse(tmp_path):
    code = (
        "import sys; import opencse.debias.payload as one; sys.path.insert(0, sys.argv[1]);"
        "import payload as two; assert 'torch' not in sys.modules; assert two.Parts is not one.Parts"
    )
    from opencse.debias import payload

    shutil.copyfile(payload.__file__, tmp_path / "payload.py")
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert "import opencse" not in (tmp_path / "payload.py").read_text(encoding="utf-8")


YES_NO = [
    "Can I return opened items?",
    "can I return opened items",
    "Is there parking at the clinic?",
    "is there a pool",
    "Doesn't the bus stop here?",
    "Hi, do you ship to Norway?",
    "I have lost my card. Can I still pay?",
    "Are dogs allowed on the beach?",
    "whether batteries are included",
    "Should children take it?",
]
OTHER = [
    "How do I return opened items?",
    "how do I disable automatic updates",
    "hotel without a pool",
    "Opened items can be returned.",
    "Do not open the door.",
    "Do the dishes.",
    "Have a seat.",
    "do not touch",
    "Which rooms have a balcony?",
    "Can you tell me how to disable updates?",
    "Does anyone know where the key is?",
    "Can I pay by card? Yes, at every desk.",
    "May 5 is a holiday.",
    "Will returned the book.",
    "",
    "?",
]


@pytest.mark.parametrize(
    ("text", "asks"), [*((text, True) for text in YES_NO), *((text, False) for text in OTHER)]
)
def test_yes_no_questions_are_known_by_their_first_words(text, asks):
    assert is_yes_no_question(text) is asks
