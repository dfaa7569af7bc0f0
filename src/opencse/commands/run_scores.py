"""The scores of `opencse.run`: probes before and after training, and the check of the user's documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from opencse.commands.check import check_encoder
from opencse.commands.compare import EMBED_AGAIN
from opencse.commands.evaluate import named_and_given
from opencse.commands.options import RunOptions
from opencse.commands.reports.examples import (
    Example,
    Triple,
    package_triples,
    pick_examples,
)
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import (
    Comparison,
    cache_line,
    compare_models,
)
from opencse.commands.run_data import Source
from opencse.commands.train import (
    training_line,
)
from opencse.debias.payload import CACHING
from opencse.debias.reranker import reranker_of
from opencse.debias.training import read_strength
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder, Precision, cached_vectors
from opencse.evaluation.check.contradictions import SentenceRewriter
from opencse.evaluation.probes import ProbeData, ProbeScores, load_probe_data, run_probes
from opencse.evaluation.suites import TASKS
from opencse.evaluation.task import Task
from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import ways_to_add
from opencse.foundation.progress import timed
from opencse.text.views.registry import texts_hash
from opencse.training.train import TrainingRun

# The check of a user's documents in a report: about half a minute on two cores with a small model.
_CHECKED_DOCUMENTS = 100
_CHECKED_SENTENCES = 40
_PARSED_SENTENCES = 800
# By so much the length of a vector in half precision may differ from 1.
_UNIT = 1e-2
_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)
_NO_PAIRS = "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."
UPGRADE = (
    "Your existing vectors stay valid; the guide “Upgrade an index” shows how. Rerank the top hits of a search with "
    "opencse.Reranker; contradictions drop down the list."
)
_NOT_UNIT = (
    "The vectors of this model don't have length 1, those of the new model do. If your index uses cosine similarity, "
    "divide each stored vector by its length and upgrade it (guide “Upgrade an index”). If it ranks by inner product, "
    "its order changes: embed your documents again."
)


def read_probe_data(options: RunOptions) -> ProbeData:
    """Read what both models are measured on: sets of the package, the user's pairs and tasks."""
    pairs = [] if options.pairs is None else [options.pairs]
    probe_data = load_probe_data(data=options.data, pairs=pairs)
    return replace(probe_data, tasks=own_tasks(options.tasks))


def own_tasks(tasks: Any) -> list[Task]:
    """Return the user's tasks: objects, or registered ones by name."""
    names, given = named_and_given(tasks)
    loaded: list[Task] = []
    for name in names:
        if name not in TASKS:
            raise OpencseError(
                f"there is no task {name!r} of your own",
                f"{ways_to_add(TASKS.group)} For other tasks, run `opencse evaluate`.",
            )
        loaded.append(TASKS[name]())
    return [*loaded, *given]


@dataclass(frozen=True, kw_only=True)
class _ProbedModels:
    """Scores of both models of a run.

    Attributes:
        name: Name of the untouched model.
        trained_name: Name of the trained model in the report.
        untouched: Scores of the untouched model.
        trained: Scores of the trained model.
        reranked: Those with reranking; None if the model has no block.
        cached: Scores of a semantic cache with the penalised pair score; None likewise.
        stored: What becomes of the stored vectors of the untouched model.
    """

    name: str
    trained_name: str
    untouched: ProbeScores
    trained: ProbeScores
    reranked: ProbeScores | None = None
    cached: ProbeScores | None = None
    stored: str = EMBED_AGAIN
    examples: Sequence[Example] = ()

    def by_name(self) -> dict[str, ProbeScores]:
        """Return the scores by their names in the report, the untouched model first."""
        scores = {self.name: self.untouched, self.trained_name: self.trained}
        if self.reranked is not None:
            scores[f"{self.trained_name}, reranked"] = self.reranked
        return scores

    def caches(self) -> dict[str, ProbeScores]:
        """Return what a semantic cache can use as its score."""
        scores = {self.name: self.untouched, self.trained_name: self.trained}
        if self.cached is not None:
            scores["Reranker.predict, penalty=CACHING,"] = self.cached
        return scores


