"""`opencse.evaluate`: scores of a model on known tasks, on those of `mteb` (extra), or on the user's own pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from opencse.commands.command_line import takes
from opencse.commands.options import EvaluateOptions
from opencse.debias.reranker import reranker_of
from opencse.encoder.backbone import model_source, pooling_name, weights_hash
from opencse.encoder.device import describe, model_config
from opencse.encoder.embedder import Embedder, own_similarity
from opencse.encoder.loading import load_encoder
from opencse.evaluation import read_pairs
from opencse.evaluation.labelled import LabelledSet
from opencse.evaluation.suites import OWN, Evaluation, as_json, load_suites, scores_table
from opencse.evaluation.task import (
    Encode,
    Results,
    Similarity,
    Task,
    TaskResult,
    TextEmbeddings,
    evaluate_tasks,
    find_folder,
    rows_sha256,
)
from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.files import write_json
from opencse.foundation.progress import note
from opencse.foundation.result_table import show
from opencse.foundation.roles import as_documents, as_queries

OF_MTEB = ("mteb:", "nanobeir")
# Types of tasks of `mteb` that compare texts, and do not train a classifier on their vectors.
_COMPARING = (
    "Retrieval",
    "Reranking",
    "InstructionRetrieval",
    "InstructionReranking",
    "STS",
    "PairClassification",
    "BitextMining",
)

_PUBLISHED = {
    "NevIR": "25.0 by chance; 6.8 to 11.1 for bi-encoders of BERT's size (Weller et al., EACL 2024); 39.0 for "
    "GritLM-7B (van den Elsen et al., SIGIR 2025)"
}


@takes(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> Evaluation:
    """Score a model.

    Returns:
        Scores by suite, with every setting that they depend on; it displays as a table in a
        notebook.

    Raises:
        OpencseError: A file or the model cannot be read, or there is no such task.
    """
    # The model is loaded last, because a mistake in the data shows sooner.
    suites = _suites(options)
    evaluation = _scores(options, options.model, suites)[0]
    if options.output is not None:
        write_json(Path(options.output), as_json(evaluation))
    return evaluation


def _suites(options: EvaluateOptions) -> dict[str, list[Task]]:
    if options.pairs:
        return {"pairs": [read_pairs(given) for given in options.pairs]}
    names, objects = named_and_given(options.tasks)
    of_mteb = [name for name in names if name.startswith(OF_MTEB)]
    ours = [name for name in names if not name.startswith(OF_MTEB)]
    suites = load_suites(ours, options.data, text=options.text)
    if of_mteb:
        suites |= load_mteb(of_mteb, options.data)
    if objects:
        suites[OWN] = [*suites.get(OWN, []), *objects]
    return suites


def named_and_given(tasks: Any) -> tuple[list[str], list[Task]]:
    """Return the names among some tasks, and the task objects.

    Args:
        tasks: Names separated by commas, one task, or a sequence of names and tasks.
    """
    if isinstance(tasks, str):
        listed: list[Any] = tasks.split(",")
    elif isinstance(tasks, Sequence):
        listed = list(tasks)
    else:
        listed = [tasks]
    names = [item.strip() for item in listed if isinstance(item, str) and item.strip()]
    given = [item for item in listed if not isinstance(item, str)]
    for task in given:
        lacking = [part for part in ("name", "texts", "score") if not hasattr(task, part)]
        if lacking:
            raise OpencseError(
                f"the task {type(task).__name__} has no {' and no '.join(lacking)}",
                "A task has a name, texts() and score(embeddings): opencse.evaluation.task.Task.",
            )
    return names, given


def _scores(
    options: EvaluateOptions, given: Any, suites: Mapping[str, Sequence[Task]]
) -> list[Evaluation]:
    """Score a model with cosine similarity, and if it has a meaning block, reranked as well."""
    source = model_source(given)
    model = load_encoder(source, pooling=options.pooling or "backbone")
    note(f"evaluating {describe(options.precision, model_config(model), model.device)}")
    embedder = Embedder(model, precision=options.precision, progress="encode")
    tasks = [task for members in suites.values() for task in members]
    evaluations = []
    for name, encode, similarity in _ways(source, model, embedder, tasks):
        measured = evaluate_tasks(encode, tasks, similarity)
        # All tasks were scored in one pass, so each suite takes its own out of the results.
        results = {}
        for suite, members in suites.items():
            of_suite = tuple(measured[task.name] for task in members)
            results[suite] = Results(results=of_suite)
        texts = {str(result.details.get("text", "own")) for result in measured.results}
        settings = {
            "model": name,
            "weights_sha256": weights_hash(model),
            "text": texts.pop() if len(texts) == 1 else "mixed",
            "aggregation": "all",
            "similarity": _name_of(similarity, model),
            "metrics": sorted({result.main for result in measured.results if result.main}),
            "pooling": pooling_name(model),
            "prompt": embedder.prompt,
            "max_seq_length": _length(model.max_seq_length),
            "precision": embedder.precision,
            "device": str(model.device),
            "dimension": embedder.dimension,
        }
        evaluations.append(Evaluation(results=results, settings=settings))
    return evaluations


def _name_of(similarity: Similarity | None, model: Any) -> str:
    if similarity is None:
        return "cosine"
    if getattr(similarity, "raw", False):
        return f"{model.similarity_fn_name}, the model's own"
    return "opencse.Reranker"


def _length(length: float | None) -> float | None:
    """Return the maximum length of a model; None if it has none, such as static embeddings."""
    return None if length is None or not math.isfinite(length) else length


def _ways(
    source: str, model: Any, embedder: Embedder, tasks: Sequence[Task]
) -> list[tuple[str, Encode, Similarity | None]]:
    """Return name, encoder and similarity of each way to compare texts: by cosine, and reranked."""
    reranker = reranker_of(model, embedder.precision)
    if reranker is None or not all(_compares_texts(task) for task in tasks):
        return [(source, embedder, own_similarity(model))]
    # One encoding serves both: a packed row begins with the vector.
    packed = lru_cache(1)(partial(reranker.packed, show_progress_bar=True))
    length = reranker.length

    def vectors(texts: Sequence[str]) -> np.ndarray:
        return packed(tuple(texts))[:, :length]

    return [
        (source, vectors, None),
        (f"{source}, reranked", packed, reranker.similarity),
    ]


def _compares_texts(task: Task) -> bool:
    """Return whether a task compares texts with each other, and does not train a classifier."""
    if isinstance(task, _MtebTask):
        return task.compares_texts
    return not isinstance(task, LabelledSet)


def command(options: EvaluateOptions) -> None:
    """Evaluate one model or several, and print or write the scores."""
    suites = _suites(options)
    evaluations: list[Evaluation] = []
    for model in options.model:
        evaluations.extend(_scores(options, model, suites))
    documents = [as_json(result) for result in evaluations]
    if len(evaluations) == 1:
        show(evaluations[0])
        written = documents[0]
    else:
        show(scores_table(evaluations))
        written = {"models": documents}
    if options.output is not None:
        write_json(Path(options.output), written)
        show(f"written to {options.output}")


class _MtebTask:
    """A loaded task of `mteb`: opencse encodes its texts with those of all other tasks, `mteb` computes the score."""

    def __init__(self, task: Any) -> None:
        self._task = task
        self.name: str = task.metadata.name
        self.compares_texts = task.metadata.type in _COMPARING
        texts: dict[str, None] = {}
        rng = np.random.default_rng(0)

        def collect(batch: Sequence[str]) -> np.ndarray:
            # Random vectors, because some scores of equal vectors are not defined.
            texts.update(dict.fromkeys(batch))
            return rng.standard_normal((len(batch), 8), dtype=np.float32)

        # `mteb` puts titles, passages and instructions together in its own way, so it is asked
        # which texts it encodes.
        self._score(collect)
        self._texts = list(texts)

    def texts(self) -> Iterable[str]:
        """Return every text that `mteb` encodes."""
        return self._texts

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the main score of `mteb`, times 100."""
        main = self._task.metadata.main_score
        value: float | None = 100 * self._score(embeddings)
        undefined = {}
        # A task whose data lacks a class or a positive has no score.
        if value is None or math.isnan(value):
            value = None
            undefined[main] = "mteb returns no number"
        details = {
            "text": "released",
            "data": self._task.metadata.dataset["path"],
            "mteb": version("mteb"),
            "published": _PUBLISHED.get(self.name),
        }
        return TaskResult(
            task=self.name,
            main=main,
            metrics={main: value},
            undefined=undefined,
            rows=len(self._texts),
            data_sha256=rows_sha256(self._texts),
            details=details,
        )

    def _score(self, encode: Encode) -> float:
        settings: dict[str, Any] = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
        encoder = VectorEncoder(encode, getattr(encode, "similarity", None))
        (result,) = imported("mteb", "mteb").evaluate(encoder, self._task, **settings).task_results
        return float(result.get_score())


