"""Opposite questions and rewordings of `opencse check` to judge by hand, made of real questions.

    python benchmarks/check/questions_sample.py DATA [--count 45] [--seed 2] > sample.tsv

DATA is the folder of the evaluation sets, with Banking77 and TREC. The third source is the guard of
questions that comes with opencse. Each line has the source, the question, one of its opposites and
one of its rewordings, each with its kind. Only questions that have both are drawn, as in a check.
Judge by reading: is the opposite good English, and has it another answer? Does the rewording ask
the same?
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from opencse.evaluation.written_sets import load_guard
from opencse.foundation.roles import plain
from opencse.foundation.tables import read_table
from opencse.text.english.asked import is_question, opposite_questions, question_rewordings


def questions(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each source with its different questions."""
    for task in load_guard():
        if task.name == "guard-questions":
            yield "guard", list(dict.fromkeys(map(plain, task.texts())))
    for name in ("Banking77", "TREC"):
        path = data / "eval" / name / "train.tsv.gz"
        texts = [str(row["text"]) for _, row in read_table(path)]
        cleaned = [
            text.replace(" ?", "?").replace(" 's", "'s").replace(" ,", ",") for text in texts
        ]
        yield name, list(dict.fromkeys(cleaned))


def rewritten(texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield question, opposite and rewording, of the questions that have both."""
    for text in texts:
        if not is_question(text) or not 3 <= len(text.split()) <= 30:
            continue
        rng = random.Random(f"0 {text}")
        opposites = opposite_questions(text, rng)
        rewordings = question_rewordings(text)
        if opposites and rewordings:
            kind = rng.choice(list(opposites))
            form = rng.choice(list(rewordings))
            yield text, kind, opposites[kind], form, rewordings[form]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--count", type=int, default=45)
    parser.add_argument("--seed", type=int, default=2)
    arguments = parser.parse_args()
    print("source", "question", "kind", "opposite", "form", "rewording", sep="\t")
    for source, texts in questions(arguments.data):
        found = list(rewritten(texts))
        print(f"{source}: {len(texts)} questions, {len(found)} of them both", file=sys.stderr)
        rng = random.Random(arguments.seed)
        for row in rng.sample(found, min(arguments.count, len(found))):
            print(source, *row, sep="\t")


if __name__ == "__main__":
    main()
