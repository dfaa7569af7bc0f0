"""`debias` beside other ways to the same end, and without each of its parts.

    python benchmarks/debias/debias.py CORPUS DATA -o OUT --paraphrases TABLE --views VIEWS --held-out 3 --jobs 2
    python benchmarks/debias/debias.py CORPUS DATA -o OUT --only 'without *' --set training.max_steps=100
    python benchmarks/debias/debias.py CORPUS DATA -o OUT --table          # only write the tables from what is there

CORPUS is raw text; DATA the folder of the evaluation sets; TABLE sentences with paraphrases; VIEWS held-out
sentences with `reordered` and `swapped`. What is run is in debias.toml, and patterns after `--only` choose from it.
A run is in OUT/LABEL/seed-N; a finished one is skipped, a killed one goes on. With seed 1, `debias` and each label that
names itself as its `views` are whole commands; all others are `opencse run` on the text views that one of these has
built, so that they learn from the same sentences, with STS-B dev alone. `re-weighting` fits a weight for each dimension
of the untouched model's vectors to the same pairs, after Cao (arXiv 2504.00584), and trains nothing.

Each model is measured as measures.py says; those below [runs] on the test sets, too. OUT/debias.jsonl has a line for
each run, OUT/debias.csv a column for each label below [runs].
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from measures import FINAL, MEASURES, Measures, write_table
from wording import embedder

from opencse.evaluation.task import Encode

CONTESTANTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ENTRIES: dict[str, dict[str, Any]] = {**CONTESTANTS["runs"], **CONTESTANTS["ablations"]}
REWEIGHTED = "re-weighting"
FIRST = 1
"""The seed of the whole commands, whose text views all other runs read."""
TOLERANCE = 0.75
"""Points of STS-B dev that re-weighting may lose: as many as `debias`."""
SAME = (("text", "same_paraphrase"), ("same_negation", "same_antonym"), ("text", "paraphrase"), ("text", "reordered"))
OPPOSED = (("text", "negation"), ("text", "same_antonym"), ("same_paraphrase", "same_negation"), ("text", "swapped"))


class Benchmark:
    """The runs below one folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.measures = Measures(options.data, options.views, options.held_out)

    def folder(self, label: str, seed: int) -> Path:
        """Where a run is."""
        return self.options.out / label.replace(" ", "_").replace(",", "") / f"seed-{seed}"

    def views(self, label: str) -> Path:
        """The sentences and views that a finished run learned from."""
        folder = self.folder(label, FIRST)
        joined = folder / "views" / "joined.parquet"
        return joined if joined.is_file() else folder / "views"

    def is_whole(self, label: str, seed: int) -> bool:
        """Whether a run is a whole command."""
        return source(label) == label and seed == FIRST

    def command(self, label: str, seed: int, out: Path) -> list[str]:
        """The call of `opencse run`."""
        options, entry = self.options, ENTRIES[label]
        recipe, whole = entry.get("recipe", "debias"), self.is_whole(label, seed)
        settings = [*entry.get("set", []), *options.set]
        corpus = options.corpus if whole else self.views(source(label))
        call = [sys.executable, "-m", "opencse.commands.main", "run", recipe, str(corpus)]
        call += ["--backbone", options.backbone, "-o", str(out), "--seed", str(seed)]
        call += ["--data", str(options.data)] if whole else ["--dev", str(options.data / "eval/STSB/dev.tsv.gz")]
        if whole and entry.get("paraphrases"):
            call += ["--paraphrases", str(options.paraphrases)]
        if whole and options.held_out:
            settings += [f"build.{name}.hold_out={options.held_out}" for name in entry["opposites"]]
        for setting in settings:
            call += ["--set", setting.replace("{out}", str(options.out))]
        return [*call, "--resume" if (out / "run.json").exists() else "--overwrite"]

    def run(self, label: str, seed: int) -> None:
        """One run, unless it is there, and its measures."""
        out = self.folder(label, seed)
        if not (out / "cost.json").is_file():
            print(f"{label}, seed {seed}", file=sys.stderr, flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // self.options.jobs))}
            log, started = out.with_suffix(".log"), time.perf_counter()
            with log.open("w", encoding="utf-8") as lines:
                call = self.command(label, seed, out)
                process = subprocess.Popen(call, stdout=lines, stderr=subprocess.STDOUT, env=os.environ | threads)
                _, status, usage = os.wait4(process.pid, 0)
            if status:
                last = log.read_text(encoding="utf-8").strip().splitlines()[-1:]
                print(f"{label}, seed {seed}: failed ({''.join(last)[:200]})", file=sys.stderr)
                return
            cost = {"seconds": time.perf_counter() - started, "peak_mib": usage.ru_maxrss / 1024}
            (out / "cost.json").write_text(json.dumps(cost), encoding="utf-8")
        self.measure(embedder(str(out / "model")), out / "measures.json", final=label in CONTESTANTS["runs"])

    def measure(self, encode: Encode, file: Path, *, final: bool) -> None:
        """Measure a model, unless that was done."""
        if not file.is_file():
            file.write_text(json.dumps(self.measures(encode, final=final)), encoding="utf-8")

    def reweigh(self) -> None:
        """Weights that make opposed pairs differ most, as strong as STS-B dev allows."""
        from opencse.evaluation import PairsTask, TextEmbeddings, distinct_texts, load_sts
        from opencse.text.corpus import column_names, read_rows

        out = self.folder(REWEIGHTED, FIRST)
        if (out / "cost.json").is_file():
            return
        started, views = time.perf_counter(), self.views("debias")
        known = column_names(views)
        names = [name for name in dict.fromkeys(v for pair in (*SAME, *OPPOSED) for v in pair) if name in known]
        rows = [
            dict(zip(names, row, strict=True)) for row, _ in zip(read_rows(views, names), range(6000), strict=False)
        ]
        encode = embedder(self.options.backbone)

        def spread(pairs: tuple[tuple[str, str], ...]) -> np.ndarray:
            found = [(row[a], row[b]) for row in rows for a, b in pairs if row.get(a) and row.get(b)]
            first, second = (unit(encode(list(texts))) for texts in zip(*found, strict=True))
            return np.square(first - second).mean(axis=0)

        opposed, same = spread(OPPOSED), spread(SAME)
        ratio = np.divide(opposed, same, out=np.ones_like(same), where=same > 0)  # a dimension may be the same for all
        dev = PairsTask(pairs=load_sts(self.options.data, tasks=["STS-B"], split="dev")[0])
        texts = distinct_texts([dev])
        vectors = unit(encode(texts))
        scores = {a: dev.score(TextEmbeddings(texts, vectors * ratio ** (a / 2))).score for a in np.arange(0, 8.5, 0.5)}
        power = max(a for a, score in scores.items() if score >= scores[0] - TOLERANCE)
        out.mkdir(parents=True, exist_ok=True)
        self.measure(lambda texts: unit(encode(texts)) * ratio ** (power / 2), out / "measures.json", final=True)
        cost = {"seconds": time.perf_counter() - started, "power": power}
        (out / "cost.json").write_text(json.dumps(cost), encoding="utf-8")

    def write_tables(self, labels: list[str]) -> None:
        """OUT/debias.jsonl and OUT/debias.csv, from the runs that are finished."""
        lines = [{"run": "untouched", "measures": shown_measures(self.untouched)}]
        for label in labels:
            folders = sorted(file.parent for file in self.folder(label, 0).parent.glob("seed-*/measures.json"))
            lines += [record(folder, label) for folder in folders]
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        (self.options.out / "debias.jsonl").write_text(text, encoding="utf-8")
        columns: dict[str, list[dict[str, float | None]]] = {}
        for line in lines:
            if line["run"] not in CONTESTANTS["ablations"]:
                columns.setdefault(line["run"], []).append(line["measures"])
        write_table(self.options.out / "debias.csv", columns)

    @property
    def untouched(self) -> Path:
        """The measures of the model that all begin with."""
        return self.options.out / "untouched.json"


def source(label: str) -> str:
    """The label whose text views a contestant learns from."""
    return ENTRIES.get(label, {}).get("views", "debias")


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def record(folder: Path, label: str) -> dict[str, Any]:
    """A finished run, as one line of OUT/debias.jsonl."""
    line: dict[str, Any] = {"run": label, "seed": int(folder.name.split("-")[1])}
    if (folder / "cost.json").is_file():
        cost = json.loads((folder / "cost.json").read_text(encoding="utf-8"))
        line |= {"minutes": cost["seconds"] / 60, "MiB": cost.get("peak_mib")}
    if (folder / "run.json").is_file():
        outcome = json.loads((folder / "run.json").read_text(encoding="utf-8"))["outcome"]
        line |= {"steps": outcome["steps"], "kept, %": 100 * outcome["share"]}
    line["measures"] = shown_measures(folder / "measures.json")
    return {key: round(value, 2) if isinstance(value, float) else value for key, value in line.items()}


def shown_measures(file: Path) -> dict[str, float]:
    """The measures that the tables show, of all that a file holds."""
    shown = {*MEASURES.values(), *FINAL}
    measures = json.loads(file.read_text(encoding="utf-8"))
    return {name: round(value, 4) for name, value in measures.items() if name in shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=[*CONTESTANTS["runs"], REWEIGHTED], metavar="LABEL")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all runs")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument(
        "--held-out", type=int, default=0, help="hold one of so many pairs of opposites out of training"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores")
    options = parser.parse_args()
    known = [*ENTRIES, REWEIGHTED]
    labels = [label for label in known if any(fnmatchcase(label, pattern) for pattern in options.only)]
    benchmark = Benchmark(options)

    def work(one: tuple[int, str]) -> None:
        seed, label = one
        benchmark.run(label, seed)
        benchmark.write_tables(known)

    options.out.mkdir(parents=True, exist_ok=True)
    benchmark.measure(embedder(options.backbone), benchmark.untouched, final=True)
    if not options.table:
        runs = [(seed, label) for seed in options.seeds for label in labels if label in ENTRIES]
        missing = {label for label in map(source, labels) if not benchmark.views(label).exists()}
        whole = [(FIRST, label) for label in ENTRIES if benchmark.is_whole(label, FIRST)]
        first = [one for one in whole if one in runs or one[1] in missing]
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, first))
            list(pool.map(work, [one for one in runs if one not in first]))
        if REWEIGHTED in labels:
            benchmark.reweigh()
    benchmark.write_tables(known)
    print((options.out / "debias.csv").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
