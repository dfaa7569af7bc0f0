"""Evaluation of a loaded model on suites of tasks, with all settings that the results depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.weights_hash import pooling_name, weights_hash
from opencse.evaluation.results_table import Evaluation
from opencse.evaluation.task import Task, distinct_texts, evaluate_suites
from opencse.evaluation.whitening import Whitening
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import read_lines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def evaluate_model(
    model: SentenceTransformer,
    suites: Mapping[str, Sequence[Task]],
    *,
    name: str = "",
    precision: Precision = "auto",
    whiten: Path | None = None,
    whiten_dimension: int | None = None,
) -> Evaluation:
    """Score a `SentenceTransformer` on any tasks.

    Args:
        model: Any `SentenceTransformer`.
        suites: The tasks, such as those of `load_suites`.
        name: Name of the model in the results.
        precision: See `Embedder`.
        whiten: Corpus (one sentence per line, plain or `.gz`) to fit a whitening on; None for no whitening.
        whiten_dimension: Output dimension of the whitening.
    """
    embedder = Embedder(model, precision=precision, progress="encode")
    revision, whitening, whitened = weights_hash(model), None, None
    dimension = embedder.dimension
    if whiten is not None:
        sentences = (line for _, line in read_lines(whiten) if line.strip())
        whitening = Whitening.fit(embedder, sentences, dimension=whiten_dimension)
        dimension = whitening.projection.shape[1]
        whitened = {"corpus": whiten.name, "dimension": dimension, "sha256": whitening.sha256}
        revision += f"-whitened-{whitening.sha256[:16]}"
    elif whiten_dimension is not None:
        raise OpencseError("--whiten-dimension without --whiten", "Name the corpus to fit the whitening on.")
    tasks = [task for members in suites.values() for task in members]
    results = evaluate_suites(embedder if whitening is None else lambda each: whitening(embedder(each)), suites)
    texts = {str(each.details["text"]) for suite in results.values() for each in suite.results}
    return Evaluation(
        results=results,
        texts=len(distinct_texts(tasks)),
        asked=sum(1 for task in tasks for _ in task.texts()),
        settings={
            "model": name,
            "weights_sha256": revision[:64],
            "revision": revision,
            "text": texts.pop() if len(texts) == 1 else "mixed",
            "aggregation": "all",
            "similarity": "cosine",
            "correlation": "spearman",
            "pooling": pooling_name(model),
            "prompt": embedder.prompt,
            "max_seq_length": model.max_seq_length,
            "whitening": whitened,
            "precision": embedder.precision,
            "device": str(model.device),
            "dimension": dimension,
        },
    )
