"""Terms with modules do in two processes what they do in one: gradients, auxiliary parameters, memory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

from opencse.encoder import Frame, build_projector, load_encoder
from opencse.encoder.denoising import TemplateDenoising
from opencse.encoder.loading import load_masked_lm
from opencse.losses import (
    InfoNCELoss,
    ListMLELoss,
    MeaningLoss,
    MomentumContrastiveLoss,
    Objective,
    RecallLoss,
    ReplacedTokenDetectionLoss,
    TermBuildContext,
)
from opencse.losses import replaced_tokens as module
from opencse.losses.teacher_weights import Policy
from opencse.training.batches import Assembler, ViewTokens
from opencse.training.network import LossHead, Network
from tests.tiny import tiny_bert
from tests.training.helpers import token_store, write_corpus

VIEWS = ("text", "positive", "negative")
CONTRASTIVE = InfoNCELoss(positive="positive")
DETECTION = ReplacedTokenDetectionLoss(sentences=("anchor", "positive"), temperature=0.0)
RANKING = ListMLELoss(candidates="positive", teachers=("a", "b"), reduction="position")
CASES = {
    "recall": [CONTRASTIVE, RecallLoss(gamma=0.5)],
    "detection": [CONTRASTIVE, DETECTION],
    "detection alone": [replace(DETECTION, fill="all")],
    "insertion": [replace(DETECTION, task="insert")],
    "deletion": [replace(DETECTION, task="delete", sentences=("anchor",), texts=("negative",))],
    "corrective lm": [replace(DETECTION, task="corrective_lm")],
    "queue": [MomentumContrastiveLoss(positive="positive", queue_size=20)],
    "policy": [
        ListMLELoss(
            candidates="positive",
            teachers=("a", "b"),
            weighting="rlrd",
            policy=Policy(horizon=2, updates=1),
            weight=0.1,
        )
    ],
    "denoising": [CONTRASTIVE],
    "meaning": [MeaningLoss(same=("anchor", "positive"), opposed=(("negative",),))],
}


def every_other(candidates: torch.Tensor, ratio: float) -> torch.Tensor:
    return candidates & (torch.arange(candidates.shape[1]) % 2 == 0)


def gradients(folder: Path, case: str, rank: int, world: int) -> dict[str, torch.Tensor]:
    """Gradients and memory after four steps on rows 0..15, of which this process has its share."""
    module.sample_tokens = every_other
    encoder = load_encoder(folder / "bert", pooling="cls")
    store = token_store(folder, VIEWS, encoder)
    names = dict(zip(VIEWS, ("anchor", "positive", "negative"), strict=True))
    views = {names[v]: ViewTokens(i, Frame((2,), (3,)), 18, 0.0) for i, v in enumerate(VIEWS)}
    torch.manual_seed(0)
    head = build_projector("diffcse", 32)  # with BatchNorm
    transformer = encoder[0].auto_model
    facts = TermBuildContext(
        width=32,
        encoder=encoder,
        projector=head,
        transformer=transformer,
        tokenizer=encoder.tokenizer,
        masked_lm=lambda name: load_masked_lm(folder / "bert")[0],
    )
    terms = CASES[case]
    modules = {t.name: made for t in terms if (made := t.module(facts)) is not None}
    denoisers = (
        {v: TemplateDenoising(transformer, Frame((2,), (4, 3), mask=0)) for v in views} if case == "denoising" else {}
    )
    network = Network(encoder, LossHead(head, Objective(terms), modules), denoisers).double().train()
    for name, parameter in network.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(False)
    wise = np.random.default_rng(0).normal(size=(4, 16, 5)).astype(np.float32)
    teachers = {t: {"anchor": wise[2 * i], "positive": wise[2 * i + 1]} for i, t in enumerate("ab")}
    share = 16 // world
    tokens = [v for v in views if any(v in t.tokens for t in terms)]
    batch = Assembler(store, views, 0, 16.0, teachers if any(t.teachers for t in terms) else None, tokens)
    part = batch(range(rank * share, (rank + 1) * share))
    model = DistributedDataParallel(network) if world > 1 else network
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss, _, _ = model(part, step)
        loss.backward()
        if step < 3:
            optimizer.step()
    found = {n: p.grad for n, p in network.named_parameters() if p.grad is not None}
    memory = {n: b for n, b in network.named_buffers() if "auxiliary" in n or "running" in n}
    weights = {f"w {n}": p.detach() for n, p in network.named_parameters() if "pooler" not in n}  # it is random
    return found | {n: b.double() for n, b in memory.items()} | weights | {"loss": loss.detach()}


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OPENCSE_CACHE": str(folder / f"cache{rank}")}
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for case in CASES:
        found = gradients(folder, case, rank, 2)
        if rank == 0:
            save_file({n: t.contiguous() for n, t in found.items()}, folder / f"{case}.safetensors")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    tiny_bert(folder / "bert", dropout=0.0)
    write_corpus(folder, 16, VIEWS)
    mp.spawn(worker, (folder, 28500 + os.getpid() % 1000), nprocs=2)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_do_what_one_does(two_processes, case, monkeypatch) -> None:
    monkeypatch.setattr(module, "sample_tokens", module.sample_tokens)  # `gradients` replaces it
    expected = gradients(two_processes, case, 0, 1)
    found = load_file(two_processes / f"{case}.safetensors")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7, msg=lambda m, n=name: f"{n}: {m}")
