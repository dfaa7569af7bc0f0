"""What `opencse check` finds: how often a model takes the contrary for the same, on the user's own texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from opencse.probing.estimates import Estimate


@dataclass(frozen=True, kw_only=True)
class Example:
    """One search.

    Attributes:
        kind: How the contrary was made.
        sentence: The query, from the user's texts.
        contrary: The sentence that contradicts it.
        reworded: The sentence that says the same.
        rewording: How that was made.
        cosines: Of the query with the contrary and with the reworded one.
        ranks: Of these two among the user's texts, 1 being the first hit.
        source: The file that the sentence comes from.
    """

    kind: str
    sentence: str
    contrary: str
    reworded: str
    rewording: str
    cosines: tuple[float, float]
    ranks: tuple[int, int]
    source: str

    @property
    def confused(self) -> bool:
        """Whether the contrary comes first."""
        return self.cosines[0] >= self.cosines[1]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of contrary.

    Attributes:
        name: See `CONTRARIES`.
        confused: Share of the sentences for which the contrary comes before the reworded sentence; Wilson interval.
        cosine: Mean cosine of a sentence and its contrary, over all that could be made.
        accepted: Share of the contraries above the threshold that accepts nine of ten rewordings; Wilson interval.
    """

    name: str
    confused: Estimate
    cosine: Estimate
    accepted: Estimate


@dataclass(frozen=True, kw_only=True)
class QueryCheck:
    """What happens to the user's own queries.

    Attributes:
        asked: Queries given.
        above: Share of the queries for which the first hit, changed into its contrary, ranks above the first hit.
        still_first: Share for which it would still be the first hit, were the first hit not there.
    """

    asked: int
    above: Estimate
    still_first: Estimate


@dataclass(frozen=True, kw_only=True, repr=False)
class TextCheck(JupyterMixin):
    """How often a model takes the contrary for the same, on the user's texts.

    Attributes:
        model: Its name.
        texts: Passages searched.
        sentences: Sentences that were looked at.
        language: Code of the likely language of the texts, None for unknown.
        confused: Share of sentences for which the contrary comes before the reworded sentence, 95 % bootstrap interval
            over sentences: the number to quote.
        confused_passages: The same where both stand in their passages, if passages have several sentences.
        accepted: Share of contraries above the threshold that accepts nine of ten rewordings.
        auc: Area under the curve: how often a rewording is nearer than a contrary of any other sentence.
        threshold: That threshold, a cosine.
        reworded: Mean cosine of a sentence and its rewording.
        kinds: By kind of contrary.
        rewordings: Share of searches that find the contrary first, by the way of rewording; Wilson intervals.
        queries: On the user's queries, where given.
        examples: Searches, the worst first.
        notes: What a reader should know.
        seconds: Time taken.
    """

    model: str
    texts: int
    sentences: int
    language: str | None
    confused: Estimate
    confused_passages: Estimate | None
    accepted: Estimate
    auc: float | None
    threshold: float | None
    reworded: Estimate
    kinds: tuple[Kind, ...]
    rewordings: dict[str, Estimate]
    queries: QueryCheck | None
    examples: tuple[Example, ...] = field(repr=False)
    notes: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain tables, as `check.json` has it."""
        return asdict(self)

    def headline(self) -> str:
        """Return the finding as one sentence, for a ticket."""
        if self.confused.value is None:
            return f"{self.model}: not measured ({self.confused.undefined})."
        return (
            f"{self.model} finds the contrary of a sentence before its rewording in {100 * self.confused.value:.0f} % "
            f"of {self.confused.rows} searches (95 % interval {span(self.confused)})."
        )

    def __repr__(self) -> str:
        return f"<TextCheck: {self.headline()}>"

    def __rich__(self) -> RenderableType:
        return Group(
            *_example_lines(self.examples[:3]),
            self._table(),
            *(Text(line) for line in (*self._findings(), *self.notes)),
            Text(self.headline(), style="bold"),
        )

    def _table(self) -> Table:
        table = Table(box=None, header_style="bold")
        for heading in ("contrary by", "searches", "contrary first", "95 % interval", "mean cosine"):
            table.add_column(heading, justify="left" if heading == "contrary by" else "right")
        for kind in self.kinds:
            cosine = "" if kind.cosine.value is None else f"{kind.cosine.value:.2f}"
            table.add_row(kind.name, str(kind.confused.rows), percent(kind.confused), span(kind.confused), cosine)
        return table

    def _findings(self) -> Iterator[str]:
        ways = ", ".join(f"{name} {percent(share)} of {share.rows}" for name, share in self.rewordings.items())
        yield f"contrary first, by way of rewording: {ways or 'none'}"
        if self.confused_passages is not None and self.confused_passages.value is not None:
            yield f"within passages: {percent(self.confused_passages)} of {self.confused_passages.rows} sentences"
        if self.queries is not None and self.queries.still_first.value is not None:
            share = self.queries.still_first
            yield (
                f"your queries: the first hit, changed into its contrary, would still be first for {percent(share)} of "
                f"{share.rows}"
            )


def _example_lines(examples: Sequence[Example]) -> Iterator[Text]:
    for example in examples:
        yield Text(example.sentence, style="bold")
        lines = [(example.cosines[0], "contrary", example.contrary), (example.cosines[1], "same    ", example.reworded)]
        for cosine, meaning, text in sorted(lines, reverse=True):
            yield Text(f"  {cosine:.2f}  {meaning}  {text}")


def percent(estimate: Estimate) -> str:
    """Return `71 %`, or nothing where there is no value."""
    return "" if estimate.value is None else f"{100 * estimate.value:.0f} %"


def span(estimate: Estimate) -> str:
    """Return `60 to 81 %`, or nothing where there is no interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{100 * estimate.low:.0f} to {100 * estimate.high:.0f} %"
