"""Put known faults into the code, one at a time, and see that the test named for each of them fails.

    python scripts/mutate.py            # all faults of scripts/faults.toml
    python scripts/mutate.py NAME …     # some of them
    python scripts/mutate.py --parity   # those of scripts/faults_parity.toml, each a difference from
                                        # the authors' code

The faults go into a copy of `src`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS: dict[str, dict[str, str]] = tomllib.loads(
    (ROOT / "scripts" / "faults.toml").read_text(encoding="utf-8")
)
"""By name: the file below `src/opencse`, the text to replace, its replacement, and the test that must fail."""


def faulty(code: str, fault: dict[str, str]) -> str:
    """Return the code of a file with a fault in it."""
    if code.count(fault["old"]) != 1:
        sys.exit(
            f"{fault['file']} has {fault['old']!r} {code.count(fault['old'])} times: correct scripts/faults.toml"
        )
    return code.replace(fault["old"], fault["new"])


def run(source: Path, *tests: str) -> tuple[int, list[str]]:
    """Run tests on a copy of `src`; return the exit code of pytest and the names of the tests that failed."""
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    # Without compiled files, which Python takes for current if a fault leaves size and second of a
    # file as they were.
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        *tests,
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode, re.findall(r"^FAILED (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)


PARITY: dict[str, dict[str, str]] = tomllib.loads(
    (ROOT / "scripts" / "faults_parity.toml").read_text(encoding="utf-8")
)
"""The same for differences from the authors' code; most of their tests need the recordings."""


def main(names: list[str]) -> int:
    """Try the faults, print a table, and return 1 if one was not noticed."""
    faults = FAULTS
    if "--parity" in names:
        faults = PARITY
        names = [name for name in names if name != "--parity"]
    chosen = {name: faults[name] for name in names or faults}
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
        code, failed = run(source, *sorted({fault["test"] for fault in chosen.values()}))
        if code != 0:
            sys.exit(f"these tests fail without a fault: {failed}")
        print("| fault | file | failing test | s |\n|---|---|---|---:|")
        for name, fault in chosen.items():
            started, place = time.perf_counter(), source / "opencse" / fault["file"]
            whole = place.read_text(encoding="utf-8")
            place.write_text(faulty(whole, fault), encoding="utf-8")
            code, failed = run(source, fault["test"])
            place.write_text(whole, encoding="utf-8")
            missed += not failed
            found = failed[0].partition("::")[2] if failed else f"none (pytest ended with {code})"
            print(
                f"| {name} | {fault['file']} | {found} | {time.perf_counter() - started:.0f} |",
                flush=True,
            )
    print(f"{len(chosen) - missed} of {len(chosen)} faults noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
