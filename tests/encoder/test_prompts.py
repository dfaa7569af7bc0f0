from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder, save_encoder, special_frame, template_frame
from opencse.encoder.weights_hash import pooling_name
from opencse.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

PROMPT = 'This sentence : "{}" means {mask}.'
ODD = ["the cat sits", "", "[MASK]", "a <mask> cat [MASK] [MASK]", "word " * 10_000, "[SEP] [CLS] </s>", "é 🙂 \u202e"]


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def backbone(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("tiny"))


def test_the_special_frame_is_what_the_tokenizer_adds(backbone) -> None:
    tokenizer = load_encoder(backbone, pooling="cls").tokenizer
    frame = special_frame(tokenizer)
    content = tokenizer("the cat", add_special_tokens=False)["input_ids"]
    assert [*frame.before, *content, *frame.after] == tokenizer("the cat")["input_ids"]


@pytest.mark.parametrize("text", ODD)
def test_exactly_one_mask_stands_in_every_input(backbone, text: str) -> None:
    original = load_encoder(backbone, pooling="cls").tokenizer
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT)
    ids = model.tokenizer(text, truncation=True, max_length=24)["input_ids"]
    assert len(ids) <= 24
    assert ids.count(original.mask_token_id) == 1
    frame = template_frame(original, PROMPT)
    content = model.tokenizer(text, add_special_tokens=False)["input_ids"][: 24 - len(frame)]
    assert ids == [*frame.before, *content, *frame.after]


@pytest.mark.parametrize(("prompt", "behind"), [(PROMPT, "."), ('"{}" means {mask}', "")])
def test_text_and_special_tokens_follow_the_mask(backbone, prompt: str, behind: str) -> None:
    tokenizer = load_encoder(backbone, pooling="cls").tokenizer
    frame = template_frame(tokenizer, prompt)
    assert frame.after[frame.mask] == tokenizer.mask_token_id
    tail = tokenizer(behind, add_special_tokens=False)["input_ids"] if behind else []
    assert list(frame.after[frame.mask + 1 :]) == [*tail, tokenizer.sep_token_id]


def test_the_export_encodes_as_the_trained_model_did(backbone, tmp_path) -> None:
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT).eval()
    save_encoder(model, tmp_path / "model")
    again = SentenceTransformer(str(tmp_path / "model"))
    np.testing.assert_allclose(again.encode(ODD), model.encode(ODD), atol=1e-5)


def test_the_vector_is_the_one_at_the_mask(backbone) -> None:
    mask = load_encoder(backbone, pooling="cls").tokenizer.mask_token_id
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT).eval()
    texts = ["the cat sits", "a big old dog runs in the garden"]
    batch = model.tokenizer(texts, return_tensors="pt", padding=True)
    hidden = model[0].auto_model(**batch).last_hidden_state[batch["input_ids"] == mask]
    np.testing.assert_allclose(model.encode(texts), hidden.detach(), atol=1e-6)
    assert pooling_name(model) == "mask"


def test_the_weight_of_the_mask_is_never_trained(backbone, tmp_path) -> None:
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT)
    save_encoder(model, tmp_path / "model")
    for encoder in (model, load_encoder(tmp_path / "model")):
        assert [n for n, p in encoder.named_parameters() if not p.requires_grad] == ["1.emb_layer.weight"]


@pytest.mark.parametrize(
    ("text", "marked"),
    [("the cat", "the cat ."), ("the cat  ", "the cat ."), ("the cat.", "the cat."), ("runs? ", "runs? "), ("", "")],
)
def test_a_final_mark_is_put_where_there_is_none(backbone, tmp_path, text: str, marked: str) -> None:
    plain = load_encoder(backbone, pooling="mask", prompt=PROMPT).tokenizer
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT, final_mark=" .")
    assert model.tokenizer(text)["input_ids"] == plain(marked)["input_ids"]
    save_encoder(model, tmp_path / "model")
    assert load_encoder(tmp_path / "model").tokenizer(text)["input_ids"] == plain(marked)["input_ids"]


@pytest.mark.parametrize("prompt", ["{mask} {}", "{} {mask} {mask}", "{}"])
def test_a_template_must_have_one_mask_behind_the_sentence(backbone, prompt: str) -> None:
    with pytest.raises(OpencseError, match="mask"):
        load_encoder(backbone, pooling="mask", prompt=prompt)
