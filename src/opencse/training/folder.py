"""The folder of a run: its contents, and the checks before it is written."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import LOCK, make_folder, writable
from opencse.foundation.reading import read_json
from opencse.foundation.tables import MADE_FROM, VIEWS_HEADER, parquet_metadata
from opencse.foundation.workers import usable_cores

# Files and folders that training writes. --overwrite removes these and nothing else. The record goes last: as long as
# it is there, what a killed command has left is known to be of a run.
CONTENTS = (
    "recipe.toml",
    "environment.json",
    "metrics.jsonl",
    "best.safetensors",
    "results.json",
    "checkpoints",
    "tracking",
    "model",
    "run.json",
)
# Files and folders that are written before the training: rows, and the runs of other recipes that
# it depends on.
PREPARED = ("corpus.parquet", "views", "joined.parquet", "mixture.parquet", "first_stages")
# A process that was killed while it wrote a file leaves such names.
_LEFTOVER = re.compile(r"\..*\.(tmp|old)")
_PACKAGES = (
    "opencse torch transformers sentence-transformers accelerate tokenizers pyarrow numpy".split()
)


def check_flags(out: Path, *, resume: bool, overwrite: bool, backbone: Any = None) -> None:
    """Refuse to continue a run and to replace it at once, and to remove the model that a run starts from."""
    if resume and overwrite:
        raise OpencseError("--resume and --overwrite exclude each other")
    given = isinstance(backbone, str | Path) and os.path.isdir(backbone)
    if (
        overwrite
        and given
        and out.resolve() in (Path(backbone).resolve(), *Path(backbone).resolve().parents)
    ):
        raise OpencseError(
            f"--overwrite would remove the backbone {backbone}",
            f"Choose another folder than {out}.",
        )


def check_folder(out: Path, *, resume: bool, overwrite: bool, backbone: Any = None) -> None:
    """Check that the output folder is new or empty, or that the user chose to resume or overwrite.

    Raises:
        OpencseError: The folder is not empty and neither was chosen; both were; there is no run to
            resume, or none to overwrite; or the backbone would be overwritten.
    """
    check_flags(out, resume=resume, overwrite=overwrite, backbone=backbone)
    with writable(out):
        if out.exists() and not out.is_dir():
            raise OpencseError(f"{out}: is a file, not a folder", "Choose another output folder.")
        is_run = (out / "run.json").is_file()
        if resume and not is_run:
            raise OpencseError(f"{out}: holds no run to resume", "Leave out --resume.")
        present = [path.name for path in out.iterdir()] if out.is_dir() else []
        leftovers = [name for name in present if _LEFTOVER.fullmatch(name)]
        occupied = bool(set(present) - {*PREPARED, LOCK, *leftovers})
    if overwrite and not _holds_run(out):
        refuse_foreign_files(out)
        if occupied:
            raise OpencseError(
                f"{out}: holds files, but no run that could be replaced",
                "Choose another output folder.",
            )
    if occupied and not resume and not overwrite:
        if not is_run:
            raise OpencseError(f"{out}: already holds files", "Choose another output folder.")
        raise OpencseError(
            f"{out}: already holds a run",
            "Use --resume to continue, --overwrite to start again, or another folder.",
        )


def _holds_run(out: Path) -> bool:
    """Return whether a run wrote the record in a folder; one that was damaged since stands among others of its run."""
    if not (out / "run.json").is_file():
        return False
    try:
        read_record(out)
    except OpencseError:
        return all((out / name).is_file() for name in ("recipe.toml", "environment.json"))
    return True


def refuse_foreign_files(out: Path) -> None:
    """Refuse to replace files in a folder that holds no run.

    Raises:
        OpencseError: A file or folder there has the name of one that a run writes.
    """
    for name in CONTENTS:
        path = out / name
        if path.exists() or path.is_symlink():
            raise OpencseError(
                f"{out}: holds no run, so its '{name}' is not replaced",
                "Choose another output folder, or move it away.",
            )
    for name in PREPARED:
        path = out / name
        is_table = path.suffix == ".parquet" and path.is_file()
        if is_table and not parquet_metadata(path).keys() & {MADE_FROM, VIEWS_HEADER}:
            raise OpencseError(
                f"{path}: was not written by opencse, so it is not replaced",
                "Choose another output folder, or move it away.",
            )


def prepare_folder(out: Path, *, overwrite: bool) -> None:
    """Create the folder; with `overwrite`, remove the files of an earlier run, and nothing else."""
    with writable(out):
        if overwrite:
            for name in CONTENTS:
                _remove(out / name)
    make_folder(out)


def _remove(path: Path) -> None:
    """Remove a file or a folder; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_record(out: Path) -> dict[str, Any]:
    """Return the contents of `run.json`.

    They are its `fingerprint` and `precision`, and perhaps `outcome` and `step_limit`.

    Raises:
        OpencseError: The file is missing or damaged, or was not written by a run.
    """
    record = read_json(out / "run.json", "Start again with --overwrite.")
    has_fingerprint = isinstance(record.get("fingerprint"), dict)
    has_outcome = isinstance(record.get("outcome", {}), dict)
    has_precision = record.get("precision") in ("bf16", "fp16", "fp32")
    limit = record.get("step_limit", 1)
    # `True` is an int, too.
    has_limit = type(limit) is int and limit >= 1
    if not (has_fingerprint and has_outcome and has_precision and has_limit):
        raise OpencseError(
            f"{out / 'run.json'}: was not written by a run", "Start again with --overwrite."
        )
    return record


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on, by name."""
    found = {"version of python": platform.python_version()}
    for package in _PACKAGES:
        found[f"version of {package}"] = importlib.metadata.version(package)
    return found


def describe_environment() -> dict[str, Any]:
    """Return versions, hardware and the command line, so that a result can be traced to them."""
    import torch

    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        # Linux knows no name of the processor.
        device = platform.processor() or platform.machine()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: importlib.metadata.version(package) for package in _PACKAGES},
        "device": device,
        "threads": torch.get_num_threads(),
        "cpus": usable_cores(),
        "command": sys.argv,
    }
