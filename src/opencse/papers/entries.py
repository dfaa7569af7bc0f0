"""One table or figure of a paper as a TOML file: `entries/PAPER/TABLE.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from opencse.foundation.toml_tables import decode, parse_toml, unknown_name_error
from opencse.papers.scores import EntryColumn

_SHIPPED = Path(__file__).parent / "entries"

Listing = tuple[tuple[str, ...], ...]
"""Rows of texts to be read, the headings first."""


@dataclass(frozen=True, kw_only=True)
class System:
    """One row of a table of scores.

    Attributes:
        label: What the paper calls it; two rows may share a label if they share no family.
        recipe: The recipe; empty for the untouched backbone.
        set: Settings, as after `--set`.
        column: The column that the corpus must have, as a language model wrote it; without it the
            row is missing.
        model: Released models by family of backbones, which take the place of a training with the
            recipe where the backbones are the paper's.
        pooling: Of the untouched backbone.
        whitened: Whether the untouched backbone's vectors are whitened on the corpus.
        flow: Whether a flow that is trained on the corpus maps them to a normal distribution.
        word_vectors: Whether the row is the average of the user's word vectors, without a backbone.
        families: Families of backbones; empty for those with printed scores, or for all of the
            entry if there are none.
        printed: What the paper printed, by family of backbones: the scores of the entry's first
            columns in their order, or that of the last alone.
        deviations: The printed standard deviations, in the form of `printed`.
        missing: Why this row cannot be had, in place of a recipe; empty otherwise.
    """

    label: str
    recipe: str = ""
    set: tuple[str, ...] = ()
    column: str = ""
    model: dict[str, str] = field(default_factory=dict)
    pooling: Literal["", "cls", "mean", "first_last", "embeddings_last"] = ""
    whitened: bool = False
    flow: bool = False
    word_vectors: bool = False
    families: tuple[str, ...] = ()
    printed: dict[str, tuple[float, ...]] = field(default_factory=dict)
    deviations: dict[str, tuple[float, ...]] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """A group of sentence pairs: from opencse's own sentences, from the STS tasks, or written out.

    Attributes:
        name: What its columns begin with.
        transformation: Sentences of the probe with this transformation, such as `negation`.
        least_score: Pairs of the STS tasks with at least this human score …
        below_score: … below this one …
        below_overlap: … and with a lexical overlap below this …
        task: … of this task alone; empty for all.
        place: A single pair of the STS data: its task, its part, and its row from 0.
        sentence: One sentence …
        versions: … and its versions.
    """

    name: str
    transformation: str = ""
    least_score: float | None = None
    below_score: float = 5.01
    below_overlap: float = 1.01
    task: str = ""
    place: tuple[str, str, int] | None = None
    sentence: str = ""
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NeighbourQuery:
    """A sentence that is searched for among those of STS-B test.

    Attributes:
        text: The sentence.
        answer: Where the sentence that should be found stands: the row of the test part, from 0,
            and 1 or 2 for the side of the pair. Empty if none is known.
    """

    text: str
    answer: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A table or figure of a paper.

    Attributes:
        name: Paper and table, such as `osscse/table-4`.
        title: What the table shows.
        kind: What is measured of each system, and so what its columns name. `scores`: STS tasks,
            `Cont.` and `Oppn.`, and mean cosines by transformation, such as `cosine: negation`.
            `tasks`: any task of `opencse evaluate`, with its main metric or another, such as
            `STSB-97: recall@1`. `curves`: what `Selection.watch` measures while a system trains;
            the last values stand in the table. `splits`: OssCSE's consistent and opposed pairs;
            with systems, their scores on the parts of each set. `pairs`: cosines and wording of
            `groups` of sentence pairs, such as `negation: cosine`. `training_pairs`: the same of
            the pairs that a system trains on, by the vectors of the first system. `cost`: the
            minutes of a training. `neighbours`: the rank of the answer to each of the `queries`.
            `projection`: sentences in two dimensions.
        columns: What is measured, in the order of the paper; `Avg.` is the mean of the others, and
            `Avg. METRIC` of those with this metric.
        digits: Digits after the point.
        plot: How pairs are drawn next to the table: as a `scatter` of cosine and match error rate,
            or as a `histogram` of cosines. Curves and projections always are.
        families: Families of backbones in the paper.
        seeds: Runs averaged in each printed score.
        systems: The rows.
        groups: The groups of sentence pairs that are measured.
        queries: The sentences that are searched for.
        watch: What is measured while a system trains (`Selection.watch`), of which the columns are
            parts.
        texts: Number of pairs of each group whose texts are listed, with the cosines.
        note: What a reader should know.
    """

    name: str
    title: str
    kind: Literal[
        "scores",
        "tasks",
        "curves",
        "splits",
        "pairs",
        "cost",
        "training_pairs",
        "neighbours",
        "projection",
    ] = "scores"
    columns: tuple[str, ...] = (
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STS-B",
        "SICK-R",
        "Avg.",
    )
    digits: int = 2
    plot: Literal["", "scatter", "histogram"] = ""
    families: tuple[str, ...] = ("bert-base",)
    seeds: int = 1
    systems: tuple[System, ...] = ()
    groups: tuple[PairGroup, ...] = ()
    queries: tuple[NeighbourQuery, ...] = ()
    watch: tuple[str, ...] = ()
    texts: int = 0
    note: str = ""

    @property
    def parsed_columns(self) -> list[EntryColumn]:
        """The columns, with what they are about."""
        return [EntryColumn.parse(title) for title in self.columns]

    def systems_of(self, family: str) -> tuple[System, ...]:
        """Return the rows that the paper has for a family of backbones."""
        return tuple(
            row for row in self.systems if family in (row.families or row.printed or self.families)
        )


def entry_names() -> list[str]:
    """Return the names of all entries."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in _SHIPPED.glob("*/*.toml"))


def load_entry(name: str) -> Entry:
    """Read an entry.

    Raises:
        OpencseError: There is no such entry.
    """
    if name not in entry_names():
        raise unknown_name_error("table", name, entry_names(), "opencse reproduce")
    content = parse_toml((_SHIPPED / f"{name}.toml").read_text(encoding="utf-8"), name)
    return decode(Entry, content | {"name": name}, name)