def probe_models(
    trained: TrainingRun, backbone: Backbone, probe_data: ProbeData, triples: Sequence[Triple]
) -> _ProbedModels:
    """Probe the untouched and the trained model; vectors of the untouched one are cached between runs.

    Args:
        trained: The run.
        backbone: The untouched model.
        probe_data: What is measured.
        triples: Texts of the user from which examples are picked; if empty, those of the package.
    """
    precision: Precision = "auto"
    if trained.recipe.training.precision != "fp16":
        precision = trained.recipe.training.precision
    name = Path(backbone.name).name
    trained_name = f"{name} + {trained.recipe.name}"
    with timed("evaluation"):
        encoder = backbone.encoder(**trained.recipe.pooling)
        embedder = Embedder(encoder, precision=precision, progress=f"evaluating {name}")
        untouched = run_probes(
            probe_data, lambda texts: cached_vectors(embedder, texts, texts_hash(texts))
        )
        learned = load_encoder(trained.model)
        reranker = reranker_of(learned, precision)
        if reranker is None:
            encode = Embedder(learned, precision=precision, progress=f"evaluating {trained_name}")
            return _ProbedModels(
                name=name,
                trained_name=trained_name,
                untouched=untouched,
                trained=run_probes(probe_data, encode),
            )
        # One encoding serves all: a packed row begins with the vector.
        packed = lru_cache(1)(partial(reranker.packed, show_progress_bar=True))
        length = reranker.length
        penalised = partial(reranker.similarity, penalty=CACHING)
        sentences = ProbeData(sentences=probe_data.sentences)
        stored = EMBED_AGAIN
        if trained.recipe.block and reranker_of(encoder) is None:
            stored = upgrade_remark(encoder)
        return _ProbedModels(
            name=name,
            trained_name=trained_name,
            untouched=untouched,
            trained=run_probes(probe_data, lambda texts: packed(tuple(texts))[:, :length]),
            reranked=run_probes(probe_data, packed, reranker.similarity),
            cached=run_probes(sentences, packed, penalised),
            stored=stored,
            examples=pick_examples(triples or package_triples(), embedder.encode, reranker),
        )


def check_own_texts(source: Source, trained: TrainingRun) -> list[str]:
    """Return what `opencse check` finds on a sample of the user's documents, a line for each model.

    Returns:
        Nothing for tables and lists of sentences, and if the rules could not rewrite any sentence.
    """
    passages = source.text.first_passages(_CHECKED_DOCUMENTS)
    if not passages:
        return []
    name = Path(source.backbone.name).name
    models = {
        name: source.backbone.encoder(**trained.recipe.pooling),
        f"{name} + {trained.recipe.name}": load_encoder(trained.model),
    }
    lines = []
    with timed("check"):
        for label, encoder in models.items():
            embedder = Embedder(encoder, precision="auto", progress=f"checking {label}")
            rewriter = SentenceRewriter(language=source.language)
            try:
                checked = check_encoder(
                    encoder,
                    embedder,
                    passages,
                    rewriter,
                    limit=_CHECKED_SENTENCES,
                    documents=_CHECKED_DOCUMENTS,
                    sentences=_PARSED_SENTENCES,
                )
            except OpencseError:
                # Texts without a sentence that the rules can contradict are no reason to fail.
                return []
            lines.append(replace(checked, model=label).headline())
    return lines


def report_run(
    trained: TrainingRun,
    probed: _ProbedModels,
    data_notes: Sequence[str],
    few: Sequence[str],
    own_texts: Sequence[str],
) -> tuple[Comparison, Path]:
    """Write the report of a run, and return what training changed and where the report is."""
    curve = read_strength(trained.folder)
    with timed("report"):
        remarks = list(few)
        if curve is None and trained.outcome.first_score is None:
            remarks.append(_UNGUARDED)
        if not probed.trained.sts:
            remarks.append(_NO_PAIRS)
        remarks.extend(cache_line(probed.caches()))
        remarks.append(probed.stored)
        comparison = compare_models(probed.by_name(), curve, remarks)
        notes = [f"Training: {training_line(trained)}.", *trained.warnings]
        family = trained.recipe.family
        published = trained.recipe.published.get(family)
        if published is not None:
            notes.append(
                f"Published STS average for {family}: {published:.2f} (one run of the authors')."
            )
        notes.extend(data_notes)
        report = write_report(
            probed.by_name(),
            trained.folder,
            notes=notes,
            comparison=comparison,
            curve=curve,
            pairs=probed.examples,
            own_texts=own_texts,
        )
    return comparison, report


def upgrade_remark(untouched: Any) -> str:
    """Return what becomes of stored vectors of a model that gets its first block."""
    vector = untouched.encode("a text", show_progress_bar=False)
    if abs(float(np.linalg.norm(vector)) - 1) > _UNIT:
        return _NOT_UNIT
    return UPGRADE
