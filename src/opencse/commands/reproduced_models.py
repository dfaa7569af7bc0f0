"""Measurements of a reproduction on the trained models themselves: pairs, neighbours and projections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from opencse.commands.reproduction import Entry
from opencse.commands.reproduction.details import Detail
from opencse.commands.reproduction.neighbours import find_neighbours, searched_texts
from opencse.commands.reproduction.pair_cosines import pair_cosines, texts_of
from opencse.commands.reproduction.pair_groups import SentencePairs, load_group
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

Rows = Callable[[], Corpus]


class MeasureModel(Protocol):
    """A measure of one system's model."""

    def __call__(self, model: str, pooling: str, recipe: Recipe | None, rows: Rows) -> Detail:
        """Return what the model gives.

        Args:
            model: Its folder or name.
            pooling: Of an untouched backbone; empty otherwise.
            recipe: What it was trained with; None for an untouched backbone.
            rows: Returns the rows that it was trained on.
        """


def model_measure(entry: Entry, probe_data: ProbeData, data: str | None) -> MeasureModel | None:
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
        return _pairs_measure({group.name: load_group(group, probe_data, data) for group in entry.groups})
    if entry.kind == "training_pairs":
        return _training_pairs_measure()
    if entry.kind == "neighbours":
        return _neighbours_measure(entry, _stsb(entry, data, "test"))
    if entry.kind == "projection":
        sets = [_stsb(entry, data, "dev")] if data is not None else probe_data.pairs
        return _projection_measure(sets)
    return None


def _pairs_measure(groups: Mapping[str, SentencePairs]) -> MeasureModel:
    texts = texts_of(groups)

    def measure(model: str, pooling: str, recipe: Recipe | None, rows: Rows) -> Detail:
        return pair_cosines(groups, _embeddings(_embedder(model, pooling), texts))

    return measure


def _training_pairs_measure() -> MeasureModel:
    first: list[Embedder] = []

    def measure(model: str, pooling: str, recipe: Recipe | None, rows: Rows) -> Detail:
        if recipe is None:
            raise OpencseError("an untouched backbone has no training pairs")
        if not first:
            first.append(_embedder(model, pooling))
        groups = training_pairs(recipe, rows())
        return pair_cosines(groups, _embeddings(first[0], texts_of(groups)))

    return measure


def _neighbours_measure(entry: Entry, pairs: ScoredPairs) -> MeasureModel:
    texts = searched_texts(pairs, entry.queries)

    def measure(model: str, pooling: str, recipe: Recipe | None, rows: Rows) -> Detail:
        return find_neighbours(pairs, entry.queries, _embeddings(_embedder(model, pooling), texts))

    return measure


def _projection_measure(sets: Sequence[ScoredPairs]) -> MeasureModel:
    texts = list(dict.fromkeys(text for each in sets for text in (*each.sentence1, *each.sentence2)))[:SENTENCES]

    def measure(model: str, pooling: str, recipe: Recipe | None, rows: Rows) -> Detail:
        return project(_embedder(model, pooling)(texts))

    return measure


def training_rows(folder: Path, corpus: Corpus) -> Corpus:
    """Return the rows that a run was trained on: what it made of the corpus, or the corpus itself."""
    made = (folder / name for name in ("mixture.parquet", "labelled.parquet", "views", "corpus.parquet"))
    return next((Corpus(path) for path in made if path.exists()), corpus)


def _stsb(entry: Entry, data: str | None, split: str) -> ScoredPairs:
    if data is None:
        raise OpencseError(f"{entry.name} is about STS-B", "Pass --data.")
    text: TextVariant = "raw" if entry.kind == "neighbours" or data == "hub" else "senteval"
    return load_sts(data, text=text, tasks=["STS-B"], split=split)[0]


def _embedder(model: str, pooling: str) -> Embedder:
    return Embedder(load_encoder(model, pooling=pooling or "backbone"), precision="auto")


def _embeddings(embedder: Embedder, texts: Sequence[str]) -> TextEmbeddings:
    return TextEmbeddings(texts, embedder(texts))
