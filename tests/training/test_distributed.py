"""Two processes do what one does with the same global batch: gradients, parameters of losses, memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

from opencse.debias.meaning_loss import MeaningLoss
from opencse.encoder import load_encoder
from opencse.encoder.loading import build_projector, load_masked_lm
from opencse.encoder.prompts import Frame, TemplateDenoising
from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    ContrastiveTensionLoss,
    DCLRLoss,
    DenoisingAutoencoderLoss,
    FalseNegatives,
    InfoNCELoss,
    InformationAggregationLoss,
    ListMLELoss,
    ListNetLoss,
    LossBuildContext,
    MarginInfoNCELoss,
    MaskedLanguageModelLoss,
    MomentumContrastiveLoss,
    NoiseNegatives,
    NTXentLoss,
    Objective,
    PeerContrastiveLoss,
    RankingConsistencyLoss,
    RecallLoss,
    ReplacedTokenDetectionLoss,
    SelfGuidedLoss,
    TwoWayMarginLoss,
)
from opencse.training.batches import Collator, ViewTokens, shares_of
from opencse.training.loss_head import LossHead
from opencse.training.network import Network
from tests.tiny import WORDS, tiny_bert
from tests.training.helpers import metrics, token_store, weights, write_corpus
from tests.trials.processes import free_port, of_two

VIEWS = {"text": "anchor", "positive": "positive", "negative": "negative"}
CONTRASTIVE = InfoNCELoss(positive="positive")
DETECTION = ReplacedTokenDetectionLoss(sentences=("anchor", "positive"))
MASKED = MaskedLanguageModelLoss(sentences=("anchor", "positive"), weight=0.1)
POLICY = {"weighting": "rlrd", "policy_horizon": 2, "teachers": ("a", "b")}
CASES = {
    ("infonce", "none"): [CONTRASTIVE],
    ("hince", "simcse"): [
        InfoNCELoss(positive="positive", negatives=("negative",), negative_temperature=0.1)
    ],
    ("two losses", "diffcse"): [
        MarginInfoNCELoss(positive="positive", signs="p-n+", size="dynamic"),
        InfoNCELoss(name="second", positive="negative", negatives=("positive",), weight=0.3),
    ],
    ("margin", "none"): [
        TwoWayMarginLoss(closer="positive", farther="negative", margin=(0.05, 0.2))
    ],
    ("alternating", "simcse"): [
        AlternatingNormalizationLoss(positives=("positive",), negatives=("negative",))
    ],
    ("ranking", "diffcse"): [
        RankingConsistencyLoss(positive="positive"),
        ListNetLoss(candidates="positive", teachers=("a",)),
        ListMLELoss(candidates="positive", teachers=("a",), weight=0.1),
    ],
    ("debiased", "none"): [
        DCLRLoss(
            positive="positive",
            false_negatives=FalseNegatives(teacher="a", threshold=0.3),
            noise=NoiseNegatives(),
        ),
        AngularInfoNCELoss(positive="positive", degrees=10.0),
    ],
    ("nt_xent", "diffcse"): [NTXentLoss(pairs=(("anchor", "positive"), ("anchor", "negative")))],
    ("recall", "diffcse"): [CONTRASTIVE, RecallLoss(gamma=0.5)],
    ("detection", "diffcse"): [CONTRASTIVE, DETECTION],
    ("detection alone", "diffcse"): [replace(DETECTION, fill="all", temperature=0.0)],
    ("detection bert", "diffcse"): [replace(DETECTION, masking="bert")],
    ("masked lm", "diffcse"): [CONTRASTIVE, MASKED],
    ("aggregation", "diffcse"): [
        CONTRASTIVE,
        InformationAggregationLoss(lower_layers=1, new_layers=1),
    ],
    ("autoencoder", "none"): [DenoisingAutoencoderLoss(damaged="positive")],
    ("tension", "none"): [ContrastiveTensionLoss(negatives=3)],
    ("tension of few", "none"): [ContrastiveTensionLoss(anchor="negative", negatives=3)],
    ("self-guided", "none"): [SelfGuidedLoss(hidden=8)],
    ("peers", "simcse"): [PeerContrastiveLoss(positives=("positive", "negative"))],
    ("repetition", "none"): [CONTRASTIVE],
    ("edits", "none"): [CONTRASTIVE],
    ("cutoff", "none"): [CONTRASTIVE],
    ("insertion", "diffcse"): [replace(DETECTION, task="insert")],
    ("deletion", "diffcse"): [
        replace(DETECTION, task="delete", sentences=("anchor",), texts=("negative",))
    ],
    ("corrective lm", "diffcse"): [replace(DETECTION, task="corrective_lm")],
    ("queue", "diffcse"): [MomentumContrastiveLoss(positive="positive", queue_size=20)],
    ("policy", "diffcse"): [ListMLELoss(candidates="positive", weight=0.1, **POLICY)],
    ("denoising", "diffcse"): [CONTRASTIVE],
    ("meaning", "diffcse"): [MeaningLoss(same=("anchor", "positive"), opposed=(("negative",),))],
}


CHANGES = {
    "repetition": {"repetition": 0.5},
    "edits": {"edit": ("shuffle", 0.2)},
    "cutoff": {"cutoff": ("cell", 0.3)},
}
"""How the views are changed at random, by the name of a case."""


def gradients(
    folder: Path, case: tuple[str, str], rank: int, world: int
) -> dict[str, torch.Tensor]:
    """Gradients, weights and memory after four steps on rows 0..14, of which this process has its share."""
    encoder = load_encoder(folder / "bert", pooling="cls")
    losses, transformer = CASES[case], encoder[0].auto_model
    read = {view for loss in losses for view in loss.tokens}
    views = {
        v: ViewTokens(i, Frame((2,), (3,)), 18, 0.0, read=v in read, **CHANGES.get(case[0], {}))
        for i, v in enumerate(VIEWS.values())
    }
    torch.manual_seed(0)
    projector = build_projector(case[1], 32)
    facts = LossBuildContext(
        width=32,
        encoder=encoder,
        projector=projector,
        transformer=transformer,
        tokenizer=encoder.tokenizer,
        masked_lm=lambda name: load_masked_lm(folder / "bert")[0],
    )
    modules = {t.name: made for t in losses if (made := t.module(facts)) is not None}
    denoised = views if case[0] == "denoising" else ()
    denoisers = {v: TemplateDenoising(transformer, Frame((2,), (4, 3), mask=0)) for v in denoised}
    network = (
        Network(encoder, LossHead(projector, Objective(losses), modules), denoisers)
        .double()
        .train()
    )
    for name, parameter in network.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(False)
    known = np.random.default_rng(0).normal(size=(4, 16, 5)).astype(np.float32)
    known[1::2, ::5] = 0  # where there is no such view
    teachers = {
        t: {"anchor": known[2 * i], "positive": known[2 * i + 1]} for i, t in enumerate("ab")
    }
    shares = shares_of(15, world)  # which two processes cannot divide equally
    start = sum(shares[:rank])
    store = token_store(folder, tuple(VIEWS), encoder)
    batch = Collator(store, views, 0, 64, teachers if any(t.teachers for t in losses) else None)
    part = batch(range(start, start + shares[rank]))
    if len(set(shares)) > 1:
        part = replace(part, shares=tuple(shares))
    model = DistributedDataParallel(network) if world > 1 else network
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss, _, _ = model(part, step)
        loss.backward()
        if step < 3:
            optimizer.step()
    found = {n: p.grad for n, p in network.named_parameters() if p.grad is not None}
    found |= {
        n: b.double() for n, b in network.named_buffers() if "auxiliary" in n or "running" in n
    }
    found |= {
        f"w {n}": p.detach() for n, p in network.named_parameters() if "pooler" not in n
    }  # it is random
    return found | {"loss": loss.detach()}


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OPENCSE_CACHE": str(folder / f"cache{rank}"),
    }
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for case in CASES:
        found = gradients(folder, case, rank, 2)
        if rank == 0:
            save_file(
                {n: t.contiguous() for n, t in found.items()}, folder / f"{case[0]}.safetensors"
            )
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    tiny_bert(folder / "bert", dropout=0.0)
    write_corpus(folder, 16, tuple(VIEWS))
    mp.spawn(worker, (folder, 29500 + os.getpid() % 1000), nprocs=2)
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_two_processes_do_what_one_does(two_processes, case) -> None:
    expected = gradients(two_processes, case, 0, 1)
    found = load_file(two_processes / f"{case[0]}.safetensors")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=1e-5, atol=1e-7, msg=lambda m, n=name: f"{n}: {m}"
        )


FALLING = """
import os
import signal
from opencse.commands.main import main
from opencse.training.loop import TrainingLoop
original = TrainingLoop.step
def step(self, run):
    if run.step == 5 and "CRASH" in os.environ:
        os._exit(1)
    if run.step == 4 and os.environ.get("SIGNALLED") == os.environ["RANK"]:
        signal.raise_signal(signal.SIGTERM)
    return original(self, run)
