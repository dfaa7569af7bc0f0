"""Replaced-token detection and its edits of tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForMaskedLM

from opencse.encoder.packing import prepare_for_training
from opencse.foundation.draws import RowDraws
from opencse.foundation.errors import OpencseError
from opencse.losses import Context, MaskedLanguageModelLoss, ReplacedTokenDetectionLoss
from opencse.losses import replaced_tokens as module
from opencse.losses.forgetting import mask_tokens, sample_tokens
from opencse.losses.replaced_tokens import (
    ConditionalTransformer,
    TokenGenerator,
    delete_tokens,
    insert_tokens,
    sample_classes,
)
from tests.losses.checks import build_context, numeric_gradient
from tests.reference.replaced_tokens import deleted, detection_loss, inserted
from tests.tiny import tiny_bert, tiny_roberta

TEXTS = {
    "anchor": ["the cat sits in the garden", "a dog", "is it red"],
    "twin": ["no bird", "a man eats bread", "is"],
}
FAITHFUL = {
    "masking": "bert", "fill": "all", "temperature": 0.0, "counted": "all", "generator_dropout": True
}  # fmt: skip


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def facts(request, tmp_path_factory):
    return build_context(request.param(tmp_path_factory.mktemp("model"), dropout=0.0))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def build(facts, **settings):
    """The loss, its context with the tokens of TEXTS, and random vectors."""
    loss = ReplacedTokenDetectionLoss(**settings)
    encoded = {
        view: facts.tokenizer(TEXTS[view], padding=True, return_tensors="pt")
        for view in loss.tokens
    }
    tokens = {view: (each["input_ids"], each["attention_mask"]) for view, each in encoded.items()}
    context = Context(modules={loss.name: loss.module(facts).double().train()}, tokens=tokens)
    random = np.random.default_rng(1)
    vectors = {
        v: torch.tensor(random.normal(size=(3, facts.width)), requires_grad=True)
        for v in loss.views
    }
    return loss, context, vectors


def everything(loss) -> dict[str, torch.Tensor]:
    return {v: torch.ones(3, dtype=torch.bool) for v in loss.views}


def watch(monkeypatch) -> dict:
    """What the discriminator reads and what counts, as the loss goes along."""
    seen = {}
    original = ReplacedTokenDetectionLoss._edit

    def riddle(self, ids, mask, parts, draws):
        found = original(self, ids, mask, parts, draws)
        seen.update(
            ids=ids, mask=mask, edit=found[0], attended=found[1], labels=found[2], counted=found[3]
        )
        return found

    monkeypatch.setattr(ReplacedTokenDetectionLoss, "_edit", riddle)
    return seen


@pytest.mark.parametrize(
    "settings", [{}, FAITHFUL, {"task": "insert"}, {"task": "delete"}], ids=str
)
def test_value_equals_the_transcription(facts, settings, monkeypatch) -> None:
    seen = watch(monkeypatch)
    loss, context, vectors = build(facts, **settings)
    value = loss.compute(vectors, everything(loss), context).value
    edit, everywhere = seen["edit"], torch.ones_like(seen["counted"])
    parts = context.modules[loss.name]
    whole = loss.counted == "all"
    logits = parts.predict(
        edit, seen["attended"], torch.cat([*vectors.values()]), everywhere, whole=whole
    )
    logits = logits.view(*edit.shape, 2).detach().numpy()
    if loss.task == "replace":
        changed = ((edit != seen["ids"]) & seen["mask"].bool()).numpy()
    else:
        changed = seen["labels"].bool().numpy()
    assert value.item() == pytest.approx(
        detection_loss(logits, changed, seen["counted"].numpy()), rel=1e-10
    )


@pytest.mark.parametrize(
    "settings", [{}, FAITHFUL | {"generator_dropout": False}, {"task": "masked_lm"}], ids=str
)
def test_gradient_equals_finite_differences(facts, settings) -> None:
    loss, context, vectors = build(facts, **settings)
    state = torch.get_rng_state()
    loss.compute(vectors, everything(loss), context).value.backward()

    def value(x: np.ndarray) -> float:
        torch.set_rng_state(state)
        with torch.no_grad():
            return loss.compute(
                vectors | {"twin": torch.tensor(x)}, everything(loss), context
            ).value.item()

    start = vectors["twin"].detach().numpy()
    few = start[:, :4]  # of the 32 dimensions
    expected = numeric_gradient(lambda x: value(np.concatenate([x, start[:, 4:]], 1)), few)
    np.testing.assert_allclose(vectors["twin"].grad[:, :4].numpy(), expected, atol=1e-7)
    assert np.abs(expected).max() > 1e-5


def test_published_labels_and_inputs(facts, monkeypatch) -> None:
    seen = watch(monkeypatch)
    loss, context, vectors = build(facts, **FAITHFUL)
    loss.compute(vectors, everything(loss), context)
    ids, mask, edit = seen["ids"], seen["mask"].bool(), seen["edit"]
    assert torch.equal(edit[:, 0], ids[:, 0])  # the first token is never replaced
    assert seen["counted"].all()  # padding, [CLS] and [SEP] count
    assert not seen["labels"][~mask].any()
    assert not edit[~mask].any()  # padding becomes token 0
    assert torch.equal(seen["labels"].bool(), (edit != ids) & mask)
    assert seen["labels"].sum() > mask.sum() * 0.5  # a random generator rewrites nearly all


@pytest.mark.parametrize("task", ["masked_lm", "corrective_lm"])
def test_the_language_tasks_predict_what_was_hidden(facts, task, monkeypatch) -> None:
    seen = watch(monkeypatch)
    loss, context, vectors = build(facts, task=task)
    value = loss.compute(vectors, everything(loss), context).value
    assert torch.equal(seen["labels"], seen["ids"])
    masked = seen["edit"] == facts.tokenizer.mask_token_id
    assert torch.equal(masked, seen["counted"]) == (task == "masked_lm")
    value.backward()
    assert vectors["anchor"].grad.abs().sum() > 0
    assert context.modules[loss.name].predict.head.bias.shape == (len(facts.tokenizer),)


def test_absent_rows_are_left_out(facts, monkeypatch) -> None:
    monkeypatch.setattr(module, "sample_tokens", lambda candidates, *_: candidates)
    settings = {"temperature": 0.0}
    loss, context, vectors = build(facts, **settings)
    present = everything(loss) | {"twin": torch.tensor([True, False, True])}
    ids, mask = context.tokens["twin"]
    mask = mask.clone()
    mask[1] = 0
    context = replace(context, tokens={**context.tokens, "twin": (ids, mask)})
    value = loss.compute(vectors, present, context).value
    value.backward()
    assert not vectors["twin"].grad[1].any()

    # The mean over the tokens of each view alone, of the second one without the absent row.
    parts = {"anchor": [0, 1, 2], "twin": [0, 2]}
    total, count = 0.0, 0
    for view, rows in parts.items():
        ids, mask = context.tokens[view][0][rows], context.tokens[view][1][rows]
        alone = replace(context, tokens={view: (ids, mask)})
        some = {view: vectors[view].detach()[rows]}
        present = {view: torch.ones(len(rows), dtype=torch.bool)}
        tokens = int((context.modules[loss.name].is_content(ids) & mask.bool()).sum())
        total += (
            tokens * replace(loss, sentences=(view,)).compute(some, present, alone).value.item()
        )
        count += tokens
    assert value.item() == pytest.approx(total / count, rel=1e-12)


def test_no_row_at_all_gives_zero_and_a_gradient_everywhere(facts) -> None:
    loss, context, vectors = build(facts)
    context = replace(context, tokens={v: (i, m * 0) for v, (i, m) in context.tokens.items()})
    value = loss.compute(
        vectors, {v: torch.zeros(3, dtype=torch.bool) for v in vectors}, context
    ).value
    value.backward()
    assert value.item() == 0
    assert all(v.grad is not None and not v.grad.any() for v in vectors.values())
    assert context.modules[loss.name].predict.head.weight.grad is not None


def test_only_the_discriminator_learns(facts) -> None:
    loss, context, vectors = build(facts)
    loss.compute(vectors, everything(loss), context).value.backward()
    parts = context.modules[loss.name]
    assert all(p.grad is not None for n, p in parts.named_parameters() if "pooler" not in n)
    assert all(p.grad is None for p in parts.generator.module.parameters())
    assert all(p.grad is None for p in facts.encoder.parameters())
    assert not any("generator" in name for name in parts.state_dict())


def test_the_discriminator_begins_as_the_encoder_and_is_told_one_vector(facts) -> None:
    """With the embedding layer's own output at position 0 it is the encoder; the first token itself plays no part."""
    predict = ConditionalTransformer(facts.transformer, facts.width, 2).eval()
    encoded = facts.tokenizer(TEXTS["anchor"], padding=True, return_tensors="pt")
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    counted = mask.bool()
    own = facts.transformer.eval().embeddings(input_ids=ids)[:, 0]
    hidden = facts.transformer(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(predict(ids, mask, own, counted), predict.head(hidden[counted]))
    other = ids.clone()
    other[:, 0] = 9
    told = torch.randn(3, facts.width)
    assert torch.equal(predict(ids, mask, told, counted), predict(other, mask, told, counted))
    assert (predict(ids, mask, told, counted) - predict(ids, mask, own, counted)).abs().max() > 1e-3


def test_packed_batches_change_nothing(tmp_path) -> None:
    facts = build_context(tiny_bert(tmp_path, dropout=0.0))
    assert prepare_for_training(facts.transformer)
    predict = ConditionalTransformer(facts.transformer, facts.width, 2).train()
    encoded = facts.tokenizer(TEXTS["anchor"], padding=True, return_tensors="pt")
    order = encoded["attention_mask"].sum(1).argsort(descending=True)
    ids, mask = encoded["input_ids"][order], encoded["attention_mask"][order]
    assert len(mask.sum(1).unique()) > 1
    told = torch.randn(3, facts.width)
    packed = predict(ids, mask, told, mask.bool())
    torch.testing.assert_close(
        packed, predict(ids, mask, told, mask.bool(), whole=True), rtol=1e-4, atol=1e-5
    )


def test_the_head_sees_only_what_is_asked_for(facts) -> None:
    generator = TokenGenerator(facts.masked_lm("backbone"))
    encoded = facts.tokenizer(TEXTS["anchor"], padding=True, return_tensors="pt")
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    chosen = mask.bool() & (torch.rand(ids.shape) < 0.5)
    whole = generator.module(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(generator._logits(ids, mask, chosen), whole[chosen])
    draws = RowDraws.of(range(27))
    filled = generator.fill(ids, mask, chosen, 0.0, draws[:3])
    assert torch.equal(filled, torch.where(chosen, whole.argmax(-1), ids))
    many = generator.fill(ids.repeat(9, 1), mask.repeat(9, 1), chosen.repeat(9, 1), 0.0, draws)
    assert torch.equal(many, filled.repeat(9, 1))


def test_what_cannot_be_told_a_vector_or_has_no_head_is_refused(facts, tmp_path) -> None:
    with pytest.raises(ValueError, match="no transformer"):
        ReplacedTokenDetectionLoss().module(replace(facts, transformer=None))
    with pytest.raises(ValueError, match="no embedding layer"):
        ConditionalTransformer(torch.nn.Linear(2, 2), 2, 2)
    from opencse.encoder import load_encoder, save_encoder

    folder = tiny_bert(tmp_path / "bert")
    save_encoder(load_encoder(folder, pooling="cls"), tmp_path / "model")
    with pytest.raises(OpencseError, match="no masked-LM head"):
        MaskedLanguageModelLoss().module(build_context(tmp_path / "model"))


def test_draws_follow_the_probabilities():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    uniform = RowDraws.of(range(20_000)).uniform("sample", 1)[:, 0]
    drawn = sample_classes(probabilities.expand(20_000, -1), uniform)
    shares = torch.bincount(drawn, minlength=6) / 20_000
    torch.testing.assert_close(shares, probabilities, rtol=0, atol=0.015)
    assert not shares[probabilities == 0].any()


def test_of_an_insertion_the_generator_fills_only_what_was_inserted(facts, monkeypatch) -> None:
    seen = watch(monkeypatch)
    loss, context, vectors = build(facts, **FAITHFUL, task="insert", ratio=0.5)
    loss.compute(vectors, everything(loss), context)
    edit, marked = seen["edit"], seen["labels"].bool()
    assert marked.any()
    for ids, mask, new, kept in zip(
        seen["ids"], seen["mask"].bool(), edit, seen["attended"].bool() & ~marked, strict=True
    ):
        assert new[kept].tolist() == ids[mask].tolist()


def test_a_generator_whose_head_is_in_parts(tmp_path) -> None:
    shape = {"n_layers": 1, "dim": 16, "n_heads": 2, "hidden_dim": 16, "vocab_size": 40}
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model("distilbert", **shape)).eval()
    ids = torch.arange(12).view(2, 6)
    chosen = ids % 3 == 0
    whole = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    found = TokenGenerator(model).fill(
        ids, torch.ones_like(ids), chosen, 0.0, RowDraws.of(range(2))
    )
    assert torch.equal(found, torch.where(chosen, whole.argmax(-1), ids))


def test_sound_edits_only_hidden_tokens_and_counts_only_content(facts, monkeypatch) -> None:
    seen = watch(monkeypatch)
    loss, context, vectors = build(facts, ratio=0.4)
    loss.compute(vectors, everything(loss), context)
    special = torch.isin(seen["ids"], torch.tensor(facts.tokenizer.all_special_ids))
    assert torch.equal(seen["counted"], ~special & seen["mask"].bool())
    changed = seen["edit"] != seen["ids"]
    assert changed.any()
    assert not (changed & ~seen["counted"]).any()


PAD, MASK = 0, 99
ROWS = st.lists(
    st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=9),
    min_size=1,
    max_size=4,
)


