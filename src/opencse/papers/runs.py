"""The runs of a reproduction: trained or found on disk, and measured as a table or figure asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.encoder.vector_maps import add_flow, add_whitening
from opencse.encoder.word_vectors import load_word_vectors
from opencse.evaluation import ScoredPairs, load_sts
from opencse.evaluation.probes import ProbeData, ProbeScores, run_probes
from opencse.evaluation.task import TaskResult
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import sha256, write_json
from opencse.foundation.progress import Notify
from opencse.papers.details import (
    Detail,
    find_neighbours,
    load_group,
    pair_cosines,
    project,
    training_pairs,
)
from opencse.papers.entries import Entry, System
from opencse.papers.scores import (
    Measured,
    Missing,
    TaskMetrics,
    TaskScores,
    TrainingCost,
    UsualScores,
    WatchedCurves,
    as_numbers,
)
from opencse.recipes import Recipe, dump_recipe
from opencse.recipes.load import RecipeFile, stand_ins
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.training.run_groups import read_run

SENTENCES = 2000
"""Sentences of a projection."""


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """A model with its usual scores on disk: a trained one, or the one `given`, untouched or released.

    Attributes:
        folder: Folder of the run, next to which its scores are kept.
        usual: The scores that every run has.
        given: Name of a model that is not trained here; empty otherwise.
        pooling: Pooling of a given model.
        recipe: The recipe; None for an untouched backbone.
        corpus: The corpus that it was trained on.
        measured: What the entry shows of it, if that is not its usual scores.
    """

    folder: Path
    usual: UsualScores = field(default_factory=UsualScores)
    given: str = ""
    pooling: str = ""
    recipe: Recipe | None = None
    corpus: Corpus | None = None
    measured: Measured | None = None

    @property
    def model(self) -> str:
        """Folder or name of the model."""
        return self.given or str(self.folder / "model")

    @property
    def scores(self) -> Measured:
        """What the table shows of the run."""
        return self.usual if self.measured is None else self.measured

    @property
    def detail(self) -> Detail | None:
        """What the model itself gave, to be drawn and listed; None for plain scores."""
        return self.measured if isinstance(self.measured, Detail) else None

    @property
    def rows(self) -> Corpus | None:
        """The rows that it was trained on: what the run made of the corpus, or the corpus itself."""
        for name in ("mixture.parquet", "joined.parquet", "views", "corpus.parquet"):
            path = self.folder / name
            if path.exists():
                return Corpus(path)
        return self.corpus

    def embedder(self) -> Embedder:
        """Return the model, opened."""
        encoder = load_encoder(self.model, pooling=self.pooling or "backbone")
        return Embedder(encoder, precision="auto")


Measure = Callable[[MeasuredModel], Measured | None]
"""Returns what an entry shows of a run; None if that is its usual scores."""

ScoreTask = Callable[[MeasuredModel, str], TaskResult]
"""Returns the metrics of a run's model on a task of `opencse evaluate`."""


def entry_measure(
    entry: Entry, probe_data: ProbeData, data: str | Path | None, score_task: ScoreTask
) -> Measure:
    """Return a function that measures of a run what an entry shows.

    The systems must be measured in the order of the entry: the vectors of `training_pairs` are
    those of the first.

    Raises:
        OpencseError: The data that the entry is about is not there.
    """
    if entry.kind == "pairs":
        groups = {group.name: load_group(group, probe_data, data) for group in entry.groups}
        return lambda run: pair_cosines(groups, run.embedder())
    if entry.kind == "training_pairs":
        return _TrainingPairs()
    if entry.kind == "neighbours":
        pairs = _stsb(entry, data, "test", "raw")
        return lambda run: find_neighbours(pairs, entry.queries, run.embedder())
    if entry.kind == "projection":
        sets = probe_data.pairs
        if data is not None:
            sets = [_stsb(entry, data, "dev", "senteval")]
        distinct = dict.fromkeys(
            text for pairs in sets for text in (*pairs.sentence1, *pairs.sentence2)
        )
        shown = list(distinct)[:SENTENCES]
        return lambda run: project(run.embedder()(shown))
    if entry.kind == "tasks":
        return lambda run: task_scores(entry, run, score_task)
    if entry.kind == "cost":
        return training_cost
    if entry.kind == "curves":
        return lambda run: watched_curves(entry, run)
    return lambda run: None


