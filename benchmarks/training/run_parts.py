"""Where the time of `opencse run debias` goes, and how long another version of opencse takes for the same.

    python benchmarks/training/run_parts.py CORPUS DATA [--paraphrases TABLE] [--rounds 1] [--against SRC] [--beside]

Each run is a process of its own with an empty cache. With `--against`, the `src` folder of another checkout, the two
versions alternate, so that a noisy machine is noisy for both; with `--beside` they run at the same time, on one thread
each. The parts are the medians of `timings` in results.json; a version that does not write them gives its total alone.
`--keep FOLDER` keeps each run's results, which tell whether both are equally good.
"""

from __future__ import annotations

import argparse
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
        call = [sys.executable, "-m", "opencse.cli.main", "run", options.recipe, str(options.corpus)]
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
            options.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(out / "results.json", options.keep / f"{name}.json")
            (options.keep / f"{name}.seconds").write_text(f"{seconds:.1f}\n", encoding="utf-8")
        return {TOTAL: seconds, **found.get("timings", {})}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each part over the runs, the longest first."""
    names = {name for one in runs for name in one}
    found = {name: statistics.median(one.get(name, 0.0) for one in runs) for name in names}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--recipe", default="debias")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path, help="`src` of another checkout")
    parser.add_argument("--beside", action="store_true", help="both versions at the same time, on one thread each")
    parser.add_argument("--keep", type=Path, help="folder for results.json and the seconds of each run")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    versions: dict[str, Path | None] = {"opencse": None} | ({"other": options.against} if options.against else {})
    results: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for round_ in range(options.rounds):
        with ThreadPoolExecutor(len(versions) if options.beside else 1) as pool:
            runs = {
                name: pool.submit(run, options, f"{name}-{round_ + 1}", source) for name, source in versions.items()
            }
        for name, done in runs.items():
            results[name].append(done.result())
            print(f"round {round_ + 1}: {name}: {results[name][-1][TOTAL]:.0f} s", file=sys.stderr)
    ours = medians(results["opencse"])
    print("| part | seconds | share, % |\n|---|---|---|")
    for name, seconds in ours.items():
        print(f"| {name} | {seconds:.1f} | {100 * seconds / ours[TOTAL]:.0f} |")
    if options.against:
        ratios = [a[TOTAL] / b[TOTAL] for a, b in zip(results["opencse"], results["other"], strict=True)]
        span = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"\ntotal, as a share of the other version's: {statistics.median(ratios):.2f} ({span})")


if __name__ == "__main__":
    main()
