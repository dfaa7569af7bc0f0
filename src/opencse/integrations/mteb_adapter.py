"""A model as `mteb` wants it, filed under the hash of its weights (extra `mteb`).

`mteb` keeps results by a model's name and revision. Models without either, which all local ones are, share one file:
the second then gets the first one's scores. A model from here has its weights' hash for revision, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.weights_hash import weights_hash
from opencse.errors import OpencseError
from opencse.evaluation.mteb_format import mteb_name

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class MtebEncoder:
    """A `SentenceTransformer` behind `mteb`'s encoder protocol, encoded by `Embedder`.

    Args:
        model: Any `SentenceTransformer`.
        name: What to call it: `organisation/name`; anything else becomes `local/…`.
        precision: See `Embedder`.

    Raises:
        OpencseError: The package `mteb` is not installed.

    Example:
        >>> import mteb  # doctest: +SKIP
        >>> model = MtebEncoder(SentenceTransformer("out/model"), name="me/mine")  # doctest: +SKIP
        >>> mteb.evaluate(model, mteb.get_tasks(["STSBenchmark"]))  # doctest: +SKIP
    """

    def __init__(self, model: SentenceTransformer, *, name: str, precision: Precision = "fp32") -> None:
        try:
            from mteb.models.model_meta import ModelMeta, ScoringFunction
        except ImportError as problem:
            raise OpencseError("the package mteb is not installed", "pip install 'opencse[mteb]'.") from problem
        self._embedder = Embedder(model, precision=precision, progress="encode")
        revision = weights_hash(model) if precision == "fp32" else f"{weights_hash(model)}-{precision}"
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": mteb_name(name),
                "revision": revision,
                "embed_dim": self._embedder.dimension,
                "max_tokens": model.max_seq_length,
                "framework": ["Sentence Transformers", "PyTorch"],
                "similarity_fn_name": ScoringFunction.COSINE,
            }
        )

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> np.ndarray:
        """Return vectors (n, d) of all texts of some batches, `{"text": […]}` each."""
        return self._embedder([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return cosines of all pairs."""
        from sentence_transformers.util import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return cosines of rows with rows."""
        from sentence_transformers.util import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def local_task(name: str, splits: Mapping[str, Mapping[str, Sequence[Any]]], *, subset: str | None = None) -> Any:
    """Return one of `mteb`'s tasks on rows of one's own, without a hub.

    Args:
        name: `mteb`'s name of the task, such as `STSBenchmark` or `Banking77Classification`.
        splits: Columns of each split, such as `{"test": {"sentence1": …, "sentence2": …, "score": …}}`.
        subset: The task's subset, for a task that has several.
    """
    import mteb
    from datasets import Dataset, DatasetDict

    task = mteb.get_task(name, hf_subsets=None if subset is None else [subset])
    data = DatasetDict({split: Dataset.from_dict(dict(columns)) for split, columns in splits.items()})
    task.dataset = data if subset is None else {subset: data}
    task.data_loaded = True
    return task
