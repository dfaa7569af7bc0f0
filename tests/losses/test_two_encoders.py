"""Losses with a second encoder: Contrastive Tension, SG-OPT and PCL."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.losses import (
    Context,
    ContrastiveTensionLoss,
    PeerContrastiveLoss,
    SelfGuidedLoss,
)
from opencse.losses.contrastive_tension import paired_sentences
from opencse.losses.peer_contrastive import peer_losses
from opencse.losses.self_guided import self_guided
from tests.losses.checks import build_context, draw
from tests.reference import two_encoders as slow
from tests.tiny import tiny_bert

ROWS = 4


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return build_context(tiny_bert(tmp_path_factory.mktemp("bert"), layers=2))


def tokens(build, count: int = ROWS):
    texts = ["the cat sat", "a dog", "the dog sat on the mat", "a cat and a dog"][:count]
    batch = build.tokenizer(texts, padding=True, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"]


def unit(vectors: np.ndarray) -> torch.Tensor:
    tensor = torch.tensor(vectors, requires_grad=True)
    return torch.nn.functional.normalize(tensor, dim=-1)


def test_no_negative_meets_itself() -> None:
    for count in range(2, 20):
        partner, same = paired_sentences(count, negatives=3)
        assert ((partner == torch.arange(count)) == same).all()
        assert sorted(set(partner[~same].tolist()) - {0}) or count == 2


def test_contrastive_tension_is_the_cross_entropy_of_the_formula(build) -> None:
    loss = ContrastiveTensionLoss(negatives=1)
    second = loss.module(build).eval()
    ids, mask = tokens(build)
    first = torch.tensor(draw(("anchor",), ROWS, build.width)["anchor"], requires_grad=True)
    context = Context(modules={loss.name: second}, tokens={"anchor": (ids, mask)})
    output = loss.compute(
        {"anchor": first}, {"anchor": torch.ones(ROWS, dtype=torch.bool)}, context
    )

    vectors = second(ids, mask, torch.device("cpu")).detach().double().numpy()
    partner, same = paired_sentences(ROWS, 1)
    expected = slow.contrastive_tension(
        first.detach().numpy(), vectors, partner.tolist(), same.tolist()
    )
    assert output.value.item() == pytest.approx(expected, rel=1e-6)
    output.value.backward()
    assert first.grad is not None
    read = {name: weight for name, weight in second.named_parameters() if "pooler" not in name}
    assert all(weight.grad is not None for weight in read.values())


def test_both_encoders_start_equal(build) -> None:
    second = ContrastiveTensionLoss().module(build)
    own = dict(build.encoder.named_parameters())
    for name, weight in second.encoder.named_parameters():
        assert torch.equal(weight, own[name])
        assert weight is not own[name]


def test_self_guided_is_the_formula() -> None:
    random = np.random.default_rng(3)
    vectors, layers = random.normal(size=(ROWS, 5)), random.normal(size=(ROWS, 3, 5))
    value, _ = self_guided(unit(vectors), unit(layers), 0.3, torch.arange(len(vectors)))
    assert value.mean().item() == pytest.approx(slow.self_guided(vectors, layers, t=0.3), rel=1e-9)


def test_self_guided_reads_averages_of_all_frozen_layers(build) -> None:
    loss = SelfGuidedLoss(hidden=8)
    guide = loss.module(build)
    ids, mask = tokens(build)
    layers = guide.layers(ids, mask, Context())
    build.transformer.eval()
    with torch.no_grad():
        states = build.transformer(ids, attention_mask=mask, output_hidden_states=True)
    for place, hidden in enumerate(states.hidden_states):
        for row in range(ROWS):
            expected = hidden[row, : int(mask[row].sum())].mean(dim=0)
            torch.testing.assert_close(layers[row, place], expected, atol=1e-5, rtol=1e-4)
    assert not any("_frozen" in name for name, _ in guide.named_parameters())


def test_self_guided_trains_its_head_and_needs_two_rows(build) -> None:
    loss = SelfGuidedLoss(hidden=8)
    guide = loss.module(build)
    for count in (ROWS, 1):
        ids, mask = tokens(build, count)
        vectors = torch.randn(count, build.width, requires_grad=True)
        context = Context(modules={loss.name: guide}, tokens={"anchor": (ids, mask)})
        present = {"anchor": torch.ones(count, dtype=torch.bool)}
        output = loss.compute({"anchor": vectors}, present, context)
        guide.zero_grad()
        output.value.backward()
        assert all(weight.grad is not None for weight in guide.parameters())
        assert (output.value.item() > 0) == (count > 1)


def test_pcl_is_the_sum_of_the_codes_parts() -> None:
    random = np.random.default_rng(4)
    own, peer = random.normal(size=(4, ROWS, 6)), random.normal(size=(4, ROWS, 6))
    parts = peer_losses(unit(own), unit(peer), 0.3, torch.arange(own.shape[1]))
    expected = slow.peer_contrastive(own, peer, t=0.3)
    assert parts.keys() == expected.keys()
    for name, value in parts.items():
        assert value.mean().item() == pytest.approx(expected[name], rel=1e-9), name


def test_pcl_trains_the_peer(build) -> None:
    loss = PeerContrastiveLoss(positives=("twin",))
    peer = loss.module(build)
    views = dict.fromkeys(loss.views, tokens(build))
    vectors = {view: torch.randn(ROWS, build.width, requires_grad=True) for view in loss.views}
    present = {view: torch.ones(ROWS, dtype=torch.bool) for view in loss.views}
    context = Context(modules={loss.name: peer}, tokens=views)
    output = loss.compute(vectors, present, context)
    output.value.backward()
    assert all(vectors[view].grad.abs().sum() > 0 for view in loss.views)
    trained = [name for name, weight in peer.named_parameters() if weight.grad is not None]
    assert any("layer.1" in name for name in trained)


def test_the_peer_of_pcls_code_reads_padding_up_to_the_longest_view(build) -> None:
    loss = PeerContrastiveLoss(positives=("twin",), peer="pooler")
    peer = loss.module(build)
    for weight in peer.parameters():
        weight.data.normal_()
    peer.eval()
    ids, mask = tokens(build)
    longer = torch.nn.functional.pad(ids, (0, 3), value=build.tokenizer.pad_token_id)
    views = {"anchor": (ids, mask), "twin": (longer, torch.nn.functional.pad(mask, (0, 3)))}
    vectors = {view: torch.randn(ROWS, build.width, requires_grad=True) for view in loss.views}
    present = {view: torch.ones(ROWS, dtype=torch.bool) for view in loss.views}
    output = loss.compute(
        vectors, present, Context(modules={loss.name: peer}, tokens=views, device=ids.device)
    )
    expected = build.projector(
        peer.encoder[0](longer, attention_mask=torch.ones_like(longer)).pooler_output
    )
    own = torch.stack([torch.nn.functional.normalize(vectors[view], dim=-1) for view in loss.views])
    other = torch.stack([torch.nn.functional.normalize(expected, dim=-1)] * 2)
    parts = peer_losses(own, other, loss.temperature, torch.arange(ROWS))
    assert output.value.item() == pytest.approx(sum(parts.values()).mean().item(), rel=1e-5)
    output.value.backward()
    assert all(weight.grad is not None for weight in peer.parameters())


def test_pcl_without_rows_is_zero(build) -> None:
    loss = PeerContrastiveLoss(positives=("twin",))
    peer = loss.module(build)
    empty = torch.zeros(ROWS, 3, dtype=torch.long)
    context = Context(modules={loss.name: peer}, tokens=dict.fromkeys(loss.views, (empty, empty)))
    vectors = {view: torch.zeros(ROWS, build.width, requires_grad=True) for view in loss.views}
    present = {view: torch.zeros(ROWS, dtype=torch.bool) for view in loss.views}
    output = loss.compute(vectors, present, context)
    assert output.value.item() == 0
    output.value.backward()
