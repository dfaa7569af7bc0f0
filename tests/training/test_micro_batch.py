"""Batches in parts, and laid out as for an accelerator: the loss and the gradient are those of the whole batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from opencse.encoder import load_encoder
from opencse.encoder.loading import build_projector
from opencse.encoder.packing import Packing, prepare_for_training
from opencse.encoder.prompts import Frame
from opencse.losses import InfoNCELoss, Objective, TwoWayMarginLoss
from opencse.training.batches import Assembler, ViewTokens
from opencse.training.network import LossHead, Network
from tests.tiny import tiny_bert
from tests.training.dry_run import as_on_an_accelerator
from tests.training.helpers import metrics, run, token_store, write_corpus

COLUMNS = ("text", "positive", "negative")
TERMS = [InfoNCELoss(positive="positive"), TwoWayMarginLoss(closer="positive", farther="negative", margin=(0.05, 0.2))]


def step(
    folder: Path,
    dropout: float,
    micro_batch: int | None,
    twice: bool,
    packed: bool = False,
    dimensions: tuple[int, ...] = (),
) -> dict[str, Tensor]:
    """Loss and gradients of a step on 16 rows of three views, one of them with a dropout of its own."""
    torch.manual_seed(0)
    encoder = load_encoder(folder / "bert", pooling="cls", dropout=dropout)
    assert not packed or prepare_for_training(encoder)
    store = token_store(folder, COLUMNS, encoder)
    names = zip(("anchor", "positive", "negative"), (None, None, dropout / 2), strict=True)
    views = {name: ViewTokens(i, Frame((2,), (3,)), 18, rate) for i, (name, rate) in enumerate(names)}
    head = LossHead(build_projector("diffcse", 32), Objective(TERMS), {}, dimensions)  # with BatchNorm
    network = Network(encoder, head, encode_twice=twice).to(torch.float32 if dropout else torch.float64).train()
    batch = Assembler(store, views, 0, None, micro_batch=micro_batch)(range(16))
    if micro_batch:
        assert max(len(ids) for part in batch.passes for ids, *_ in part.groups) == micro_batch
    torch.manual_seed(1)
    loss = network(batch)[0]
    loss.backward()
    return {"loss": loss.detach()} | {n: p.grad for n, p in network.named_parameters() if p.grad is not None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place: Path = tmp_path_factory.mktemp("micro")
    tiny_bert(place / "bert")
    write_corpus(place, 16, COLUMNS)
    return place


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, gradient in one.items():
        torch.testing.assert_close(other[name], gradient, rtol=tolerance, atol=tolerance, msg=name)


@pytest.mark.parametrize("packed", [False, True])
def test_the_step_is_that_of_the_whole_batch(folder, packed) -> None:
    whole = step(folder, 0.0, micro_batch=None, twice=False, packed=packed)
    assert_equal(whole, step(folder, 0.0, micro_batch=5, twice=True, packed=packed), 1e-9)


@pytest.mark.parametrize("packed", [False, True])
def test_texts_are_encoded_again_with_the_same_dropout_masks(folder, packed) -> None:
    """The same parts, with their activations kept, in fp32."""
    kept = step(folder, 0.3, micro_batch=5, twice=False, packed=packed)
    assert_equal(kept, step(folder, 0.3, micro_batch=5, twice=True, packed=packed), 1e-6)


def test_a_recipe_trains_in_parts(tmp_path, folder) -> None:
    settings = ["training.max_steps=2", "training.micro_batch=3", "training.log_every=1"]
    run(write_corpus(tmp_path, 16), folder / "bert", tmp_path / "run", *settings)
    assert [line["step"] for line in metrics(tmp_path / "run") if "loss" in line] == [1, 2]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def test_a_packed_run_learns_as_a_padded_one(tmp_path, backbone, monkeypatch) -> None:
    rates, attend = [], Packing.attend
    monkeypatch.setattr(Packing, "attend", lambda *given: (rates.append(given[4]), attend(*given))[1])
    corpus = write_corpus(tmp_path)
    settings = ("training.max_steps=4", "training.log_every=4")
    with as_on_an_accelerator():
        run(corpus, backbone, tmp_path / "packed", *settings)
    assert rates == [0.0, *[0.1] * 5]  # the trial of the encoder, then the discarded step too, with the model's dropout
    monkeypatch.setattr("opencse.training.train.prepare_for_training", lambda encoder: False)
    run(corpus, backbone, tmp_path / "padded", *settings)
    assert len(rates) == 6
    packed, padded = metrics(tmp_path / "packed")[0], metrics(tmp_path / "padded")[0]
    assert packed.keys() == padded.keys()
    assert np.isfinite(list(packed.values())).all()
    assert packed["loss"] == pytest.approx(padded["loss"], rel=0.4), "the same but for dropout, over four small steps"
