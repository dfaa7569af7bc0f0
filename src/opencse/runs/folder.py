"""The folder of a run: what is in it, and when it may be written."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.io.files import make_folder, writable
from opencse.io.lock import LOCK
from opencse.io.reading import read_json

# What training writes; --overwrite removes these and nothing else.
CONTENTS = (
    "run.json",
    "recipe.toml",
    "settings.toml",
    "environment.json",
    "metrics.jsonl",
    "best.safetensors",
    "results.json",
    "checkpoints",
    "model",
    "tokenizer",
    "tracking",
)
# What is made before the run that needs it: text by `opencse run`, and other recipes' runs whose change is added.
PREPARED = ("corpus.parquet", "views", "mixture.parquet", "task_vectors", "first_stages")
_PACKAGES = ("opencse", "torch", "transformers", "sentence-transformers", "accelerate", "tokenizers", "numpy")


def check_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Make sure that the output folder is new, or that the user said what to do with what is there.

    Raises:
        OpencseError: The folder holds something and neither flag is given; or there is nothing to resume.
    """
    if resume and overwrite:
        raise OpencseError("--resume and --overwrite exclude each other")
    with writable(out):
        if out.exists() and not out.is_dir():
            raise OpencseError(f"{out}: is a file, not a folder", "Choose another output folder.")
        is_run = (out / "run.json").is_file() or (out / "task_vectors").is_dir()  # these come first
        if resume and not is_run:
            raise OpencseError(f"{out}: holds no run to resume", "Leave out --resume.")
        occupied = out.is_dir() and any(path.name not in (*PREPARED, LOCK) for path in out.iterdir())
    if occupied and not resume and not overwrite:
        what = "a run" if is_run else "files"
        raise OpencseError(
            f"{out}: already holds {what}", "Use --resume to go on, --overwrite to start anew, or another folder."
        )


def prepare_folder(out: Path, *, overwrite: bool) -> None:
    """Make the folder; with `overwrite` remove what an earlier run wrote there, and nothing else."""
    with writable(out):
        for name in CONTENTS if overwrite else ():
            path = out / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    make_folder(out)


def read_record(out: Path) -> dict[str, Any]:
    """Return the content of `run.json`: at least the fingerprint, and the outcome of a finished run.

    Raises:
        OpencseError: It is missing, damaged or not as a run writes it.
    """
    record = read_json(out / "run.json", "Start anew with --overwrite.")
    if not isinstance(record.get("fingerprint"), dict) or not isinstance(record.get("outcome", {}), dict):
        raise OpencseError(f"{out / 'run.json'}: not as a run writes it", "Start anew with --overwrite.")
    return record


def environment() -> dict[str, Any]:
    """Versions, hardware and the command, so that a figure can be traced to what made it."""
    import torch

    cuda = torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "device": torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "command": sys.argv,
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
