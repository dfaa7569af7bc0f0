"""Geometry of vectors, and evaluators of a model while it trains."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from opencse.encoder.device import same_random_state
from opencse.encoder.dropout import evaluation_mode
from opencse.encoder.embedder import Embedder, Precision, own_similarity
from opencse.encoder.loading import attends_to_padding
from opencse.evaluation.sts import ScoredPairs
from opencse.evaluation.task import (
    Task,
    TaskResult,
    TextEmbeddings,
    distinct_texts,
    paired_cosine,
    score_tasks,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows
from opencse.text.corpus import Corpus, text_column
from opencse.text.surface import consistency_opposition

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


SENTENCES = 256
"""Training sentences whose geometry is measured: the first of the rows."""

POSITIVE = 4.0
"""A pair with a score above this is a positive pair, as in SimCSE (Gao et al. 2021)."""

SENTEVAL_BATCH = 128
"""Pairs that SentEval encodes at a time, in the order of the file."""

_BLOCK = 1024


class TaskEvaluator:
    """The main metric of each task by name; distinct texts are tokenised once for all calls.

    Scored pairs of an encoder that attends to padding are embedded in SentEval's batches
    (`BatchedPairs`), because its vectors depend on them.

    Args:
        tasks: The tasks.
        precision: Number format of the encoder.
    """

    def __init__(self, tasks: Sequence[Task], precision: Precision = "auto") -> None:
        self._tasks = tasks
        self._precision = precision

    @property
    def digest(self) -> str:
        """Hash of the tasks: their texts, and what is right, which only data classes show."""
        digest = hashlib.blake2b(digest_size=16)
        for task in self._tasks:
            if is_dataclass(task):
                _add_to_digest(digest, task)
            else:
                texts = [repr(text) for text in task.texts()]
                _add_to_digest(digest, [type(task).__name__, task.name, texts])
        return digest.hexdigest()

    def start(self, encoder: SentenceTransformer) -> None:
        """Tokenise the texts."""
        self._texts = distinct_texts(self._tasks)
        self._embedder = Embedder(encoder, precision=self._precision)
        self._prepared = self._embedder.prepare(self._texts)
        self._similarity = own_similarity(encoder)

    def vectors(self) -> np.ndarray:
        """Return the vectors of the distinct texts with the current weights, (n, d)."""
        return self._embedder.encode(self._prepared)

    def results(self, vectors: np.ndarray) -> tuple[TaskResult, ...]:
        """Return all metrics of vectors of the distinct texts."""
        return score_tasks(
            self._tasks, TextEmbeddings(self._texts, vectors, self._similarity)
        ).results

    def scores(self) -> dict[str, float]:
        """Return the main metrics of the current weights.

        Raises:
            OpencseError: One is undefined.
        """
        encoder = self._embedder.model
        pairs_only = all(isinstance(task, ScoredPairs) for task in self._tasks)
        if attends_to_padding(encoder) and pairs_only:
            batched = BatchedPairs(encoder)
            return self._main_metrics([task.score(batched) for task in self._tasks])
        return self.scored(self.vectors())

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the main metrics of vectors of the distinct texts.

        Raises:
            OpencseError: One is undefined.
        """
        return self._main_metrics(self.results(vectors))

    def _main_metrics(self, results: Iterable[TaskResult]) -> dict[str, float]:
        scores = {}
        for result in results:
            if result.score is None:
                raise OpencseError(
                    f"{result.task}: the development score is undefined ({result.undefined})"
                )
            scores[result.task] = result.score
        return scores


