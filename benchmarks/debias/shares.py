"""What finished runs know, and what they lost, at shares of the way from the untouched to the trained weights.

    python benchmarks/debias/shares.py DATA RUN... --views VIEWS --shares 0 kept 1 -o benchmarks/results/FILE.csv

RUN is the folder of `opencse run debias` or `opencse train`, VIEWS as in wording.py. Rows are measures, columns shares,
cells the mean ± deviation over the runs. All measures are of development sets and guards; `--final` adds the probe,
Oppn., Cont. and the seven STS tasks. What was measured is kept beside the table, as .jsonl, and not measured again.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
from pathlib import Path

import numpy as np
from debias import cell
from tolerance import Run
from tqdm import tqdm
from wording import Development, quads, table

import opencse
from opencse.encoder.embedder import Embedder
from opencse.evaluation import load_guard
from opencse.evaluation.task import Encode, evaluate_tasks
from opencse.evaluation.triplets import load_development
from opencse.probing import ProbeSuite, load_probe_data
from opencse.views.rewriting.lexicon import is_held_out_opposite

MEASURES = {
    "Negated antonyms, affirmed, %": "antonyms, affirmed",
    "of these, opposites trained on": "antonyms, seen",
    "of these, opposites held out": "antonyms, unseen",
    "Negated antonyms, negated, %": "antonyms, denied",
    "Negated antonyms, verbs, %": "antonyms, verbs",
    "Word order, area under the curve": "views, area",
    "Meaning, near, %": "dev-meaning grade: near",
    "Meaning, middle, %": "dev-meaning grade: middle",
    "Meaning, far, %": "dev-meaning grade: far",
    "Search, %": "dev-search",
    "Roles, %": "dev-roles",
    "XNLI dev, %": "XNLI",
    "STS-B dev": "STS-B",
    "SICK-R train": "SICK-R",
    "CLINC dev, %": "CLINC",
    "MRPC train, %": "MRPC",
    "guard-questions, MRR": "guard-questions",
    "guard-answers, MRR": "guard-answers",
    "guard-topics, precision@10": "guard-topics",
    "guard-long, MRR": "guard-long",
}
FINAL = {"Probe, %": 1, "Oppn.": 3, "Cont.": 3, "Average of the seven STS": 2}  # with the number of digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument("--shares", nargs="+", default=["0", "kept", "1"], help="kept: what each run's guards allowed")
    parser.add_argument("--held-out", type=int, default=0, help="hold_out of the runs' opposites")
    parser.add_argument("--final", action="store_true", help="measure the test sets as well")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    runs = [Run(folder, options.data) for folder in options.runs]
    store = options.out.with_suffix(".jsonl")
    known = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()] if store.is_file() else []
    values = {(entry["run"], entry["share"]): entry["values"] for entry in known}
    wanted = {
        share: [(run, run.share if share == "kept" else float(share)) for run in (runs[:1] if share == "0" else runs)]
        for share in options.shares
    }
    missing = [each for column in wanted.values() for each in column if (each[0].folder.name, each[1]) not in values]
    if missing:
        measure = Measure(options.data, options.views, options.held_out, final=options.final)
        for run, share in tqdm(list(dict.fromkeys(missing))):
            found = values[run.folder.name, share] = measure(run, share)
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"run": run.folder.name, "share": share, "values": found}) + "\n")
    columns = {
        _heading(name, runs): [values[run.folder.name, share] for run, share in column]
        for name, column in wanted.items()
    }
    write_table(options.out, columns)


class Measure:
    """Measures a run at a share of its way."""

    def __init__(self, data: Path, views: Path | None, held_out: int, *, final: bool) -> None:
        self.development, self.held_out = Development(data, views), held_out
        self.tasks = [*load_development(), *load_guard()]
        self.suite = ProbeSuite(load_probe_data(data=data)) if final else None

    def __call__(self, run: Run, share: float) -> dict[str, float | None]:
        """Return the values by name; the run's encoder has the weights of this share afterwards."""
        run.keep(share)
        encode = Embedder(run.encoder, precision="bf16").encode
        found = self.development.measure(encode) | _seen_and_unseen(encode, self.held_out)
        for result in evaluate_tasks(encode, self.tasks).results:
            found[result.task] = result.score
            found |= {f"{result.task} {name}": value for name, value in result.metrics.items()}
        return found | (_final(self.suite, encode) if self.suite else {})


def write_table(path: Path, columns: dict[str, list[dict[str, float | None]]]) -> None:
    """Write measures by column; measures that were not asked for are left out."""
    present = next(iter(columns.values()))[0]
    measures = {name: (key, 1) for name, key in MEASURES.items()} | {name: (name, n) for name, n in FINAL.items()}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns])
        for name, (key, digits) in measures.items():
            if key in present:
                cells = (cell([found[key] for found in values], digits) for values in columns.values())
                writer.writerow([name, *cells])


def _heading(share: str, runs: list[Run]) -> str:
    if share == "kept":
        return f"kept by the guards ({cell([100 * run.share for run in runs], 0)} %)"
    return f"{float(share):.0%}" if float(share) else "untouched"


def _seen_and_unseen(encode: Encode, parts: int) -> dict[str, float]:
    """Accuracy on affirmed predicates, by whether their opposites were held out of training."""
    if not parts:
        return {}
    predicates = table(Path(opencse.__file__).parent / "assets" / "probe" / "antonym_predicates.tsv")
    unseen = np.repeat([is_held_out_opposite(row["word"], row["opposite"], parts) for row in predicates], 2)
    sentences = [encode([quad[i] for quad in quads()["affirmed"]]) for i in range(4)]
    same, *others = ([*map(cosine, sentences[0], each)] for each in sentences[1:])
    right = 100 * (np.array(same) > np.max(others, axis=0))
    return {"antonyms, seen": right[~unseen].mean(), "antonyms, unseen": right[unseen].mean()}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def _final(suite: ProbeSuite, encode: Encode) -> dict[str, float | None]:
    found = suite(encode)
    assert found.splits is not None
    assert found.transformations is not None
    split = found.splits.averages[1]
    return {
        "Probe, %": 100 * found.transformations.paraphrase_above_negation.value,
        "Oppn.": split.opposed.value,
        "Cont.": split.consistent.value,
        "Average of the seven STS": statistics.mean(task.score for task in found.sts),
    }


if __name__ == "__main__":
    main()
