"""Where the answer stands inside a passage: is the one that contradicts the search below the one that answers it?

    python benchmarks/debias/passages.py SENTENCES MODEL[=NAME]... -o benchmarks/results/debias-passages.csv

MODEL is a folder with a block (OUT/model of `opencse run debias`). The texts of the searches that
come with opencse (`dev-search`) and of the searches of complaints are put among sentences drawn
from SENTENCES (a line each): both texts of a search among the same ones, at the same place, three
times. A column is a model at a strength, 0 the untouched vector; a row how many sentences stand
around the text, or words in all.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from curve import Encoded
from measures import complaints

from opencse.evaluation.task import Encode
from opencse.evaluation.written_sets import Triplet, load_development

DRAWS, WORDS = 3, 150
SIZES = {"alone": 0, "with one sentence more": 1, "with two more": 2, f"among {WORDS} words": None}


def surrounded(
    triplet: Triplet, sentences: Sequence[str], more: int | None, rng: random.Random
) -> tuple[str, str]:
    """Return both texts among the same sentences: `more` of them, or as many as make `WORDS` words."""
    around: list[str] = []
    longest = max(len(text.split()) for text in (triplet.positive, triplet.negative))
    while (
        len(around) < more
        if more is not None
        else longest + sum(len(s.split()) for s in around) < WORDS
    ):
        around.append(rng.choice(sentences))
    place = rng.randint(0, len(around))
    good, bad = (
        " ".join([*around[:place], t, *around[place:]])
        for t in (triplet.positive, triplet.negative)
    )
    return good, bad


def right(
    encode: Encode, triplets: Sequence[Triplet], sentences: Sequence[str], more: int | None
) -> float:
    """Share of the searches, in percent, whose answer is above its contradiction."""
    rng = random.Random(0)
    draws = DRAWS if more != 0 else 1
    pairs = [
        surrounded(triplet, sentences, more, rng) for triplet in triplets for _ in range(draws)
    ]
    queries = np.repeat(encode([triplet.anchor for triplet in triplets]), draws, axis=0)
    good, bad = (
        np.einsum("ij,ij->i", queries, encode([pair[i] for pair in pairs])) for i in range(2)
    )
    return 100 * float((good > bad).mean())


def table(
    models: dict[str, Encoded], strengths: Sequence[float], sentences: Sequence[str]
) -> Iterator[list[str]]:
    searches = {one.name: one.triplets for one in [*load_development(), *complaints()]}
    sets = {"searches": searches["dev-search"], "complaints": searches["complaints, search"]}
    columns = [
        (name, model, s)
        for name, model in models.items()
        for s in sorted({*strengths, model.chosen})
    ]
    chosen = {model: model.chosen for model in models.values()}
    yield [
        "",
        *(f"{name}, β {s:g}{' (chosen)' * (s == chosen[model])}" for name, model, s in columns),
    ]
    for label, triplets in sets.items():
        for size, more in SIZES.items():
            found = [right(model.at(s), triplets, sentences, more) for _, model, s in columns]
            yield [f"{label} {size}, %", *(f"{value:.1f}" for value in found)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sentences", type=Path)
    parser.add_argument("models", nargs="+", metavar="MODEL[=NAME]")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--strengths", default="0,0.5", help="beside that of the model")
    options = parser.parse_args()
    named = {
        name or path: Encoded(path)
        for path, _, name in (each.partition("=") for each in options.models)
    }
    sentences = [
        line for line in options.sentences.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for row in table(named, [float(s) for s in options.strengths.split(",")], sentences):
            writer.writerow(row)
            print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
