"""`debias` beside other ways to the same end, and without each of its parts: surface bias, STS, transfer, time, memory.

    python benchmarks/debias/debias.py CORPUS DATA -o OUT --paraphrases TABLE --seeds 1,2,3 --transfer senteval
    python benchmarks/debias/debias.py CORPUS DATA -o OUT --seeds 1 --ablations --jobs 2
    python benchmarks/debias/debias.py CORPUS DATA -o OUT --table          # only write the table from what is there

CORPUS is raw text; DATA the folder of the STS and transfer sets; TABLE sentences with paraphrases; VIEWS (`--views`)
held-out sentences with `reordered` and `swapped`. Each run is a call of `opencse run` as a user would make it, in
OUT/LABEL/seed-N; a finished one is skipped, a killed one goes on. What is run beside `debias` is in debias.toml; all
but `raw` runs read the text views that the first one built, so that they learn from the same sentences.
`re-weighting` fits a weight for each dimension of the untouched model's vectors to the same pairs, after Cao
(arXiv 2504.00584), and trains nothing. Each model is also measured as measures.py says. The table is OUT/debias.md, or
with all measures OUT/debias.csv; the single runs are lines of OUT/debias.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from measures import Measures, cell
from measures import write_table as write_measures
from wording import embedder

CONTESTANTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TOLERANCE = 0.75
"""Points of STS-B dev that re-weighting may lose: as many as `debias`."""
SAME = (("text", "same_paraphrase"), ("same_negation", "same_antonym"), ("text", "paraphrase"), ("text", "reordered"))
OPPOSED = (("text", "negation"), ("text", "same_antonym"), ("same_paraphrase", "same_negation"), ("text", "swapped"))
COLUMNS = {  # of the table: what they show, and with how many digits
    "antonyms: affirmed · denied · verbs, %": ([f"antonyms, {kind}" for kind in ("affirmed", "denied", "verbs")], 1),
    "word order, area": (["views, area"], 1),
    "probe, %": (["probe, %"], 1),
    "Oppn. · Cont.": (["Oppn.", "Cont."], 3),
    "XNLI · CLINC · MRPC": (["XNLI", "CLINC", "MRPC"], 1),
    "STS": (["STS"], 2),
    "transfer": (["transfer"], 2),
    "kept, %": (["kept, %"], 0),
    "minutes": (["minutes"], 0),
    "MiB": (["MiB"], 0),
}


def command(options: argparse.Namespace, label: str, seed: int, out: Path) -> list[str]:
    """The call of `opencse run`."""
    entry = {**CONTESTANTS["runs"], **CONTESTANTS["ablations"]}[label]
    first = options.out / "debias" / f"seed-{options.seeds[0]}"
    raw = entry.get("raw", label == "debias")
    corpus = options.corpus if raw else built(first)
    call = [sys.executable, "-m", "opencse.cli.main", "run", entry.get("recipe", "debias"), str(corpus)]
    call += ["--backbone", options.backbone, "--data", str(options.data), "-o", str(out), "--seed", str(seed)]
    if options.paraphrases and raw and entry.get("paraphrases", True):
        call += ["--paraphrases", str(options.paraphrases)]
    for setting in [*entry.get("set", []), *options.set]:
        call += ["--set", setting.replace("{out}", str(options.out))]
    return [*call, "--resume" if any((out / name).exists() for name in ("run.json", "task_vectors")) else "--overwrite"]


def built(folder: Path) -> Path:
    """The sentences and views that a finished run learned from."""
    joined = folder / "views" / "joined.parquet"
    return joined if joined.is_file() else folder / "views"


def measure(options: argparse.Namespace, label: str, seed: int) -> None:
    """One run, unless it is there, and what is measured of its model afterwards."""
    out = options.out / _slug(label) / f"seed-{seed}"
    if not (out / "cost.json").is_file():
        print(f"{label}, seed {seed}", file=sys.stderr, flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        take_task_vectors(options, label, seed, out)
        threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // options.jobs))}
        started = time.perf_counter()
        with out.with_suffix(".log").open("w", encoding="utf-8") as log:
            call = command(options, label, seed, out)
            process = subprocess.Popen(call, stdout=log, stderr=subprocess.STDOUT, env=os.environ | threads)
            _, status, usage = os.wait4(process.pid, 0)
        if status:
            last = out.with_suffix(".log").read_text(encoding="utf-8").strip().splitlines()[-1:]
            print(f"{label}, seed {seed}: failed ({''.join(last)[:200]})", file=sys.stderr)
            return
        cost = {"seconds": time.perf_counter() - started, "peak_mib": usage.ru_maxrss / 1024}
        (out / "cost.json").write_text(json.dumps(cost), encoding="utf-8")
    ask_wording(options, embedder(str(out / "model")), out / "wording.json")
    if label in CONTESTANTS["runs"]:
        transfer(options, str(out / "model"), out.parent / f"seed-{seed}-transfer.json")
        transfer(options, options.backbone, options.out / "transfer-before.json")


def take_task_vectors(options: argparse.Namespace, label: str, seed: int, out: Path) -> None:
    """For a variant that learns from the same sentences with the same seed: no need to train them again."""
    others = options.out / "debias" / f"seed-{seed}" / "task_vectors"
    entry = CONTESTANTS["ablations"].get(label, {"raw": True})
    if others.is_dir() and not out.exists() and not entry.get("raw") and not entry.get("own_rows"):
        shutil.copytree(others, out / "task_vectors")


def ask_wording(options: argparse.Namespace, encode: Callable[[list[str]], np.ndarray], file: Path) -> None:
    if not file.is_file():
        found = Measures(options.data, options.views, options.held_out)(encode)
        file.write_text(json.dumps(found), encoding="utf-8")


def transfer(options: argparse.Namespace, model: str, file: Path) -> None:
    if file.is_file() or not options.transfer:
        return
    call = [sys.executable, "-m", "opencse.cli.main", "evaluate", model, "--data", str(options.data)]
    call += ["--tasks", "transfer", "--classifier", options.transfer, "--precision", "bf16"]
    subprocess.run([*call, "--format", "json", "-o", str(file)], check=False, stdout=subprocess.DEVNULL)


def reweighting(options: argparse.Namespace) -> None:
    """Weights that make opposed pairs differ most, as strong as STS-B dev allows; then the measures of a run."""
    from opencse.evaluation import PairsTask, TextEmbeddings, distinct_texts, load_sts
    from opencse.io.corpus import column_names, read_rows
    from opencse.probing import ProbeSuite, load_probe_data
    from opencse.reports import write_report

    out = options.out / "re-weighting" / "seed-0"
    if (out / "cost.json").is_file():
        return
    started = time.perf_counter()
    views = built(options.out / "debias" / f"seed-{options.seeds[0]}")
    known = column_names(views)
    names = [name for name in dict.fromkeys(v for pair in (*SAME, *OPPOSED) for v in pair) if name in known]
    rows = [dict(zip(names, row, strict=True)) for row, _ in zip(read_rows(views, names), range(6000), strict=False)]
    encode = embedder(options.backbone)

    def spread(pairs: tuple[tuple[str, str], ...]) -> np.ndarray:
        found = [(row[a], row[b]) for row in rows for a, b in pairs if row.get(a) and row.get(b)]
        first, second = (unit(encode(list(texts))) for texts in zip(*found, strict=True))
        return np.square(first - second).mean(axis=0)

    opposed, same = spread(OPPOSED), spread(SAME)
    ratio = np.divide(opposed, same, out=np.ones_like(same), where=same > 0)  # a dimension may be the same for all
    dev = PairsTask(pairs=load_sts(options.data, tasks=["STS-B"], split="dev")[0])
    texts = distinct_texts([dev])
    vectors = unit(encode(texts))
    scores = {a: dev.score(TextEmbeddings(texts, vectors * ratio ** (a / 2))).score for a in np.arange(0, 8.5, 0.5)}
    power = max(a for a, score in scores.items() if score >= scores[0] - TOLERANCE)

    def weighted(texts: list[str]) -> np.ndarray:
        return unit(encode(texts)) * ratio ** (power / 2)

    probed = ProbeSuite(load_probe_data(data=options.data))(weighted)
    out.mkdir(parents=True, exist_ok=True)
    ask_wording(options, weighted, out / "wording.json")
    write_report({"untouched": probed, "re-weighting": probed}, out, notes=[f"power {power}"])
    average = statistics.mean(task.score for task in probed.sts)
    (out / "results.json").write_text(json.dumps({"after": {"sts": {"average": average}}}), encoding="utf-8")
    (out / "cost.json").write_text(json.dumps({"seconds": time.perf_counter() - started}))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def record(folder: Path, label: str) -> dict[str, object]:
    """What a finished run scored, as one line of OUT/debias.jsonl; `label` "untouched": the model it began with."""
    which = 0 if label == "untouched" else -1
    found = list(json.loads((folder / "probe.json").read_text(encoding="utf-8"))["models"].values())[which]["scores"]
    split = found["splits"]["averages"][1]  # all test sets by its rule
    sts = json.loads((folder / "results.json").read_text(encoding="utf-8"))["before" if which == 0 else "after"]["sts"]
    line: dict[str, object] = {"run": label}
    if which:
        cost = json.loads((folder / "cost.json").read_text(encoding="utf-8"))
        line |= {"seed": int(folder.name.split("-")[1]), "minutes": cost["seconds"] / 60}
        line |= {"MiB": cost["peak_mib"]} if "peak_mib" in cost else {}
        if (folder / "run.json").is_file():
            outcome = json.loads((folder / "run.json").read_text(encoding="utf-8"))["outcome"]
            line |= {"steps": outcome["steps"], "kept, %": 100 * outcome["share"]}
    line |= {
        "probe, %": 100 * found["transformations"]["paraphrase_above_negation"]["value"],
        "Oppn.": split["opposed"]["value"],
        "Cont.": split["consistent"]["value"],
        "STS": sts["average"],
        "tasks": {task["task"]: round(task["metrics"]["spearman"], 2) for task in sts.get("tasks", [])},
    }
    first = folder.parent.parent
    file = first / "transfer-before.json" if which == 0 else folder.parent / f"{folder.name}-transfer.json"
    if file.is_file():
        line["transfer"] = json.loads(file.read_text(encoding="utf-8"))["average"]["score"]
    file = first / "wording-before.json" if which == 0 else folder / "wording.json"
    if file.is_file():
        asked = json.loads(file.read_text(encoding="utf-8"))
        line["wording"] = {name: round(value, 4) for name, value in asked.items() if value is not None}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in line.items()}


def write_table(options: argparse.Namespace, labels: list[str]) -> None:
    """OUT/debias.md and OUT/debias.jsonl, from the runs that are finished."""
    lines: list[dict[str, object]] = []
    for label in labels:
        folders = sorted(file.parent for file in (options.out / _slug(label)).glob("seed-*/cost.json"))
        if not lines and folders and (folders[0] / "run.json").is_file():
            lines.append(record(folders[0], "untouched"))
        lines += [record(folder, label) for folder in folders]
    table = [f"| | {' | '.join([*COLUMNS, 'seeds'])} |", "|---" + "|---:" * (len(COLUMNS) + 1) + "|"]
    names = dict.fromkeys(str(line["run"]) for line in lines)
    groups = {name: [line for line in lines if line["run"] == name] for name in names}
    for label, group in groups.items():
        cells = []
        for keys, digits in COLUMNS.values():
            parts = [[line.get(key, line.get("wording", {}).get(key)) for line in group] for key in keys]
            cells.append(" · ".join(cell(values, digits) for values in parts))
        table.append(f"| {' | '.join([label, *cells, str(len(group))])} |")
    if groups:
        each = {label: [measured(line) for line in group] for label, group in groups.items()}
        write_measures(options.out / "debias.csv", each)
    (options.out / "debias.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    (options.out / "debias.jsonl").write_text(text, encoding="utf-8")


def measured(line: dict[str, Any]) -> dict[str, float | None]:
    """The measures of one line of OUT/debias.jsonl, by their names in measures.py."""
    final = {"Probe, %": "probe, %", "Oppn.": "Oppn.", "Cont.": "Cont.", "Average of the seven STS": "STS"}
    return line["wording"] | {name: line[key] for name, key in final.items()}


def _slug(label: str) -> str:
    return label.replace(" ", "_").replace(",", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--paraphrases", type=Path)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="labels of debias.toml, or re-weighting")
    parser.add_argument("--ablations", action="store_true", help="and those of debias.toml")
    parser.add_argument("--transfer", choices=["senteval", "sklearn"], help="measure the transfer tasks too")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all runs")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument("--held-out", type=int, default=0, help="hold_out of the runs' opposites")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores")
    options = parser.parse_args()
    labels = [*CONTESTANTS["runs"], "re-weighting", *(CONTESTANTS["ablations"] if options.ablations else [])]
    labels = [label for label in labels if options.only is None or label in options.only]

    def work(one: tuple[int, str]) -> None:
        seed, label = one
        if label == "re-weighting":
            reweighting(options)
        else:
            measure(options, label, seed)
        write_table(options, labels)

    if not options.table:
        options.out.mkdir(parents=True, exist_ok=True)
        ask_wording(options, embedder(options.backbone), options.out / "wording-before.json")
        runs = [(seed, label) for seed in options.seeds for label in labels]
        first = (options.seeds[0], "debias")  # what others read
        for one in [each for each in runs if each == first]:
            work(one)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, [one for one in runs if one != first]))
    write_table(options, labels)
    print((options.out / "debias.md").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
