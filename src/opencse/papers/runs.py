"""The runs of a reproduction: trained or found on disk, and measured as a table or figure asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opencse.commands.evaluate import evaluate
from opencse.commands.options import ReproduceOptions
from opencse.commands.run import run
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.evaluation import Encode, ScoredPairs, load_sts
from opencse.evaluation.probes import ProbeData, ProbeScores, run_probes
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import Curve
from opencse.foundation.files import write_json
from opencse.papers.details import (
    Detail,
    find_neighbours,
    load_group,
    pair_cosines,
    project,
    training_pairs,
)
from opencse.papers.entries import Entry, System
from opencse.recipes import Recipe, dump_recipe, load_recipe
from opencse.recipes.load import RecipeFile, stand_ins
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus, chunks
from opencse.training.run_groups import read_run

SENTENCES = 2000
"""Sentences of a projection."""
_WHITENED = 16384  # sentences that are encoded at a time


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A model with its usual scores on disk: a trained one, or the one `given`, untouched or released.

    `recipe` is None for an untouched backbone; `pooling` is that of a given model. Once it is
    measured as an entry asks, the scores are those of its columns, or why there are none; `curves`
    are by column, and `detail` is what the model itself gave.
    """

    folder: Path
    scores: Mapping[str, float | str]
    given: str = ""
    pooling: str = ""
    recipe: Recipe | None = None
    corpus: Corpus | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)
    detail: Detail | None = None

    @property
    def model(self) -> str:
        """Folder or name of the model."""
        return self.given or str(self.folder / "model")

    @property
    def rows(self) -> Corpus | None:
        """The rows that it was trained on: what the run made of the corpus, or the corpus itself."""
        paths = (
            self.folder / name
            for name in ("mixture.parquet", "joined.parquet", "views", "corpus.parquet")
        )
        return next((Corpus(path) for path in paths if path.exists()), self.corpus)

    def with_detail(self, detail: Detail) -> StoredRun:
        """Return the run with what the model itself gave."""
        return replace(self, scores=detail.scores(), detail=detail)


Measure = Callable[[StoredRun], StoredRun]


def entry_measure(entry: Entry, probe_data: ProbeData, data: str | Path | None) -> Measure:
    """Return a function that gives a run what an entry shows of it.

    The systems must be measured in the order of the entry: the vectors of `training_pairs` are
    those of the first.

    Raises:
        OpencseError: The data that the entry is about is not there.
    """
    if entry.kind == "pairs":
        groups = {group.name: load_group(group, probe_data, data) for group in entry.groups}
        return lambda run: run.with_detail(pair_cosines(groups, _embedder(run)))
    if entry.kind == "training_pairs":
        first: list[StoredRun] = []

        def measure(run: StoredRun) -> StoredRun:
            if run.recipe is None or run.rows is None:
                raise OpencseError("an untouched backbone has no training pairs")
            first.append(run)
            return run.with_detail(
                pair_cosines(training_pairs(run.recipe, run.rows), _embedder(first[0]))
            )

        return measure
    if entry.kind == "neighbours":
        pairs = _stsb(entry, data, "test")
        return lambda run: run.with_detail(find_neighbours(pairs, entry.queries, _embedder(run)))
    if entry.kind == "projection":
        sets = [_stsb(entry, data, "dev")] if data is not None else probe_data.pairs
        shown = list(
            dict.fromkeys(text for pairs in sets for text in (*pairs.sentence1, *pairs.sentence2))
        )[:SENTENCES]
        return lambda run: run.with_detail(project(_embedder(run)(shown)))
    if entry.kind == "tasks":
        return lambda run: replace(run, scores=_task_scores(entry.columns, run, data))
    if entry.kind == "cost":
        return lambda run: replace(run, scores=_cost(run))
    if entry.kind == "curves":
        return lambda run: _with_curves(run, entry.columns)
    return lambda run: run


def _stsb(entry: Entry, data: str | Path | None, split: str) -> ScoredPairs:
    if data is None:
        raise OpencseError(f"{entry.name} is about STS-B", "Pass --data.")
    return load_sts(
        data, text="raw" if entry.kind == "neighbours" else "senteval", tasks=["STS-B"], split=split
    )[0]


def _embedder(run: StoredRun) -> Embedder:
    return Embedder(load_encoder(run.model, pooling=run.pooling or "backbone"), precision="auto")


