"""`opencse.probe`: do models follow wording or meaning?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.encoder.embedder import Precision
from opencse.encoder.given import model_source
from opencse.pipeline.display import findings_tables
from opencse.probing import Findings
from opencse.probing.material import gather, probe_models
from opencse.reports import write_report


@dataclass(frozen=True, repr=False)
class ProbeResult(JupyterMixin):
    """Result of `opencse.probe`; it displays as tables in a terminal (rich) and in a notebook.

    Attributes:
        findings: The measurements by model.
        settings: What each model's figures depend on.
        report: The HTML page; None where no folder was given.
    """

    findings: dict[str, Findings]
    settings: dict[str, dict[str, Any]]
    report: Path | None

    def __repr__(self) -> str:
        return f"ProbeResult(models={list(self.findings)}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        return findings_tables(self.findings, self.report)


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
    """Measure how far models follow wording where meaning should count.

    Args:
        models: One or several folders, runs, hub ids, bundled names or `SentenceTransformer`s; the first is the
            baseline.
        out: Folder for `report.html`, `probe.json` and the figures; none are written by default.
        data: The STS tasks, as for `evaluate`.
        sentences: Sentences of your own: a table or built views with transformations as columns.
        pairs: Files of scored pairs.
        text: Text variant of the STS tasks.
        precision: Number format of the encoders.
        pooling: For encoders without pooling of their own.
        limit: Sentences that are used at most, drawn at random.

    Raises:
        OpencseError: A file or a model cannot be read.
    """
    names = [model_source(each) for each in (models if isinstance(models, list | tuple) else [models])]
    gathered = gather(data=data, pairs=pairs, sentences=sentences, text=text, limit=limit)
    findings, settings = probe_models(names, gathered.material, precision=precision, pooling=pooling)
    report = None if out is None else write_report(findings, Path(out), settings=settings, notes=gathered.notes)
    return ProbeResult(findings, settings, report)
