"""Scores of masked tokens, beside literal counts and full softmaxes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from opencse.pretraining.heldout import NgramCounts, PredictionScores, count_scores, mask_sentences, model_scores
from opencse.pretraining.settings import Masking
from tests.pretraining.helpers import SENTENCES
from tests.pretraining.test_initial import Store
from tests.tiny import tiny_bert

ALL_MASKED = Masking(rate=0.15, random=0, keep=0)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_bert(tmp_path_factory.mktemp("bert"))
    return AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def store(tokenizer, texts) -> Store:
    return Store(tokenizer(texts, add_special_tokens=False)["input_ids"])


def test_scores() -> None:
    scores = PredictionScores.of(np.log([2.0, 8.0]), np.array([0, 4]))
    assert (scores.tokens, scores.perplexity, scores.top1, scores.top5) == (2, pytest.approx(4), 50, 100)


def test_model_scores_are_those_of_full_softmaxes(model) -> None:
    network, tokenizer = model
    masked = mask_sentences(store(tokenizer, SENTENCES[:30]), tokenizer, ALL_MASKED)
    losses, ranks = [], []
    for group in masked.batches:
        with torch.no_grad():
            probabilities = network(input_ids=group.ids, attention_mask=group.mask).logits.softmax(-1).flatten(0, 1)
        for position, label in zip(group.positions.tolist(), group.labels.tolist(), strict=True):
            if label != -100:
                assert group.ids.view(-1)[position] == tokenizer.mask_token_id
                row = probabilities[position]
                losses.append(-float(row[label].log()))
                ranks.append(int((row > row[label]).sum()))
    found = model_scores(network, masked, progress=False)
    expected = PredictionScores.of(np.array(losses), np.array(ranks))
    assert found.tokens == expected.tokens == len(masked.labels)
    assert found.perplexity == pytest.approx(expected.perplexity, rel=1e-4)
    assert (found.top1, found.top5) == (expected.top1, expected.top5)


def test_the_choice_is_always_the_same(model) -> None:
    _, tokenizer = model
    a, b = (mask_sentences(store(tokenizer, SENTENCES[:30]), tokenizer, ALL_MASKED) for _ in range(2))
    assert (a.labels == b.labels).all()
    assert all((x.ids == y.ids).all() for x, y in zip(a.batches, b.batches, strict=True))


def test_neighbours(model) -> None:
    """Each guess with its neighbours, found again in the sentences one by one."""
    _, tokenizer = model
    texts = SENTENCES[:40]
    masked = mask_sentences(store(tokenizer, texts), tokenizer, Masking(rate=0.5, random=0, keep=0))
    rows = [tokenizer(t)["input_ids"] for t in texts]
    triples = {(row[i - 1], row[i], row[i + 1]) for row in rows for i in range(1, len(row) - 1)}
    found = list(zip(masked.true_neighbours[0], masked.labels, masked.true_neighbours[1], strict=True))
    assert set(found) <= triples
    hidden = masked.visible_neighbours == tokenizer.mask_token_id
    assert 0 < hidden.mean() < 1
    assert (masked.visible_neighbours == masked.true_neighbours)[~hidden].all()


def test_counts(model) -> None:
    _, tokenizer = model
    texts = ["the cat sits", "the dog sits on the house", "a cat eats"] * 2
    size, cls, sep = len(tokenizer), tokenizer.cls_token_id, tokenizer.sep_token_id
    counts = NgramCounts(store(tokenizer, texts), ((cls,), (sep,)), size)
    rows = [tokenizer(t)["input_ids"] for t in texts]
    flat = [t for row in rows for t in row[1:-1]]
    unigram = np.array([(flat.count(i) + 0.5) / (len(flat) + 0.5 * size) for i in range(size)])
    assert counts.unigrams == pytest.approx(unigram)
    the, cat = (tokenizer.convert_tokens_to_ids(w) for w in ("the", "cat"))
    for context, after in ((the, True), (cat, False), (cls, True), (sep, False)):
        beside = [
            (b if after else a) for row in rows for a, b in itertools.pairwise(row) if (a if after else b) == context
        ]
        kinds = len(set(beside))
        expected = [(beside.count(w) + kinds * unigram[w]) / (len(beside) + kinds) for w in range(size)]
        found = (counts.after if after else counts.before)(np.array([context]))[0]
        assert found == pytest.approx(np.array(expected))
        assert found.sum() == pytest.approx(1)


def test_neighbours_help_where_text_is_regular(model) -> None:
    _, tokenizer = model
    sentences = store(tokenizer, SENTENCES)
    masked = mask_sentences(sentences, tokenizer, ALL_MASKED)
    counts = NgramCounts(sentences, ((tokenizer.cls_token_id,), (tokenizer.sep_token_id,)), len(tokenizer))
    scores, told = (count_scores(counts, masked, flag, progress=False) for flag in (False, True))
    assert scores["unigram"] == told["unigram"]
    assert told["both neighbours"].perplexity <= scores["both neighbours"].perplexity
    for found in (scores, told):
        assert found["unigram"].perplexity > found["bigram"].perplexity > found["both neighbours"].perplexity
        assert found["unigram"].top1 <= found["bigram"].top1
        assert all(one.tokens == len(masked.labels) and one.top1 <= one.top5 for one in found.values())


def test_a_masked_neighbour_tells_nothing(model) -> None:
    _, tokenizer = model
    counts = NgramCounts(
        store(tokenizer, SENTENCES), ((tokenizer.cls_token_id,), (tokenizer.sep_token_id,)), len(tokenizer)
    )
    assert counts.after(np.array([tokenizer.mask_token_id]))[0] == pytest.approx(counts.unigrams)
