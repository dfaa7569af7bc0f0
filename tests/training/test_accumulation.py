"""Gradients averaged over several batches, and compiled transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from opencse.encoder import load_encoder
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import Frame
from opencse.foundation.errors import OpencseError
from opencse.losses import InfoNCELoss, Objective, TwoWayMarginLoss
from opencse.training.batches import Collator, ViewTokens, few_widths
from opencse.training.loss_head import LossHead
from opencse.training.network import Network
from opencse.training.step import train_step
from opencse.training.trained_model import compile_layers
from tests.tiny import tiny_bert
from tests.training.helpers import metrics, run, token_store, weights, write_corpus

COLUMNS = ("text", "positive", "negative")
ROWS = [1, 2, 3, 4, 6, 7, 8, 9]  # these have all columns
PER_ROW = TwoWayMarginLoss(closer="positive", farther="negative", margin=(0.05, 0.2))
# Compiled layers draw other dropout masks, so this run has none, and a positive of another text.
SAME_MASKS = ("encoder.dropout=0.0", "views.twin.text=positive")
IN_BATCH = InfoNCELoss(positive="positive")


def updated(folder: Path, loss, parts: list[list[int]]) -> dict[str, torch.Tensor]:
    """Return the weights after one step on some batches."""
    encoder = load_encoder(folder / "bert", pooling="cls", dropout=0.0)
    store = token_store(folder, COLUMNS, encoder)
    names = ("anchor", "positive", "negative")
    views = {name: ViewTokens(i, Frame((2,), (3,)), 18, None) for i, name in enumerate(names)}
    head = LossHead(torch.nn.Identity(), Objective([loss]), {})
    network = Network(encoder, head).double().train()
    for name, parameter in network.named_parameters():
        parameter.requires_grad_("pooler" not in name)
    collator = Collator(store, views, 0)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    values = train_step(
        network,
        [collator(rows) for rows in parts],
        torch.optim.SGD(trained, lr=1.0),
        torch.amp.GradScaler("cpu", enabled=False),
        step=0,
        precision="fp32",
        max_grad_norm=0.0,
    )
    found = {}
    for name, value in network.named_parameters():
        if value.requires_grad:
            found[name] = value.detach()
    return {**found, "loss": values["loss"], "grad_norm": values["grad_norm"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("accumulation")
    write_corpus(folder, columns=COLUMNS)
    tiny_bert(folder / "bert")
    return folder


def test_the_gradient_of_two_batches_is_that_of_all_their_rows(folder) -> None:
    complete = updated(folder, PER_ROW, [ROWS])
    in_parts = updated(folder, PER_ROW, [ROWS[:4], ROWS[4:]])
    assert complete["grad_norm"] > 0.01
    for name, value in complete.items():
        torch.testing.assert_close(in_parts[name], value, rtol=1e-9, atol=1e-12, msg=name)


def test_a_batch_has_its_own_negatives_only(folder) -> None:
    complete = updated(folder, IN_BATCH, [ROWS])
    in_parts = updated(folder, IN_BATCH, [ROWS[:4], ROWS[4:]])
    assert in_parts["loss"] < complete["loss"]


def test_a_run_takes_a_step_for_every_two_batches(folder, tmp_path) -> None:
    settings = ("training.accumulation_steps=2", "training.batch_size=4")
    done = run(folder / "corpus.jsonl", folder / "bert", tmp_path / "out", *settings)
    assert done.outcome.steps == 5  # 40 rows
    assert metrics(done.folder)[-1]["step"] == 5


@pytest.mark.parametrize("recipe", ["diffcse", "debcse"])
def test_what_needs_all_rows_is_refused(folder, tmp_path, recipe) -> None:
    write_corpus(tmp_path, columns=("text", "positive", "negative_1", "negative_2"))
    with pytest.raises(OpencseError, match=r"accumulation_steps: .* needs all rows") as error:
        run(
            tmp_path / "corpus.jsonl",
            folder / "bert",
            tmp_path / "out",
            "training.accumulation_steps=2",
            recipe=recipe,
        )
    assert "training.micro_batch" in error.value.remedy


@pytest.mark.parametrize("kind", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_compiled_layers_give_the_same_vectors_and_gradients(folder, kind) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    ids = torch.tensor([[2, 7, 8, 9, 3], [2, 7, 9, 3, 0]])
    features = {"input_ids": ids, "attention_mask": (ids > 0).long()}
    found = []
    for compiled in (False, True):
        encoder = load_encoder(folder / "bert", pooling="cls", dropout=0.0)
        if compiled:
            compile_layers(encoder[0].auto_model, kind)
        vectors = encoder(dict(features))["sentence_embedding"]
        vectors.square().sum().backward()
        gradient = encoder[0].auto_model.embeddings.word_embeddings.weight.grad
        found.append((vectors.detach(), gradient))
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        assert (graphs > 0) == compiled
    for plain, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain)


@pytest.mark.slow
def test_an_epoch_of_all_lengths_is_compiled_once(folder) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    encoder = load_encoder(folder / "bert", pooling="cls", dropout=0.1)
    assert not prepare_for_training(encoder, packed=False)
    compile_layers(encoder[0].auto_model, "eager")
    view = ViewTokens(0, Frame((2,), (3,)), 18, None)
    store = token_store(folder, COLUMNS, encoder)
    collator = Collator(store, {"anchor": view, "twin": view}, 0, widths=few_widths(20))
    network = Network(encoder, LossHead(torch.nn.Identity(), Objective([InfoNCELoss()]), {}))
    graphs = []
    for first in range(0, 40, 5):
        loss, _, _ = network.train()(collator(range(first, first + 5)))
        loss.backward()
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs[0] > 0
    assert graphs[-1] == graphs[0]


@pytest.mark.slow
def test_a_run_with_a_compiled_transformer_trains_the_same_model(folder, tmp_path) -> None:
    for name in ("none", "eager"):
        settings = (f"training.compile={name}", "training.max_steps=3", *SAME_MASKS)
        run(folder / "corpus.jsonl", folder / "bert", tmp_path / name, *settings)
    expected = weights(tmp_path / "none")
    found = weights(tmp_path / "eager")
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert abs(value - expected[name]).max() < 1e-5, name