def load_mteb(names: Iterable[str], source: str | Path | None) -> dict[str, list[Task]]:
    """Load tasks of `mteb`, by suite: a benchmark is a suite, all single tasks together are the suite `mteb`.

    Args:
        names: `mteb:NAME` with a task or a benchmark of `mteb`, or `nanobeir`.
        source: A folder that holds a folder for each task, named and filled as its repository on
            the hub; or `hub`.

    Raises:
        OpencseError: `mteb` is not installed, it has no such task, or the data is missing or
            invalid.
    """
    mteb = imported("mteb", "mteb")
    imported("datasets", "datasets").disable_progress_bars()
    suites: dict[str, list[Task]] = {}
    for name in names:
        bare = "NanoBEIR" if name == "nanobeir" else name.removeprefix("mteb:")
        # A name may be that of a task, or that of a benchmark; mteb looks up each kind by itself.
        try:
            suite = "mteb"
            tasks = [mteb.get_task(bare)]
        except KeyError:
            try:
                suite = bare
                tasks = mteb.get_benchmark(bare).tasks
            except KeyError:
                raise OpencseError(
                    f"mteb {version('mteb')} has no task or benchmark {bare!r}",
                    "Take a name from its documentation; your own data is a folder below --data, without `mteb:`.",
                ) from None
        members = suites.setdefault(suite, [])
        for task in tasks:
            members.append(_MtebTask(_loaded(task, source)))
    return suites


