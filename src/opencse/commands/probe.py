"""`opencse.probe`: do models follow wording or meaning?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.commands.display import probe_tables
from opencse.commands.reports import write_report
from opencse.encoder.embedder import Precision
from opencse.encoder.given import model_source
from opencse.evaluation.probes import ProbeScores, load_probe_data
from opencse.evaluation.probes.probe_models import probe_models


@dataclass(frozen=True, repr=False)
class ProbeResult(JupyterMixin):
    """Result of `opencse.probe`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        scores: Scores by model.
        settings: The settings that the scores depend on, by model.
        report: The HTML page; None without a folder.
    """

    scores: dict[str, ProbeScores]
    settings: dict[str, dict[str, Any]]
    report: Path | None

    def __repr__(self) -> str:
        return f"ProbeResult(models={list(self.scores)}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        return probe_tables(self.scores, self.report)


def probe(
    models: Any,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    sentences: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    text: Literal["senteval", "raw"] = "senteval",
    precision: Precision = "auto",
    pooling: str | None = None,
    limit: int = 2000,
) -> ProbeResult:
    """Measure how far models follow wording instead of meaning.

    Args:
        models: One or several folders, runs, hub ids, bundled names or `SentenceTransformer`s; the first is the
            baseline.
        out: Folder for `report.html`, `probe.json` and the figures; nothing is written by default.
        data: The STS tasks, as for `evaluate`.
        sentences: Your own sentences: a table or built views with transformations as columns.
        pairs: Files of scored pairs.
        text: Text variant of the STS tasks.
        precision: Number format of the encoders.
        pooling: Pooling of encoders that define none.
        limit: Maximum number of sentences; more are sampled at random.

    Raises:
        OpencseError: A file or a model cannot be read.
    """
    names = [model_source(each) for each in (models if isinstance(models, list | tuple) else [models])]
    probe_data = load_probe_data(data=data, pairs=pairs, sentences=sentences, text=text, limit=limit)
    scores, settings = probe_models(names, probe_data, precision=precision, pooling=pooling)
    report = None if out is None else write_report(scores, Path(out), settings=settings, notes=probe_data.notes)
    return ProbeResult(scores, settings, report)
