"""Evaluation of a model with `mteb` (extra `mteb`).

`mteb` caches results by the name and the revision of a model. Local models have no revision, so that a second one would
get the scores of the first. Here the revision is always the hash of the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opencse.encoder.backbone import weights_hash
from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation.task import Encode
from opencse.foundation.errors import imported

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class VectorEncoder:
    """Any function from n texts to vectors (n, d) behind `mteb`'s encoder protocol; `meta` describes the model."""

    def __init__(self, encode: Encode, **meta: Any) -> None:
        described = imported("mteb.models.model_meta", "mteb")
        meta["similarity_fn_name"] = described.ScoringFunction.COSINE
        self.mteb_model_meta = described.ModelMeta.create_empty(overwrites=meta)
        self._encode = encode

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> np.ndarray:
        """Return the vectors, float32 (n, d), of all texts of some batches `{"text": […]}`."""
        return self._encode([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine similarities of all pairs, (n, m)."""
        from sentence_transformers.util import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosine similarities of corresponding rows, (n,)."""
        from sentence_transformers.util import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


class MtebEncoder(VectorEncoder):
    """A `SentenceTransformer` behind `mteb`'s encoder protocol, encoded by `Embedder`.

    Args:
        model: Any `SentenceTransformer`.
        name: Name in `mteb`'s results, `organisation/name`; any other name becomes `local/…`.
        precision: See `Embedder`.

    Raises:
        OpencseError: The package `mteb` is not installed.

    Example:
        >>> import mteb  # doctest: +SKIP
        >>> model = MtebEncoder(SentenceTransformer("out/model"), name="me/mine")  # doctest: +SKIP
        >>> mteb.evaluate(model, mteb.get_tasks(["STSBenchmark"]))  # doctest: +SKIP
    """

    def __init__(self, model: SentenceTransformer, *, name: str, precision: Precision = "fp32") -> None:
        embedder = Embedder(model, precision=precision, progress="encode")
        revision = weights_hash(model) if precision == "fp32" else f"{weights_hash(model)}-{precision}"
        super().__init__(
            embedder,
            name=mteb_name(name),
            revision=revision,
            embed_dim=embedder.dimension,
            max_tokens=model.max_seq_length,
            framework=["Sentence Transformers", "PyTorch"],
        )


def local_task(name: str, splits: Mapping[str, Mapping[str, Sequence[Any]]], *, subset: str | None = None) -> Any:
    """Return a task of `mteb` on given rows, without a download.

    Args:
        name: `mteb`'s name of the task, such as `STSBenchmark` or `Banking77Classification`.
        splits: Columns of each split, such as `{"test": {"sentence1": …, "sentence2": …, "score": …}}`.
        subset: Name of the subset, for a task with several.
    """
    import mteb
    from datasets import Dataset, DatasetDict

    task = mteb.get_task(name, hf_subsets=None if subset is None else [subset])
    data = DatasetDict({split: Dataset.from_dict(dict(columns)) for split, columns in splits.items()})
    task.dataset = data if subset is None else {subset: data}
    task.data_loaded = True
    return task


def mteb_name(name: str) -> str:
    """Return the name if it is `organisation/name`, and otherwise its last part below `local/`."""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not name.startswith("."):
        return name
    last = re.sub(r"[^\w.-]+", "-", name.rstrip("/").rpartition("/")[2]).strip("-")
    return f"local/{last or 'model'}"
