"""What the pages on `debias` measure of a model: development sets, guards and, where asked for, test sets."""

from __future__ import annotations

import csv
import statistics
from dataclasses import replace
from pathlib import Path

from wording import Development, table

from opencse.evaluation.probes import ProbeData, load_probe_data, run_probes
from opencse.evaluation.retrieval import RetrievalTask
from opencse.evaluation.task import Encode, Similarity, Task, evaluate_tasks
from opencse.evaluation.written_sets import (
    Triplet,
    TripletSet,
    load_development,
    load_guard,
    read_triplets,
)

COMPLAINTS = Path(__file__).parent / "block" / "complaints"
MEASURES = {
    "Negated antonyms, affirmed, %": "antonyms, affirmed",
    "Negated antonyms, negated, %": "antonyms, denied",
    "Negated antonyms, verbs, %": "antonyms, verbs",
    "Negated antonyms, unseen opposites, %": "antonyms, unseen",
    "Word order, reordered against exchanged, area": "order, area",
    "Meaning, near, %": "dev-meaning grade: near",
    "Meaning, middle, %": "dev-meaning grade: middle",
    "Meaning, far, %": "dev-meaning grade: far",
    "Search, %": "dev-search",
    "Roles, %": "dev-roles",
    "Complaints, %": "complaints, meaning",
    "Complaints as searches, %": "complaints, search",
    "False hits of a cache, %": "false hits",
    "XNLI dev, %": "XNLI",
    "SICK, entailed against contradicted, area": "SICK, area",
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
FINAL = {"Probe, %": 1, "Average of the seven STS": 2}  # with the number of digits


class Measures:
    """Measures models.

    Args:
        data: The folder of the evaluation sets.
        held_out: Whether to look at CondaQA and Cranfield, too, on which nothing is tuned.
    """

    def __init__(self, data: Path, *, held_out: bool = False) -> None:
        self.development = Development(data)
        self.tasks: list[Task] = [*complaints(), *load_development(), *load_guard()]
        if held_out:
            self.tasks += [condaqa(data), cranfield(data)]
        probed = load_probe_data(data=data)
        self.probe_data = ProbeData(sts=probed.sts, sentences=probed.sentences)

    def __call__(
        self, encode: Encode, *, final: bool = False, similarity: Similarity | None = None
    ) -> dict[str, float | None]:
        """Return the values by name, by the cosine or another similarity; with `final` those of test sets as well."""
        found = self.development.measure(encode, similarity)
        for result in evaluate_tasks(encode, self.tasks, similarity).results:
            found[result.task] = result.score
            found |= {f"{result.task} {name}": value for name, value in result.metrics.items()}
        return found | (test_sets(self.probe_data, encode, similarity) if final else {})


def write_table(path: Path, columns: dict[str, list[dict[str, float | None]]]) -> None:
    """Write measures by column; those that the first column lacks are left out."""
    present = next(iter(columns.values()))[0]
    measures = {name: (key, 1) for name, key in MEASURES.items()} | {
        name: (name, n) for name, n in FINAL.items()
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns])
        for name, (key, digits) in measures.items():
            if key in present:
                cells = (
                    cell([found.get(key) for found in values], digits)
                    for values in columns.values()
                )
                writer.writerow([name, *cells])


def complaints() -> list[TripletSet]:
    """Return the triplets and searches of complaints."""
    sets = [read_triplets(COMPLAINTS / f"{name}.tsv") for name in ("meaning", "search")]
    return [replace(each, name=f"complaints, {each.name}") for each in sets]


def condaqa(data: Path) -> TripletSet:
    rows = [
        Triplet(
            id=str(i),
            anchor=row["sentence"],
            positive=row["paraphrase"],
            negative=row["affirmative"],
            groups={},
        )
        for i, row in enumerate(table(data / "eval" / "CondaQA" / "dev.tsv.gz"))
    ]
    return TripletSet(name="CondaQA", triplets=tuple(rows))


def cranfield(data: Path) -> RetrievalTask:
    folder = data / "eval" / "Cranfield"
    documents = table(folder / "docs.tsv.gz")
    place = {row["doc_id"]: i for i, row in enumerate(documents)}
    queries = table(folder / "queries.tsv.gz")
    found: dict[str, dict[int, float]] = {row["query_id"]: {} for row in queries}
    for row in table(folder / "qrels.tsv.gz"):
        if row["doc_id"] in place:
            found[row["query_id"]][place[row["doc_id"]]] = 1.0
    return RetrievalTask(
        name="Cranfield",
        queries=[row["text"] for row in queries],
        corpus=[row["text"] for row in documents],
        relevant=[found[row["query_id"]] for row in queries],
        main="ndcg@10",
    )


def cell(values: list[float | None], digits: int) -> str:
    """Mean, and standard deviation where there are several; a dash where there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" ± {statistics.stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.{digits}f}{spread}"


def test_sets(
    data: ProbeData, encode: Encode, similarity: Similarity | None
) -> dict[str, float | None]:
    """The measures of `FINAL`."""
    found = run_probes(data, encode, similarity)
    assert found.transformations is not None
    return {
        "Probe, %": 100 * found.transformations.paraphrase_above_negation.value,
        "Average of the seven STS": statistics.mean(task.score for task in found.sts),
    }
