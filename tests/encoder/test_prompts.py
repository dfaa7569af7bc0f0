"""Prompt templates around the tokens of a sentence, and template denoising."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import pooling_name
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import Frame, TemplateDenoising, special_frame, template_frame
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

PROMPT = 'This sentence : "{}" means {mask}.'
ODD = [
    "the cat sits",
    "",
    "[MASK]",
    "a <mask> cat [MASK] [MASK]",
    "word " * 10_000,
    "[SEP] [CLS] </s>",
    "é 🙂 \u202e",
]


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def backbone(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def plain(backbone):
    return load_encoder(backbone, pooling="cls").tokenizer


@pytest.fixture(scope="module")
def masked(backbone):
    return load_encoder(backbone, pooling="mask", prompt=PROMPT).eval()


def test_the_special_frame_is_what_the_tokenizer_adds(plain) -> None:
    frame = special_frame(plain)
    content = plain("the cat", add_special_tokens=False)["input_ids"]
    assert [*frame.before, *content, *frame.after] == plain("the cat")["input_ids"]


@pytest.mark.parametrize("text", ODD)
def test_exactly_one_mask_stands_in_every_input(plain, masked, text: str) -> None:
    ids = masked.tokenizer(text, truncation=True, max_length=24)["input_ids"]
    assert len(ids) <= 24
    assert ids.count(plain.mask_token_id) == 1
    frame = template_frame(plain, PROMPT)
    content = masked.tokenizer(text, add_special_tokens=False)["input_ids"][: 24 - len(frame)]
    assert ids == [*frame.before, *content, *frame.after]


@pytest.mark.parametrize(("prompt", "behind"), [(PROMPT, "."), ('"{}" means {mask}', "")])
def test_text_and_special_tokens_follow_the_mask(plain, prompt: str, behind: str) -> None:
    frame = template_frame(plain, prompt)
    assert frame.after[frame.mask] == plain.mask_token_id
    tail = plain(behind, add_special_tokens=False)["input_ids"] if behind else []
    assert list(frame.after[frame.mask + 1 :]) == [*tail, plain.sep_token_id]


def test_the_vector_is_the_one_at_the_mask_whose_weight_is_never_trained(
    plain, masked, tmp_path
) -> None:
    texts = ["the cat sits", "a big old dog runs in the garden"]
    batch = masked.tokenizer(texts, return_tensors="pt", padding=True)
    hidden = (
        masked[0].auto_model(**batch).last_hidden_state[batch["input_ids"] == plain.mask_token_id]
    )
    np.testing.assert_allclose(masked.encode(texts), hidden.detach(), atol=1e-6)
    assert pooling_name(masked) == "mask"
    save_encoder(masked, tmp_path / "model")
    for encoder in (masked, load_encoder(tmp_path / "model")):
        assert [n for n, p in encoder.named_parameters() if not p.requires_grad] == [
            "1.emb_layer.weight"
        ]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("the cat", "the cat ."),
        ("the cat  ", "the cat ."),
        ("the cat.", "the cat."),
        ("runs? ", "runs? "),
        ("", ""),
    ],
)
def test_a_final_mark_is_put_where_there_is_none(
    backbone, masked, tmp_path, text: str, marked: str
) -> None:
    expected = masked.tokenizer(marked)["input_ids"]
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT, final_mark=" .")
    assert model.tokenizer(text)["input_ids"] == expected
    save_encoder(model, tmp_path / "model")
    assert load_encoder(tmp_path / "model").tokenizer(text)["input_ids"] == expected


@pytest.mark.parametrize("prompt", ["{mask} {}", "{mask} {} {mask}", "{}"])
def test_a_template_must_have_its_masks_behind_the_sentence(backbone, prompt: str) -> None:
    with pytest.raises(OpencseError, match="mask"):
        load_encoder(backbone, pooling="mask", prompt=prompt)


TWO_STEPS = 'The sentence of "{}" means {mask} , so it can be summarized as {mask} .'


def test_the_vector_is_the_one_at_the_last_of_two_masks(backbone, plain, tmp_path) -> None:
    encoder = load_encoder(backbone, pooling="mask", prompt=TWO_STEPS).eval()
    transformer = load_encoder(backbone, pooling="cls").eval()[0].auto_model
    texts = ["the cat sits", "[MASK] or <mask>"]
    vectors = encoder.encode(texts)
    save_encoder(encoder, tmp_path / "model")
    again = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts)
    np.testing.assert_allclose(again, vectors, atol=1e-6)

    # Literally, with one token for both masks, as they are in the authors' code.
    prefix, suffix = TWO_STEPS.replace("{mask}", plain.mask_token).split("{}")
    special = special_frame(plain)
    for text, vector in zip(texts, vectors, strict=True):
        parts = [plain(part, add_special_tokens=False)["input_ids"] for part in (prefix, suffix)]
        content = encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[*special.before, *parts[0], *content, *parts[1], *special.after]])
        places = (ids[0] == plain.mask_token_id).nonzero().squeeze(1)
        assert len(places) == 2
        hidden = transformer(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        np.testing.assert_allclose(vector, hidden[0, places[-1]].detach(), atol=1e-5)


def test_the_earlier_mask_is_a_token_that_no_text_has(backbone, plain) -> None:
    encoder = load_encoder(backbone, pooling="mask", prompt=TWO_STEPS)
    weights = encoder[0].auto_model.get_input_embeddings().weight
    assert torch.equal(weights[-1], weights[plain.mask_token_id])
    own = encoder.tokenizer.get_vocab()
    assert len(weights) - 1 not in own.values()


TEMPLATE = 'This sentence of "{}" means {mask}.'


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def folder(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("model"), dropout=0.2)


def load(folder):
    encoder = load_encoder(folder, pooling="mask", prompt=TEMPLATE)
    return encoder, template_frame(load_encoder(folder, pooling="cls").tokenizer, TEMPLATE)


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
        torch.testing.assert_close(
            vector, hidden[0, len(frame.before) + frame.mask], rtol=1e-5, atol=1e-6
        )
    assert torch.equal(found[0], found[3])
    assert (found[0] - found[1]).abs().max() > 1e-3


def test_at_length_nought_nothing_is_left_of_an_empty_sentence(folder) -> None:
    """The template with nothing in it *is* the template: its vector is all template."""
    encoder, frame = load(folder)
    encoder.eval()
    denoised = SentenceTransformer(
        modules=[*encoder, TemplateDenoising(encoder[0].auto_model, frame)], device="cpu"
    )
    ids = torch.tensor([[*frame.before, *frame.after]])
    left = denoised({"input_ids": ids, "attention_mask": torch.ones_like(ids)})[
        "sentence_embedding"
    ]
    torch.testing.assert_close(left, torch.zeros_like(left), rtol=0, atol=1e-5)


def test_positions_from_zero_are_those_of_bert_and_others_for_roberta(folder) -> None:
    encoder, frame = load(folder)
    model = encoder[0].auto_model.eval()
    one, two = (
        TemplateDenoising(model, frame, positions).delta(torch.tensor([4]))
        for positions in ("model", "zero")
    )
    same = torch.equal(one, two)
    assert same == ("roberta" not in type(model).__name__.lower())


def test_padding_takes_the_place_of_the_sentence(folder) -> None:
    """Each length alone: the ids and the mask of the authors' code, at the positions that the model itself counts."""
    encoder, frame = load(folder)
    model = encoder[0].auto_model.eval()
    pad = encoder.tokenizer.pad_token_id
    lengths = torch.tensor([3, 0, 7])
    found = TemplateDenoising(model, frame, "padding", padding=pad).delta(lengths)
    for length, vector in zip(lengths.tolist(), found, strict=True):
        ids = torch.tensor([[*frame.before, *[pad] * length, *frame.after, *[pad] * 2]])
        mask = torch.ones_like(ids)
        mask[0, -2:] = 0
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        place = len(frame.before) + length + frame.mask
        torch.testing.assert_close(vector, hidden[0, place], rtol=1e-5, atol=1e-6)


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


def test_denoising_has_no_weights_and_needs_position_embeddings(folder) -> None:
    encoder, frame = load(folder)
    denoiser = TemplateDenoising(encoder[0].auto_model, frame)
    assert not denoiser.state_dict()
    assert not list(denoiser.parameters())
    with pytest.raises(OpencseError, match=r"position embeddings.*encoder\.denoising=none"):
        TemplateDenoising(torch.nn.Linear(2, 2), Frame((1,), (2,)))
