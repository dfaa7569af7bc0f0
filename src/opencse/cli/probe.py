"""`opencse probe`: does a model go by wording or by meaning?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opencse.cli.evaluate import PrecisionName, TextVariant

if TYPE_CHECKING:
    from opencse.probing import Findings


def probe(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Model folders, runs, hub ids or `minilm`; the first is the baseline."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for report.html, probe.json and the figures.")],
    data: Annotated[
        str | None,
        typer.Option(
            envvar="OPENCSE_DATA",
            help="The STS tasks, as for `opencse evaluate`; without them only sentences are probed.",
        ),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Sentences of your own: a table or built views, with a column sentence or text and any of paraphrase, "
            "negation, deletion, insertion, substitution, random. By default those that come with opencse."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scored pairs of your own: .csv, .tsv or .jsonl with sentence1, sentence2, score. Repeatable."
        ),
    ] = None,
    text: Annotated[TextVariant, typer.Option(help="Text variant of the STS tasks; published splits: senteval.")] = (
        TextVariant.senteval
    ),
    precision: Annotated[PrecisionName, typer.Option(help="`bf16` is about twice as fast.")] = PrecisionName.fp32,
    pooling: Annotated[
        str | None, typer.Option(help="For an encoder without pooling of its own: cls, mean, first_last, …")
    ] = None,
    limit: Annotated[int, typer.Option(min=2, help="Sentences taken at most, drawn by chance.")] = 2000,
) -> None:
    """Measure how far models go by wording where meaning should count, and write a report.

    No training, and no labels beyond the STS sets. OUT/report.html is one file that needs nothing else.

    Examples:
      opencse probe minilm -o probe/
      opencse probe minilm out/ --data sts/ -o probe/
      opencse probe minilm --sentences out/views -o probe/
    """
    from opencse.probing.run import gather, probe_models
    from opencse.reports import write_report

    gathered = gather(data=data, pairs=pairs or (), sentences=sentences, text=text.value, limit=limit)
    findings, settings = probe_models(models, gathered.material, precision=precision.value, pooling=pooling)
    page = write_report(findings, out, settings=settings, notes=gathered.notes)
    _show(findings, page)


def _show(findings: dict[str, Findings], page: Path) -> None:
    """The headline figures on the screen."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from opencse.reports.summary import cards, verdict

    console = Console()
    shown = cards(findings)
    if shown:
        table = Table(box=None, header_style="bold")
        table.add_column("")
        for name, *_ in max((card.values for card in shown), key=len):
            table.add_column(Text(name), justify="right")
        for card in shown:
            table.add_row(
                card.title, *(f"{value}  ({spread})" if spread else value for _, value, spread, _ in card.values)
            )
        console.print(table)
    for paragraph in verdict(findings):
        console.print(Text(paragraph), soft_wrap=True)
    console.print(f"report: {page}", highlight=False, markup=False, soft_wrap=True)
