"""What pre-training and the contrastive step each give: the seven STS tasks, from word counts to SimCSE.

    python benchmarks/pretraining/mini_mlm_sts.py CORPUS DATA OUT [--model mini-mlm] [--sentences 100000]
        [--seeds 1 2 3]

Compared are: cosines of idf-weighted sets of words (idf from the corpus); an untrained encoder of the model's shape,
mean-pooled, one for each seed; the pre-trained encoder un-tuned, with each pooling, and whitened on the corpus; SimCSE
from the untrained and from the pre-trained encoder, one run for each seed on the first sentences of CORPUS, the step
chosen on STS-B dev. Tests are SentEval text. Each result is a file OUT/NAME.json; those that are there are not made
again, and a SimCSE run that was stopped goes on, so that the command can be repeated until all is done. It ends with
the table. On one core a SimCSE run of 100,000 sentences takes some 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from opencse.evaluation import STS_TASKS, load_sts

POOLINGS = ("cls", "mean", "first_last")


def word_sets(pairs: list, lines: list[str]) -> dict[str, float]:
    """Cosine of binary word vectors weighted by inverse document frequency."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    from opencse.evaluation.correlation import spearman

    vectorizer = TfidfVectorizer(binary=True, token_pattern=r"\w+").fit(lines)
    scores = {}
    for each in pairs:
        first, second = (vectorizer.transform(side) for side in (each.sentence1, each.sentence2))
        cosine = np.asarray(first.multiply(second).sum(1)).ravel()
        scores[each.name] = 100 * spearman(each.gold, cosine)
    return scores


def model_scores(model, pairs: list, whiten: list[str] | None = None) -> dict[str, float]:
    from opencse.encoder.embedder import Embedder
    from opencse.evaluation import PairsTask, evaluate_tasks
    from opencse.evaluation.whitening import Whitening

    encode = Embedder(model)
    if whiten is not None:
        encode = Whitening.fit(encode, whiten).after(encode)
    results = evaluate_tasks(encode, [PairsTask(pairs=each) for each in pairs]).results
    return {result.task: result.score for result in results}


def untrained(model: str, seed: int, folder: Path) -> Path:
    """A folder with the model's tokenizer and shape, and random weights."""
    import torch
    from transformers import AutoModelForMaskedLM

    from opencse.pretraining.model import load_model, load_tokenizer, save_model

    if not folder.is_dir():
        torch.manual_seed(seed)
        save_model(AutoModelForMaskedLM.from_config(load_model(model)[0].config), load_tokenizer(model), folder, "")
    return folder


def simcse(backbone: str | Path, corpus: Path, data: str, seed: int, out: Path) -> Path:
    import opencse

    run = opencse.train(
        "simcse",
        corpus,
        backbone=backbone,
        out=out,
        data=data,
        overrides=[f"training.seed={seed}"],
        resume=(out / "run.json").is_file(),
    )
    return run.model


def table(out: Path, tasks: list[str], names: dict[str, list[str]]) -> None:
    print(f"| | {' | '.join(tasks)} | average |")
    print("|---|" + "---|" * (len(tasks) + 1))
    for title, files in names.items():
        found = [json.loads((out / f"{f}.json").read_text(encoding="utf-8")) for f in files]
        columns = [[one["scores"][task] for one in found] for task in tasks]
        columns.append([statistics.mean(one["scores"][task] for task in tasks) for one in found])
        print(f"| {title} | {' | '.join(_cell(column) for column in columns)} |")


def _cell(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="mini-mlm")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--whiten", type=int, default=20_000, help="sentences to fit the whitening on")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--tasks", nargs="+", default=list(STS_TASKS), choices=STS_TASKS)
    arguments = parser.parse_args()

    from opencse.encoder import load_encoder
    from opencse.io.corpus import read_texts

    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    lines = list(islice(read_texts(arguments.corpus), arguments.sentences))
    corpus = out / "corpus.txt"
    if not corpus.is_file():
        corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = load_sts(arguments.data, tasks=arguments.tasks)
    seeds = arguments.seeds

    def make(name: str, score: Callable[..., dict[str, float]], *inputs) -> None:
        path = out / f"{name}.json"
        if path.is_file():
            return
        start = time.perf_counter()
        scores = score(*inputs)
        result = {"name": name, "scores": scores, "seconds": time.perf_counter() - start}
        path.write_text(json.dumps(result, indent=1), encoding="utf-8")
        print(f"{name}: {statistics.mean(scores.values()):.2f}", flush=True)

    def pooled(backbone: str | Path, pooling: str, whiten: list[str] | None = None) -> dict[str, float]:
        return model_scores(load_encoder(backbone, pooling=pooling), pairs, whiten)

    def trained(backbone: str | Path, seed: int, run: Path) -> dict[str, float]:
        return model_scores(load_encoder(simcse(backbone, corpus, arguments.data, seed, run)), pairs)

    make("words", word_sets, pairs, lines)
    for pooling in POOLINGS:
        make(pooling, pooled, arguments.model, pooling)
    make("whitened", pooled, arguments.model, "first_last", lines[: arguments.whiten])
    random = {seed: untrained(arguments.model, seed, out / f"untrained-{seed}") for seed in seeds}
    for seed in seeds:
        make(f"random-{seed}", pooled, random[seed], "mean")
    for seed in seeds:
        make(f"simcse-{seed}", trained, arguments.model, seed, out / f"simcse-{seed}")
    for seed in seeds:
        make(f"simcse-random-{seed}", trained, random[seed], seed, out / f"simcse-random-{seed}")
    table(
        out,
        arguments.tasks,
        {
            "idf-weighted words": ["words"],
            "untrained, `mean`": [f"random-{s}" for s in seeds],
            **{f"pre-trained, `{p}`": [p] for p in POOLINGS},
            "pre-trained, `first_last`, whitened": ["whitened"],
            "SimCSE from the untrained": [f"simcse-random-{s}" for s in seeds],
            "SimCSE from the pre-trained": [f"simcse-{s}" for s in seeds],
        },
    )


if __name__ == "__main__":
    main()
