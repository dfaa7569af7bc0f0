"""Do duplicate questions stay first when the hits are reranked? On two sets unlike the guards.

    python benchmarks/debias/duplicates.py DATA MODEL -o OUT

The first set was written for this (`pairs/duplicates.tsv`). The second are the pairs of questions
of STS16 that people scored 4 or more, searched among all questions of STS16 and 2,000 of TREC.
Writes OUT/duplicates.csv: recall@1 with 95 % bootstrap intervals, untouched, by the cosine with the
block, and with the first 100 hits reranked. What the block says of each text is kept in
OUT/MODEL.npz, which pair_score.py shares.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from pair_score import (
    RANKING,
    SHARPNESS,
    Search,
    Stored,
    duplicates,
    mean,
    penalised,
    untouched,
    with_block,
)
from wording import table

from opencse.debias.reranker import Reranker
from opencse.evaluation.retrieval import RetrievalTask

SAME = 4.0
OTHERS = 2000


def asked_by_others(data: Path) -> RetrievalTask:
    """Return the questions of STS16 that have a duplicate, to be searched among others."""
    rows = [
        row
        for row in table(data / "eval" / "STS16" / "test.tsv.gz")
        if row["subset"] == "question-question"
    ]
    others = [row["text"] for row in table(data / "eval" / "TREC" / "train.tsv.gz")][:OTHERS]
    texts = [text for row in rows for text in (row["sentence1"], row["sentence2"])]
    corpus = list(dict.fromkeys([*texts, *others]))
    place = {text: row for row, text in enumerate(corpus)}
    relevant: dict[str, dict[int, float]] = {}
    for row in rows:
        first = row["sentence1"]
        second = row["sentence2"]
        if float(row["score"]) >= SAME and first != second:
            relevant.setdefault(first, {})[place[second]] = 1.0
            relevant.setdefault(second, {})[place[first]] = 1.0
    return RetrievalTask(
        name="duplicate questions of STS16",
        queries=list(relevant),
        corpus=corpus,
        relevant=list(relevant.values()),
        others_only=True,
        main="recall@1",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    stored = Stored(Reranker(options.model), options.out / f"{Path(options.model).name}.npz")
    forms = {
        "untouched": untouched,
        "with the block": with_block,
        "reranked": penalised(RANKING, SHARPNESS),
    }
    with (options.out / "duplicates.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["recall@1, %", "queries", "texts", *forms, "change when reranked"])
        for task in (duplicates(), asked_by_others(options.data)):
            stored.add([*map(str, task.queries), *map(str, task.corpus)])
            search = Search(stored, task)
            found = {name: search.ranked(form) for name, form in forms.items()}
            change = mean(found["reranked"] - found["untouched"])
            shown = [mean(values) for values in found.values()]
            writer.writerow([task.name, len(task.queries), len(task.corpus), *shown, change])
            print(task.name, len(task.queries), *shown, change, flush=True)


if __name__ == "__main__":
    main()
