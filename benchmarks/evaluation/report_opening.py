"""How long a browser takes to open a probe report.

    python benchmarks/evaluation/report_opening.py probe/report.html [--rounds 5]

A headless Chromium starts, loads the page, builds its document and ends; an empty page takes turns
with it, and the difference of each round is what the report costs. Printed are medians.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --window-size=1280,2000"
).split()


def seconds(browser: str, page: Path) -> float:
    """Wall time of one visit, drawing included."""
    with tempfile.TemporaryDirectory() as profile:
        out = Path(profile) / "shot.png"
        command = [
            browser,
            *OPTIONS,
            f"--user-data-dir={profile}/p",
            f"--screenshot={out}",
            page.resolve().as_uri(),
        ]
        command.insert(-1, "--host-resolver-rules=MAP * ~NOTFOUND")
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no chromium in the path")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        rounds = [
            (seconds(browser, empty), seconds(browser, arguments.page))
            for _ in range(arguments.rounds + 1)
        ][1:]
    print(
        f"empty page   {statistics.median(blank for blank, _ in rounds):.2f} s, browser's start and end included"
    )
    size = arguments.page.stat().st_size / 1024
    print(f"report       {statistics.median(page for _, page in rounds):.2f} s, {size:.0f} KiB")
    print(f"difference   {statistics.median(page - blank for blank, page in rounds):.2f} s")


if __name__ == "__main__":
    main()
