from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder, save_encoder, special_frame, template_frame
from opencse.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta

PROMPT = 'This sentence : "{}" means {mask}'
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
def test_exactly_one_mask_ends_every_input(backbone, text: str) -> None:
    original = load_encoder(backbone, pooling="cls").tokenizer
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT)
    ids = model.tokenizer(text, truncation=True, max_length=24)["input_ids"]
    assert len(ids) <= 24
    assert ids.count(original.mask_token_id) == 1
    assert ids[-1] == original.mask_token_id
    frame = template_frame(original, PROMPT)
    content = model.tokenizer(text, add_special_tokens=False)["input_ids"][: 24 - len(frame)]
    assert ids == [*frame.before, *content, *frame.after]


def test_the_export_encodes_as_the_trained_model_did(backbone, tmp_path) -> None:
    model = load_encoder(backbone, pooling="mask", prompt=PROMPT).eval()
    save_encoder(model, tmp_path / "model")
    again = SentenceTransformer(str(tmp_path / "model"))
    np.testing.assert_allclose(again.encode(ODD), model.encode(ODD), atol=1e-5)


def test_the_vector_is_the_one_at_the_mask(backbone) -> None:
    import torch

    model = load_encoder(backbone, pooling="mask", prompt=PROMPT).eval()
    batch = model.tokenizer(["the cat sits"], return_tensors="pt")
    hidden = model[0].auto_model(**batch).last_hidden_state[0, -1]
    assert torch.allclose(torch.tensor(model.encode("the cat sits")), hidden, atol=1e-6)


@pytest.mark.parametrize("prompt", ['"{}" means {mask} .', "{mask} {}", "{} {mask} {mask}"])
def test_a_template_must_end_with_its_only_mask(backbone, prompt: str) -> None:
    with pytest.raises(OpencseError, match="mask"):
        load_encoder(backbone, pooling="mask", prompt=prompt)
