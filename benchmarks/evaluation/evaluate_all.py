"""Everything that `opencse evaluate` measures on a model: time by suite, peak memory, texts encoded.

    OMP_NUM_THREADS=2 python benchmarks/evaluation/evaluate_all.py MODEL DATA
        [--tasks sts,transfer,classification,geometry] [--precision bf16]

One process; the clock starts with model and data loaded. Encoding and the scoring of each suite are
timed apart.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import distinct_texts
from opencse.evaluation.suites import load_suites
from opencse.evaluation.task import evaluate_tasks


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--tasks", default="sts,transfer,classification,geometry")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    arguments = parser.parse_args()
    suites = load_suites(arguments.tasks.split(","), arguments.data)
    embedder = Embedder(
        load_encoder(arguments.model), precision=arguments.precision, progress="encode"
    )
    embedder(["warm up"] * 64)
    tasks = [task for members in suites.values() for task in members]
    asked, idle, spent = sum(1 for task in tasks for _ in task.texts()), peak_mib(), {}

    def encode(texts):
        started, cpu = time.perf_counter(), time.process_time()
        matrix = embedder(texts)
        spent["encoding"] = time.perf_counter() - started, time.process_time() - cpu
        spent["encoded"] = peak_mib()
        return matrix

    started, cpu = time.perf_counter(), time.process_time()
    results = evaluate_tasks(encode, tasks)
    whole = time.perf_counter() - started, time.process_time() - cpu

    for suite, members in suites.items():
        print(
            f"\n{suite}: "
            + ", ".join(f"{task.name} {results[task.name].score}" for task in members)
        )
    print(
        f"\n{len(distinct_texts(tasks))} distinct texts of {asked}, each encoded once; {arguments.precision}"
    )
    print("\n| | seconds | processor seconds |\n|---|---|---|")
    print(f"| encoding | {spent['encoding'][0]:.0f} | {spent['encoding'][1]:.0f} |")
    print(f"| all | {whole[0]:.0f} | {whole[1]:.0f} |")
    print(
        f"\npeak memory {peak_mib():.0f} MiB ({spent['encoded']:.0f} after encoding, {idle:.0f} before)"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
