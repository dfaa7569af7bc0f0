"""All probes of one or more models: one encode pass each over the distinct texts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.errors import OpencseError
from opencse.evaluation import Embeddings, Encode, PairsTask, ScoredPairs, TaskResult, TripletSet
from opencse.probing.length import LengthBias, LengthProbe
from opencse.probing.pair_retrieval import Retrieval, RetrievalProbe
from opencse.probing.sentences import Sentences
from opencse.probing.splits import SplitProbe, SplitResults, published_averages
from opencse.probing.suppression import Suppression, SuppressionProbe
from opencse.probing.training_pairs import PairKind, TrainingPairsProbe
from opencse.probing.transformations import TransformationProbe, Transformations
from opencse.probing.triplet_sets import TripletProbe, TripletResult


@dataclass(frozen=True, kw_only=True)
class Material:
    """The data that models are probed on; a probe whose data is missing is skipped.

    Args:
        sts: STS tasks, scored as `evaluate` does.
        split_sets: STS sets that are cut in consistent and opposed pairs.
        pairs: The user's own scored pairs; split, too, but never averaged with the others.
        sentences: Sentences with transformations.
        views: Training views; the same as `sentences` or others.
        triplets: Sets of a text, its paraphrase and its contradiction.
    """

    sts: Sequence[ScoredPairs] = ()
    split_sets: Sequence[ScoredPairs] = ()
    pairs: Sequence[ScoredPairs] = ()
    sentences: Sentences | None = None
    views: Sentences | None = None
    triplets: Sequence[TripletSet] = ()


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Measurements of one model; None or empty where the data for them was not given.

    Attributes:
        sts: Results of the STS tasks and of the user's pairs.
        splits: Consistency and opposition in STS sets.
        own_splits: The same on the user's pairs.
        transformations: The six transformations.
        retrieval: Search among negations.
        suppression: Pairs of like meaning in unlike words.
        length: Bias by length and wording.
        training_pairs: Distributions of training pairs.
        triplets: Paraphrase against contradiction in each set of triplets.
        seconds: Time of encoding and measuring.
    """

    sts: tuple[TaskResult, ...]
    splits: SplitResults | None
    own_splits: SplitResults | None
    transformations: Transformations | None
    retrieval: Retrieval | None
    suppression: Suppression | None
    length: LengthBias | None
    training_pairs: tuple[PairKind, ...]
    seconds: float
    triplets: tuple[TripletResult, ...] = ()


class Prober:
    """Everything that the material allows to measure, prepared once for any number of models.

    Args:
        material: The data.

    Raises:
        OpencseError: There is nothing to measure, or two sets have one name.
    """

    def __init__(self, material: Material) -> None:
        scored = [*material.sts, *material.pairs]
        names = [each.name for each in scored]
        for name in names:
            if names.count(name) > 1:
                raise OpencseError(f"two sets of pairs are named {name!r}", "Rename one: results are keyed by name.")
        self._tasks = [PairsTask(pairs=each) for each in scored]
        self._probes: dict[str, Any] = {}
        if material.split_sets:
            self._probes["splits"] = SplitProbe(material.split_sets, published_averages(material.split_sets))
        if material.pairs:
            self._probes["own_splits"] = SplitProbe(material.pairs)
        if material.sentences is not None:
            self._probes["transformations"] = TransformationProbe(material.sentences)
            self._probes["retrieval"] = RetrievalProbe(material.sentences)
        if scored:
            self._probes["suppression"] = SuppressionProbe([*scored, *material.split_sets])
            self._probes["length"] = LengthProbe(scored)
        if material.views is not None:
            self._probes["training_pairs"] = TrainingPairsProbe(material.views)
        if material.triplets:
            self._probes["triplets"] = TripletProbe(material.triplets)
        if not self._probes:
            raise OpencseError("there is nothing to probe", "Give scored pairs, or sentences with transformations.")
        self.texts = list(dict.fromkeys(self._all_texts()))

    def _all_texts(self) -> Iterator[str]:
        for part in (*self._tasks, *self._probes.values()):
            yield from part.texts()

    def __call__(self, encode: Encode) -> Findings:
        """Probe one model: encode every distinct text once, then measure everything."""
        started = time.perf_counter()
        embeddings = Embeddings(self.texts, np.asarray(encode(self.texts)))
        found: dict[str, Any] = {name: probe.measure(embeddings) for name, probe in self._probes.items()}
        nothing: dict[str, Any] = {name: None for name in Findings.__dataclass_fields__ if name != "seconds"}
        found["sts"] = tuple(task.score(embeddings) for task in self._tasks)
        return Findings(
            **{**nothing, "training_pairs": (), "triplets": (), **found}, seconds=time.perf_counter() - started
        )


def probe(models: Mapping[str, Encode], material: Material) -> dict[str, Findings]:
    """Probe several models on the same material.

    Args:
        models: From a label to a function that turns n texts into a matrix (n, d).
        material: The data.
    """
    prober = Prober(material)
    return {name: prober(encode) for name, encode in models.items()}
