"""Measurements of a reproduction on the models themselves: pairs, neighbours and projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opencse.commands.reproduction import Entry
from opencse.commands.reproduction.details import Detail
from opencse.commands.reproduction.neighbours import find_neighbours, searched_texts
from opencse.commands.reproduction.pair_cosines import pair_cosines, texts_of
from opencse.commands.reproduction.pair_groups import load_group
from opencse.commands.reproduction.projection import project
from opencse.commands.reproduction.training_pairs import training_pairs
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import ScoredPairs, TextEmbeddings, load_sts
from opencse.evaluation.probes import ProbeData
from opencse.evaluation.sts_sources import TextVariant
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus

SENTENCES = 2000
"""Sentences of a projection."""


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A model with its scores on disk: a trained one, an untouched backbone, or a released one.

    Attributes:
        folder: Folder of the run.
        scores: Its usual scores.
        given: Name of a model that was not trained here; empty for a trained one.
        pooling: Pooling of a model that was not trained here.
        recipe: What it was trained with; None for an untouched backbone.
        corpus: What it was trained from.
    """

    folder: Path
    scores: dict[str, float]
    given: str = ""
    pooling: str = ""
    recipe: Recipe | None = None
    corpus: Corpus | None = None

    @property
    def model(self) -> str:
        """Folder or name of the model."""
        return self.given or str(self.folder / "model")

    @property
    def rows(self) -> Corpus | None:
        """The rows that it was trained on: what the run made of the corpus, or the corpus itself."""
        made = (self.folder / name for name in ("mixture.parquet", "labelled.parquet", "views", "corpus.parquet"))
        return next((Corpus(path) for path in made if path.exists()), self.corpus)


MeasureModel = Callable[[StoredRun], Detail]


def model_measure(entry: Entry, probe_data: ProbeData, data: str | Path | None) -> MeasureModel | None:
    """Return what an entry measures on each model; None for a kind that reads scores alone.

    The systems must be measured in the order of the entry: the vectors of `training_pairs` are those of the first.

    Args:
        entry: The table or figure.
        probe_data: Sentences and STS pairs.
        data: The STS files.

    Raises:
        OpencseError: The data that the entry is about is not there.
    """
    if entry.kind == "pairs":
        groups = {group.name: load_group(group, probe_data, data) for group in entry.groups}
        return lambda run: pair_cosines(groups, _embeddings(_embedder(run), texts_of(groups)))
    if entry.kind == "training_pairs":
        return _training_pairs_measure()
    if entry.kind == "neighbours":
        pairs = _stsb(entry, data, "test")
        texts = searched_texts(pairs, entry.queries)
        return lambda run: find_neighbours(pairs, entry.queries, _embeddings(_embedder(run), texts))
    if entry.kind == "projection":
        sets = [_stsb(entry, data, "dev")] if data is not None else probe_data.pairs
        shown = list(dict.fromkeys(text for each in sets for text in (*each.sentence1, *each.sentence2)))[:SENTENCES]
        return lambda run: project(_embedder(run)(shown))
    return None


def _training_pairs_measure() -> MeasureModel:
    first: list[Embedder] = []

    def measure(run: StoredRun) -> Detail:
        if run.recipe is None or run.rows is None:
            raise OpencseError("an untouched backbone has no training pairs")
        if not first:
            first.append(_embedder(run))
        groups = training_pairs(run.recipe, run.rows)
        return pair_cosines(groups, _embeddings(first[0], texts_of(groups)))

    return measure


def _stsb(entry: Entry, data: str | Path | None, split: str) -> ScoredPairs:
    if data is None:
        raise OpencseError(f"{entry.name} is about STS-B", "Pass --data.")
    text: TextVariant = "raw" if entry.kind == "neighbours" or data == "hub" else "senteval"
    return load_sts(data, text=text, tasks=["STS-B"], split=split)[0]


def _embedder(run: StoredRun) -> Embedder:
    return Embedder(load_encoder(run.model, pooling=run.pooling or "backbone"), precision="auto")


def _embeddings(embedder: Embedder, texts: Sequence[str]) -> TextEmbeddings:
    return TextEmbeddings(texts, embedder(texts))
