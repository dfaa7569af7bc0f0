"""The seven STS tasks: `opencse` against sentence-transformers' `EmbeddingSimilarityEvaluator` with its defaults.

    python benchmarks/evaluation/evaluate_sts.py MODEL DATA [--rounds 2] [--tasks STS16 STS-B] [--precisions fp32]

MODEL is a sentence-transformers folder, a hub id or a bundled name, DATA a folder that `opencse
evaluate --data` accepts. Every run is a process of its own (so that peak memory is its own) on the
same files; contenders take turns. Timed is what a user waits for once model and files are loaded:
tokenising, encoding, scoring. A short warm-up comes before the clock. Of several rounds the ratio
is the median of the rounds' ratios. Threads are used as set by OMP_NUM_THREADS. On a busy machine
trust the processor seconds (all threads together) more than the wall seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

from opencse.encoder.names import resolve
from opencse.evaluation import STS_TASKS

PEER = "sentence-transformers"


def child(contender: str, model_name: str, data: str, tasks: list[str]) -> dict:
    """One timed run."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from opencse.encoder.embedder import Embedder
    from opencse.evaluation import evaluate_tasks, load_sts

    pairs = load_sts(data, tasks=tasks)
    model = SentenceTransformer(resolve(model_name))
    model.encode(["warm up"] * 64)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu_started = time.perf_counter(), time.process_time()
    if contender == PEER:
        scores = {}
        for each in pairs:
            columns = list(each.sentence1), list(each.sentence2), list(each.scores)
            result = EmbeddingSimilarityEvaluator(*columns, name="sts")(model)
            scores[each.name] = 100 * float(result["sts_spearman_cosine"])
    else:
        encode = Embedder(model, precision=contender.split()[1])
        results = evaluate_tasks(encode, pairs).results
        scores = {result.task: result.score for result in results}
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu_started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "cpu": cpu,
        "scores": scores,
        "peak_mib": peak / 1024,
        "idle_mib": idle / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tasks", nargs="+", default=list(STS_TASKS))
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(
            "RESULT "
            + json.dumps(child(arguments.child, arguments.model, arguments.data, arguments.tasks))
        )
        return
    contenders = [PEER, *(f"opencse {precision}" for precision in arguments.precisions)]
    runs: dict[str, list[dict]] = {name: [] for name in contenders}
    for round_ in range(arguments.rounds):
        for name in contenders:
            command = [sys.executable, __file__, arguments.model, arguments.data, "--child", name]
            command += ["--tasks", *arguments.tasks]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            runs[name].append(json.loads(output.split("RESULT ")[-1]))
            print(
                f"round {round_ + 1}: {name}: {runs[name][-1]['seconds']:.1f} s, cpu {runs[name][-1]['cpu']:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    base = runs[PEER]
    tasks = list(base[0]["scores"])
    print(
        "| | seconds | times faster | processor seconds | times fewer | peak MiB (before) | largest difference |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, results in runs.items():
        cells = []
        for clock in ("seconds", "cpu"):
            ratio = statistics.median(
                b[clock] / r[clock] for b, r in zip(base, results, strict=True)
            )
            cells.append(f"{statistics.median(r[clock] for r in results):.1f} | {ratio:.2f}")
        difference = max(
            abs(results[0]["scores"][task] - base[0]["scores"][task]) for task in tasks
        )
        peak, idle = (max(r[key] for r in results) for key in ("peak_mib", "idle_mib"))
        print(f"| {name} | {' | '.join(cells)} | {peak:.0f} ({idle:.0f}) | {difference:.5f} |")
    print("\n| | " + " | ".join(tasks) + " | average |\n" + "|---" * (len(tasks) + 2) + "|")
    for name, results in runs.items():
        scores = [results[0]["scores"][task] for task in tasks]
        print(
            f"| {name} | "
            + " | ".join(f"{s:.3f}" for s in [*scores, statistics.mean(scores)])
            + " |"
        )


if __name__ == "__main__":
    main()
