"""`opencse.probe`: do models follow wording or meaning?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.command_line import apply, takes
from opencse.commands.options import ProbeOptions
from opencse.commands.reports.examples import MEASURED, Example, pick_examples
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import Comparison, compare_models, headline_rows, triplet_rows
from opencse.commands.train import path_line
from opencse.debias.reranker import reranker_of
from opencse.encoder.backbone import model_source, pooling_name, weights_hash
from opencse.encoder.device import describe, model_config
from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import load_encoder
from opencse.encoder.model_folder import has_pooling
from opencse.encoder.names import resolve
from opencse.evaluation.probes import ProbeData, ProbeScores, load_probe_data, run_probes
from opencse.evaluation.probes.probe_suite import short_names
from opencse.foundation.progress import note
from opencse.foundation.result_table import Table, show


@dataclass(frozen=True, repr=False)
class ProbeResult(JupyterMixin):
    """Result of `opencse.probe`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        scores: Scores by model.
        comparison: How two models differ; None for another number of models.
        report: The HTML page; None without a folder.
    """

    scores: dict[str, ProbeScores]
    comparison: Comparison | None
    report: Path | None

    def __repr__(self) -> str:
        return f"ProbeResult(models={list(self.scores)}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        triplets = triplet_rows(
            [part.triplets for part in self.scores.values() if part.triplets],
            columns=("grade", "opposites", "form"),
        )
        nearer = ([f"Paraphrase nearer: {label}", *rates] for label, _, *rates in triplets)
        parts: list[RenderableType] = [
            Table(["", *self.scores], [*headline_rows(self.scores), *nearer])
        ]
        if self.comparison is not None:
            parts += [Text(""), self.comparison.table()]
        if self.report is not None:
            parts.append(path_line(f"report: {self.report}"))
        return Group(*parts)


@takes(ProbeOptions)
def probe(options: ProbeOptions) -> ProbeResult:
    """Probe models.

    Raises:
        OpencseError: A file or a model cannot be read.
    """
    models = options.models
    if not isinstance(models, list | tuple):
        models = [models]
    names = [model_source(given) for given in models]
    probe_data = load_probe_data(
        data=options.data, pairs=options.pairs, sentences=options.sentences
    )
    scores: dict[str, ProbeScores] = {}
    embedders = []
    for name, label in zip(names, short_names(names), strict=True):
        embedder = _opened(name, label, options)
        embedders.append(embedder)
        scores[label] = _probed(name, embedder, probe_data)
    comparison = compare_models(scores) if len(scores) == 2 else None
    report = None
    if options.out is not None:
        pairs: list[Example] = []
        if len(embedders) == 2:
            pairs = reranked_examples(embedders[0], embedders[1], probe_data)
        report = write_report(
            scores, options.out, notes=probe_data.notes, comparison=comparison, pairs=pairs
        )
    return ProbeResult(scores, comparison, report)


def _opened(name: str, label: str, options: ProbeOptions) -> Embedder:
    """Return a model, ready to encode; a pooling that the user asks for is that of models without one."""
    pooling = "backbone"
    if options.pooling is not None and not has_pooling(resolve(name)):
        pooling = options.pooling
    model = load_encoder(name, pooling=pooling)
    note(f"probing {label} {describe(options.precision, model_config(model), model.device)}")
    return Embedder(model, precision=options.precision, progress=f"encode {label}")


def _probed(name: str, embedder: Embedder, probe_data: ProbeData) -> ProbeScores:
    """Return the scores of a model, with every setting that they depend on."""
    started = time.perf_counter()
    probed = run_probes(probe_data, embedder)
    model = embedder.model
    settings = {
        "model": name,
        "weights sha256": weights_hash(model),
        "pooling": pooling_name(model),
        "dimension": embedder.dimension,
        "maximum length": model.max_seq_length,
        "prompt": embedder.prompt or "none",
        "precision": embedder.precision,
        "seconds": round(time.perf_counter() - started, 1),
    }
    return replace(probed, settings=settings)


def reranked_examples(before: Embedder, after: Embedder, data: ProbeData) -> list[Example]:
    """Return examples from the probed sentences with the scores of the reranker; none without a meaning block."""
    reranker = reranker_of(after.model)
    if reranker is None or data.sentences is None:
        return []
    versions = data.sentences.versions
    rows = zip(
        data.sentences.anchors,
        versions.get("paraphrase", ()),
        versions.get("negation", ()),
        strict=False,
    )
    triples = [(text, right, wrong) for text, right, wrong in rows if right and wrong]
    return pick_examples(triples[:MEASURED], before.encode, reranker)


def command(options: ProbeOptions) -> None:
    """Probe, and print the headline numbers."""
    show(apply(probe, options))
