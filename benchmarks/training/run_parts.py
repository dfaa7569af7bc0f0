"""Where the time of `opencse run debias` goes, and how long another version of opencse takes for the same.

    python benchmarks/training/run_parts.py CORPUS DATA [--paraphrases TABLE] [--rounds 1] [--against SRC] [--beside]

Each run is a process of its own with an empty cache. With `--against`, the `src` folder of another
checkout, the two versions alternate, so that a noisy machine is noisy for both; with `--beside`
they run at the same time, on one thread each. The parts are the medians of `timings` in
results.json; a version that does not write them gives its total alone. `--keep FOLDER` keeps the
folder of each run: `opencse evaluate` and `opencse probe` tell whether both models are as good as
each other.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOTAL = "total"


def run(options: argparse.Namespace, name: str, source: Path | None) -> dict[str, float]:
    """Run the command once; return the seconds of each part and of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        call = [
            sys.executable,
            "-m",
            "opencse.commands.main",
            "run",
            options.recipe,
            str(options.corpus),
        ]
        call += ["--data", str(options.data), "--backbone", options.backbone, "-o", str(out)]
        call += ["--paraphrases", str(options.paraphrases)] if options.paraphrases else []
        for setting in options.set:
            call += ["--set", setting]
        environment = os.environ | {"OPENCSE_CACHE": f"{folder}/cache"}
        if options.beside:
            environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        if source is not None:
            environment["PYTHONPATH"] = str(source.resolve())
        started = time.perf_counter()
        subprocess.run(call, check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        found = json.loads((out / "results.json").read_text(encoding="utf-8"))
        if options.keep:
            shutil.copytree(out, options.keep / name)
        return {TOTAL: seconds, **found.get("timings", {})}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each part over the runs, the longest first."""
    names = {name for one in runs for name in one}
    found = {name: statistics.median(one.get(name, 0.0) for one in runs) for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def table(runs: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """Return the parts of opencse's runs, and how long the other version takes, the header first."""
    ours = medians(runs["opencse"])
    shares = [
        [name, f"{seconds:.0f}", f"{100 * seconds / ours[TOTAL]:.0f}"]
        for name, seconds in ours.items()
    ]
    rows = [["part", "seconds", "share, %"], *shares]
    if "other" in runs:
        other = statistics.median(one[TOTAL] for one in runs["other"])
        ratios = [a[TOTAL] / b[TOTAL] for a, b in zip(runs["opencse"], runs["other"], strict=True)]
        rows.append(["total of the other version", f"{other:.0f}", ""])
        rows.append(["our total as a share of it", "", f"{100 * statistics.median(ratios):.0f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--recipe", default="debias")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="`src` of another checkout")
    parser.add_argument(
        "--beside", action="store_true", help="both versions at the same time, on one thread each"
    )
    parser.add_argument("--keep", type=Path, help="folder for the models and results of all runs")
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    versions: dict[str, Path | None] = {"opencse": None} | (
        {"other": options.against} if options.against else {}
    )
    results: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for round_ in range(1, options.rounds + 1):
        with ThreadPoolExecutor(len(versions) if options.beside else 1) as pool:
            runs = {
                name: pool.submit(run, options, f"{name}-{round_}", source)
                for name, source in versions.items()
            }
        for name, done in runs.items():
            results[name].append(done.result())
            print(f"round {round_}: {name}: {results[name][-1][TOTAL]:.0f} s", file=sys.stderr)
    rows = table(results)
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
