"""`debias` beside other ways to the same end, and without each of its parts: surface bias, STS, transfer, time, memory.

    python benchmarks/debias.py CORPUS DATA -o OUT --paraphrases TABLE --seeds 1,2,3
    python benchmarks/debias.py CORPUS DATA -o OUT --paraphrases TABLE --ablations --set training.max_steps=500
    python benchmarks/debias.py CORPUS DATA -o OUT --table          # only write the table from what is there

CORPUS is raw text; DATA the folder of the STS and transfer sets; TABLE sentences with paraphrases. Each run is a call
of `opencse run` as a user would make it, in OUT/LABEL/seed-N; a finished one is skipped, a killed one goes on. What is
run beside `debias` is in debias.toml; all but `raw` runs read the text views that the first one built, so that they
learn from the same sentences. `re-weighting` fits a weight for each dimension of the untouched model's vectors to the
same pairs, after Cao (arXiv 2504.00584), and trains nothing. The table is OUT/debias.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np

CONTESTANTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SAME = (("text", "negated_antonym"), ("negation", "antonym"), ("text", "paraphrase"), ("text", "reordered"))
OPPOSED = (("text", "negation"), ("text", "antonym"), ("negated_antonym", "negation"), ("text", "swapped"))


def command(options: argparse.Namespace, label: str, seed: int, out: Path) -> list[str]:
    """The call of `opencse run`."""
    entry = {**CONTESTANTS["runs"], **CONTESTANTS["ablations"]}[label]
    first = options.out / "debias" / f"seed-{options.seeds[0]}"
    raw = entry.get("raw", label == "debias")
    corpus = options.corpus if raw else built(first)
    call = [sys.executable, "-m", "opencse.cli.main", "run", entry.get("recipe", "debias"), str(corpus)]
    call += ["--backbone", options.backbone, "--data", str(options.data), "-o", str(out), "--seed", str(seed)]
    if raw and entry.get("paraphrases", True):
        call += ["--paraphrases", str(options.paraphrases)]
    for setting in [*entry.get("set", []), *options.set]:
        call += ["--set", setting]
    return [*call, "--resume" if (out / "run.json").is_file() else "--overwrite"]


def built(folder: Path) -> Path:
    """The sentences and views that a finished run learned from."""
    joined = folder / "views" / "joined.parquet"
    return joined if joined.is_file() else folder / "views"


def measure(options: argparse.Namespace, label: str, seed: int) -> None:
    out = options.out / label.replace(" ", "_") / f"seed-{seed}"
    if (out / "cost.json").is_file():
        return
    print(f"{label}, seed {seed}", file=sys.stderr, flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with out.with_suffix(".log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command(options, label, seed, out), stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        last = out.with_suffix(".log").read_text(encoding="utf-8").strip().splitlines()[-1:]
        print(f"{label}, seed {seed}: failed ({''.join(last)[:200]})", file=sys.stderr)
        return
    cost = {"seconds": time.perf_counter() - started, "peak_mib": usage.ru_maxrss / 1024}
    (out / "cost.json").write_text(json.dumps(cost), encoding="utf-8")


def transfer(options: argparse.Namespace, model: str, file: Path) -> None:
    if file.is_file() or not options.transfer:
        return
    call = [sys.executable, "-m", "opencse.cli.main", "evaluate", model, "--data", str(options.data)]
    call += [
        "--tasks",
        "transfer",
        "--classifier",
        options.transfer,
        "--precision",
        "bf16",
        "--format",
        "json",
        "-o",
        str(file),
    ]
    subprocess.run(call, check=False, stdout=subprocess.DEVNULL)


def reweighting(options: argparse.Namespace) -> None:
    """Weights that make opposed pairs differ most, as strong as STS-B dev allows; then the measures of a run."""
    from opencse.encoder import load_encoder
    from opencse.encoder.embedder import Embedder
    from opencse.evaluation import Embeddings, PairsTask, distinct_texts, load_sts
    from opencse.probing import Prober
    from opencse.probing.run import gather
    from opencse.reports import write_report
    from opencse.text import column_names, read_rows

    out = options.out / "re-weighting" / "seed-0"
    if (out / "cost.json").is_file():
        return
    started = time.perf_counter()
    views = built(options.out / "debias" / f"seed-{options.seeds[0]}")
    known = column_names(views)
    names = [name for name in dict.fromkeys(v for pair in (*SAME, *OPPOSED) for v in pair) if name in known]
    rows = [dict(zip(names, row, strict=True)) for row, _ in zip(read_rows(views, names), range(6000), strict=False)]
    embedder = Embedder(load_encoder(options.backbone), precision="bf16")

    def spread(pairs: tuple[tuple[str, str], ...]) -> np.ndarray:
        found = [(row[a], row[b]) for row in rows for a, b in pairs if row.get(a) and row.get(b)]
        first, second = (unit(embedder(list(texts))) for texts in zip(*found, strict=True))
        return np.square(first - second).mean(axis=0)

    ratio = spread(OPPOSED) / spread(SAME)
    dev = PairsTask(pairs=load_sts(options.data, tasks=["STS-B"], split="dev")[0])
    texts = distinct_texts([dev])
    vectors = unit(embedder(texts))
    scores = {a: dev.score(Embeddings(texts, vectors * ratio ** (a / 2))).score for a in np.arange(0, 8.5, 0.5)}
    power = max(a for a, score in scores.items() if score >= scores[0] - 0.5)  # the tolerance of `debias`
    gathered = gather(data=options.data)
    findings = Prober(gathered.material)(lambda texts: unit(embedder(texts)) * ratio ** (power / 2))
    out.mkdir(parents=True, exist_ok=True)
    write_report({"untouched": findings, "re-weighting": findings}, out, notes=[f"power {power}"])
    average = statistics.mean(task.score for task in findings.sts)
    (out / "results.json").write_text(json.dumps({"after": {"sts": {"average": average}}}), encoding="utf-8")
    (out / "cost.json").write_text(json.dumps({"seconds": time.perf_counter() - started, "peak_mib": 0}))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def measures(folder: Path, which: int) -> dict[str, float]:
    """Of one run's untouched (0) or trained (1) model."""
    models = list(json.loads((folder / "probe.json").read_text(encoding="utf-8"))["models"].values())
    found = models[which]["findings"]
    split = found["splits"]["averages"][1]  # all test sets by its rule
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    out = {
        "paraphrase > negation, %": 100 * found["transformations"]["paraphrase_above_negation"]["value"],
        "Oppn.": split["opposed"]["value"],
        "Cont.": split["consistent"]["value"],
        "STS": results["before" if which == 0 else "after"]["sts"]["average"],
    }
    file = folder.parent / ("transfer-before.json" if which == 0 else f"{folder.name}-transfer.json")
    if file.is_file():
        out["transfer"] = json.loads(file.read_text(encoding="utf-8"))["suites"]["transfer"]["average"]
    return out


