"""The 200 negations judged in benchmarks/results/negation-sample.tsv, with their sentences (not part of the project).

    python benchmarks/views/negation_sample.py --data FOLDER           # line, rule, verdict, sentence, negation
    python benchmarks/views/negation_sample.py --data FOLDER --table   # a new table; verdicts kept for equal outputs

FOLDER holds `corpus/wiki_sentences_03.txt.gz`; lines are counted from 1. A verdict belongs to one
output, known by its hash: where the rules have changed since, the script says so and the line has
to be judged again.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import random
from pathlib import Path

from opencse.text.views.registry import Negation, SourceRow

VERDICTS = Path(__file__).parent.parent / "results" / "negation-sample.tsv"
SHARD, LINES, SAMPLE, SEED = "corpus/wiki_sentences_03.txt.gz", 250_000, 200, 2


def digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()[:8] if text is not None else "-"


def read_verdicts() -> dict[int, tuple[str, str]]:
    """Return hash and verdict by line."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return {
            int(row["line"]): (row["hash"], row["verdict"])
            for row in csv.DictReader(file, delimiter="\t")
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    chosen = sorted(random.Random(SEED).sample(range(1, LINES + 1), SAMPLE))
    with gzip.open(args.data / SHARD, "rt", encoding="utf-8", newline="\n") as file:
        sentences = {i: line.rstrip("\n") for i, line in enumerate(file, 1) if i in set(chosen)}
    views = Negation().open()([SourceRow(id=i, text=sentences[i]) for i in chosen])
    verdicts = read_verdicts()
    good = judged = nulls = stale = 0
    for line, view in zip(chosen, views, strict=True):
        key, verdict = verdicts.get(line, ("", ""))
        if view.text is None:
            verdict = "null"
        elif key != digest(view.text):
            verdict, stale = "?", stale + 1
        nulls += view.text is None
        judged += verdict not in ("null", "?")
        good += verdict == "good"
        if args.table:
            print(line, view.rule, digest(view.text), verdict, sep="\t")
        else:
            print(f"{line} [{view.rule}] {verdict}\n    {sentences[line]}\n    {view.text}")
    if not args.table:
        print(
            f"{SAMPLE} sentences, {nulls} null, {judged} judged, {good} good, {stale} changed since they were judged"
        )


if __name__ == "__main__":
    main()
