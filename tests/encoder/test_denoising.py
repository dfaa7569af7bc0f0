from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import Frame, TemplateDenoising, template_frame
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

PROMPT = 'This sentence of "{}" means {mask}.'


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def folder(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("model"), dropout=0.2)


def load(folder):
    encoder = load_encoder(folder, pooling="mask", prompt=PROMPT)
    return encoder, template_frame(load_encoder(folder, pooling="cls").tokenizer, PROMPT)


def test_delta_is_the_masks_vector_at_the_published_positions(folder) -> None:
    encoder, frame = load(folder)
    model = encoder[0].auto_model.eval()
    lengths = torch.tensor([3, 0, 7, 3])
    found = TemplateDenoising(model, frame).delta(lengths)
    first = 2 if "roberta" in type(model).__name__.lower() else 0
    ids = torch.tensor([[*frame.before, *frame.after]])
    for length, vector in zip(lengths.tolist(), found, strict=True):
        before = [first + i for i in range(len(frame.before))]
        after = [first + len(frame.before) + length + i for i in range(len(frame.after))]
        hidden = model(input_ids=ids, position_ids=torch.tensor([before + after])).last_hidden_state
        torch.testing.assert_close(vector, hidden[0, len(frame.before) + frame.mask], rtol=1e-5, atol=1e-6)
    assert torch.equal(found[0], found[3])
    assert (found[0] - found[1]).abs().max() > 1e-3


def test_at_length_nought_nothing_is_left_of_an_empty_sentence(folder) -> None:
    """The template with nothing in it *is* the template: its vector is all template."""
    encoder, frame = load(folder)
    encoder.eval()
    denoised = SentenceTransformer(modules=[*encoder, TemplateDenoising(encoder[0].auto_model, frame)], device="cpu")
    ids = torch.tensor([[*frame.before, *frame.after]])
    left = denoised({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["sentence_embedding"]
    torch.testing.assert_close(left, torch.zeros_like(left), rtol=0, atol=1e-5)


def test_positions_from_zero_are_those_of_bert_and_others_for_roberta(folder) -> None:
    encoder, frame = load(folder)
    model = encoder[0].auto_model.eval()
    one, two = (TemplateDenoising(model, frame, positions).delta(torch.tensor([4])) for positions in ("model", "zero"))
    same = torch.equal(one, two)
    assert same == ("roberta" not in type(model).__name__.lower())


def test_gradients_flow_and_lengths_share_a_dropout_mask(folder) -> None:
    encoder, frame = load(folder)
    prepare_for_training(encoder)
    model = encoder[0].auto_model.train()
    found = TemplateDenoising(model, frame).delta(torch.tensor([4, 4, 5]))
    assert torch.equal(found[0], found[1])
    (found * torch.randn_like(found)).sum().backward()
    assert model.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    again = TemplateDenoising(model, frame).delta(torch.tensor([4, 4, 5]))
    assert not torch.equal(found, again)
    still = TemplateDenoising(model, frame, dropout=0.0)
    assert torch.equal(still.delta(torch.tensor([4])), still.delta(torch.tensor([4])))


def test_it_has_no_weights_of_its_own(folder) -> None:
    encoder, frame = load(folder)
    denoiser = TemplateDenoising(encoder[0].auto_model, frame)
    assert not denoiser.state_dict()
    assert not list(denoiser.parameters())


def test_a_model_without_positions_is_refused() -> None:
    with pytest.raises(OpencseError, match=r"position embeddings.*encoder\.denoising=none"):
        TemplateDenoising(torch.nn.Linear(2, 2), Frame((1,), (2,)))