class BatchedPairs(TextEmbeddings):
    """Similarities of pairs whose vectors depend on the sentences that share their batch.

    The first sentences of 128 pairs are a batch, and so are their second sentences. Each is padded
    to its longest sentence. Source: SentEval's `sts.py`, whose STS-B and SICK-R keep the order of
    the file, and DCLR's `simcse/trainers.py`.

    Args:
        encoder: The encoder, which runs in the precision of its weights.
    """

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__([], np.zeros((0, 1)))
        self._encoder = encoder

    def paired(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the cosine similarities (n,) of n pairs."""
        parts = []
        for start in range(0, len(first), SENTEVAL_BATCH):
            rows = slice(start, start + SENTEVAL_BATCH)
            parts.append(
                paired_cosine(
                    one_batch(self._encoder, first[rows]), one_batch(self._encoder, second[rows])
                )
            )
        return np.concatenate(parts)


def one_batch(encoder: SentenceTransformer, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors (n, d) of texts that are encoded together, padded to the longest one."""
    with evaluation_mode(encoder):
        vectors = encoder.encode(list(texts), batch_size=len(texts), show_progress_bar=False)
    return np.asarray(vectors)


def _add_to_digest(digest: hashlib.blake2b, value: Any) -> None:
    """Add a task, or what is in it, to a hash; each part with its length, so that no two tasks look alike."""
    if is_dataclass(value) and not isinstance(value, type):
        _add_to_digest(digest, type(value).__name__)
        for field in fields(value):
            _add_to_digest(digest, getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        _add_to_digest(digest, value.tolist())
    elif isinstance(value, Mapping):
        _add_to_digest(digest, sorted(value.items(), key=repr))
    elif isinstance(value, set | frozenset):
        _add_to_digest(digest, sorted(value, key=repr))
    elif isinstance(value, list | tuple):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            _add_to_digest(digest, item)
    else:
        content = repr(value).encode("utf-8", "backslashreplace")
        digest.update(f"{len(content)}:".encode() + content)


@dataclass(frozen=True, kw_only=True, eq=False)
class GeometryTask:
    """Geometry of the vectors of pairs scored 0 to 5; none of it enters an average.

    With unit vectors f(x), Wang and Isola (2020), eq. 1 and 2, as in SimCSE:

    - `alignment`: mean of ||f(x) - f(y)||^2 over positive pairs (score above 4); lower is closer.
    - `uniformity`: log of the mean of exp(-2 ||f(x) - f(y)||^2) over all pairs of distinct
      sentences; lower is more uniform.
    - `anisotropy`: mean cosine over all pairs of distinct sentences (Ethayarajh 2019); 0 is
      isotropic.
    - `spearman`: correlation of cosine and score, times 100, by which papers choose settings on
      STS-B dev.

    Args:
        pairs: The pairs.
    """

    pairs: ScoredPairs

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"geometry of {self.pairs.name}"

    def texts(self) -> Iterator[str]:
        """Yield both sides of all pairs."""
        return self.pairs.texts()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the metrics."""
        first = unit_rows(embeddings(self.pairs.sentence1), np.float64)
        second = unit_rows(embeddings(self.pairs.sentence2), np.float64)
        sentences = list(dict.fromkeys(self.texts()))
        positive = self.pairs.gold > POSITIVE
        correlation = self.pairs.score(embeddings)
        metrics: dict[str, float | None] = dict.fromkeys(("alignment", "uniformity", "anisotropy"))
        metrics["spearman"] = correlation.metrics["spearman"]
        undefined = {}
        for name, reason in correlation.undefined.items():
            if name in metrics:
                undefined[name] = reason
        if positive.any():
            metrics["alignment"] = float(((first - second)[positive] ** 2).sum(axis=1).mean())
        else:
            undefined["alignment"] = f"no pair has a score above {POSITIVE:g}"
        if len(sentences) > 1:
            metrics |= _spread(unit_rows(embeddings(sentences), np.float64))
        else:
            undefined |= dict.fromkeys(("uniformity", "anisotropy"), "a single sentence")
        details = {
            "text": self.pairs.text,
            "positive_pairs": int(positive.sum()),
            "sentences": len(sentences),
        }
        return replace(
            correlation,
            task=self.name,
            main=None,
            metrics=metrics,
            undefined=undefined,
            details=details,
        )


def _spread(x: np.ndarray) -> dict[str, float]:
    """Return the uniformity and anisotropy of unit vectors (n, d)."""
    n = len(x)
    potential = 0.0
    cosines = 0.0
    for start in range(0, n, _BLOCK):
        # Each pair once: this block with itself above the diagonal, and with all later rows.
        product = x[start : start + _BLOCK] @ x[start:].T
        values = product[np.triu_indices_from(product, k=1)]
        cosines += float(values.sum())
        # ||a - b||^2 = 2 - 2 cos(a, b)
        potential += float(np.exp(4 * values - 4).sum())
    count = n * (n - 1) / 2
    return {"uniformity": float(np.log(potential / count)), "anisotropy": cosines / count}


class PairGeometry(TaskEvaluator):
    """Geometry of scored pairs, and the correlations of their two parts.

    Undefined values are left out.

    Args:
        pairs: The pairs.
        kinds: `geometry` for `alignment` and `uniformity` (`GeometryTask`); `splits` for `Cont.`
            and `Oppn.`, the Spearman correlation x 100 on OssCSE's consistent and opposed pairs.
        precision: Number format of the encoder.
    """

    def __init__(self, pairs: ScoredPairs, kinds: Collection[str], precision: Precision) -> None:
        tasks: list[Task] = []
        if "geometry" in kinds:
            tasks.append(GeometryTask(pairs=pairs))
        if "splits" in kinds:
            split = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
            for name, part in (("Cont.", split.consistent), ("Oppn.", ~split.consistent)):
                # A part may be empty.
                if part.any():
                    tasks.append(pairs.subset(name, np.flatnonzero(part).tolist()))
        super().__init__(tasks, precision)

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the defined values of vectors."""
        values: dict[str, float | None] = {}
        for result in self.results(vectors):
            if result.main is None:
                values["alignment"] = result.metrics["alignment"]
                values["uniformity"] = result.metrics["uniformity"]
            else:
                values[result.task] = result.score
        return {name: value for name, value in values.items() if value is not None}


class TrainingGeometry:
    """Alignment and uniformity of training sentences with dropout, as the encoder trains on them.

    As in BYOP, Figure 2:

    `training alignment` is the mean squared distance of the two vectors of a sentence, `training
    uniformity` the logarithm of the mean of exp(-2 d²) over the distances d of different sentences
    (Wang and Isola 2020). Random state and mode of the model stay unchanged.

    Args:
        rows: The training rows, whose first distinct sentences are measured.
    """

    def __init__(self, rows: Corpus) -> None:
        texts = rows.texts(text_column(rows.columns, rows.path))
        self._texts = list(dict.fromkeys(islice(texts, SENTENCES)))

    def start(self, encoder: SentenceTransformer) -> None:
        """Keep the encoder."""
        self._encoder = encoder

    def scores(self) -> dict[str, float]:
        """Return both values of the current weights."""
        mode = self._encoder.training
        self._encoder.train()
        with torch.no_grad(), same_random_state(self._encoder.device):
            torch.manual_seed(0)
            first = self._encoded()
            second = self._encoded()
        self._encoder.train(mode)
        return {
            "training alignment": float(((first - second) ** 2).sum(dim=1).mean()),
            "training uniformity": _spread(first.double().cpu().numpy())["uniformity"],
        }

    def _encoded(self) -> torch.Tensor:
        encoder = self._encoder
        features = {}
        for name, value in encoder.preprocess(self._texts).items():
            is_tensor = isinstance(value, torch.Tensor)
            features[name] = value.to(encoder.device) if is_tensor else value
        vectors = encoder(features)["sentence_embedding"].float()
        return torch.nn.functional.normalize(vectors)
