from __future__ import annotations

import pytest
import torch

from opencse.foundation.errors import OpencseError
from opencse.losses import Context, MaskedLanguageModelLoss
from opencse.losses.masked_language_model import mask_tokens, sample_tokens
from tests.losses.build_contexts import build_context
from tests.tiny import tiny_bert, tiny_roberta

TEXTS = ["the cat sits in the garden", "a dog runs", "is it red"]


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def facts(request, tmp_path_factory):
    return build_context(request.param(tmp_path_factory.mktemp("model"), dropout=0.0))


def build(facts, present=(True, True, True), **settings):
    term = MaskedLanguageModelLoss(**{"sentences": ("anchor",), "ratio": 0.4} | settings)
    encoded = facts.tokenizer(TEXTS, padding=True, return_tensors="pt")
    here = torch.tensor(present)
    tokens = {"anchor": (encoded["input_ids"], encoded["attention_mask"] * here[:, None])}
    context = Context(modules={term.name: term.module(facts)}, tokens=tokens)
    vectors = {"anchor": torch.zeros(3, facts.width, requires_grad=True)}
    return term, context, vectors, {"anchor": here}


@pytest.mark.parametrize("masking", ["bert", "mask"])
def test_at_first_it_is_the_loss_of_the_masked_language_model(facts, masking: str) -> None:
    term, context, vectors, present = build(facts, masking=masking)
    torch.manual_seed(3)
    loss = term.compute(vectors, present, context).value
    ids, mask = context.tokens["anchor"]
    special = torch.isin(ids, torch.tensor(facts.tokenizer.all_special_ids))
    torch.manual_seed(3)
    chosen = sample_tokens(~special & mask.bool(), 0.4)
    edit = mask_tokens(ids, chosen, facts.tokenizer.mask_token_id, len(facts.tokenizer), masking)
    labels = ids.masked_fill(~chosen, -100)
    expected = facts.masked_lm("backbone")(input_ids=edit, attention_mask=mask, labels=labels).loss
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    assert chosen.any()


def test_encoder_and_head_learn(facts) -> None:
    term, context, vectors, present = build(facts)
    facts.encoder.zero_grad()
    term.compute(vectors, present, context).value.backward()
    assert facts.transformer.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    assert all(p.grad is not None for p in context.modules[term.name].parameters())
    assert not any("embeddings" in name for name in context.modules[term.name].state_dict())


def test_what_rows_lack_does_not_count(facts) -> None:
    term, context, vectors, present = build(facts, present=(False, True, False))
    assert term.compute(vectors, present, context).value > 0
    term, context, vectors, present = build(facts, present=(False, False, False))
    loss = term.compute(vectors, present, context).value
    loss.backward()
    assert loss == 0


def test_a_backbone_without_a_head_is_refused(tmp_path) -> None:
    from opencse.encoder import load_encoder, save_encoder

    folder = tiny_bert(tmp_path / "bert")
    save_encoder(load_encoder(folder, pooling="cls"), tmp_path / "model")
    with pytest.raises(OpencseError, match="no masked-LM head"):
        MaskedLanguageModelLoss().module(build_context(tmp_path / "model"))