class _TrainingPairs:
    """Measures the pairs that each system trains on by the vectors of the first."""

    def __init__(self) -> None:
        self._first: MeasuredModel | None = None

    def __call__(self, run: MeasuredModel) -> Measured:
        if run.recipe is None or run.rows is None:
            raise OpencseError("an untouched backbone has no training pairs")
        if self._first is None:
            self._first = run
        return pair_cosines(training_pairs(run.recipe, run.rows), self._first.embedder())


def _stsb(
    entry: Entry, data: str | Path | None, split: str, text: Literal["raw", "senteval"]
) -> ScoredPairs:
    if data is None:
        raise OpencseError(f"{entry.name} is about STS-B", "Pass --data.")
    (pairs,) = load_sts(data, text=text, tasks=["STS-B"], split=split)
    return pairs


def task_scores(entry: Entry, run: MeasuredModel, score_task: ScoreTask) -> TaskScores:
    """Return the scores of a model on the tasks of an entry; known ones are read from a file next to the run."""
    file = run.folder.with_name(f"{run.folder.name}-tasks.json")
    known: dict[str, TaskMetrics] = {}
    if file.is_file():
        for name, stored in json.loads(file.read_text(encoding="utf-8")).items():
            known[name] = TaskMetrics(main=stored["main"], metrics=as_numbers(stored["metrics"]))
    missing: dict[str, Missing] = {}
    for column in entry.parsed_columns:
        task = column.subject
        if column.is_average or task in known or task in missing:
            continue
        try:
            known[task] = TaskMetrics.of(score_task(run, task))
        except OpencseError as error:
            missing[task] = Missing(error.problem)
            continue
        write_json(file, {name: asdict(scored) for name, scored in known.items()})
    return TaskScores(tasks=known, missing=missing)


def training_cost(run: MeasuredModel) -> TrainingCost:
    """Return the minutes of a training, and those of an epoch.

    Raises:
        OpencseError: The model was not trained here.
    """
    if run.recipe is None or run.given:
        raise OpencseError("it was not trained here")
    record = read_run(run.folder)
    epochs = record.steps * run.recipe.training.batch_size / record.rows
    return TrainingCost(minutes=record.seconds / 60, epochs=epochs)


def watched_curves(entry: Entry, run: MeasuredModel) -> WatchedCurves | None:
    """Return the curves of a trained run by column; None for an untouched backbone."""
    if run.recipe is None:
        return None
    log = (run.folder / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in log.splitlines()]
    curves = {}
    for title in entry.columns:
        curves[title] = [(line["step"], line[title]) for line in lines if title in line]
    return WatchedCurves(curves=curves)


