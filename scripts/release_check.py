"""Install a wheel and an sdist into empty environments, and run there what the README shows.

    python scripts/release_check.py build/first/*

Each file must hold every tracked file of the package. `make release-check` builds the files first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
USE = """
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("out/model", trust_remote_code=True, device="cpu")
said, same, opposite = model.encode(
    ["Opened items can be returned.", "You can send back what you have opened.", "Opened items cannot be returned."]
)
print("dimensions", len(said), "paraphrase", model.similarity(said, same).item(), "contradiction",
      model.similarity(said, opposite).item())
"""


def contents(archive: Path) -> set[str]:
    """Return the files of a wheel or an sdist, relative to the folder `src` or the root of the wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            return set(file.namelist())
    with tarfile.open(archive) as file:
        return {name.partition("/")[2].removeprefix("src/") for name in file.getnames()}


def check(archive: Path, tracked: set[str], version: str) -> None:
    """Check what a file holds; install it, run the first command, and use the model that this writes."""
    if version not in archive.name:
        sys.exit(f"{archive.name} is not version {version}")
    if missing := sorted(tracked - contents(archive)):
        sys.exit(f"{archive.name} lacks {len(missing)} files of the package: {missing[:5]}")
    print(
        f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, with all {len(tracked)} files of the package",
        flush=True,
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    torch = re.search(r"^torch==.+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv", "bin", "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        steps: dict[str, list[str | Path]] = {
            "empty environment": [sys.executable, "-m", "venv", python.parents[1]],
            "torch": [*pip, torch[0] if torch else "torch"],
            "install": [*pip, f"{archive.resolve()}[minilm]"],
            "opencse run debias": [
                python.with_name("opencse"),
                *"run debias --backbone minilm -o out".split(),
            ],
            "use of the model": [python, "-c", USE],
        }
        for name, command in steps.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, cwd=folder, env=environment)
            print(f"  {name}: {time.perf_counter() - started:.0f} s", flush=True)


def main(archives: list[Path]) -> None:
    files = subprocess.check_output(
        ["git", "ls-files", "src/opencse"], cwd=ROOT, text=True
    ).splitlines()
    version = re.search(r'"(.+)"$', (ROOT / "src/opencse/version.py").read_text().strip())
    assert version is not None
    tag = os.environ.get("GITHUB_REF", "")
    if tag.startswith("refs/tags/") and tag != f"refs/tags/v{version[1]}":
        sys.exit(f"the tag is {tag}, the version {version[1]}")
    for archive in archives:
        check(archive, {name.removeprefix("src/") for name in files}, version[1])


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
