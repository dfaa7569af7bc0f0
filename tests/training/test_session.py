"""A run settles its precision once and keeps it; its card says where its model comes from."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from opencse.encoder import device
from opencse.encoder.backbone import Backbone
from opencse.foundation.measure import UNMEASURED
from opencse.recipes import load_recipe
from opencse.recipes.settings import Training
from opencse.text.corpus import Corpus
from opencse.training import train as training
from opencse.training.session import RunControl, TrainingSession, base_model
from opencse.training.train import TrainingRun, train_encoder
from tests.tiny import WORDS, tiny_bert
from tests.training.helpers import crash_at


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def machine(monkeypatch, chosen):
    monkeypatch.setattr(device, "_LEAST_WIDTH", {"bf16": 1, "fp32": 10**9}[chosen])
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": chosen == "bf16"})


@pytest.mark.parametrize(
    ("asked", "begun", "faster", "expected"),
    [
        ("auto", None, "bf16", "bf16"),
        ("auto", None, "fp32", "fp32"),
        ("fp32", None, "bf16", "fp32"),
        ("fp16", None, "bf16", "fp32"),
        ("auto", "fp32", "bf16", "fp32"),
    ],
)
def test_the_precision_of_a_run(tmp_path, monkeypatch, asked, begun, faster, expected):
    """The faster one, what was asked for, or that of the run that goes on."""
    machine(monkeypatch, faster)
    if begun is not None:
        (tmp_path / "run.json").write_text(json.dumps({"precision": begun, "fingerprint": {}}))
    session = TrainingSession(RunControl(folder=tmp_path, resume=begun is not None))
    backbone = Backbone(tiny_bert(tmp_path / "first_stages"))
    assert session.settle(Training(precision=asked), backbone).precision == expected


@pytest.mark.parametrize(("first", "then"), [("bf16", "fp32"), ("fp32", "bf16")])
def test_a_run_resumed_on_another_kind_of_machine_is_the_uninterrupted_one(tmp_path, monkeypatch, first, then):
    backbone = Backbone(tiny_bert(tmp_path / "bert"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"the {a} {b} is {c}" for a, b, c in zip(WORDS, WORDS[3:], WORDS[7:], strict=False)))
    recipe = load_recipe(
        "simcse", overrides=["training.batch_size=4", "training.max_steps=4", "training.checkpoint_every=2"]
    )

    def train(folder, **options):
        control = RunControl(folder=folder, progress=False, **options)
        return train_encoder(recipe, Corpus(corpus), backbone, UNMEASURED, control)

    machine(monkeypatch, first)
    whole = train(tmp_path / "whole")
    record = json.loads((whole.folder / "run.json").read_text())
    assert (record["precision"], record["device"]) == (first, "cpu")
    assert whole.recipe.training.precision == first

    interrupted = tmp_path / "interrupted"

    with monkeypatch.context() as patch:
        crash_at(3, patch)
        with pytest.raises(KeyboardInterrupt):
            train(interrupted)
    machine(monkeypatch, then)
    resumed = train(interrupted, resume=True)
    weights = [run.model / "model.safetensors" for run in (whole, resumed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_first_stages_of_a_run_share_its_precision(tmp_path, monkeypatch):
    recipe = load_recipe("debcse", overrides=["training.precision=fp32"])
    assert load_recipe("simcse").training.precision == "auto"
    seen = []

    def trained(other, *_):
        seen.append(other.training.precision)
        return TrainingRun(tmp_path, other, None)

    monkeypatch.setattr(training, "train_encoder", trained)
    training.train_first_stages(recipe, recipe.build, "corpus", None, UNMEASURED, RunControl(folder=tmp_path))
    assert seen == ["fp32"]


# In a process of its own, because the setting is for the whole process.
SCRIPT = """
import resource, sys, torch
from opencse.training.session import keep_freed_memory
if not keep_freed_memory():
    sys.exit(3)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(100, 1 << 18).sum()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
print(first, min(faults() for _ in range(10)))
"""


def test_pages_are_used_again():
    small_pages = os.environ | {"THP_MEM_ALLOC_ENABLE": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=small_pages)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc")
    first, later = map(int, done.stdout.split())
    assert first > 100  # 100 MiB, in pages of 4 KiB or huge ones
    assert later < first / 10


CARD = "---\nlicense: mit\nbase_model:\n- someone/something\n---\n# Title\n"


@pytest.mark.parametrize(
    ("card", "found"),
    [
        (CARD, ("someone/something", "mit")),
        ("# No head\n", (None, None)),
        ("---\n: not [yaml\n---\n", (None, None)),
        (None, (None, None)),
    ],
)
def test_a_folder_says_where_it_comes_from(tmp_path, card, found) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert base_model(tmp_path) == found


def test_names() -> None:
    assert base_model("minilm") == ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")
    assert base_model("bert-base-uncased") == ("bert-base-uncased", None)
    assert base_model("./none") == (None, None)
