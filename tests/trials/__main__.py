"""`python -m tests.trials`: run the trials and print what came of them, by family."""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
KINDS = ("clear", "worked", "traceback", "hang", "silent")


def main() -> int:
    """Run what the arguments choose; the exit code is 1 where a trial failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", help="only this family; repeatable")
    parser.add_argument("--match", default="", help="only trials whose name has this regular expression")
    parser.add_argument("--out", type=Path, help="write every outcome here, as JSON lines")
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    parser.add_argument("--seed", type=int, default=0, help="of the generated trials")
    parser.add_argument("--generated", type=int, default=240, help="how many generated trials")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opencse-trials-") as root:
        os.environ["OPENCSE_CACHE"] = str(Path(root) / "cache")
        os.environ["TMPDIR"] = root
        return _run(options, Path(root))


def _run(options: argparse.Namespace, root: Path) -> int:
    import torch

    torch.set_num_threads(1)  # a pool of threads doesn't survive the fork
    from tests.trials.families import all_trials
    from tests.trials.trial import run_trial
    from tests.trials.world import make_world

    world = make_world(root / "world")
    counts: dict[str, Counter[str]] = {}
    lines = []
    for number, trial in enumerate(all_trials(world, seed=options.seed, count=options.generated)):
        if (options.family and trial.family not in options.family) or not re.search(options.match, trial.name):
            continue
        outcome = run_trial(trial, root / f"{number:04d}")
        counts.setdefault(trial.family, Counter())[outcome.kind] += 1
        counts[trial.family]["generated"] += trial.generated
        lines.append(
            {"family": trial.family, "name": trial.name, "kind": outcome.kind, "seconds": round(outcome.seconds, 2)}
            | {"words": outcome.words.replace(str(root), "")}
        )
        if options.out:
            options.out.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        if outcome.kind in KINDS[2:]:
            print(f"{outcome.kind.upper()}  {trial.family}: {trial.name}  {outcome.words[:300]}", flush=True)
    rows = _table(counts)
    for row in rows:
        print(f"{row[0]:<14}" + "".join(f"{cell:>10}" for cell in row[1:]))
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    return int(any(count[kind] for count in counts.values() for kind in KINDS[2:]))


def _table(counts: dict[str, Counter[str]]) -> list[list[str]]:
    """The header, a row for each family, and their sum."""
    total: Counter[str] = Counter()
    rows = [["family", "tried", "generated", *KINDS]]
    for family, count in [*counts.items(), ("all", total)]:
        tried = sum(count[kind] for kind in KINDS)
        rows.append([family, *(str(n) for n in (tried, count["generated"], *(count[kind] for kind in KINDS)))])
        total.update(count)
    return rows


if __name__ == "__main__":
    sys.exit(main())
