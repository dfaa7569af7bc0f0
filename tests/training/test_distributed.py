"""Two processes do what one does with the same global batch."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

from opencse.encoder import Frame, build_projector, load_encoder
from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    ListMLELoss,
    ListNetLoss,
    MarginInfoNCELoss,
    NoiseNegatives,
    Objective,
    RankingConsistencyLoss,
    TwoWayMarginLoss,
)
from opencse.training.batches import Assembler, ViewTokens
from opencse.training.gather import gather_rows
from opencse.training.network import LossHead, Network
from tests.tiny import tiny_bert
from tests.training.helpers import Imitate, metrics, token_store, weights, write_corpus
from tests.trials.processes import free_port, of_two

VIEWS = ("text", "positive", "negative")
TERMS = {
    "infonce": [InfoNCELoss(positive="positive")],
    "hince": [InfoNCELoss(positive="positive", negatives=("negative",), negative_temperature=0.1)],
    "two terms": [
        MarginInfoNCELoss(positive="positive", signs="p-n+", size="dynamic"),
        InfoNCELoss(name="second", positive="negative", negatives=("positive",), negative_scope="own", weight=0.3),
    ],
    "margin": [TwoWayMarginLoss(closer="positive", farther="negative", margin=(0.05, 0.2))],
    "alternating": [AlternatingNormalizationLoss(positives=("positive",), negatives=("negative",))],
    "ranking": [
        RankingConsistencyLoss(positive="positive"),
        ListNetLoss(candidates="positive", teachers=("wise",)),
        ListMLELoss(candidates="positive", teachers=("wise",), weight=0.1),
    ],
    "debiased": [
        DCLRLoss(
            positive="positive",
            false_negatives=FalseNegatives(teacher="wise", threshold=0.3),
            noise=NoiseNegatives(),
        ),
        AngularInfoNCELoss(positive="positive", degrees=10.0),
    ],
    "teacher": [Imitate(other="positive")],
}

CASES = list(zip(TERMS, itertools.cycle(("none", "simcse", "diffcse"))))
"""Each list of terms with one projector, and each projector with several lists."""


def gradients(folder: Path, terms: str, projector: str, rank: int, world: int) -> dict[str, torch.Tensor]:
    """The gradients of one step on rows 0..15, of which this process has its share."""
    encoder = load_encoder(folder / "bert", pooling="cls")
    store = token_store(folder, VIEWS, encoder)
    names = dict(zip(VIEWS, ("anchor", "positive", "negative"), strict=True))
    views = {names[v]: ViewTokens(i, Frame((2,), (3,)), 18, 0.0) for i, v in enumerate(VIEWS)}
    torch.manual_seed(0)
    network = Network(encoder, LossHead(build_projector(projector, 32), Objective(TERMS[terms]), {})).double().train()
    for parameter in encoder[0].auto_model.pooler.parameters():
        parameter.requires_grad_(False)
    share = 16 // world
    wise = np.random.default_rng(0).normal(size=(2, 16, 5)).astype(np.float32)
    wise[1, ::5] = 0  # where there is no such view
    teachers = {"wise": {"anchor": wise[0], "positive": wise[1]}}
    batch = Assembler(store, views, 0, 16.0, teachers)(range(rank * share, (rank + 1) * share))
    model = DistributedDataParallel(network) if world > 1 else network
    loss, _, _ = model(batch)
    loss.backward()
    found = {n: p.grad for n, p in network.named_parameters() if p.grad is not None}
    return found | {n: b for n, b in network.named_buffers() if "running" in n} | {"loss": loss.detach()}


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OPENCSE_CACHE": str(folder / f"cache{rank}")}
    dist.init_process_group("gloo", rank=rank, world_size=2)
    rows = torch.arange(4.0).view(2, 2) + 10 * rank
    assert gather_rows(rows).tolist() == [[0, 1], [2, 3], [10, 11], [12, 13]]
    for terms, projector in CASES:
        found = gradients(folder, terms, projector, rank, 2)
        if rank == 0:
            save_file(found, folder / f"{terms}-{projector}.safetensors")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    tiny_bert(folder / "bert", dropout=0.0)
    write_corpus(folder, 16, VIEWS)
    mp.spawn(worker, (folder, 29500 + os.getpid() % 1000), nprocs=2)
    return folder


@pytest.mark.parametrize(("terms", "projector"), CASES)
def test_gradients_are_those_of_one_process(two_processes, terms, projector) -> None:
    expected = gradients(two_processes, terms, projector, 0, 1)
    found = load_file(two_processes / f"{terms}-{projector}.safetensors")
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-6, atol=1e-6, msg=name)


FALLING = """
import os
import signal
from opencse.commands.main import main
from opencse.training.batches import BatchSampler
original = BatchSampler.batch
def batch(self, step):
    if step == 5 and self._epoch >= 0 and "CRASH" in os.environ:
        os._exit(1)
    if step == 4 and self._epoch >= 0 and os.environ.get("SIGNALLED") == os.environ["RANK"]:
        signal.raise_signal(signal.SIGTERM)
    return original(self, step)