TrainingLoop.step = step
main()
"""


@pytest.mark.slow
def test_two_processes_resume_exactly(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 64), tiny_bert(tmp_path / "bert")
    (tmp_path / "script.py").write_text(FALLING)

    def launch(out: str, *more: str, **environment: str) -> list[tuple[int, str]]:
        """Run both processes, and return the exit code and the messages of each."""
        settings = (
            "training.batch_size=8",
            "training.precision=fp32",
            "training.checkpoint_every=3",
        )
        command = [sys.executable, str(tmp_path / "script.py"), "train", "simcse", str(corpus)]
        command += ["--backbone", str(backbone), "-o", str(tmp_path / out), *more]
        command += [part for s in settings for part in ("--set", s)]
        port = free_port()
        both = [
            subprocess.Popen(
                command,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | environment | of_two(rank, port),
            )
            for rank in range(2)
        ]
        return [
            (process.returncode, said) for process in both for _, said in [process.communicate()]
        ]

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
repetition = 0.4
[[losses]]
kind = "info_nce"
anchor = "anchor"
positive = "twin"
[[losses]]
kind = "masked_language_model"
sentences = ["anchor"]
[[losses]]
kind = "replaced_token_detection"
sentences = ["anchor", "twin"]
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


@pytest.mark.slow
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
        done = subprocess.run(
            command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    found, expected = metrics(tmp_path / "two"), metrics(tmp_path / "one")
    assert [row["step"] for row in found] == [1, 2, 3, 4]  # every fifth row has no positive
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-4)
    assert weights(tmp_path / "two").keys() == weights(tmp_path / "one").keys()


@pytest.mark.slow
def test_two_launches_as_two_machines_train_as_one_process_does(tmp_path) -> None:
    """Each has a folder and a cache of its own; the result is in the first one."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ACCELERATE_", "OMP_"))}
    train = ["-m", "opencse", "train", "still.toml", "corpus.jsonl", "--backbone", "bert"]
    port = free_port()
    launches = []
    for machine in ("first", "second", "alone"):
        folder = tmp_path / machine
        folder.mkdir()
        tiny_bert(folder / "bert", layers=1)
        write_corpus(folder, 40, ("text", "positive"))
        (folder / "still.toml").write_text(STILL)
        launcher = []
        if machine != "alone":
            launcher = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
            launcher += ["--node-rank", str(len(launches)), "--master-addr", "127.0.0.1"]
            launcher += ["--master-port", str(port)]
        variables = clean | {"OPENCSE_CACHE": str(folder / "cache")}
        command = [sys.executable, *launcher, *train, "-o", "out"]
        launches.append(
            subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
        )
    said = [launch.communicate()[1] for launch in launches]
    assert [launch.returncode for launch in launches] == [0, 0, 0], said

    assert not (tmp_path / "second" / "out").exists()
    found = metrics(tmp_path / "first" / "out")
    expected = metrics(tmp_path / "alone" / "out")
    assert len(found) == len(expected) == 4
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-4)


