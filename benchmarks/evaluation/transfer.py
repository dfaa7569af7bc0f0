"""Transfer scores: folds and penalties trained together, against SentEval's protocol written out as loops.

    OMP_NUM_THREADS=1 python benchmarks/evaluation/transfer.py MODEL DATA [--tasks CR TREC MRPC]
    [--outer 1]

Both get the same vectors, features and folds. The loops (tests/reference/senteval.py) train one
classifier after another as SentEval does; `--outer` limits them to the first folds of the nested
tasks, and their time is then scaled to all ten. Compared are test accuracies on the folds that both
did, and processor seconds (all threads together). With more than one thread opencse is faster still
by the clock, the loops are not.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import TextEmbeddings, distinct_texts
from opencse.evaluation.labelled import TransferTask, features, load_labelled
from reference import senteval
from reference.senteval import SEED


def literal(
    task: TransferTask, embeddings: TextEmbeddings, outer: int
) -> tuple[list[float], float]:
    """Accuracy of each fold that was done (or of the test part), and processor seconds for the whole task."""
    parts = [(features(embeddings, part), task.indices(part)) for part in task.parts.values()]
    started, classes = time.process_time(), len(task.classes)
    if len(parts) == 1:
        accuracies = senteval.nested(*parts[0], classes, only=outer)
        return accuracies, (time.process_time() - started) * 10 / outer
    if len(parts) == 2:
        predicted, _ = senteval.cross_validated(*parts[0], parts[1][0], classes)
    else:
        predicted, _ = senteval.split(*parts[0], parts[1], parts[2][0], classes)
    return [100 * float((predicted == parts[-1][1]).mean())], time.process_time() - started


def together(
    task: TransferTask, embeddings: TextEmbeddings, outer: int
) -> tuple[list[float], float]:
    """The same by opencse."""
    started = time.process_time()
    found, tested = task.predict(embeddings)
    seconds = time.process_time() - started
    if len(task.parts) > 1:
        return [found.accuracy], seconds
    y = task.indices(tested)
    folds = list(senteval.folds(np.zeros((len(y), 1)), y, 10))[:outer]
    return [
        round(100 * float((found.classes[rows] == y[rows]).mean()), 2) for _, rows in folds
    ], seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--tasks", nargs="+", default=["CR", "TREC", "MRPC"])
    parser.add_argument(
        "--outer", type=int, default=1, help=f"outer folds (seed {SEED}) for the loops to do"
    )
    arguments = parser.parse_args()
    tasks = [load_labelled(arguments.data, name) for name in arguments.tasks]
    texts = distinct_texts(tasks)
    embeddings = TextEmbeddings(
        texts, Embedder(load_encoder(arguments.model), precision="bf16")(texts)
    )
    print("| task | loops | together | difference | loops, s | together, s | times fewer |")
    print("|---|---|---|---|---|---|---|")
    for task in tasks:
        ours, seconds = together(task, embeddings, arguments.outer)
        theirs, loop_seconds = literal(task, embeddings, arguments.outer)
        a, b = float(np.mean(theirs)), float(np.mean(ours))
        cells = f"{a:.2f} | {b:.2f} | {b - a:+.2f} | {loop_seconds:.0f} | {seconds:.1f} | {loop_seconds / seconds:.1f}"
        print(f"| {task.name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
