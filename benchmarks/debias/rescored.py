"""Measures by another similarity of texts than the cosine of their vectors: that of a meaning block.

The measures are those of measures.py. In searches all texts are compared, not the first hits alone, so that nothing
depends on their number.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from measures import SURE, Measures
from wording import area

from opencse.evaluation.retrieval import NeighbourTask, RetrievalTask, measures
from opencse.evaluation.sts import spearman
from opencse.evaluation.written_sets import TripletSet

Similar = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Similarities of n and m texts, (n, m)."""
CHUNK = 64


def pairs(similar: Similar, rows: Sequence[Any], side: int = 1) -> np.ndarray:
    """Return the similarities of the first texts of rows with another one, (n,)."""
    chunks = (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
    return np.concatenate([np.diagonal(similar([r[0] for r in c], [r[side] for r in c])) for c in chunks])


def right(similar: Similar, rows: Sequence[Any]) -> np.ndarray:
    """Return whether the second text of each row is nearer to the first than all others."""
    return pairs(similar, rows) > np.max([pairs(similar, rows, side) for side in range(2, len(rows[0]))], axis=0)


def ranked(similar: Similar, task: RetrievalTask) -> float:
    """Return the main metric of a retrieval task, in percent."""
    place, found = {text: i for i, text in enumerate(task.corpus)}, []
    for i, row in enumerate(similar(task.queries, task.corpus)):
        relevance, query = np.zeros(len(row)), task.queries[i]
        relevance[list(task.relevant[i])] = list(task.relevant[i].values())
        own = [place[query]] if task.others_only and query in place else []
        found.append(measures(np.delete(row, own), np.delete(relevance, own))[task.main])
    return 100 * float(np.mean(found))


def measured(similar: Similar, sets: Measures) -> dict[str, float | None]:
    """Return the measures by name, those on test sets among them."""
    of, found = sets.development, dict[str, float | None]()
    found |= {f"antonyms, {kind}": 100 * float(right(similar, rows).mean()) for kind, rows in of.quads.items()}
    found["order, area"] = area(pairs(similar, of.order), pairs(similar, of.order, 2))
    found["XNLI"] = 100 * float(right(similar, of.nli).mean())
    threshold = np.quantile(pairs(similar, of.nli), 1 - SURE)
    found["false hits"] = 100 * float((pairs(similar, of.nli, 2) >= threshold).mean())
    found["SICK, area"] = area(*(pairs(similar, of.sick[kind]) for kind in ("ENT", "CON")))
    for name, rows in of.sts.items():
        scored = [(row["sentence1"], row["sentence2"]) for row in rows]
        found[name] = 100 * spearman(np.array([float(row["score"]) for row in rows]), pairs(similar, scored))
    asked, known = ([row["text"] for row in part] for part in (of.asked, of.known))
    nearest = similar(asked, known).argmax(axis=1)
    same = [of.known[n]["label"] == row["label"] for n, row in zip(nearest, of.asked, strict=True)]
    found["CLINC"] = 100 * float(np.mean(same))
    first, second = zip(*of.same, strict=True)
    found["MRPC"] = 100 * float((similar(first, second).argmax(axis=1) == np.arange(len(first))).mean())
    for task in sets.tasks:
        if isinstance(task, RetrievalTask):
            found[task.name] = ranked(similar, task)
        elif isinstance(task, NeighbourTask):
            between, labels = similar(task.items, task.items), np.array(task.labels)
            np.fill_diagonal(between, -9)
            found[task.name] = 100 * float((labels[np.argsort(-between)[:, :10]] == labels[:, None]).mean())
        elif isinstance(task, TripletSet):
            correct = right(similar, [(one.anchor, one.positive, one.negative) for one in task.triplets])
            found[task.name] = 100 * float(correct.mean())
            found |= {
                f"{task.name} {group}": 100 * float(correct[rows].mean()) for group, rows in task.groups().items()
            }
    found["Probe, %"] = 100 * float(np.mean([x for rows in of.probe.values() for x in right(similar, rows)]))
    found["Average of the seven STS"] = statistics.mean(
        100 * spearman(task.gold, pairs(similar, [*zip(task.sentence1, task.sentence2, strict=True)]))
        for task in sets.probe_data.sts
    )
    return found
