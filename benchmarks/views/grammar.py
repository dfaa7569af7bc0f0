"""The views that rewrite by grammar: share of null, rules and speed on Wikipedia, and samples to judge.

    python benchmarks/views/grammar.py --data FOLDER [--sentences 2000]   # shares, rules, speed
    python benchmarks/views/grammar.py --data FOLDER --sample 100 --kind role_pair   # pairs to judge one by one

FOLDER holds `corpus/wiki_sentences_02.txt.gz`. The parse is timed once, as the views have it
in common; the sentences are drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import load_parser
from opencse.text.views.registry import VIEWS, SourceRow

KINDS = tuple(
    """antonym_swap negated_antonym antonym_quadruple negative_word role_pair passive number_swap entity_swap
    reordering question keywords""".split()
)
SHARD, LINES, SEED = "corpus/wiki_sentences_02.txt.gz", 200_000, 7


def draw(data: Path, count: int) -> list[str]:
    with gzip.open(data / SHARD, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n") for line in islice(file, LINES)]
    return random.Random(SEED).sample(lines, count)


def sample(rows: list[SourceRow], kind: str, wanted: int) -> None:
    opened, shown = VIEWS[kind]().open(), 0
    for start in range(0, len(rows), 256):
        part = rows[start : start + 256]
        for row, view in zip(part, opened(part), strict=True):
            views = view if isinstance(view, list) else [view]  # one of each column
            if any(each.text for each in views) and shown < wanted:
                shown += 1
                print(f"{shown}\n    {row.text}")
                for each in views:
                    print(f"    [{each.rule}] {each.text}")
        if shown == wanted:
            return


def shares(rows: list[SourceRow], kinds: list[str]) -> None:
    start = time.process_time()
    parsed = list(parse_without_asides(load_parser("syntax"), [row.text for row in rows]))
    parse = len(parsed) / (time.process_time() - start)
    print(f"parse, start included: {parse:.0f} sentences per second of processor time")
    print("| kind | made | sentences/s of processor time | rules |\n|---|---|---|---|")
    for kind in kinds:
        opened = VIEWS[kind]().open()
        opened(rows[:4])
        start = time.process_time()
        views = opened(rows)
        speed = len(rows) / (time.process_time() - start)
        last = [view[-1] if isinstance(view, list) else view for view in views]
        rules = Counter(view.rule for view in last if view.text is not None)
        made = sum(rules.values()) / len(rows)
        print(
            f"| `{kind}` | {made:.1%} | {speed:.0f} | {', '.join(f'{r} {n}' for r, n in rules.most_common())} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--sample", type=int, default=0, help="print so many pairs instead")
    parser.add_argument("--kind", action="append", choices=KINDS)
    args = parser.parse_args()
    kinds = args.kind or list(KINDS)
    count = max(args.sentences, 100 * args.sample)
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(draw(args.data, count))]
    if args.sample:
        for kind in kinds:
            sample(rows, kind, args.sample)
    else:
        shares(rows, kinds)


if __name__ == "__main__":
    main()
