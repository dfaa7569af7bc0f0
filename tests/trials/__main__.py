"""`python -m tests.trials`: run the trials and print what came of them, by family."""

from __future__ import annotations

import argparse
import csv
import os
import re
import sys
import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")


def main() -> int:
    """Run what the arguments choose; the exit code is 1 where a trial failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--match", default="", help="only trials whose `family: name` has this regular expression"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random trials")
    parser.add_argument(
        "--count", type=int, default=40, help="random trials of models and documents each"
    )
    parser.add_argument("--verbose", action="store_true", help="print what came of every trial")
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opencse-trials-") as root:
        os.environ.update(OPENCSE_CACHE=str(Path(root) / "cache"), TMPDIR=root)
        return _run(options, Path(root))


def _run(options: argparse.Namespace, root: Path) -> int:
    import torch

    torch.set_num_threads(1)  # a pool of threads doesn't survive the fork
    from tests.trials import hostile, surroundings, variants
    from tests.trials.trial import FAILED, KINDS, run_trial
    from tests.trials.world import make_world

    world = make_world(root / "world")
    counts: dict[str, Counter[str]] = {}
    trials = chain(
        surroundings.trials(world),
        hostile.trials(world, options.seed, options.count),
        variants.trials(world),
    )
    for number, trial in enumerate(trials):
        if not re.search(options.match, f"{trial.family}: {trial.name}"):
            continue
        outcome = run_trial(trial, root / f"{number:04d}")
        counts.setdefault(trial.family, Counter())[outcome.kind] += 1
        if outcome.kind in FAILED or options.verbose:
            print(
                f"{outcome.kind.upper()}  {trial.family}: {trial.name}  {outcome.words[:300]}",
                flush=True,
            )
    counts["all"] = sum(counts.values(), Counter())
    rows = [["family", "tried", *KINDS]]
    rows += [
        [name, str(n.total()), *(str(n[kind]) for kind in KINDS)] for name, n in counts.items()
    ]
    for row in rows:
        print(f"{row[0]:<14}" + "".join(f"{cell:>10}" for cell in row[1:]))
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    return int(any(counts["all"][kind] for kind in FAILED))


if __name__ == "__main__":
    sys.exit(main())
