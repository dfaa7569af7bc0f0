"""The result of `opencse check`: how often a model ranks a contradiction above a rewording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation.probes.estimates import Estimate
from opencse.foundation.numbers import LEAST_ROWS
from opencse.foundation.result_table import Table


@dataclass(frozen=True, kw_only=True)
class SearchExample:
    """One search: a sentence, a contradiction and a rewording of it.

    Attributes:
        kind: Kind of contradiction, as in `CONTRADICTIONS`.
        sentence: The query, from the user's texts.
        contradiction: A sentence that contradicts it.
        reworded: A sentence with the same meaning.
        rewording: Kind of rewording, as in `REWORDINGS`.
        cosines: Cosine of the query with the contradiction, and with the rewording.
        ranks: Ranks of these two among the user's texts, from 1.
        source: The file that the sentence comes from.
    """

    kind: str
    sentence: str
    contradiction: str
    reworded: str
    rewording: str
    cosines: tuple[float, float]
    ranks: tuple[int, int]
    source: str

    @property
    def contradiction_first(self) -> bool:
        """Whether the contradiction ranks above the rewording."""
        return self.cosines[0] >= self.cosines[1]


@dataclass(frozen=True, kw_only=True, repr=False)
class TextCheck(JupyterMixin):
    """How often a model ranks a contradiction above a rewording, on the user's texts.

    Attributes:
        model: Name of the model.
        texts: Number of passages searched.
        sentences: Number of sentences parsed.
        language: Code of the likely language of the texts, None for unknown.
        contradiction_first: Share of sentences whose contradiction ranks above the rewording, with a 95 % bootstrap
            interval over sentences: the number to quote.
        contradiction_first_in_passages: The same with both sentences inside their passages; None if each passage is one
            sentence.
        accepted: Share of contradictions above `threshold`: false hits of a semantic cache with it.
        threshold: The cosine that nine of ten rewordings reach.
        reworded: Mean cosine of a sentence and its rewording.
        kinds: Share of searches that find the contradiction first, by kind of contradiction; Wilson intervals.
        rewordings: The same by kind of rewording.
        examples: Searches, worst first.
        notes: Remarks for the reader.
        seconds: Time taken.
    """

    model: str = "the model"
    texts: int
    sentences: int
    language: str | None
    contradiction_first: Estimate
    contradiction_first_in_passages: Estimate | None
    accepted: Estimate
    threshold: float | None
    reworded: Estimate
    kinds: dict[str, Estimate]
    rewordings: dict[str, Estimate]
    examples: tuple[SearchExample, ...] = field(repr=False)
    notes: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested dictionaries, the content of `check.json`."""
        return asdict(self)

    def headline(self) -> str:
        """Return the main result as one sentence."""
        if self.contradiction_first.value is None:
            return f"{self.model}: not measured ({self.contradiction_first.undefined})."
        share = self.contradiction_first
        if share.rows < LEAST_ROWS:
            return f"{self.model}: can't say, {share.rows} searches are too few (at least {LEAST_ROWS})."
        return (
            f"{self.model} finds the contradiction of a sentence before its rewording in {share.percent().figure} "
            f"of {share.rows:,} searches (95 % interval {share.interval(0, scale=100)} %)."
        )

    def __repr__(self) -> str:
        return f"<TextCheck: {self.headline()}>"

    def __rich__(self) -> RenderableType:
        return Group(
            *_example_lines(self.examples[:3]),
            *self.tables(),
            *(Text(line) for line in (*self._lines(), *self.notes)),
            Text(self.headline(), style="bold"),
        )

    def tables(self) -> tuple[Table, Table]:
        """Return how often the contradiction is first, by kind of contradiction and by kind of rewording."""
        contradicted, reworded = (
            [(name, share.rows, share.percent()) for name, share in shares.items()]
            for shares in (self.kinds, self.rewordings)
        )
        heads = ("searches", "contradiction first")
        return Table(("contradiction by", *heads), contradicted), Table(("reworded by", *heads), reworded)

    def _lines(self) -> Iterator[str]:
        if self.threshold is not None and self.accepted.value is not None:
            yield (
                f"as a semantic cache: at cosine {self.threshold:.2f}, which nine of ten rewordings reach, "
                f"{_of(self.accepted)} contradictions are false hits"
            )
        share = self.contradiction_first_in_passages
        if share is not None and share.value is not None:
            yield f"within passages: {_of(share)} sentences"


def _of(share: Estimate) -> str:
    return f"{share.percent().figure} of {share.rows:,}"


def _example_lines(examples: Sequence[SearchExample]) -> Iterator[Text]:
    for example in examples:
        yield Text(example.sentence, style="bold")
        texts = (("contradiction", example.contradiction), ("rewording", example.reworded))
        for cosine, (relation, text) in sorted(zip(example.cosines, texts, strict=True), reverse=True):
            yield Text(f"  {cosine:.2f}  {relation:<13}  {text}")
