"""The seven STS tasks: `opencse` against sentence-transformers' `EmbeddingSimilarityEvaluator` with its defaults.

    python benchmarks/evaluate_sts.py MODEL DATA [--rounds 2]

MODEL is a sentence-transformers folder or hub id, DATA a folder that `opencse evaluate --data` accepts. Every run is a
process of its own (so that peak memory is its own) on the same files; contenders take turns. Timed is what a user waits
for once model and files are loaded: tokenising, encoding, scoring. A short warm-up comes before the clock. Of several
rounds the ratio is the median of the rounds' ratios. The machine's threads are used as set by OMP_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

CONTENDERS = {"sentence-transformers": "fp32", "opencse fp32": "fp32", "opencse bf16": "bf16"}


def child(contender: str, model_name: str, data: str) -> dict:
    """One timed run."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from opencse.encoder.embedder import Embedder
    from opencse.evaluation import PairsTask, evaluate, load_sts

    pairs = load_sts(data)
    model = SentenceTransformer(model_name)
    model.encode(["warm up"] * 64)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    if contender == "sentence-transformers":
        scores = {}
        for each in pairs:
            columns = list(each.sentence1), list(each.sentence2), list(each.scores)
            result = EmbeddingSimilarityEvaluator(*columns, name="sts")(model)
            scores[each.name] = 100 * float(result["sts_spearman_cosine"])
    else:
        tasks = [PairsTask(pairs=each) for each in pairs]
        results = evaluate(Embedder(model, precision=CONTENDERS[contender]), tasks).results
        scores = {result.task: result.score for result in results}
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "scores": scores, "peak_mib": peak / 1024, "idle_mib": idle / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print("RESULT " + json.dumps(child(arguments.child, arguments.model, arguments.data)))
        return
    runs: dict[str, list[dict]] = {name: [] for name in CONTENDERS}
    for round_ in range(arguments.rounds):
        for name in CONTENDERS:
            command = [sys.executable, __file__, arguments.model, arguments.data, "--child", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            runs[name].append(json.loads(output.split("RESULT ")[-1]))
            print(f"round {round_ + 1}: {name}: {runs[name][-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
    base = runs["sentence-transformers"]
    tasks = list(base[0]["scores"])
    print("| | seconds | times faster | peak MiB (before) | largest score difference |")
    print("|---|---|---|---|---|")
    for name, results in runs.items():
        ratio = statistics.median(b["seconds"] / r["seconds"] for b, r in zip(base, results, strict=True))
        difference = max(abs(results[0]["scores"][task] - base[0]["scores"][task]) for task in tasks)
        seconds = statistics.median(r["seconds"] for r in results)
        peak, idle = (max(r[key] for r in results) for key in ("peak_mib", "idle_mib"))
        print(f"| {name} | {seconds:.1f} | {ratio:.2f} | {peak:.0f} ({idle:.0f}) | {difference:.5f} |")
    print("\n| | " + " | ".join(tasks) + " | average |\n" + "|---" * (len(tasks) + 2) + "|")
    for name, results in runs.items():
        scores = [results[0]["scores"][task] for task in tasks]
        print(f"| {name} | " + " | ".join(f"{s:.3f}" for s in [*scores, statistics.mean(scores)]) + " |")


if __name__ == "__main__":
    main()
