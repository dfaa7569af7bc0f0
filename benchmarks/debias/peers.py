"""What people do today about vectors that follow wording, beside the meaning block, on the same measures.

    python benchmarks/debias/peers.py ROWS DATA -o OUT [--seeds 1,2,3] [--threads 1]

ROWS is `mixture.parquet` of a run of `opencse run debias`, DATA the folder of the evaluation sets.
Every way starts from all-MiniLM-L6-v2; none is tuned:

block           `opencse run debias --backbone minilm`: what ships, at its own strength and at 0.5
negative words  v = [e ; βs] / √(1 + β²), where s is -1 for a text with an odd count of negative
                words and 1 for others: a filter by negation that a search index can hold
re-weighted     every dimension scaled by how much further a contradiction moves it than a rewording
does, over ROWS
                (after arXiv 2504.00584, whose own weights differ)
fine-tuned      MultipleNegativesRankingLoss over (sentence, rewording, contradiction) of ROWS, by
                sentence-transformers' trainer: 100 steps of 64 rows, learning rate 2e-5

OUT gets `peers.csv`, a column for each way with mean and standard deviation over the seeds, and
`upgrade.csv`: what becomes of an index of old vectors that is searched with the new model's
queries, as they are, and mapped back by a ridge regression over the sentences of ROWS (a linear
adapter, arXiv 2509.23471). Models are kept in OUT.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from measures import Measures, cranfield, write_table

from opencse.debias.meaning_block import as_query, upgrade
from opencse.debias.reranker import Reranker
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.evaluation.task import Encode, evaluate_tasks

Row = tuple[str, str, str]
"""A sentence, a rewording and a contradiction."""

SAME = ("paraphrase", "same_paraphrase", "claim_reworded", "reordered", "roles_kept")
OPPOSED = (
    "negation",
    "same_negation",
    "claim_opposed",
    "antonym_swap",
    "swapped",
    "roles_exchanged",
)
STEPS, BATCH, LR = 100, 64, 2e-5
NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nor|neither|without|cannot)\b|n't", re.IGNORECASE
)
SEARCHED = 2000
"""Sentences on which the linear adapter is fitted; and its ridge."""
RIDGE = 1e-2


def read_rows(path: Path) -> list[Row]:
    """Return the rows that have a rewording and a contradiction, the first of each."""
    rows = []
    for record in pq.read_table(path).to_pylist():
        same, opposed = (
            next((record[c] for c in columns if record.get(c)), None) for columns in (SAME, OPPOSED)
        )
        if same and opposed:
            rows.append((record["text"], same, opposed))
    return rows


class Cached:
    """Vectors of a model, each text encoded once."""

    def __init__(self, model: str | Path) -> None:
        self._encode = Embedder(
            load_encoder(str(model), pooling="backbone", device="cpu"), precision="auto"
        ).encode
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encode(new), strict=True))
        return unit(np.stack([self._known[text] for text in texts]))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def by_negative_words(encode: Encode, strength: float = 0.3) -> Encode:
    """Return the vectors with one more number, for the count of negative words."""

    def encoded(texts: Sequence[str]) -> np.ndarray:
        signs = np.array(
            [1.0 - 2.0 * (len(NEGATIVE.findall(text)) % 2) for text in texts], np.float32
        )
        return unit(np.concatenate([encode(texts), strength * signs[:, None]], axis=1))

    return encoded


def reweighted(encode: Encode, rows: Sequence[Row]) -> Encode:
    """Return the vectors with every dimension scaled."""
    anchor, same, opposed = (encode([row[i] for row in rows]) for i in range(3))
    moved = [
        ((anchor - other) ** 2).mean(0) + 1e-9 for other in (opposed, same)
    ]  # two dimensions are always 0
    weights = np.sqrt(moved[0] / moved[1])
    return lambda texts: unit(encode(texts) * weights)


def fine_tune(rows: Sequence[Row], seed: int, out: Path) -> float:
    """Train with sentence-transformers, and return the minutes that it took."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(Backbone("minilm").source, device="cpu")
    model.max_seq_length = 64
    chosen = np.random.default_rng(seed).permutation(len(rows))[: STEPS * BATCH]
    columns = zip(*(rows[i] for i in chosen), strict=True)
    data = Dataset.from_dict(
        dict(zip(("anchor", "positive", "negative"), map(list, columns), strict=True))
    )
    arguments = SentenceTransformerTrainingArguments(
        str(out / "trainer"),
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=LR,
        warmup_steps=STEPS // 10,
        seed=seed,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    begun = time.time()
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss).train()
    model.save(str(out / "model"))
    return (time.time() - begun) / 60


