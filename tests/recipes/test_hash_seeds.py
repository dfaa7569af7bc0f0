"""No training depends on the order of sets, which differs from process to process: a resumed run is a new process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib, sys
from pathlib import Path
from opencse.recipes import load_recipe
from tests.tiny import tiny_bert
from tests.training.helpers import run, write_corpus

folder = Path(sys.argv[1])
backbone = tiny_bert(folder / "model", layers=1)
for name in ("debias", "rankcse-listmle"):
    recipe = load_recipe(name)
    (folder / name).mkdir()
    corpus = write_corpus(folder / name, 24, ("text", *(c for c in recipe.columns if c != "text")))
    steps = ["training.max_steps=3", *(["encoder.pooling=mean"] if recipe.encoder.pooling == "backbone" else [])]
    steps += [] if recipe.block is None else ["block.fit_steps=2"]
    model = run(corpus, backbone, folder / name / "out", *steps, recipe=name).model
    print(name, hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest(), flush=True)
"""


def test_recipes_train_to_the_same_bits_whatever_the_hash_seed(tmp_path: Path) -> None:
    processes = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        surroundings = os.environ | {
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": "1",
            "OPENCSE_CACHE": str(tmp_path / seed / "cache"),
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]),
        }
        call = [sys.executable, "-c", SCRIPT, str(tmp_path / seed)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(call, env=surroundings, **streams))
    first, second = (process.communicate() for process in processes)
    assert processes[0].returncode == processes[1].returncode == 0, first[1][-2000:] + second[1][-2000:]
    assert first[0].splitlines() == second[0].splitlines()
    assert "debias " in first[0]