def batch(rows):
    """Rows of (token, chosen) as ids, mask and chosen."""
    width = max(map(len, rows))
    ids = torch.tensor([[t for t, _ in row] + [PAD] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    chosen = torch.tensor([[c for _, c in row] + [False] * (width - len(row)) for row in rows])
    return ids, mask, chosen


def lines(edit):
    for ids, mask, marked in zip(edit[0], edit[1].bool(), edit[2], strict=True):
        assert (ids[~mask] == PAD).all()
        assert not marked[~mask].any()
        yield ids[mask].tolist(), marked[mask].tolist()


@given(ROWS)
def test_insertion_equals_the_transcription(rows) -> None:
    edit = insert_tokens(*batch(rows), MASK, PAD, 100)
    assert list(lines(edit)) == [
        inserted([t for t, _ in row], [c for _, c in row], MASK) for row in rows
    ]


@given(ROWS, st.integers(1, 12))
def test_insertion_keeps_to_the_longest_sequence_allowed(rows, longest: int) -> None:
    edit = insert_tokens(*batch(rows), MASK, PAD, longest)
    for row, (ids, _) in zip(rows, lines(edit), strict=True):
        assert len(ids) <= max(longest, len(row))
        assert [t for t in ids if t != MASK] == [t for t, _ in row]


@given(ROWS)
def test_deletion_equals_the_transcription(rows) -> None:
    rows = [[(1, False), *row] for row in rows]  # the first token is never chosen
    edit = delete_tokens(*batch(rows), PAD)
    assert list(lines(edit)) == [deleted([t for t, _ in row], [c for _, c in row]) for row in rows]


def test_shares() -> None:
    torch.manual_seed(0)
    ids = torch.full((200, 500), 7)
    candidates = torch.rand(200, 500) < 0.5
    draws = RowDraws.of(range(200))
    chosen = sample_tokens(candidates, 0.3, draws)
    assert not (chosen & ~candidates).any()
    assert chosen.sum() / candidates.sum() == pytest.approx(0.3, abs=0.01)
    plain = mask_tokens(ids, chosen, MASK, 50, "mask", draws)
    assert torch.equal(plain == MASK, chosen)
    bert = mask_tokens(ids, chosen, MASK, 50, "bert", draws)
    assert torch.equal(bert[~chosen], ids[~chosen])
    share = (bert == MASK).sum() / chosen.sum()
    changed = ((bert != MASK) & (bert != 7)).sum() / chosen.sum()
    assert share == pytest.approx(0.8, abs=0.01)
    assert changed == pytest.approx(0.1 * 49 / 50, abs=0.01)


SENTENCES = ["the cat sits in the garden", "a dog runs", "is it red"]


def build_mlm(facts, present=(True, True, True), **settings):
    loss = MaskedLanguageModelLoss(**{"sentences": ("anchor",), "ratio": 0.4} | settings)
    encoded = facts.tokenizer(SENTENCES, padding=True, return_tensors="pt")
    here = torch.tensor(present)
    tokens = {"anchor": (encoded["input_ids"], encoded["attention_mask"] * here[:, None])}
    context = Context(modules={loss.name: loss.module(facts)}, tokens=tokens)
    vectors = {"anchor": torch.zeros(3, facts.width, requires_grad=True)}
    return loss, context, vectors, {"anchor": here}


@pytest.mark.parametrize("masking", ["bert", "mask"])
def test_at_first_it_is_the_loss_of_the_masked_language_model(facts, masking: str) -> None:
    loss, context, vectors, present = build_mlm(facts, masking=masking)
    context = replace(context, draws=RowDraws.of(range(3), seed=3))
    value = loss.compute(vectors, present, context).value
    ids, mask = context.tokens["anchor"]
    special = torch.isin(ids, torch.tensor(facts.tokenizer.all_special_ids))
    draws = context.draws.for_purpose("masked_language_model anchor")
    chosen = sample_tokens(~special & mask.bool(), 0.4, draws)
    mask_id = facts.tokenizer.mask_token_id
    edit = mask_tokens(ids, chosen, mask_id, len(facts.tokenizer), masking, draws)
    labels = ids.masked_fill(~chosen, -100)
    expected = facts.masked_lm("backbone")(input_ids=edit, attention_mask=mask, labels=labels).loss
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
    assert chosen.any()


def test_encoder_and_head_learn(facts) -> None:
    loss, context, vectors, present = build_mlm(facts)
    facts.encoder.zero_grad()
    loss.compute(vectors, present, context).value.backward()
    assert facts.transformer.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    assert all(p.grad is not None for p in context.modules[loss.name].parameters())
    assert not any("embeddings" in name for name in context.modules[loss.name].state_dict())


def test_what_rows_lack_does_not_count(facts) -> None:
    loss, context, vectors, present = build_mlm(facts, present=(False, True, False))
    assert loss.compute(vectors, present, context).value > 0
    loss, context, vectors, present = build_mlm(facts, present=(False, False, False))
    value = loss.compute(vectors, present, context).value
    value.backward()
    assert value == 0
    assert all(p.grad is not None for p in context.modules[loss.name].parameters())