def write_table(options: argparse.Namespace, labels: list[str]) -> None:
    heads = ["paraphrase > negation, %", "Oppn.", "Cont.", "STS", "transfer"]
    lines = [f"| | {' | '.join(heads)} | seeds | minutes | peak MiB |", "|---" * (len(heads) + 4) + "|"]
    for label in labels:
        folders = sorted(file.parent for file in (options.out / label.replace(" ", "_")).glob("seed-*/cost.json"))
        if not folders:
            continue
        if len(lines) == 2 and label != "re-weighting":
            before = measures(folders[0], 0)
            lines.append("| untouched | " + " | ".join(_cell([before.get(head)], head) for head in heads) + " | | | |")
        found = [measures(folder, -1) for folder in folders]
        costs = [json.loads((folder / "cost.json").read_text(encoding="utf-8")) for folder in folders]
        minutes = statistics.mean(cost["seconds"] for cost in costs) / 60
        cells = [_cell([each.get(head) for each in found], head) for head in heads]
        cells += [str(len(folders)), f"{minutes:.0f}", f"{max(cost['peak_mib'] for cost in costs):,.0f}"]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    (options.out / "debias.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def _cell(values: list[float | None], head: str) -> str:
    known = [value for value in values if value is not None]
    digits = 3 if head.endswith("n.") or head.endswith("t.") else 1 if "%" in head else 2
    if not known:
        return ""
    spread = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.{digits}f}{spread}"


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
    options = parser.parse_args()
    labels = [*CONTESTANTS["runs"], "re-weighting", *(CONTESTANTS["ablations"] if options.ablations else [])]
    labels = [label for label in labels if options.only is None or label in options.only]
    if not options.table:
        for seed in options.seeds:
            for label in labels:
                if label == "re-weighting":
                    reweighting(options)
                    continue
                measure(options, label, seed)
                folder = options.out / label.replace(" ", "_")
                if label in CONTESTANTS["runs"] and (folder / f"seed-{seed}" / "model").is_dir():
                    transfer(options, str(folder / f"seed-{seed}" / "model"), folder / f"seed-{seed}-transfer.json")
                    transfer(options, options.backbone, folder / "transfer-before.json")
                write_table(options, labels)
    write_table(options, labels)


if __name__ == "__main__":
    main()
