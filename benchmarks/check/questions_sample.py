"""Opposite questions and rewordings of `opencse check` to judge by hand, made of real questions.

    python benchmarks/check/questions_sample.py draw DATA [--count 45] [--seed 2] > sample.tsv
    python benchmarks/check/questions_sample.py keep sample.tsv
    python benchmarks/check/questions_sample.py score DATA

DATA is the folder of the evaluation sets, with Banking77 and TREC. The third source is the guard of
questions that comes with opencse. `draw` prints one line for each question: its source, one of its
opposites and one of its rewordings, each with its kind, and an empty column *right*. Only questions
that have both are drawn, as in a check.

Judge by reading: is the opposite good English, and has it another answer? Write 1 into *right* if
so, and 0 if not. `keep` adds these verdicts to check-judged-opposites.csv. The sentences belong to
others, so a verdict is kept under a hash of the question and its opposite. `score` draws the sample
again, looks the verdicts up, and writes check-judged-questions.csv: how many questions there are,
how many `check` can turn round, and how many of the judged ones are right. A changed rule makes
other opposites, which have no verdict: `score` counts them.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from opencse.evaluation.written_sets import load_guard
from opencse.foundation.roles import plain
from opencse.foundation.tables import read_table
from opencse.text.english.asked import is_question, opposite_questions, question_rewordings

RESULTS = Path(__file__).parents[1] / "results"
VERDICTS = RESULTS / "check-judged-opposites.csv"
TABLE = RESULTS / "check-judged-questions.csv"
COLUMNS = ("source", "question", "kind", "opposite", "form", "rewording", "right")


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


def drawn(
    data: Path, count: int, seed: int
) -> Iterator[tuple[str, int, int, list[tuple[str, ...]]]]:
    """Yield each source, its number of questions, how many have both, and the rows drawn."""
    for source, texts in questions(data):
        found = list(rewritten(texts))
        rng = random.Random(seed)
        yield source, len(texts), len(found), rng.sample(found, min(count, len(found)))


def key(question: str, opposite: str) -> str:
    """Return the name under which a verdict is kept."""
    return hashlib.sha256(f"{question}\t{opposite}".encode()).hexdigest()[:16]


def draw(data: Path, count: int, seed: int) -> None:
    """Print a sample to judge."""
    print(*COLUMNS, sep="\t")
    for source, total, both, rows in drawn(data, count, seed):
        print(f"{source}: {total} questions, {both} of them both", file=sys.stderr)
        for row in rows:
            print(source, *row, "", sep="\t")


def keep(sample: Path) -> None:
    """Add the verdicts of a judged sample to those that are kept."""
    kept = verdicts()
    with sample.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["right"] in ("0", "1"):
                name = key(row["question"], row["opposite"])
                kept[name] = {
                    "key": name,
                    "source": row["source"],
                    "kind": row["kind"],
                    "right": row["right"],
                }
    with VERDICTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ("key", "source", "kind", "right"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.values())


def verdicts() -> dict[str, dict[str, str]]:
    """Return what was judged, by the hash of question and opposite."""
    if not VERDICTS.is_file():
        return {}
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def score(data: Path, count: int, seed: int) -> None:
    """Write the table of the sample, and print its share of right opposites."""
    kept = verdicts()
    table = []
    for source, total, both, rows in drawn(data, count, seed):
        judged = [kept.get(key(question, opposite)) for question, _, opposite, *_ in rows]
        known = [each for each in judged if each is not None]
        right = sum(each["right"] == "1" for each in known)
        table.append([source, total, both, len(known), right])
        if len(known) < len(rows):
            print(f"{source}: {len(rows) - len(known)} have no verdict; draw and judge them")
    table.append(["all", *(sum(column) for column in zip(*(row[1:] for row in table)))])
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["source", "questions", "turned round", "judged", "opposite asks something else"]
        )
        for source, total, both, judged_count, right in table:
            shown = wilson(right, judged_count)
            writer.writerow([source, total, both, judged_count, shown])
            print(source, total, both, judged_count, shown, sep="\t")


def wilson(right: int, count: int) -> str:
    """Return a number, and its share in percent with the 95 % interval by Wilson."""
    if count == 0:
        return "0"
    z = 1.96
    share = right / count
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    spread = share * (1 - share) / count + z * z / (4 * count**2)
    half = z * spread**0.5 / (1 + z * z / count)
    return (
        f"{right}, {100 * share:.0f} % ({100 * (center - half):.0f} to {100 * (center + half):.0f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("draw", "score"):
        command = commands.add_parser(name)
        command.add_argument("data", type=Path)
        command.add_argument("--count", type=int, default=45)
        command.add_argument("--seed", type=int, default=2)
    commands.add_parser("keep").add_argument("sample", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "draw":
        draw(arguments.data, arguments.count, arguments.seed)
    elif arguments.command == "keep":
        keep(arguments.sample)
    else:
        score(arguments.data, arguments.count, arguments.seed)


if __name__ == "__main__":
    main()
