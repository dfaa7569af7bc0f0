"""Losses that predict words with the help of the sentence vector: InfoCSE and TSDAE."""

from __future__ import annotations

import pytest
import torch

from opencse.foundation.draws import RowDraws
from opencse.losses import Context, DenoisingAutoencoderLoss, InformationAggregationLoss
from tests.losses.checks import build_context
from tests.tiny import tiny_bert

TEXTS = ["the cat sat in the car", "a dog", "the dog sat"]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return build_context(tiny_bert(tmp_path_factory.mktemp("bert"), layers=2))


def tokens(build):
    batch = build.tokenizer(TEXTS, padding=True, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"]


def computed(loss, build, vectors, module):
    ids, mask = tokens(build)
    view = loss.tokens[0]
    context = Context(
        modules={loss.name: module},
        tokens={view: (ids, mask)},
        vectors=dict.fromkeys(loss.views, vectors),
        draws=RowDraws.of(range(len(ids)), seed=5),
    )
    present = {name: torch.ones(len(ids), dtype=torch.bool) for name in loss.views}
    return loss.compute(dict.fromkeys(loss.views, vectors), present, context)


@pytest.mark.parametrize(
    "loss",
    [InformationAggregationLoss(lower_layers=1, ratio=0.9), DenoisingAutoencoderLoss()],
    ids=lambda loss: loss.kind,
)
def test_the_sentence_vector_is_read_and_everything_is_trained(build, loss) -> None:
    torch.manual_seed(2)
    module = loss.module(build).train()
    vectors = torch.randn(len(TEXTS), build.width, requires_grad=True)
    output = computed(loss, build, vectors, module)
    output.value.backward()
    assert vectors.grad is not None
    assert (vectors.grad.abs().sum(dim=1) > 0).all()
    assert all(weight.grad is not None for weight in module.parameters())


def test_infocse_is_the_mean_cross_entropy_over_masked_tokens(build) -> None:
    loss = InformationAggregationLoss(lower_layers=1, ratio=0.5, masking="mask")
    module = loss.module(build).eval()
    vectors = torch.randn(len(TEXTS), build.width)
    ids, mask = tokens(build)

    output = computed(loss, build, vectors, module)

    # The same draws, then a literal computation, one sentence at a time.
    draws = RowDraws.of(range(len(ids)), seed=5).for_purpose("information_aggregation")
    drawn = draws.uniform("chosen", ids.shape[1]) < 0.5
    chosen = module.is_content(ids) & mask.bool() & drawn
    lower, layers, head = module._lower.module, module.layers, module.head
    losses = []
    for row in range(len(TEXTS)):
        length = int(mask[row].sum())
        masked = torch.where(chosen[row], module.mask_id, ids[row])[None, :length]
        states = lower(masked, attention_mask=torch.ones_like(masked)).last_hidden_state
        states[:, 0] = vectors[row]
        hidden = layers(states, attention_mask=None, return_dict=True).last_hidden_state
        scores = head(hidden)[0].log_softmax(dim=-1)
        losses += [-scores[t, ids[row, t]] for t in range(length) if chosen[row, t]]
    assert output.value.item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-4)


def test_the_decoder_sees_no_later_token(build) -> None:
    module = DenoisingAutoencoderLoss().module(build).eval()
    ids, mask = tokens(build)
    vectors = torch.randn(len(TEXTS), build.width)
    counted = mask.bool()
    counted[:, 0] = False
    changed = ids.clone()
    changed[0, 4] = ids[0, 2]
    before = module(ids, vectors, counted)
    after = module(changed, vectors, counted)
    # Tokens 1 to 4 of the first sentence are predicted from tokens before the changed one.
    torch.testing.assert_close(before[:4], after[:4])
    assert not torch.allclose(before[4], after[4])


def test_the_decoder_shares_the_encoders_weights(build) -> None:
    module = DenoisingAutoencoderLoss().module(build)
    decoder = dict(module._decoder[0].named_parameters())
    for name, weight in build.transformer.named_parameters():
        assert decoder[name] is weight


def test_too_many_lower_layers_are_refused(build) -> None:
    with pytest.raises(ValueError, match="lower_layers is 6, but the encoder has 2"):
        InformationAggregationLoss().module(build)
