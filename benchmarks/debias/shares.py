"""What finished runs know, and what they lost, at shares of the way from the untouched to the trained weights.

    python benchmarks/debias/shares.py DATA RUN... --views VIEWS --shares 0 kept 1 -o benchmarks/results/FILE.csv

RUN is the folder of `opencse run debias` or `opencse train`, VIEWS as in wording.py. Rows are measures, columns shares,
cells the mean ± deviation over the runs. All measures are of development sets and guards; `--final` adds the probe,
Oppn., Cont. and the seven STS tasks. What was measured is kept beside the table, as .jsonl, and not measured again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from measures import Measures, cell, write_table
from tolerance import Run

from opencse.encoder.embedder import Embedder
from opencse.foundation.progress import track


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument("--shares", nargs="+", default=["0", "kept", "1"], help="kept: what each run's guards allowed")
    parser.add_argument("--held-out", type=int, default=0, help="hold_out of the runs' opposites")
    parser.add_argument("--final", action="store_true", help="measure the test sets as well")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    runs = [Run(folder, options.data) for folder in options.runs]
    store = options.out.with_suffix(".jsonl")
    known = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()] if store.is_file() else []
    values = {(entry["run"], entry["share"]): entry["values"] for entry in known}
    wanted = {
        share: [(run, run.share if share == "kept" else float(share)) for run in (runs[:1] if share == "0" else runs)]
        for share in options.shares
    }
    missing = [each for column in wanted.values() for each in column if (each[0].folder.name, each[1]) not in values]
    if missing:
        measure = Measures(options.data, options.views, options.held_out)
        for run, share in track(list(dict.fromkeys(missing)), "sharing", unit="runs"):
            run.keep(share)
            found = values[run.folder.name, share] = measure(
                Embedder(run.encoder, precision="auto").encode, final=options.final
            )
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"run": run.folder.name, "share": share, "values": found}) + "\n")
    columns = {
        _heading(name, runs): [values[run.folder.name, share] for run, share in column]
        for name, column in wanted.items()
    }
    write_table(options.out, columns)


def _heading(share: str, runs: list[Run]) -> str:
    if share == "kept":
        return f"kept by the guards ({cell([100 * run.share for run in runs], 0)} %)"
    return f"{float(share):.0%}" if float(share) else "untouched"


if __name__ == "__main__":
    main()
