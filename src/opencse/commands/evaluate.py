"""`opencse.evaluate`: scores of one model on known tasks or on the user's own pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Precision
from opencse.encoder.given import model_source
from opencse.encoder.precision_choice import describe, model_config
from opencse.evaluation import PairsTask, read_pairs
from opencse.evaluation.development import sts_text
from opencse.evaluation.results_table import Evaluation
from opencse.evaluation.run_suites import evaluate_model
from opencse.evaluation.suites import load_suites
from opencse.evaluation.task import Task
from opencse.foundation.progress import note
from opencse.text import demo


def evaluate(
    model: Any,
    *,
    data: str | Path | None = None,
    tasks: Sequence[str] = ("sts",),
    pairs: Sequence[str | Path] = (),
    text: Literal["senteval", "raw"] | None = None,
    classifier: Literal["senteval", "sklearn"] = "senteval",
    precision: Precision = "auto",
    pooling: str | None = None,
    whiten: str | Path | None = None,
    whiten_dimension: int | None = None,
) -> Evaluation:
    """Score a sentence encoder on tasks or on scored pairs; each distinct sentence is encoded once.

    Args:
        model: A folder, a run, a hub id, a bundled name or a `SentenceTransformer`.
        data: The folder of the tasks (`STS12/test.tsv.gz`, …, or SentEval's `data/downstream`), or `"hub"`.
        tasks: Suites (`sts`, `transfer`, `classification`, `reranking`, `retrieval`, `geometry`) and tasks by name.
        pairs: Files of scored pairs, scored in place of `tasks`.
        text: `senteval`, the text behind published scores, or `raw`, as released; by default `senteval`, or `raw` with
            `data="hub"`, which has no other.
        classifier: Classifier of the transfer tasks.
        precision: Number format of the encoder.
        pooling: Pooling of an encoder that defines none.
        whiten: Corpus to fit a whitening of the vectors on.
        whiten_dimension: Number of whitened dimensions; all by default.

    Returns:
        Scores by suite, with every setting that they depend on; it displays as tables in a notebook.

    Raises:
        OpencseError: A file or the model cannot be read, or there is no such task.
    """
    suites: dict[str, list[Task]]
    if pairs:
        suites = {"pairs": [PairsTask(pairs=read_pairs(demo.pairs(path))) for path in pairs]}
    else:
        suites = load_suites(list(tasks), data, text=text or sts_text(data), classifier=classifier)
    # The model is loaded last, because a mistake in the data shows sooner.
    model = model_source(model)
    encoder = load_encoder(model, pooling=pooling or "backbone")
    note(f"evaluating {describe(precision, model_config(encoder), encoder.device)}")
    return evaluate_model(
        encoder,
        suites,
        name=str(model),
        precision=precision,
        whiten=None if whiten is None else Path(whiten),
        whiten_dimension=whiten_dimension,
    )
