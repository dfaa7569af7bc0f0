"""Every measure of the appendix by the pair score, from stored encodings.

    python benchmarks/debias/reranked.py DATA NAME=MODEL... -o OUT [--by-kind CSV]

MODEL is `minilm` or a folder; what its block says of each text is kept in OUT/MODEL.npz, which
pair_score.py shares. `reranked.csv` in OUT gets a column for each model, with the rows of
measures.py that need no test set; `--by-kind` writes the complaints by kind. With `--known`, sets
with a text that is not stored are left out, which spares a large model.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from curve import write_kinds
from measures import Measures, write_table
from pair_score import Stored

from opencse.debias.reranker import Reranker
from opencse.evaluation.task import evaluate_tasks


def measured(
    stored: Stored, measures: Measures, *, known: bool
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Return the measures of the untouched model, and those by the pair score."""
    tasks = measures.tasks
    if known:
        tasks = [task for task in tasks if all(str(t) in stored.place for t in task.texts())]
    else:
        stored.add([str(text) for task in tasks for text in task.texts()])
        stored.add(measures.development.texts)

    def packed(texts: Sequence[str]) -> np.ndarray:
        return stored.rows[[stored.place[str(text)] for text in texts]]

    def untouched(texts: Sequence[str]) -> np.ndarray:
        return stored.old(stored(list(map(str, texts))))

    found = []
    for encode, similarity in ((untouched, None), (packed, stored.reranker.similarity)):
        values: dict[str, float | None] = {}
        if not known:
            values |= measures.development.measure(encode, similarity)
        for result in evaluate_tasks(encode, tasks, similarity).results:
            values[result.task] = result.score
            values |= {f"{result.task} {name}": value for name, value in result.metrics.items()}
        found.append(values)
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--by-kind", type=Path, metavar="CSV", help="complaints by kind, too")
    parser.add_argument("--known", action="store_true", help="only sets that are stored already")
    options = parser.parse_args()
    measures = Measures(options.data, held_out=True)
    columns = {}
    for name, model in (each.split("=", 1) for each in options.models):
        stored = Stored(Reranker(model), options.out / f"{Path(model).name}.npz")
        before, after = measured(stored, measures, known=options.known)
        columns[f"{name}, untouched"] = [before]
        columns[f"{name}, reranked"] = [after]
    write_table(options.out / "reranked.csv", columns)
    if options.by_kind:
        write_kinds(options.by_kind, columns)


if __name__ == "__main__":
    main()
