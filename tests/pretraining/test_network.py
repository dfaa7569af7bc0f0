"""The loss, beside that of transformers on the whole padded batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from opencse.encoder.dropout import dropout_rate
from opencse.encoder.fast import prepare_for_training
from opencse.objectives import Context
from opencse.pretraining.batches import join, masked_batch
from opencse.pretraining.network import MaskedLMNetwork
from opencse.pretraining.settings import Masking
from opencse.pretraining.vocabulary import Pieces
from tests.pretraining.helpers import SENTENCES
from tests.tiny import tiny_bert, tiny_roberta


def plain_loss(model, batch):
    """The mean over all guesses of all groups, from full logits over all positions."""
    total = 0.0
    for group in batch.groups:
        labels = torch.full((group.ids.numel(),), -100)
        real = group.labels != -100
        labels[group.positions[real]] = group.labels[real]
        found = model(input_ids=group.ids, attention_mask=group.mask, labels=labels.view(group.ids.shape))
        total = total + found.loss * real.sum()
    return total / batch.predicted


@pytest.mark.parametrize("write", [tiny_bert, tiny_roberta])
@pytest.mark.parametrize("fast", [False, True])
def test_equals_the_loss_of_transformers(tmp_path, write, fast) -> None:
    folder = write(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    models = [AutoModelForMaskedLM.from_pretrained(folder) for _ in range(2)]
    inputs = [np.array(ids) for ids in tokenizer([*SENTENCES[:24:5], "cat", "the red house"])["input_ids"]]
    pieces, rng = Pieces.of(tokenizer), np.random.default_rng(0)
    batch = masked_batch(inputs, tokenizer.pad_token_id, pieces, Masking(rate=0.3), rng, overhead=8)
    assert len(batch.groups) > 1
    assert sum(int((g.labels != -100).sum()) for g in batch.groups) == batch.predicted
    network = MaskedLMNetwork(models[0]).train()
    if fast:
        prepare_for_training(models[0])
    with dropout_rate(models[0], 0.0):
        ours, values = network(batch, Context())
    theirs = plain_loss(models[1].eval(), batch)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)
    assert 0 <= float(values["accuracy"]) <= 1
    ours.backward()
    theirs.backward()
    for (name, a), b in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-6), name


def test_a_batch_holds_its_sentences(tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert(tmp_path))
    inputs = [np.array(ids) for ids in tokenizer(SENTENCES[:40:3])["input_ids"]]
    batch = masked_batch(inputs, 0, Pieces.of(tokenizer), Masking(keep=1, random=0), np.random.default_rng(0), 16)
    rows = [ids[mask.bool()].tolist() for g in batch.groups for ids, mask in zip(g.ids, g.mask, strict=True)]
    assert sorted(rows) == sorted(i.tolist() for i in inputs)
    assert batch.tokens == sum(map(len, inputs))
    for group in batch.groups:
        real = group.labels != -100
        assert (group.ids.view(-1)[group.positions[real]] == group.labels[real]).all()
        assert len(group.labels) % 32 == 0


def test_joining() -> None:
    texts = [np.arange(n) for n in (3, 4, 2, 9, 1, 1)]
    assert [len(row) for row in join(texts, 9)] == [9, 9, 2]
    assert np.array_equal(np.concatenate(join(texts, 9)), np.concatenate(texts))