def _loaded(task: Any, source: str | Path | None) -> Any:
    """Return a task with its data, which only `hub` fetches from the network."""
    name = task.metadata.name
    repository = task.metadata.dataset["path"]
    wanted = repository.rpartition("/")[2]
    remedy = f"Give --data FOLDER with FOLDER/{wanted}, a copy of the hub's data set {repository}, or --data hub."
    if str(source) != "hub":
        folder = None if source is None else find_folder(source, wanted)
        if folder is None:
            raise OpencseError(
                f"the data of {name} is not in {source or 'a folder: there is no --data'}", remedy
            )
        # The metadata belongs to the class, so that the next task of this name would have the
        # folder, too.
        task.metadata = task.metadata.model_copy(
            update={"dataset": {**task.metadata.dataset, "path": str(folder)}}
        )
    try:
        task.load_data()
    except Exception as problem:
        raise OpencseError(
            f"the data of {name} cannot be read from {source} ({type(problem).__name__}: {problem})",
            remedy,
        ) from problem
    return task


class VectorEncoder:
    """Any function from n texts to vectors (n, d) behind `mteb`'s encoder protocol."""

    def __init__(self, encode: Encode, similarity: Similarity | None = None) -> None:
        described = imported("mteb.models.model_meta", "mteb")
        cosine = {"similarity_fn_name": described.ScoringFunction.COSINE}
        self.mteb_model_meta = described.ModelMeta.create_empty(overwrites=cosine)
        self._encode = encode
        self._similarity = similarity

    def encode(
        self, inputs: Iterable[Mapping[str, Any]], *, prompt_type: Any = None, **_: Any
    ) -> np.ndarray:
        """Return the vectors, float32 (n, d), of all texts of some batches `{"text": […]}`.

        Args:
            inputs: The batches.
            prompt_type: `mteb`'s name for the role of the texts: `query`, `document` or None.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        role = getattr(prompt_type, "value", prompt_type)
        if role == "query":
            texts = as_queries(texts)
        elif role == "document":
            texts = as_documents(texts)
        return self._encode(texts)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the similarities of all pairs, (n, m)."""
        from sentence_transformers.util import cos_sim
        from torch import as_tensor

        if self._similarity is None:
            return cos_sim(embeddings1, embeddings2)
        return as_tensor(self._similarity(embeddings1, embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the similarities of corresponding rows, (n,)."""
        from sentence_transformers.util import pairwise_cos_sim
        from torch import tensor

        if self._similarity is None:
            return pairwise_cos_sim(embeddings1, embeddings2)
        scores = []
        for first, second in zip(embeddings1, embeddings2, strict=True):
            scores.append(float(self._similarity(first[None], second[None])[0][0]))
        return tensor(scores)
