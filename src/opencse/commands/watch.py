"""Measures beside the development score while a model trains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opencse.commands.watch_training import first_sentences, training_geometry
from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation import PairsTask, ScoredPairs, Task, TextEmbeddings
from opencse.evaluation.geometry import GeometryTask
from opencse.evaluation.task import distinct_texts
from opencse.text.corpus import Corpus
from opencse.text.surface import consistency_opposition

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def watched_measures(
    kinds: Collection[str], sets: Sequence[ScoredPairs], precision: Precision, rows: Corpus
) -> Callable[[SentenceTransformer], Callable[[], dict[str, float]]] | None:
    """Return a function from an encoder to a function that measures its current weights (`Selection.watch`).

    The measures are those of the first development set: `alignment` and `uniformity`; `Cont.` and `Oppn.`, Spearman's
    correlation times 100. One that is undefined is left out.

    Args:
        kinds: `geometry`, `splits`, `training` (`training_geometry`); none of them returns None.
        sets: The development sets; none of them returns None.
        precision: Number format of the encoder.
        rows: The training rows.
    """
    if not kinds or not sets:
        return None
    tasks: list[tuple[Task, dict[str, str]]] = []  # with the name of each metric in the log
    if "geometry" in kinds:
        tasks.append((GeometryTask(pairs=sets[0]), {name: name for name in ("alignment", "uniformity")}))
    if "splits" in kinds:
        tasks += [(PairsTask(pairs=part), {"spearman": name}) for name, part in _splits(sets[0]).items()]

    sentences = first_sentences(rows) if "training" in kinds else []

    def watch(encoder: SentenceTransformer) -> Callable[[], dict[str, float]]:
        embedder = Embedder(encoder, precision=precision)
        texts = distinct_texts([task for task, _ in tasks])
        prepared = embedder.prepare(texts)
        training = training_geometry(encoder, sentences) if sentences else dict

        def measure() -> dict[str, float]:
            embeddings = TextEmbeddings(texts, embedder.encode(prepared))
            found: dict[str, float] = {}
            for task, names in tasks:
                metrics = task.score(embeddings).metrics
                found |= {name: value for metric, name in names.items() if (value := metrics[metric]) is not None}
            return found | training()

        return measure

    return watch


def _splits(pairs: ScoredPairs) -> dict[str, ScoredPairs]:
    """Return OssCSE's consistent and opposed pairs of a set; a part without pairs is left out."""
    consistent = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores).consistent
    parts = {"Cont.": np.flatnonzero(consistent).tolist(), "Oppn.": np.flatnonzero(~consistent).tolist()}
    return {
        name: replace(
            pairs,
            name=name,
            sentence1=[pairs.sentence1[i] for i in rows],
            sentence2=[pairs.sentence2[i] for i in rows],
            scores=[pairs.scores[i] for i in rows],
            subsets=None,
        )
        for name, rows in parts.items()
        if len(rows)
    }