BatchSampler.batch = batch
main()
"""


@pytest.mark.slow
def test_two_processes_resume_exactly(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 64), tiny_bert(tmp_path / "bert")
    (tmp_path / "script.py").write_text(FALLING)

    def launch(out: str, *more: str, **environment: str) -> list[tuple[int, str]]:
        """Run both processes, and return the exit code and the messages of each."""
        settings = ("training.batch_size=8", "training.precision=fp32", "training.checkpoint_every=3")
        command = [sys.executable, str(tmp_path / "script.py"), "train", "simcse", str(corpus)]
        command += ["--backbone", str(backbone), "-o", str(tmp_path / out), *more]
        command += [part for s in settings for part in ("--set", s)]
        port = free_port()
        both = [
            subprocess.Popen(
                command, stderr=subprocess.PIPE, text=True, env=os.environ | environment | of_two(rank, port)
            )
            for rank in range(2)
        ]
        return [(process.returncode, said) for process in both for _, said in [process.communicate()]]

    done = launch("straight")
    assert [code for code, _ in done] == [0, 0], done
    assert json.loads((tmp_path / "straight" / "run.json").read_text())["outcome"]["steps"] == 8
    expected = weights(tmp_path / "straight")
    for fall, last in (({"CRASH": "1"}, "step-00000003"), ({"SIGNALLED": "0"}, "step-00000005")):
        name = "-".join(fall)
        ends = [code for code, _ in launch(name, **fall)]
        assert ends == [130, 130] if "SIGNALLED" in fall else 0 not in ends
        assert max(p.name for p in (tmp_path / name / "checkpoints").iterdir()) == last
        done = launch(name, "--resume")
        assert [code for code, _ in done] == [0, 0], done
        assert metrics(tmp_path / name) == metrics(tmp_path / "straight")
        found = weights(tmp_path / name)
        for part, tensor in expected.items():
            np.testing.assert_array_equal(found[part], tensor, err_msg=part)


STILL = """
[views.anchor]
[views.twin]
text = "positive"
[[terms]]
kind = "info_nce"
anchor = "anchor"
positive = "twin"
[encoder]
pooling = "cls"
projector = "simcse"
dropout = 0.0
[training]
batch_size = 8
precision = "fp32"
log_every = 1
"""
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "train.md"


def test_the_launch_of_the_guide_trains_as_one_process_does(tmp_path) -> None:
    """Nothing in the environment tells accelerate that the processes are on a CPU."""
    tiny_bert(tmp_path / "bert", layers=1)
    write_corpus(tmp_path, 40, ("text", "positive"))
    (tmp_path / "still.toml").write_text(STILL)
    (line,) = re.findall("^torchrun .*", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    own = {"simcse": "still.toml", "sentences.txt": "corpus.jsonl", "minilm": "bert", "out/": "two"}
    words = [own.get(word, word) for word in line.split()]
    assert set(own.values()) < set(words)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ACCELERATE_", "OMP_"))}
    two = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
    one = [sys.executable, *words[words.index("-m") : -1], "one"]
    for command in (two, one):
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    found, expected = metrics(tmp_path / "two"), metrics(tmp_path / "one")
    assert [row["step"] for row in found] == [1, 2, 3, 4]  # every fifth row has no positive
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-4)
    assert weights(tmp_path / "two").keys() == weights(tmp_path / "one").keys()


ALONE = """
from datetime import timedelta
from opencse.commands.main import main
from opencse.training import session
session._MEETING = timedelta(seconds=3)
main()
"""


@pytest.mark.slow
def test_a_process_whose_other_one_never_starts_ends(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 64), tiny_bert(tmp_path / "bert")
    where = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    command = [sys.executable, "-c", ALONE, "train", "simcse", str(corpus), "--backbone", str(backbone)]
    command += ["-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | where)
    assert done.returncode == 2
    assert "another process of this run" in done.stderr.splitlines()[-1]