MANY_GPUS = Path(__file__).parents[2] / "docs" / "guides" / "many-gpus.md"
# The commands of a cluster, on one machine: both nodes have its name.
SCONTROL = """#!/bin/bash
echo localhost
echo localhost
"""
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
"$@" 2> first.txt &
first=$!
"$@" 2> second.txt &
second=$!
wait "$first" || exit
wait "$second"
"""
TORCHRUN = f"""#!/bin/bash
exec {sys.executable} -m torch.distributed.run "$@"
"""


@pytest.mark.slow
def test_the_slurm_script_of_the_guide_trains_as_one_process_does(tmp_path) -> None:
    tiny_bert(tmp_path / "bert", layers=1)
    write_corpus(tmp_path, 40, ("text", "positive"))
    (tmp_path / "still.toml").write_text(STILL)
    for name, content in {"scontrol": SCONTROL, "srun": SRUN, "torchrun": TORCHRUN}.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)

    page = MANY_GPUS.read_text(encoding="utf-8")
    (script,) = re.findall("```bash\n(#!/bin/bash\n.*?)```", page, re.DOTALL)
    own = {
        "--nproc-per-node 8": "--nproc-per-node 1",
        ":29500": f":{free_port()}",
        "simcse": "still.toml",
        "corpus.txt": "corpus.jsonl",
        "bert-base-uncased": "bert",
    }
    for name, value in own.items():
        assert name in script
        script = script.replace(name, value)
    (tmp_path / "script.sh").write_text(script)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ACCELERATE_", "OMP_"))}
    clean["PATH"] = os.pathsep.join([str(tmp_path), clean["PATH"]])
    given = {
        "SLURM_NNODES": "2",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_ID": "7",
        "SLURM_CPUS_PER_TASK": "1",
    }
    done = subprocess.run(
        ["bash", "script.sh"],
        cwd=tmp_path,
        env=clean | given,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [(tmp_path / name).read_text() for name in ("first.txt", "second.txt")]
    assert done.returncode == 0, (done.stderr, said)

    one = [sys.executable, "-m", "opencse", "train", "still.toml", "corpus.jsonl"]
    one += ["--backbone", "bert", "-o", "one"]
    subprocess.run(one, cwd=tmp_path, env=clean, check=True)
    found = metrics(tmp_path / "out")
    expected = metrics(tmp_path / "one")
    assert [row["step"] for row in found] == [1, 2, 3, 4]
    for row, other in zip(found, expected, strict=True):
        assert row == pytest.approx(other, rel=1e-4)
    # Only one of them reports, whichever it is.
    assert sum("training on" in words for words in said) == 1
    assert done.stdout.count("4 steps in") == 1


ALONE = """
from datetime import timedelta
from opencse.commands.main import main
from opencse.encoder import device
device._MEETING = timedelta(seconds=3)
main()
"""


@pytest.mark.slow
def test_a_process_whose_other_one_never_starts_ends(tmp_path) -> None:
    corpus, backbone = write_corpus(tmp_path, 64), tiny_bert(tmp_path / "bert")
    where = {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "9",
    }
    command = [
        sys.executable,
        "-c",
        ALONE,
        "train",
        "simcse",
        str(corpus),
        "--backbone",
        str(backbone),
    ]
    command += ["-o", str(tmp_path / "out")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | where
    )
    assert done.returncode == 2
    assert "another process of this run" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_run_in_two_processes_reports_once(tmp_path) -> None:
    """One process builds the text and reports; both have its result."""
    sentences = [f"the {a} dog runs in the {b} ." for a in WORDS[:8] for b in WORDS[4:12]]
    (tmp_path / "text.txt").write_text("\n".join(sentences))
    (tmp_path / "script.py").write_text(
        "import sys, opencse\n"
        "if __name__ == '__main__':\n"
        "    result = opencse.run('san-simcse', 'text.txt', backbone=sys.argv[1], out='out',\n"
        "        overrides=['training.max_steps=2', 'training.batch_size=8',\n"
        "        'build.substitution.model=mini-mlm', 'encoder.pooling=mean'])\n"
        "    print(sorted(result.after), result.report.is_file(), flush=True)\n"
    )
    backbone = tiny_bert(tmp_path / "bert")
    port = free_port()
    both = [
        subprocess.Popen(
            [sys.executable, "script.py", str(backbone)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ | of_two(rank, port),
        )
        for rank in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0].splitlines()[-1] == said[1][0].splitlines()[-1]
    assert said[0][0].splitlines()[-1].endswith("True")
    assert "s in all:" in said[0][1]
    assert "s in all:" not in said[1][1]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["processes"] == 2
