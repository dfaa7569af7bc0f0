"""All probes in one pass: each model encodes every distinct text once."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opencse.encoder.backbone import pooling_name, weights_hash
from opencse.encoder.device import describe, model_config
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.loading import is_sentence_transformer, load_encoder
from opencse.encoder.names import resolve
from opencse.evaluation import Encode, PairsTask, TaskResult, TextEmbeddings, distinct_texts
from opencse.evaluation.probes.probe_data import ProbeData
from opencse.evaluation.probes.scored_pairs import (
    SPLITS,
    SplitProbe,
    SplitResults,
)
from opencse.evaluation.probes.sentence_versions import (
    Retrieval,
    RetrievalProbe,
    TransformationProbe,
    Transformations,
)
from opencse.evaluation.probes.triplet_sets import TripletProbe, TripletResult
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import note


@dataclass(frozen=True, kw_only=True)
class ProbeScores:
    """Results of all probes for one model; None or empty if their data was not given.

    Attributes:
        sts: Results of the STS tasks and of the user's scored pairs.
        splits: Correlation on consistent and opposed pairs of STS sets.
        own_splits: The same on the user's scored pairs.
        transformations: Cosines by transformation of a sentence.
        retrieval: Retrieval among paraphrases and negations.
        triplets: Accuracy on each set of triplets (paraphrase against contradiction), and on the negated antonyms.
        seconds: Time for encoding and measuring.
    """

    sts: tuple[TaskResult, ...]
    splits: SplitResults | None = None
    own_splits: SplitResults | None = None
    transformations: Transformations | None = None
    retrieval: Retrieval | None = None
    seconds: float
    triplets: tuple[TripletResult, ...] = ()


class ProbeSuite:
    """All probes that the data allows, prepared once for any number of models.

    Args:
        data: What to probe on.

    Raises:
        OpencseError: There is nothing to measure, or two sets have one name.
    """

    def __init__(self, data: ProbeData) -> None:
        scored = [*data.sts, *data.pairs]
        name, count = Counter(each.name for each in scored).most_common(1)[0] if scored else ("", 1)
        if count > 1:
            raise OpencseError(f"two sets of pairs are named {name!r}", "Rename one: results are keyed by name.")
        self._tasks = [PairsTask(pairs=each) for each in scored]
        self._probes: dict[str, Any] = {}
        if data.split_sets:
            average = f"{len(data.split_sets)} of the {len(SPLITS)} sets of OssCSE Table 2"
            self._probes["splits"] = SplitProbe(data.split_sets, average)
        if data.pairs:
            self._probes["own_splits"] = SplitProbe(data.pairs)
        if data.sentences is not None:
            self._probes["transformations"] = TransformationProbe(data.sentences)
            self._probes["retrieval"] = RetrievalProbe(data.sentences)
        if data.triplets or data.negated_antonyms:
            self._probes["triplets"] = TripletProbe(data.triplets, negated_antonyms=data.negated_antonyms)
        if not (self._probes or self._tasks):
            raise OpencseError("there is nothing to probe", "Give scored pairs, or sentences with transformations.")
        self.texts = distinct_texts([*self._tasks, *self._probes.values()])

    def __call__(self, encode: Encode) -> ProbeScores:
        """Encode every distinct text once, and run all probes on the vectors.

        Args:
            encode: From n texts to a matrix of shape (n, dim).
        """
        started = time.perf_counter()
        embeddings = TextEmbeddings(self.texts, np.asarray(encode(self.texts)))
        results: dict[str, Any] = {name: probe.measure(embeddings) for name, probe in self._probes.items()}
        sts = tuple(task.score(embeddings) for task in self._tasks)
        return ProbeScores(sts=sts, **results, seconds=time.perf_counter() - started)


def probe_encoders(models: Mapping[str, Encode], data: ProbeData) -> dict[str, ProbeScores]:
    """Probe several models on the same data.

    Args:
        models: By label, functions from n texts to a matrix of shape (n, dim).
        data: What to probe on.
    """
    suite = ProbeSuite(data)
    return {name: suite(encode) for name, encode in models.items()}


def probe_models(
    models: Sequence[str], data: ProbeData, *, precision: Precision = "auto", pooling: str | None = None
) -> tuple[dict[str, ProbeScores], dict[str, dict[str, Any]]]:
    """Probe models one after another, with one in memory at a time.

    Args:
        models: Folders, hub ids, bundled names or folders of runs.
        data: What to probe on.
        precision: See `Embedder`.
        pooling: Pooling of encoders that define none.

    Returns:
        ProbeScores by short name, and for each what its figures depend on.
    """
    suite = ProbeSuite(data)
    scores: dict[str, ProbeScores] = {}
    settings: dict[str, dict[str, Any]] = {}
    for name, label in zip(models, short_names(models), strict=True):
        own = pooling is None or is_sentence_transformer(resolve(name))
        model = load_encoder(name, pooling="backbone" if own else str(pooling))
        note(f"probing {label} {describe(precision, model_config(model), model.device)}")
        embedder = Embedder(model, precision=precision, progress=f"encode {label}")
        scores[label] = suite(embedder)
        settings[label] = {
            "model": name,
            "weights sha256": weights_hash(model),
            "pooling": pooling_name(model),
            "dimension": embedder.dimension,
            "maximum length": model.max_seq_length,
            "prompt": embedder.prompt or "none",
            "precision": embedder.precision,
            "texts encoded": len(suite.texts),
            "seconds": round(scores[label].seconds, 1),
        }
    return scores, settings


def short_names(models: Sequence[str]) -> list[str]:
    """Return the shortest endings of the paths that are distinct, without a final `model`.

    Raises:
        OpencseError: A model is named twice.
    """
    parts = []
    for name in models:
        path = Path(name)
        pieces = path.resolve().parts if os.path.isdir(path) else path.parts
        parts.append(pieces[:-1] if pieces[-1:] == ("model",) and len(pieces) > 1 else pieces)
    if len(set(parts)) < len(parts):
        name = next(name for name, pieces in zip(models, parts, strict=True) if parts.count(pieces) > 1)
        raise OpencseError(f"the model {name} is named twice", "Name it once.")
    for count in range(1, max(map(len, parts), default=1)):
        short = ["/".join(pieces[-count:]) for pieces in parts]
        if len(set(short)) == len(short):
            return short
    return ["/".join(pieces) for pieces in parts]
