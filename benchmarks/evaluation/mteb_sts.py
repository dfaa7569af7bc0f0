"""The STS tasks by opencse and by `mteb` (extra `mteb`), on the same rows and the same vectors.

    python benchmarks/evaluation/mteb_sts.py MODEL DATA [--tasks STS16 STS-B]

DATA as for `opencse evaluate`; the raw text, which is `mteb`'s. `mteb` scores twice: by the model's
own similarity (`spearman`), and by scikit-learn's float32 cosine (`cosine_spearman`, its main
score).
"""

from __future__ import annotations

import argparse

import mteb
import numpy as np
from datasets import Dataset, DatasetDict

from opencse.commands.evaluate import VectorEncoder
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import STS_TASKS, distinct_texts, evaluate_tasks, load_sts
from opencse.evaluation.sts import ScoredPairs

NAMES = {"STS-B": "STSBenchmark"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--tasks", nargs="+", default=list(STS_TASKS))
    arguments = parser.parse_args()
    tasks = load_sts(arguments.data, text="raw", tasks=arguments.tasks)
    model, texts = load_encoder(arguments.model), distinct_texts(tasks)
    rows = dict(zip(texts, Embedder(model, precision="bf16")(texts), strict=True))

    def encode(wanted):
        return np.stack([rows[text] for text in wanted])

    adapter = VectorEncoder(encode)
    print(
        "| task | spearman | mteb's spearman | difference | mteb's cosine_spearman | difference |"
    )
    print("|---" * 6 + "|")
    for task in tasks:
        compare(task, encode, adapter)


def compare(pairs: ScoredPairs, encode, adapter: VectorEncoder) -> None:
    columns = {"sentence1": pairs.sentence1, "sentence2": pairs.sentence2, "score": pairs.scores}
    local = mteb.get_task(NAMES.get(pairs.name, pairs.name))
    local.dataset = DatasetDict(
        {"test": Dataset.from_dict({name: list(each) for name, each in columns.items()})}
    )
    local.data_loaded = True
    found = (
        mteb.evaluate(adapter, local, cache=None, show_progress_bar=False)
        .task_results[0]
        .scores["test"][0]
    )
    ours = evaluate_tasks(encode, [pairs])[pairs.name].score / 100
    theirs = found["spearman"], found["cosine_spearman"]
    cells = [cell for value in theirs for cell in (f"{value:.6f}", f"{abs(value - ours):.1e}")]
    print(f"| {pairs.name} | {ours:.6f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
