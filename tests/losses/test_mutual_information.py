"""IS-BERT: the loss, and the tokens that training gives it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.packing import prepare_for_training
from opencse.foundation.errors import OpencseError
from opencse.losses import Context, MutualInformationLoss, TokenOutputs
from opencse.training.batches import Batch, EncoderPass
from opencse.training.encoding import encode_batch
from tests.losses.checks import draw
from tests.reference.mutual_information import mutual_information
from tests.tiny import tiny_bert

ROWS = (0, 0, 0, 1, 1, 2, 3, 3)
TEXTS = ["the cat sat in the house", "a dog", "the dog runs", "no bird sings"]


def computed(sentences, tokens, rows=ROWS, present=None):
    outputs = TokenOutputs(torch.as_tensor(tokens), torch.tensor(rows))
    return MutualInformationLoss()(
        torch.as_tensor(sentences),
        present=present,
        context=Context(token_outputs={"anchor": outputs}),
    )


def test_it_is_the_estimate_of_the_paper() -> None:
    sentences = draw(("anchor",), 4, 5)["anchor"]
    tokens = draw(("tokens",), len(ROWS), 5, seed=3)["tokens"]
    expected = mutual_information(tokens, ROWS, sentences)
    assert computed(sentences, tokens).value.item() == pytest.approx(expected, rel=1e-12)


def test_a_row_without_the_view_has_no_part() -> None:
    sentences = draw(("anchor",), 5, 5)["anchor"]
    tokens = draw(("tokens",), len(ROWS), 5, seed=3)["tokens"]
    expected = mutual_information(tokens, ROWS, np.delete(sentences, 2, axis=0))
    present = {"anchor": torch.tensor([True, True, False, True, True])}
    rows = [row + (row >= 2) for row in ROWS]
    actual = computed(sentences, tokens, rows, present)
    assert actual.value.item() == pytest.approx(expected, rel=1e-12)


def test_sentences_and_tokens_have_gradients_and_one_sentence_has_no_loss() -> None:
    sentences = torch.randn(4, 5, requires_grad=True)
    tokens = torch.randn(len(ROWS), 5, requires_grad=True)
    output = computed(sentences, tokens)
    output.value.backward()
    assert sentences.grad.abs().min() > 0
    assert tokens.grad.abs().min() > 0
    assert 0 <= output.reports["accuracy"] <= 1
    assert computed(sentences[:1], tokens[:3], ROWS[:3]).value.item() == 0


def test_without_tokens_it_says_what_to_pass() -> None:
    with pytest.raises(OpencseError, match="no outputs of tokens"):
        MutualInformationLoss()(torch.eye(2))


@pytest.mark.parametrize("packed", [False, True])
def test_training_gives_it_the_outputs_that_the_encoder_averages(tmp_path, packed) -> None:
    encoder = load_encoder(tiny_bert(tmp_path, dropout=0.0), pooling="ngrams")
    assert not packed or prepare_for_training(encoder)
    batch = encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    order = torch.tensor([3, 0, 2, 1])  # groups are in another order than rows
    slots = order + len(TEXTS)
    part = EncoderPass(
        None,
        ("none", 0.0),
        [(ids[order[:2]], mask[order[:2]], None), (ids[order[2:]], mask[order[2:]], None)],
        slots,
        mask.sum(1)[order],
    )
    present = torch.tensor([[False] * 4, [True] * 4])
    encoded = encode_batch(
        encoder.train(), Batch(("other", "anchor"), 4, [part], present), token_views=["anchor"]
    )
    tokens = encoded.tokens["anchor"]
    for row, text in enumerate(TEXTS):
        own = tokens.vectors[tokens.rows == row]
        assert len(own) == mask[row].sum()
        torch.testing.assert_close(own.mean(dim=0), encoded.vectors[1, row])
        expected = encoder.eval().encode(text, convert_to_tensor=True)
        encoder.train()
        torch.testing.assert_close(own.mean(dim=0), expected, atol=1e-5, rtol=1e-4)


def test_the_vector_of_a_text_does_not_depend_on_its_batch(tmp_path) -> None:
    encoder = load_encoder(tiny_bert(tmp_path), pooling="ngrams").eval()
    together = encoder.encode(TEXTS)
    alone = np.stack([encoder.encode(text) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