@dataclass(frozen=True)
class Start:
    """What the systems are trained from: a backbone, which stands for a family of the paper.

    Attributes:
        backbone: Name or folder of the model.
        family: The family of the paper.
        settings: The family whose published settings apply; empty for the backbone's own.
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
class TrainingRequest:
    """A training that a reproduction needs.

    Attributes:
        recipe: The resolved recipe.
        corpus: The corpus.
        backbone: Name or folder of the model to train.
        folder: The folder of the run.
        paraphrases: The user's table of paraphrases, for recipes that use one.
        resume: Whether the folder holds a run that was interrupted.
    """

    recipe: Recipe
    corpus: Corpus
    backbone: str
    folder: Path
    paraphrases: Path | None
    resume: bool


class Train(Protocol):
    """Trains a system, and probes the trained model."""

    def __call__(self, training: TrainingRequest) -> ProbeScores:
        """Return the scores of the trained model."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A table or figure, and what all of its runs share.

    Attributes:
        entry: The table or figure.
        out: Folder of the reproduction; its runs are in `runs`.
        scale: `small`, or `full`: with the backbones of the paper, and released models.
        overrides: Settings of all recipes.
        variant: Variant of all recipes.
        seeds: There is a run of each system for each seed; None is the recipe's own.
        corpus: Sentences to train on.
        triplets: The corpus of supervised systems.
        paraphrases: The user's table of paraphrases.
        word_vectors: The user's file of word vectors.
        data: The folder of STS data; None for the written pairs.
        probe_data: What every model is probed with.
        train: Trains a system.
        notify: Receives short notes for the user.
    """

    entry: Entry
    out: Path
    scale: Literal["small", "full"]
    overrides: tuple[str, ...]
    variant: Literal["sound", "faithful"]
    seeds: Sequence[int | None]
    corpus: Corpus
    triplets: Corpus | None
    paraphrases: Path | None
    data: str | Path | None
    probe_data: ProbeData
    train: Train
    notify: Notify
    word_vectors: Path | None = None

    def runs_of(
        self, system: System, start: Start, measure: Measure = lambda run: None
    ) -> list[MeasuredModel] | Missing:
        """Return the measured runs of a row, one for each seed, or the reason why there are none."""
        if system.missing:
            return Missing(system.missing)
        if system.word_vectors:
            return self.averaged(measure)
        released = ""
        if self.scale == "full":
            released = system.model.get(start.family, "")
        if not released and not start.own_family:
            return Missing(f"the backbone {start.backbone}")
        try:
            if system.pooling:
                runs = [self.untouched(system, start)]
            elif released:
                runs = [self.released(system, start, released)]
            else:
                runs = [self.trained(system, start, seed) for seed in self.seeds]
            return [replace(run, measured=measure(run)) for run in runs]
        except OpencseError as error:
            self.notify(f"{system.label}: {error}")
            return Missing(error.problem)

    def averaged(self, measure: Measure) -> list[MeasuredModel] | Missing:
        """Return the model that averages the user's word vectors, or why there is none."""
        file = self.word_vectors
        if file is None:
            return Missing("a file of --word-vectors, such as GloVe's")

        def probe() -> ProbeScores:
            return run_probes(self.probe_data, Embedder(load_word_vectors(file)))

        place = self._place({"word vectors": sha256(file)})
        usual = place.scores_or(probe)
        run = MeasuredModel(folder=place.folder, usual=usual, given=str(file))
        return [replace(run, measured=measure(run))]

    def untouched(self, system: System, start: Start) -> MeasuredModel:
        """Return the untouched backbone of a row, with a map of its vectors if the row asks for one."""

        def probe() -> ProbeScores:
            encoder = load_encoder(start.backbone, pooling=system.pooling)
            if system.whitened:
                encoder = add_whitening(encoder, self.corpus.texts())
            if system.flow:
                encoder = add_flow(encoder, self.corpus.texts())
            return run_probes(self.probe_data, Embedder(encoder, precision="auto"))

        key = {"backbone": start.backbone, "pooling": system.pooling}
        if system.whitened:
            key["whitened"] = "corpus"
        if system.flow:
            key["flow"] = "corpus"
        place = self._place(key)
        usual = place.scores_or(probe)
        return MeasuredModel(
            folder=place.folder, usual=usual, given=start.backbone, pooling=system.pooling
        )

    def released(self, system: System, start: Start, model: str) -> MeasuredModel:
        """Return a released model of a row, which takes the place of a training."""
        recipe = self.recipe_of(system, start, None)
        pooling = recipe.encoder.pooling

        def probe() -> ProbeScores:
            encoder = load_encoder(model, pooling=pooling)
            return run_probes(self.probe_data, Embedder(encoder, precision="auto"))

        place = self._place({"backbone": model, "pooling": pooling})
        usual = place.scores_or(probe)
        return MeasuredModel(
            folder=place.folder,
            usual=usual,
            given=model,
            pooling=pooling,
            recipe=recipe,
            corpus=self.corpus_of(recipe),
        )

    def trained(self, system: System, start: Start, seed: int | None) -> MeasuredModel:
        """Return the run of a row with a seed; it is trained unless an earlier reproduction did."""
        recipe = self.recipe_of(system, start, seed)
        corpus = self.corpus_of(recipe)
        place = self._place(
            {
                "recipe": dump_recipe(recipe),
                "backbone": start.backbone,
                "corpus": corpus.content_hash,
                # Of the first stages, whose recipes are not in this one's.
                "variant": recipe.variant,
                "family": recipe.family,
            }
        )

        def train() -> ProbeScores:
            self.notify(f"training {recipe.name}, seed {recipe.training.seed}, in {place.folder}")
            return self.train(
                TrainingRequest(
                    recipe=recipe,
                    corpus=corpus,
                    backbone=start.backbone,
                    folder=place.folder,
                    paraphrases=self.paraphrases_of(system.recipe),
                    resume=(place.folder / "run.json").is_file(),
                )
            )

        usual = place.scores_or(train)
        return MeasuredModel(folder=place.folder, usual=usual, recipe=recipe, corpus=corpus)

    def recipe_of(self, system: System, start: Start, seed: int | None) -> Recipe:
        """Return the recipe that a row trains with.

        Raises:
            OpencseError: A setting does not fit the recipe, or a model or column that it needs is
                not there.
        """
        if system.column and system.column not in self.corpus.columns:
            raise OpencseError(
                f"a --corpus with a column {system.column!r} that a language model wrote"
            )
        file = recipe_file(system.recipe)
        family = start.settings or start.own_family
        settings = list(system.set)
        columns: Collection[str] = self.corpus.columns
        # Which models must be stood in for, and which corpus has the columns, shows only in the
        # resolved recipe.
        if start.stands_in or self.triplets is not None:
            published = file.resolve(family=family, variant=self.variant, overrides=settings)
            columns = self.corpus_of(published).columns
            if start.stands_in:
                settings += stand_ins(published, start.backbone)
        settings += self.overrides
        settings.append(f"selection.watch={[*self.entry.watch]}")
        if seed is not None:
            settings.append(f"training.seed={seed}")
        return recipe_for_corpus(
            file,
            columns,
            family=family,
            variant=self.variant,
            overrides=settings,
            paraphrases=self.paraphrases_of(system.recipe),
        )

    def corpus_of(self, recipe: Recipe) -> Corpus:
        """Return the corpus of a recipe: the triplets if they alone have the columns that it reads and cannot build."""
        if self.triplets is None:
            return self.corpus
        built = {column for name, view in recipe.build.items() for column in view.columns(name)}
        given = set(recipe.columns) - built
        labelled = len(given) > 1 and given <= set(self.triplets.columns)
        return self.triplets if labelled else self.corpus

    def paraphrases_of(self, recipe: str) -> Path | None:
        """Return the user's table of paraphrases for a recipe that uses one."""
        used = "paraphrases" in recipe_file(recipe).layers["with"]
        return self.paraphrases if used else None

    def _place(self, key: Mapping[str, str]) -> _Place:
        """Return where a run and its scores are kept, by everything that they depend on."""
        dependencies = {
            "corpus": self.corpus.content_hash,
            **key,
            "data": str(self.data or "written pairs"),
        }
        text = json.dumps(dependencies, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return _Place(self.out / "runs" / digest, dependencies)


@lru_cache
def recipe_file(name: str) -> RecipeFile:
    """Return the file of a recipe, read once for all rows and seeds."""
    return RecipeFile.read(name)


@dataclass(frozen=True)
class _Place:
    """Folder of a run, and the file of its scores next to it."""

    folder: Path
    dependencies: Mapping[str, str]

    def scores_or(self, probe: Callable[[], ProbeScores]) -> UsualScores:
        """Return the scores that an earlier reproduction stored, or those of `probe`, which are stored."""
        file = self.folder.with_suffix(".json")
        stored: dict[str, Any] = {}
        if file.is_file():
            stored = json.loads(file.read_text(encoding="utf-8"))
        # A file of an earlier version has the scores in another form. They are measured again; a
        # finished training is not repeated.
        if not isinstance(stored.get("tasks"), dict):
            usual = UsualScores.of(probe())
            write_json(file, {**asdict(usual), "of": self.dependencies})
            return usual
        return UsualScores(
            tasks=as_numbers(stored["tasks"]),
            consistent=as_numbers(stored["consistent"]),
            opposed=as_numbers(stored["opposed"]),
            averages=as_numbers(stored["averages"]),
            cosines=as_numbers(stored["cosines"]),
        )