@dataclass(frozen=True)
class Start:
    """What the systems are trained from: a backbone, which stands for a family of the paper.

    `settings` is the family whose published settings apply; empty for the backbone's own.
    """

    backbone: str
    family: str
    settings: str = ""

    @cached_property
    def own_family(self) -> str:
        """The family of the backbone itself; empty if there is no such backbone."""
        with suppress(OpencseError):
            return Backbone(self.backbone).family
        return ""

    @property
    def stands_in(self) -> bool:
        """Whether the settings are those of another family than the backbone's own."""
        return self.own_family != "" and self.settings not in ("", self.own_family)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A table or figure, and what all of its runs share.

    `triplets` is the corpus of supervised systems. There is a run of each system for each of the
    `seeds`; None is the recipe's own.
    """

    entry: Entry
    options: ReproduceOptions
    overrides: tuple[str, ...]
    variant: Literal["sound", "faithful"]
    seeds: Sequence[int | None]
    corpus: Corpus
    triplets: Corpus | None
    probe_data: ProbeData

    def corpus_of(self, recipe: Recipe) -> Corpus:
        """Return the corpus of a recipe: the triplets if they alone have the columns that it reads and cannot build."""
        built = {column for name, spec in recipe.build.items() for column in spec.columns(name)}
        given = {*recipe.columns} - built
        labelled = (
            self.triplets is not None and len(given) > 1 and given <= {*self.triplets.columns}
        )
        return self.triplets if self.triplets is not None and labelled else self.corpus

    def paraphrases_of(self, recipe: str) -> Path | None:
        """Return the user's table of paraphrases for a recipe that uses one."""
        used = "paraphrases" in RecipeFile.read(recipe).layers["with"]
        return Path(self.options.paraphrases) if used and self.options.paraphrases else None

    def recipe_of(self, system: System, start: Start, seed: int | None) -> Recipe:
        """Return the recipe that a row trains with.

        Raises:
            OpencseError: A setting does not fit the recipe, or a model or column that it needs is
                not there.
        """
        settings = [*system.set]
        if system.column and system.column not in self.corpus.columns:
            raise OpencseError(
                f"a --corpus with a column {system.column!r} that a language model wrote"
            )
        selection: dict[str, Any] = {
            "family": start.settings or start.own_family,
            "variant": self.variant,
        }
        recipe = load_recipe(system.recipe, **selection, overrides=settings)
        if start.stands_in:
            settings += stand_ins(recipe, start.backbone)
        settings += [*self.overrides, f"selection.watch={[*self.entry.watch]}"]
        settings += [] if seed is None else [f"training.seed={seed}"]
        columns, source = self.corpus_of(recipe).columns, self.paraphrases_of(system.recipe)
        return recipe_for_corpus(
            RecipeFile.read(system.recipe),
            columns,
            **selection,
            overrides=settings,
            paraphrases=source,
        )

    def measure(
        self, system: System, start: Start, measure: Measure = lambda run: run
    ) -> list[StoredRun] | str:
        """Return the measured runs of a row, one for each seed, or the reason why there are none."""
        if system.missing:
            return system.missing
        released = self.options.scale == "full" and start.family in system.model
        if not (released or start.own_family):
            return f"the backbone {start.backbone}"
        try:
            if system.pooling:
                runs = [_given(self, start.backbone, system)]
            elif released:
                runs = [
                    _given(
                        self,
                        system.model[start.family],
                        system,
                        self.recipe_of(system, start, None),
                    )
                ]
            else:
                runs = [_trained(self, system, start, seed) for seed in self.seeds]
            return [measure(run) for run in runs]
        except OpencseError as error:
            self.options.notify(f"{system.label}: {error}")
            return error.problem


