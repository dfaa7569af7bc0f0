"""The device and the precision: chosen once for everything, or named; bf16 where it is faster."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from accelerate import PartialState
from torch import nn
from transformers import BertConfig, DistilBertConfig

from opencse.encoder.device import (
    autocast,
    choose_device,
    describe,
    join_processes,
    resolve_precision,
    use_device,
    world_size,
)
from opencse.encoder.embedder import Embedder
from opencse.encoder.packing import prepare_for_training
from opencse.foundation.errors import OpencseError
from tests.encoder.families import FAMILIES, vectors

VARIABLES = ("ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_CPU", "LOCAL_RANK")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
        monkeypatch.delenv(name)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some GPU")


def test_by_default_it_is_the_one_that_accelerate_trains_on():
    from accelerate import Accelerator

    assert choose_device() == Accelerator().device
    assert "thread" in describe("fp32", {}, torch.device("cpu"))


def test_an_accelerator_is_found_and_each_of_several_processes_has_its_own(two_gpus, monkeypatch):
    assert choose_device() == torch.device("cuda")
    assert describe("fp32", {}, choose_device()) == "on cuda (Some GPU), fp32"
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device() == torch.device("cuda", 1)
    use_device("cuda")
    assert choose_device() == torch.device("cuda", 1)


def test_a_named_device_becomes_the_choice_of_everything(two_gpus):
    with pytest.raises(OpencseError, match="there are only 2"):
        use_device("cuda:2")
    assert use_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device() == torch.device("cuda", 1)
    assert os.environ["ACCELERATE_TORCH_DEVICE"] == "cuda:1"
    assert use_device("cpu") == torch.device("cpu")
    assert choose_device() == torch.device("cpu")


def test_a_model_is_loaded_onto_it(tmp_path):
    from opencse.encoder import load_encoder
    from tests.tiny import tiny_bert

    folder = tiny_bert(tmp_path)
    use_device("meta")
    assert load_encoder(folder, pooling="mean").device.type == "meta"
    assert load_encoder(folder, pooling="mean", device="cpu").device.type == "cpu"


@pytest.mark.parametrize(
    ("name", "problem"), [("gpu", "no such kind"), ("cuda", "finds no such device")]
)
def test_a_device_that_is_not_there_is_one_line(name, problem):
    with pytest.raises(OpencseError, match=problem):
        use_device(name)


def test_a_launcher_that_started_one_process_for_several_is_told(monkeypatch):
    """`accelerate launch --cpu --num_processes 2` starts one."""
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("MASTER_PORT", "29500")
    with pytest.raises(OpencseError, match="torchrun --nproc_per_node 2"):
        join_processes()


def test_worlds_that_disagree_are_refused(monkeypatch):
    PartialState()
    assert world_size() == 1
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(OpencseError, match=r"PyTorch sees 2 processes, but accelerate, .* 1\."):
        world_size()


WIDE, SMALL = {"hidden_size": 384}, {"hidden_size": 32}


def machine(monkeypatch, *capabilities):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(capabilities, True))


@pytest.mark.parametrize(
    ("capabilities", "config", "expected"),
    [
        (["avx512_bf16"], WIDE, "bf16"),
        (["amx_bf16", "avx2"], BertConfig(hidden_size=768), "bf16"),
        (["sve_bf16"], DistilBertConfig(dim=768), "bf16"),
        (["avx512_bf16"], SMALL, "fp32"),
        (["avx512_bf16"], DistilBertConfig(dim=64, n_heads=4), "fp32"),
        (["avx512_f"], WIDE, "fp32"),
        (["avx512_bf16"], {}, "bf16"),
    ],
)
def test_the_processor_and_the_width_decide(monkeypatch, capabilities, config, expected):
    machine(monkeypatch, *capabilities)
    assert resolve_precision("auto", config, "cpu") == expected
    assert describe("auto", config, torch.device("cpu")).endswith(
        f"{expected} (the faster one here)"
    )


@pytest.mark.parametrize(("supported", "expected"), [(True, "bf16"), (False, "fp32")])
def test_an_accelerator_is_asked(monkeypatch, supported, expected):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert resolve_precision("auto", SMALL, "cuda") == expected


def test_what_was_asked_for_is_taken_where_the_device_has_it():
    assert resolve_precision("fp32", WIDE, "cpu") == "fp32"
    assert resolve_precision("fp16", {}, "cuda") == "fp16"


@pytest.mark.parametrize("expected", ["bf16", "fp32"])
def test_an_embedder_says_which_it_took(monkeypatch, tiny_model, expected):
    monkeypatch.setattr("opencse.encoder.device._LEAST_WIDTH", {"bf16": 1, "fp32": 64}[expected])
    machine(monkeypatch, "avx512_bf16")
    embedder = Embedder(tiny_model, precision="auto")
    assert embedder.precision == expected
    same = Embedder(tiny_model, precision=expected)
    np.testing.assert_array_equal(embedder.encode(["a cat sits"]), same.encode(["a cat sits"]))


CPU = torch.device("cpu")


def bert():
    torch.manual_seed(0)
    return FAMILIES["bert"]().train()


def learn(name, steps=40, fast=True):
    model = bert()
    if fast:
        prepare_for_training(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        ids = torch.randint(4, 60, (16, 9))
        mask = (torch.arange(9)[None] < torch.randint(3, 10, (16, 1))).long()
        with autocast(name, CPU):
            hidden = [vectors(model, ids, mask) for _ in range(2)]
        first, second = (F.normalize(x[:, 0].float(), dim=-1) for x in hidden)
        loss = F.cross_entropy(first @ second.T / 0.05, torch.arange(16))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


def test_bf16_learns_like_fp32():
    plain, low = learn("fp32"), learn("bf16")
    assert plain[-10:].mean() < 0.7 * plain[:5].mean()
    # The same masks and batches, so that rounding is the only difference.
    torch.testing.assert_close(low[:3], plain[:3], rtol=0.05, atol=0.0)
    assert low[-10:].mean().item() == pytest.approx(plain[-10:].mean().item(), rel=0.15)
