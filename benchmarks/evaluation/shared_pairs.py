"""Test pairs of the seven STS tasks that occur in what trains a model or chooses its step.

    python benchmarks/evaluation/shared_pairs.py DATA --corpus TEXT [--paraphrases TABLE] [--table OUT.csv]

A pair counts as shared whatever the order of its sentences, their case and their spaces. Scored
development sets and triplets are pairs; of a corpus only single sentences can be shared.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from opencse.evaluation import STS_TASKS, load_sts
from opencse.recipes.rows.sentence_sample import paraphrase_columns
from opencse.text.corpus import Corpus

Pair = frozenset[str]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    tests = {
        task.name: pairs_of(zip(task.sentence1, task.sentence2, strict=True))
        for task in load_sts(options.data)
    }
    groups = {"STS12 to 16": set().union(*(tests[name] for name in STS_TASKS[:5]))}
    groups |= {f"{name} test": tests[name] for name in STS_TASKS[5:]}
    known = set().union(*set().union(*groups.values()))
    rows = [["used", "pairs", *(f"in {name}" for name in groups), "sentences of tests"]]
    for name, found in (
        *scored(options.data),
        *triplets(options.data),
        *paraphrased(options.paraphrases),
    ):
        sentences = set().union(*found)
        rows.append(
            [
                name,
                *(
                    f"{count:,}"
                    for count in (len(found), *(len(found & test) for test in groups.values()))
                ),
            ]
        )
        rows[-1].append(f"{len(sentences & known):,}")
    texts = {plain(text) for path in options.corpus for text in Corpus(path).texts()}
    rows.append(
        [
            f"training text, {len(texts):,} sentences",
            "",
            *[""] * len(groups),
            f"{len(texts & known):,}",
        ]
    )
    for row in rows:
        print(" | ".join(row))
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    print(f"{len(known):,} distinct test sentences", file=sys.stderr)


def plain(text: str) -> str:
    """A text without spaces and case, so that the tokenised and the raw form of a sentence are the same."""
    return "".join(text.lower().split())


def pairs_of(rows: Iterable[tuple[str | None, ...]]) -> set[Pair]:
    """Distinct pairs; those with an empty cell are left out."""
    return {frozenset(map(plain, row)) for row in rows if all(row)}


def scored(data: Path) -> Iterator[tuple[str, set[Pair]]]:
    """The sets that choose a step or fit a guard."""
    for task, split, use in (
        ("STS-B", "dev", "choice of the step: STS-B dev"),
        ("SICK-R", "dev", "choice of the step: SICK-R trial"),
    ):
        (pairs,) = load_sts(data, tasks=[task], split=split)
        yield use, pairs_of(zip(pairs.sentence1, pairs.sentence2, strict=True))


def triplets(data: Path) -> Iterator[tuple[str, set[Pair]]]:
    """What trains `simcse-sup` here."""
    for path in sorted((data / "eval" / "NLI").glob("*_triplets.tsv.gz")):
        rows = list(Corpus(path).rows(("sent0", "sent1", "hard_neg")))
        found = pairs_of((a, b) for a, b, _ in rows) | pairs_of((a, c) for a, _, c in rows)
        corpus, split, *_ = path.name.split("_")
        yield f"`simcse-sup`: {corpus.upper()} {split} triplets", found


def paraphrased(table: Path | None) -> Iterator[tuple[str, set[Pair]]]:
    """What trains on paraphrases."""
    if table is not None:
        yield "paraphrases", pairs_of(Corpus(table).rows(paraphrase_columns(table)))


if __name__ == "__main__":
    main()
