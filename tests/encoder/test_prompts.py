from __future__ import annotations

import numpy as np
import pytest

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import pooling_name
from opencse.encoder.prompts import special_frame, template_frame
from opencse.foundation.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

PROMPT = 'This sentence : "{}" means {mask}.'
ODD = ["the cat sits", "", "[MASK]", "a <mask> cat [MASK] [MASK]", "word " * 10_000, "[SEP] [CLS] </s>", "é 🙂 \u202e"]


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


def test_the_vector_is_the_one_at_the_mask(plain, masked) -> None:
    texts = ["the cat sits", "a big old dog runs in the garden"]
    batch = masked.tokenizer(texts, return_tensors="pt", padding=True)
    hidden = masked[0].auto_model(**batch).last_hidden_state[batch["input_ids"] == plain.mask_token_id]
    np.testing.assert_allclose(masked.encode(texts), hidden.detach(), atol=1e-6)
    assert pooling_name(masked) == "mask"


def test_the_weight_of_the_mask_is_never_trained(masked, tmp_path) -> None:
    save_encoder(masked, tmp_path / "model")
    for encoder in (masked, load_encoder(tmp_path / "model")):
        assert [n for n, p in encoder.named_parameters() if not p.requires_grad] == ["1.emb_layer.weight"]


@pytest.mark.parametrize(
    ("text", "marked"),
    [("the cat", "the cat ."), ("the cat  ", "the cat ."), ("the cat.", "the cat."), ("runs? ", "runs? "), ("", "")],
)
def test_a_final_mark_is_put_where_there_is_none(backbone, masked, tmp_path, text: str, marked: str) -> None:
    expected = masked.tokenizer(marked)["input_ids"]
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT, final_mark=" .")
    assert model.tokenizer(text)["input_ids"] == expected
    save_encoder(model, tmp_path / "model")
    assert load_encoder(tmp_path / "model").tokenizer(text)["input_ids"] == expected


@pytest.mark.parametrize("prompt", ["{mask} {}", "{} {mask} {mask}", "{}"])
def test_a_template_must_have_one_mask_behind_the_sentence(backbone, prompt: str) -> None:
    with pytest.raises(OpencseError, match="mask"):
        load_encoder(backbone, pooling="mask", prompt=prompt)
