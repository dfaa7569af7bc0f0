"""Geometry of vectors, and evaluators of an encoder that trains (`opencse.foundation.evaluator`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from opencse.encoder.device import same_random_state
from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation.sts import ScoredPairs
from opencse.evaluation.task import Task, TaskResult, TextEmbeddings, distinct_texts, score
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

_BLOCK = 1024


class TaskEvaluator:
    """The main metric of each task, by the task's name; distinct texts are tokenised once, and encoded once per call.

    Args:
        tasks: The tasks.
        precision: Number format of the encoder.
    """

    def __init__(self, tasks: Sequence[Task], precision: Precision = "auto") -> None:
        self._tasks, self._precision = tasks, precision

    def start(self, encoder: SentenceTransformer) -> None:
        """Tokenise the texts."""
        self._texts = distinct_texts(self._tasks)
        self._embedder = Embedder(encoder, precision=self._precision)
        self._prepared = self._embedder.prepare(self._texts)

    def vectors(self) -> np.ndarray:
        """Return the vectors of the distinct texts with the current weights, (n, d)."""
        return self._embedder.encode(self._prepared)

    def results(self, vectors: np.ndarray) -> tuple[TaskResult, ...]:
        """Return all metrics of vectors of the distinct texts."""
        return score(self._tasks, TextEmbeddings(self._texts, vectors)).results

    def scores(self) -> dict[str, float]:
        """Return the main metrics of the current weights."""
        return self.scored(self.vectors())

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the main metrics of vectors of the distinct texts.

        Raises:
            OpencseError: One is undefined.
        """
        scores = {}
        for result in self.results(vectors):
            if result.score is None:
                raise OpencseError(
                    f"{result.task}: the development score is undefined ({result.undefined})"
                )
            scores[result.task] = result.score
        return scores


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
        first, second = (
            unit_rows(embeddings(side), np.float64)
            for side in (self.pairs.sentence1, self.pairs.sentence2)
        )
        sentences = list(dict.fromkeys(self.texts()))
        positive = self.pairs.gold > POSITIVE
        correlation = self.pairs.score(embeddings)
        metrics: dict[str, float | None] = dict.fromkeys(("alignment", "uniformity", "anisotropy"))
        metrics["spearman"] = correlation.metrics["spearman"]
        undefined = {
            name: reason for name, reason in correlation.undefined.items() if name in metrics
        }
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
    n, potential, cosines = len(x), 0.0, 0.0
    for start in range(0, n, _BLOCK):
        # Each pair once: this block with itself above the diagonal, and with all later rows.
        product = x[start : start + _BLOCK] @ x[start:].T
        values = product[np.triu_indices_from(product, k=1)]
        cosines += float(values.sum())
        potential += float(np.exp(4 * values - 4).sum())  # ||a - b||^2 = 2 - 2 cos
    count = n * (n - 1) / 2
    return {"uniformity": float(np.log(potential / count)), "anisotropy": cosines / count}


class PairGeometry(TaskEvaluator):
    """Geometry of scored pairs, and the correlations of their two parts; undefined values are left out.

    Args:
        pairs: The pairs.
        kinds: `geometry` for `alignment` and `uniformity` (`GeometryTask`); `splits` for `Cont.`
            and `Oppn.`, the Spearman correlation x 100 on OssCSE's consistent and opposed pairs.
        precision: Number format of the encoder.
    """

    def __init__(self, pairs: ScoredPairs, kinds: Collection[str], precision: Precision) -> None:
        tasks: list[Task] = [GeometryTask(pairs=pairs)] if "geometry" in kinds else []
        if "splits" in kinds:  # a part without pairs is left out
            consistent = consistency_opposition(
                pairs.sentence1, pairs.sentence2, pairs.scores
            ).consistent
            parts = {"Cont.": consistent, "Oppn.": ~consistent}
            tasks += [
                pairs.subset(name, np.flatnonzero(p).tolist())
                for name, p in parts.items()
                if p.any()
            ]
        super().__init__(tasks, precision)

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the defined values of vectors."""
        values: dict[str, float | None] = {}
        for result in self.results(vectors):
            if result.main is None:
                values |= {name: result.metrics[name] for name in ("alignment", "uniformity")}
            else:
                values[result.task] = result.score
        return {name: value for name, value in values.items() if value is not None}


class TrainingGeometry:
    """Alignment and uniformity of training sentences as the encoder trains on them, with dropout (BYOP Figure 2).

    `training alignment` is the mean squared distance of the two vectors of a sentence, `training
    uniformity` the logarithm of the mean of exp(-2 d²) over the distances d of different sentences
    (Wang and Isola 2020). The random state and the mode of the model stay as they were.

    Args:
        rows: The training rows, whose first distinct sentences are measured.
    """

    def __init__(self, rows: Corpus) -> None:
        self._texts = list(
            dict.fromkeys(islice(rows.texts(text_column(rows.columns, rows.path)), SENTENCES))
        )

    def start(self, encoder: SentenceTransformer) -> None:
        """Keep the encoder."""
        self._encoder = encoder

    def scores(self) -> dict[str, float]:
        """Return both values of the current weights."""
        mode = self._encoder.training
        self._encoder.train()
        with torch.no_grad(), same_random_state(self._encoder.device):
            torch.manual_seed(0)
            first, second = self._encoded(), self._encoded()
        self._encoder.train(mode)
        return {
            "training alignment": float(((first - second) ** 2).sum(dim=1).mean()),
            "training uniformity": _spread(first.double().cpu().numpy())["uniformity"],
        }

    def _encoded(self) -> torch.Tensor:
        encoder, features = self._encoder, self._encoder.preprocess(self._texts)
        features = {
            k: v.to(encoder.device) if isinstance(v, torch.Tensor) else v
            for k, v in features.items()
        }
        return torch.nn.functional.normalize(encoder(features)["sentence_embedding"].float())