def _with_curves(run: StoredRun, columns: Sequence[str]) -> StoredRun:
    """Return a trained run with its curves by column, and their last values as scores."""
    if run.recipe is None:
        return run
    lines = [
        *map(json.loads, (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    ]
    curves = {
        name: [(line["step"], line[name]) for line in lines if name in line] for name in columns
    }
    return replace(
        run, scores={name: curve[-1][1] for name, curve in curves.items() if curve}, curves=curves
    )


def _task_scores(
    columns: Sequence[str], run: StoredRun, data: str | Path | None
) -> dict[str, float | str]:
    """Return the scores of a model on tasks by column; those measured before are read from a file beside the run."""
    file = run.folder.with_name(f"{run.folder.name}-tasks.json")
    scores: dict[str, float] = (
        json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    )
    missing: dict[str, str] = {}
    for column in columns:
        task = column.partition(":")[0]
        if column.startswith("Avg.") or any(name.partition(":")[0] == task for name in scores):
            continue
        try:
            evaluation = evaluate(run.model, data=data, tasks=[task], pooling=run.pooling or None)
        except OpencseError as error:
            missing[column] = error.problem
            continue
        (result,) = (scored for suite in evaluation.results.values() for scored in suite.results)
        metrics = {
            f"{task}: {name}": value for name, value in result.metrics.items() if value is not None
        }
        scores |= metrics if result.score is None else metrics | {task: result.score}
        write_json(file, scores)
    return {**scores, **missing}


def _cost(run: StoredRun) -> dict[str, float]:
    """Return the minutes of a training, and those of an epoch."""
    if run.recipe is None or run.given:
        raise OpencseError("it was not trained here")
    record = read_run(run.folder)
    epochs = record.steps * run.recipe.training.batch_size / record.rows
    return {"minutes": record.seconds / 60, "minutes an epoch": record.seconds / 60 / epochs}


def _given(
    shared: Reproduction, model: str, system: System, recipe: Recipe | None = None
) -> StoredRun:
    """Return the scores of a model that is not trained here: the untouched backbone, or a released model."""
    pooling = system.pooling if recipe is None else recipe.encoder.pooling

    def probe(_: Path) -> ProbeScores:
        embedder = Embedder(load_encoder(model, pooling=pooling), precision="auto")
        encode = whitened(embedder, shared.corpus.texts()) if system.whitened else embedder
        return run_probes(shared.probe_data, encode)

    key = {
        "backbone": model,
        "pooling": pooling,
        **({"whitened": "corpus"} if system.whitened else {}),
    }
    stored = _stored_or_measured(shared, key, probe)
    corpus = None if recipe is None else shared.corpus_of(recipe)
    return replace(stored, given=model, pooling=pooling, recipe=recipe, corpus=corpus)


def whitened(encode: Encode, sentences: Iterable[str]) -> Encode:
    """Return BERT-whitening: the model with a linear map that makes the vectors of a corpus isotropic (Su et al. 2021).

    Raises:
        OpencseError: The sentences are too few for vectors of this size.
    """
    from sklearn.decomposition import IncrementalPCA

    pca = IncrementalPCA(whiten=True)
    for chunk in chunks(sentences, _WHITENED):
        pca.partial_fit(np.asarray(encode(chunk), dtype=np.float64))
    if pca.n_samples_seen_ <= pca.n_features_in_:
        raise OpencseError(
            f"whitening was given {pca.n_samples_seen_:.0f} sentences, which are too few",
            "Give it more.",
        )
    return lambda texts: pca.transform(np.asarray(encode(texts), dtype=np.float64)).astype(
        np.float32
    )


def _trained(shared: Reproduction, system: System, start: Start, seed: int | None) -> StoredRun:
    recipe, options = shared.recipe_of(system, start, seed), shared.options
    corpus = shared.corpus_of(recipe)

    def train(folder: Path) -> ProbeScores:
        options.notify(f"training {recipe.name}, seed {recipe.training.seed}, in {folder}")
        result = run(
            recipe,
            corpus.path,
            backbone=start.backbone,
            out=folder,
            data=options.data,
            dev=None if options.data is not None else "demo",
            pairs=None if options.data is not None else "demo",
            paraphrases=shared.paraphrases_of(system.recipe),
            resume=(folder / "run.json").is_file(),
            progress=options.progress,
            notify=options.notify,
        )
        return list(result.scores.values())[1]

    key = {"recipe": dump_recipe(recipe), "backbone": start.backbone, "corpus": corpus.content_hash}
    key |= {"variant": recipe.variant, "family": recipe.family}  # of the first stages
    return replace(_stored_or_measured(shared, key, train), recipe=recipe, corpus=corpus)


def _stored_or_measured(
    shared: Reproduction, key: Mapping[str, str], measure: Callable[[Path], ProbeScores]
) -> StoredRun:
    """Return folder and scores of a run; they are measured unless an earlier reproduction stored them."""
    dependencies = {
        "corpus": shared.corpus.content_hash,
        **key,
        "data": str(shared.options.data or "written pairs"),
    }
    digest = hashlib.blake2b(
        json.dumps(dependencies, sort_keys=True).encode(), digest_size=8
    ).hexdigest()
    folder = Path(shared.options.out) / "runs" / digest
    file = folder.with_suffix(".json")
    if not file.is_file():
        write_json(file, _by_task(measure(folder)) | {"of": dependencies})
    stored = json.loads(file.read_text(encoding="utf-8"))
    return StoredRun(
        folder=folder, scores={name: score for name, score in stored.items() if name != "of"}
    )


def _by_task(scores: ProbeScores) -> dict[str, Any]:
    """Return the scores by task, the correlations on OssCSE's splits times 100, and mean cosines by transformation.

    `Cont.` and `Oppn.` are averages, `Cont.: NAME` and `Oppn.: NAME` those of one set.
    """
    by_task = {task.task: task.score for task in scores.sts}
    for part in scores.splits:
        name = "" if part == scores.splits[-1] else f": {part.name}"
        values = {"Cont.": part.consistent.value, "Oppn.": part.opposed.value}
        by_task |= {
            f"{side}{name}": None if value is None else 100 * value
            for side, value in values.items()
        }
    if scores.transformations is not None:
        by_task |= {
            f"cosine: {kind.kind}": kind.cosine.value for kind in scores.transformations.kinds
        }
    return {name: value for name, value in by_task.items() if value is not None}