def upgrades(
    old: Encode, new: dict[str, Encode], rows: Sequence[Row], data: Path
) -> Iterator[tuple[str, float]]:
    """Yield nDCG@10 on Cranfield for an index of old vectors, by what the query's vector is."""
    task = cranfield(data)
    queries = set(task.queries)

    def searched(query: Callable[[Sequence[str]], np.ndarray], document: Encode = old) -> float:
        def encode(texts: Sequence[str]) -> np.ndarray:
            asked = np.array([text in queries for text in texts])
            found = document(texts)
            if asked.any():
                found = found.copy()
                found[asked] = query([text for text in texts if text in queries])
            return found

        return float(evaluate_tasks(encode, [task]).results[0].score or 0.0)

    yield "old queries", searched(old)
    yield (
        "the block's queries, [e ; 0 ; 0]",
        searched(lambda texts: as_query(old(texts)), lambda texts: upgrade(old(texts), 0.3)),
    )
    sentences = [row[0] for row in rows[:SEARCHED]]
    for label, encode in new.items():
        a, b = encode(sentences), old(sentences)
        adapter = np.linalg.solve(a.T @ a + RIDGE * np.eye(a.shape[1]), a.T @ b)
        yield f"{label}: queries as they are", searched(encode)
        yield (
            f"{label}: queries through the adapter",
            searched(lambda texts, f=encode, w=adapter: unit(f(texts) @ w)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument(
        "--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[1, 2, 3]
    )
    options = parser.parse_args()
    rows, minutes = read_rows(options.rows), []
    print(f"{len(rows)} rows with rewording and contradiction", flush=True)
    for seed in options.seeds:
        if not (options.out / f"fine-tuned-{seed}" / "model").is_dir():
            minutes.append(fine_tune(rows, seed, options.out / f"fine-tuned-{seed}"))
            print(f"fine-tuned, seed {seed}: {minutes[-1]:.1f} min", flush=True)
    measures = Measures(options.data, held_out=True)
    old = Cached("minilm")
    ways: dict[str, Callable[[], list[Encode]]] = {"untouched": lambda: [old]}
    ways["block, reranked"] = lambda: [reranker.packed]
    ways["negative words, β 0.3"] = lambda: [by_negative_words(old)]
    ways["re-weighted"] = lambda: [reweighted(old, rows)]
    ways["fine-tuned"] = lambda: [
        Cached(options.out / f"fine-tuned-{seed}" / "model") for seed in options.seeds
    ]
    columns = {}
    reranker = Reranker("minilm", precision="auto")
    for label, opened in ways.items():
        similarity = reranker.similarity if label == "block, reranked" else None
        columns[label] = [measures(encode, similarity=similarity) for encode in opened()]
        write_table(options.out / "peers.csv", columns)
        print(label, flush=True)
    new = {"fine-tuned": Cached(options.out / f"fine-tuned-{options.seeds[0]}" / "model")}
    with (options.out / "upgrade.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["queries on an index of old vectors", "nDCG@10"])
        writer.writerows(
            [label, f"{value:.1f}"] for label, value in upgrades(old, new, rows, options.data)
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
