"""What the pages on `debias` measure of a model: development sets, guards and, where asked for, test sets."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import numpy as np
from wording import Development

from opencse.evaluation import load_guard
from opencse.evaluation.probes import ProbeSuite, load_probe_data
from opencse.evaluation.task import Encode, evaluate_tasks
from opencse.evaluation.triplets import load_development

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
    "Complaints, %": "complaints, meaning",
    "Complaints as searches, %": "complaints, search",
    "False hits of a cache, %": "false hits",
    "XNLI dev, %": "XNLI",
    "STS-B dev": "STS-B",
    "SICK-R train": "SICK-R",
    "CLINC dev, %": "CLINC",
    "MRPC train, %": "MRPC",
    "CondaQA, %": "CondaQA",
    "Cranfield, nDCG@10": "Cranfield",
    "guard-questions, MRR": "guard-questions",
    "guard-answers, MRR": "guard-answers",
    "guard-topics, precision@10": "guard-topics",
    "guard-long, MRR": "guard-long",
}
FINAL = {"Probe, %": 1, "Oppn.": 3, "Cont.": 3, "Average of the seven STS": 2}  # with the number of digits


class Measures:
    """Measures models.

    Args:
        data: The folder of the evaluation sets.
        views: Held-out sentences for wording.py's word order, if any.
    """

    def __init__(self, data: Path, views: Path | None) -> None:
        self.development = Development(data, views)
        self.tasks = [*load_development(), *load_guard()]
        self.suite = ProbeSuite(load_probe_data(data=data))

    def __call__(self, encode: Encode, *, final: bool = False) -> dict[str, float | None]:
        """Return the values by name; with `final` those of the test sets as well."""
        found = self.development.measure(encode)
        for result in evaluate_tasks(encode, self.tasks).results:
            found[result.task] = result.score
            found |= {f"{result.task} {name}": value for name, value in result.metrics.items()}
        return found | (test_sets(self.suite, encode) if final else {})


def write_table(path: Path, columns: dict[str, list[dict[str, float | None]]]) -> None:
    """Write measures by column; those that the first column lacks are left out."""
    present = next(iter(columns.values()))[0]
    measures = {name: (key, 1) for name, key in MEASURES.items()} | {name: (name, n) for name, n in FINAL.items()}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns])
        for name, (key, digits) in measures.items():
            if key in present:
                cells = (cell([found.get(key) for found in values], digits) for values in columns.values())
                writer.writerow([name, *cells])


def cell(values: list[float | None], digits: int) -> str:
    """Mean, and standard deviation where there are several; a dash where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.{digits}f}{spread}"


def guards(encode: Encode) -> dict[str, float | None]:
    """Scores of the guard sets."""
    return {result.task: result.score for result in evaluate_tasks(encode, load_guard()).results}


def test_sets(suite: ProbeSuite, encode: Encode) -> dict[str, float | None]:
    """The measures of `FINAL`."""
    found = suite(encode)
    assert found.splits is not None
    assert found.transformations is not None
    split = found.splits.average
    return {
        "Probe, %": 100 * found.transformations.paraphrase_above_negation.value,
        "Oppn.": split.opposed.value,
        "Cont.": split.consistent.value,
        "Average of the seven STS": statistics.mean(task.score for task in found.sts),
    }


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
