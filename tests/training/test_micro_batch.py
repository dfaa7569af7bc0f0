"""Batches in parts, and laid out as for an accelerator: the loss and the gradient are those of the whole batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer.losses import (
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
)
from torch import Tensor

from opencse.commands.integrations.trainer_loss import sentence_transformers_loss
from opencse.encoder import load_encoder
from opencse.encoder.loading import build_projector
from opencse.encoder.packing import Packing, prepare_for_training
from opencse.encoder.prompts import Frame
from opencse.foundation.errors import OpencseError
from opencse.losses import Context, InfoNCELoss, Objective, TwoWayMarginLoss
from opencse.recipes import load_recipe
from opencse.training.batches import Collator, ViewTokens
from opencse.training.loss_head import LossHead
from opencse.training.network import Network
from tests.losses.cases import CASES, ROWS, TEACHERS
from tests.losses.checks import draw
from tests.tiny import tiny_bert
from tests.training.helpers import (
    FakeDev,
    as_on_an_accelerator,
    crash_at,
    metrics,
    run,
    token_store,
    weights,
    write_corpus,
)
from tests.training.test_systems import COLUMNS as ALL_COLUMNS
from tests.training.test_systems import system

COLUMNS = ("text", "positive", "negative")
LOSSES = [
    InfoNCELoss(positive="positive"),
    TwoWayMarginLoss(closer="positive", farther="negative", margin=(0.05, 0.2)),
]


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
    views = {
        name: ViewTokens(i, Frame((2,), (3,)), 18, rate) for i, (name, rate) in enumerate(names)
    }
    head = LossHead(
        build_projector("diffcse", 32), Objective(LOSSES), {}, dimensions
    )  # with BatchNorm
    network = (
        Network(encoder, head, encode_twice=twice)
        .to(torch.float32 if dropout else torch.float64)
        .train()
    )
    batch = Collator(store, views, 0, None, micro_batch=micro_batch)(range(16))
    if micro_batch:
        assert max(len(ids) for part in batch.passes for ids, *_ in part.groups) == micro_batch
    torch.manual_seed(1)
    loss = network(batch)[0]
    loss.backward()
    return {"loss": loss.detach()} | {
        n: p.grad for n, p in network.named_parameters() if p.grad is not None
    }


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


@pytest.fixture(scope="module")
def one_layer(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def test_a_packed_run_learns_as_a_padded_one(tmp_path, one_layer, monkeypatch) -> None:
    rates, attend = [], Packing.attend
    monkeypatch.setattr(
        Packing, "attend", lambda *given: (rates.append(given[4]), attend(*given))[1]
    )
    corpus = write_corpus(tmp_path)
    settings = ("training.max_steps=4", "training.log_every=4")
    with as_on_an_accelerator():
        run(corpus, one_layer, tmp_path / "packed", *settings)
    # The trials of the encoder have no dropout; the discarded step has the model's, as all others.
    assert [rate for rate in rates if rate] == [0.1] * 5
    packed_calls = len(rates)
    monkeypatch.setattr(
        "opencse.training.trained_model.prepare_for_training", lambda encoder, packed: False
    )
    run(corpus, one_layer, tmp_path / "padded", *settings)
    assert len(rates) == packed_calls
    packed, padded = metrics(tmp_path / "packed")[0], metrics(tmp_path / "padded")[0]
    assert packed.keys() == padded.keys()
    assert np.isfinite(list(packed.values())).all()
    assert packed["loss"] == pytest.approx(padded["loss"], rel=0.4), (
        "the same but for dropout, over four small steps"
    )


SIZES = "dimensions=[32,16,4]"


def test_it_is_the_loss_of_sentence_transformers(tmp_path: Path) -> None:
    """Value and gradient of MatryoshkaLoss over MultipleNegativesRankingLoss, without dropout."""
    model = load_encoder(tiny_bert(tmp_path), pooling="mean", dropout=0.0)
    features = [
        model.preprocess(texts)
        for texts in (["a cat", "the dog runs"], ["cat", "a dog is running"])
    ]
    theirs = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), [32, 16, 4])
    expected = theirs(features, torch.tensor([]))
    (gradient,) = torch.autograd.grad(
        expected, [model[0].auto_model.embeddings.word_embeddings.weight]
    )
    vectors = {
        v: model(f)["sentence_embedding"] for v, f in zip(("anchor", "twin"), features, strict=True)
    }
    cut = {n: {v: F.normalize(x[:, :n], dim=-1) for v, x in vectors.items()} for n in (32, 16, 4)}
    present = {view: torch.ones(2, dtype=torch.bool) for view in vectors}
    total, _, reports = Objective([InfoNCELoss(name="n", temperature=0.05)])(
        vectors, present, Context(), cut
    )
    torch.testing.assert_close(total, expected)
    (own,) = torch.autograd.grad(total, [model[0].auto_model.embeddings.word_embeddings.weight])
    torch.testing.assert_close(own, gradient, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(sum(reports[f"n/loss_{n}"] for n in (32, 16, 4)), total.detach())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_loss_is_the_sum_of_itself(case) -> None:
    vectors = {view: torch.tensor(a) for view, a in draw(case.loss.views, ROWS).items()}
    present = {view: torch.ones(ROWS, dtype=torch.bool) for view in vectors}
    known = {t: {v: torch.tensor(a) for v, a in arrays.items()} for t, arrays in TEACHERS.items()}
    cut = {n: {v: F.normalize(x[:, :n], dim=-1) for v, x in vectors.items()} for n in (4, 2)}
    context = Context(teachers=known)
    values = Objective([case.loss])(vectors, present, context, cut)[1]
    expected = sum(case.loss.compute(some, present, context).value for some in cut.values())
    torch.testing.assert_close(values[case.loss.name], expected)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_micro_batches_have_the_gradient_of_the_whole_batch(tmp_path, dropout) -> None:
    tiny_bert(tmp_path / "bert")
    write_corpus(tmp_path, 16, COLUMNS)
    sizes = (32, 8)
    whole = step(
        tmp_path, dropout, micro_batch=5 if dropout else None, twice=False, dimensions=sizes
    )
    parts = step(tmp_path, dropout, micro_batch=5, twice=True, dimensions=sizes)
    assert_equal(whole, parts, 1e-6 if dropout else 1e-9)
    alone = step(tmp_path, dropout, micro_batch=5, twice=True)
    assert not torch.allclose(alone["loss"], whole["loss"])


@pytest.mark.parametrize("name", ["rlrd", "diffcse", "osscse"])
def test_systems_train_and_resume(tmp_path, name, monkeypatch) -> None:
    corpus, backbone = write_corpus(tmp_path, 19, ALL_COLUMNS), tiny_bert(tmp_path / "bert")
    recipe = system(name, "sound", SIZES)
    run(corpus, backbone, tmp_path / "whole", recipe=recipe, dev=FakeDev())
    with monkeypatch.context() as patch:
        crash_at(2, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "parts", recipe=recipe, dev=FakeDev())
    run(corpus, backbone, tmp_path / "parts", recipe=recipe, dev=FakeDev(), resume=True)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    expected = weights(tmp_path / "whole")
    assert all(
        (tensor == expected[key]).all() for key, tensor in weights(tmp_path / "parts").items()
    )
    last = [line for line in metrics(tmp_path / "whole") if "loss" in line][-1]
    compared = {loss.name for loss in recipe.losses if loss.compares_embeddings}
    assert {key.split("/")[0] for key in last if "/loss_" in key} == compared


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (["dimensions=[]"], "one or more numbers from 1, the largest first"),
        (["dimensions=[8,16]"], r"the largest first, not \[8, 16\]"),
        (["dimensions=[16,16]"], "the largest first"),
        (["dimensions=[16,0]"], "from 1"),
        (["dimensions=16"], "dimensions: expected"),
    ],
)
def test_impossible_dimensions_are_refused(settings, match) -> None:
    with pytest.raises(OpencseError, match=match):
        load_recipe("simcse", overrides=settings)
    with pytest.raises(OpencseError, match="a meaning block has its own"):
        load_recipe("debias", overrides=["dimensions=[384]"])
    with pytest.raises(OpencseError, match="no loss acts"):
        load_recipe("esimcse", overrides=["dimensions=[384]"])


def test_the_loss_for_sentence_transformers_trainer_has_them_too(tmp_path) -> None:
    model = load_encoder(tiny_bert(tmp_path), pooling="mean").train()
    loss = sentence_transformers_loss("simcse", model, overrides=["dimensions=[32,8]"])
    loss([model.preprocess(["a cat", "the dog runs", "a bird sings"])]).backward()
    assert {"info_nce/loss_32", "info_nce/loss_8"} <= loss.reports.keys()
    with pytest.raises(OpencseError, match="the vectors of the encoder have 32"):
        sentence_transformers_loss("simcse", model, overrides=["dimensions=[64]"])
