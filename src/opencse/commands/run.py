"""`opencse.run`: build columns, train, probe before and after, and report; or, without text, add a block."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import ModelCard
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.check import check_encoder
from opencse.commands.command_line import apply, takes
from opencse.commands.compare import EMBED_AGAIN
from opencse.commands.evaluate import named_and_given
from opencse.commands.options import RunOptions
from opencse.commands.reports.examples import (
    Example,
    Triple,
    own_triples,
    package_triples,
    pick_examples,
)
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import (
    Comparison,
    cache_line,
    compare_models,
    headline_rows,
)
from opencse.commands.train import (
    model_lines,
    path_line,
    read_validation,
    recipe_callbacks,
    resolve_recipe,
    run_control,
    scoring_precision,
    train_on_rows,
    training_line,
)
from opencse.debias.add import add_block
from opencse.debias.payload import CACHING
from opencse.debias.reranker import Reranker, reranker_of
from opencse.debias.training import block_evaluators, read_strength
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder, Precision, cached_vectors
from opencse.evaluation import STS_TASKS, TaskResult
from opencse.evaluation.check.contradictions import SentenceRewriter
from opencse.evaluation.evaluators import TaskEvaluator
from opencse.evaluation.probes import ProbeData, ProbeScores, load_probe_data, run_probes
from opencse.evaluation.sts import development_sets
from opencse.evaluation.suites import OWN, TASKS
from opencse.evaluation.task import Results, Task
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.files import locked, write_json, write_text
from opencse.foundation.numbers import check_minutes, few_sentences
from opencse.foundation.page_text import shown
from opencse.foundation.plugins import ways_to_add
from opencse.foundation.progress import collect, timed
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.recipes import Recipe, load_recipe, shortened
from opencse.recipes.load import adapt_recipe
from opencse.recipes.rows.prepare import RowSources, missing_specs, prepare_rows
from opencse.text.corpus import Corpus
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS, ChosenLanguage, choose_language
from opencse.text.user_text import UserText, document_passages
from opencse.text.views.registry import View, texts_hash
from opencse.training.first_stages import train_first_stages
from opencse.training.folder import check_folder
from opencse.training.model_card import hub_score
from opencse.training.session import RunControl
from opencse.training.train import TrainingRun
from opencse.training.trained_model import load_start

_NEED_TEXT = ("paraphrases", "guard", "dev", "pairs", "minutes")
_SECTION = "## Before and after"
# The check of a user's documents in a report: about half a minute on two cores with a small model.
_CHECKED_DOCUMENTS = 100
_CHECKED_SENTENCES = 60
_PARSED_SENTENCES = 800
_UNIT = 1e-2  # by which the length of a vector in half precision may differ from 1
_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)
_NO_PAIRS = "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."
UPGRADE = (
    "Your existing vectors stay valid; the guide “Upgrade an index” shows how. Rerank the top hits of a search with "
    "opencse.Reranker; contradictions drop down the list."
)
_NOT_UNIT = (
    "The vectors of this model don't have length 1, those of the new model do. If your index ranks by cosine, divide each "
    "stored vector by its length and upgrade it (guide “Upgrade an index”). If it ranks by inner product, its order "
    "changes: embed your documents again."
)


@takes(RunOptions)
def run(options: RunOptions) -> RunResult:
    """Build columns, train and evaluate.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if options.corpus is None:
        return add_shipped_block(options)
    # The clock of --minutes starts with the command.
    deadline = None
    if options.minutes is not None:
        check_minutes(options.minutes)
        deadline = time.perf_counter() + 60 * options.minutes
    folder = Path(options.out)
    with locked(folder), collect() as timings:
        control = replace(run_control(options), deadline=deadline)
        source = open_source(options)
        # All data is read before any training, so that a mistake in a path costs nothing.
        probe_data = load_probe_data(data=options.data, pairs=_given(options.pairs))
        probe_data = replace(probe_data, tasks=own_tasks(options.tasks))
        evaluators = read_validation(source.recipe, options)
        callbacks = recipe_callbacks(source.recipe, source.corpus, source.likely, options)
        control = replace(control, callbacks=callbacks)
        for line in source.remarks():
            options.notify(line)
        miners = train_miners(source, control, options)
        rows = make_rows(source, miners, options)
        if not (folder / "run.json").is_file():
            # Killed while its text was built: there is nothing to resume but the text.
            control = replace(control, resume=False)
        trained = train_on_rows(source.recipe, rows, source.backbone, evaluators, control)
        probed = probe_models(
            trained, source.backbone, probe_data, own_triples(rows, source.recipe)
        )
        own_texts = check_own_texts(source, trained, options)
        comparison, report = report_run(trained, probed, probe_data.notes, source.few, own_texts)
        readme = trained.model / "README.md"
        add_scores(readme, probed.by_name(), probed.trained, made_of=source.description())
        told = [line.removeprefix("warning: ") for line in source.few]
        trained = replace(trained, warnings=(*told, *trained.warnings))
    result = RunResult(
        run=trained,
        untouched=probed.untouched,
        trained=probed.trained,
        scores=probed.by_name(),
        comparison=comparison,
        report=report,
        timings=timings.rounded(),
    )
    result.save(folder / "results.json")
    options.notify(timings.line())
    return result


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a run trains on, opened and decided once.

    Attributes:
        corpus: The user's text, one sentence per row.
        recipe: The resolved recipe.
        backbone: The model to start from.
        likely: The likely language of the text; None for unknown.
        language: The rules for the language of the text.
        paraphrases: The user's table of paraphrases.
        few: A warning if the text has few sentences.
    """

    corpus: Corpus
    recipe: Recipe
    backbone: Backbone
    likely: str | None
    language: ChosenLanguage
    paraphrases: Path | None
    few: list[str]

    @property
    def missing(self) -> dict[str, View]:
        """The views that must be built."""
        return missing_specs(self.recipe.build, self.recipe.columns, self.corpus.columns)

    def remarks(self) -> list[str]:
        """Return what the user should know before anything is built."""
        lines = list(self.few)
        line = self.language.line(self.missing)
        if line:
            lines.append(line)
        return lines

    def description(self) -> str:
        """Return the names of the text and of the paraphrases, for the model card."""
        if self.paraphrases is None:
            return self.corpus.name
        return f"{self.corpus.name}, paraphrases from {self.paraphrases.name}"


def open_source(options: RunOptions) -> Source:
    """Open the text and the model, and resolve the recipe with everything that is known of both.

    Raises:
        OpencseError: The text, the recipe or the model cannot be used.
    """
    text = UserText(options.corpus, options.column)
    likely = likely_language(text.first_texts(ENOUGH_TEXTS))
    paraphrases = None if options.paraphrases is None else Path(options.paraphrases)
    backbone = Backbone(options.backbone)
    recipe = resolve_recipe(
        options, backbone, text.columns, likely, paraphrases=paraphrases, builds=True
    )
    if options.quick:
        recipe = shortened(recipe)
    # Documents are split into sentences, unless they are a table with columns that the recipe's
    # views read.
    corpus = text.corpus(set(recipe.columns) - {"text"})
    few = few_sentences(corpus.texts()) if paraphrases is None else []
    backbone = backbone.with_seed(recipe.training.seed)
    # A model that cannot be used is refused before any text is built.
    load_start(recipe, backbone)
    return Source(
        corpus=corpus,
        recipe=recipe,
        backbone=backbone,
        likely=likely,
        language=choose_language(recipe.corpus.language, likely),
        paraphrases=paraphrases,
        few=few,
    )


def train_miners(source: Source, control: RunControl, options: RunOptions) -> dict[str, Path]:
    """Train the models that the recipe mines with, and return their folders by name."""
    with timed("first stages"), collect():  # what is inside counts for it
        sets = development_sets(options.dev, options.data)
        development = TaskEvaluator(sets) if sets else None
        return train_first_stages(
            source.recipe,
            source.missing,
            source.corpus,
            source.backbone,
            Evaluators(development=development),
            control,
        )


def make_rows(source: Source, miners: Mapping[str, Path], options: RunOptions) -> Corpus:
    """Return the rows to train on: the corpus, or what is sampled, built and mixed from it."""
    models = {"backbone": source.backbone}
    for name, path in miners.items():
        models[name] = Backbone(path)
    sources = RowSources(
        models=models,
        paraphrases=source.paraphrases,
        pack=source.language.pack,
        keep=options.resume or not options.overwrite,
    )
    return prepare_rows(source.recipe, source.corpus, Path(options.out), sources, options.notify)


def own_tasks(tasks: Any) -> list[Task]:
    """Return the user's tasks: objects, or registered ones by name."""
    names, given = named_and_given(tasks)
    loaded: list[Task] = []
    for name in names:
        if name not in TASKS:
            raise OpencseError(
                f"there is no task {name!r} of your own",
                f"{ways_to_add(TASKS.group)} For other tasks, run `opencse evaluate`.",
            )
        loaded.append(TASKS[name]())
    return [*loaded, *given]


def _given(path: str | Path | None) -> list[str | Path]:
    return [] if path is None else [path]


def command(options: RunOptions) -> None:
    """Run, and print the result."""
    show(apply(run, options))


def add_shipped_block(options: RunOptions) -> RunResult:
    """Add the block that comes with the package for a model; nothing is trained.

    Raises:
        OpencseError: No block comes with the package for this model, the recipe has none, or an
            option needs text.
    """
    folder = Path(options.out)
    if isinstance(options.recipe, Recipe):
        recipe = adapt_recipe(
            options.recipe,
            family=options.recipe.family,
            variant=options.variant,
            overrides=options.settings,
        )
    else:
        recipe = load_recipe(options.recipe, variant=options.variant, overrides=options.settings)
    if recipe.block is None:
        raise OpencseError(
            f"the recipe {recipe.name} needs text", f"Give it: opencse run {recipe.name} DOCUMENTS."
        )
    needing_text = [name for name in _NEED_TEXT if getattr(options, name) is not None]
    if recipe.block.same_width:
        needing_text.append("same-width")
    if needing_text:
        raise OpencseError(
            f"--{needing_text[0]} needs text to train on",
            f"Give it: opencse run {recipe.name} DOCUMENTS.",
        )
    with locked(folder), collect() as timings:
        check_folder(
            folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone
        )
        backbone = Backbone(options.backbone)
        evaluators = partial(block_evaluators, precision=scoring_precision(recipe, options))
        added = add_block(recipe, backbone, folder, evaluators, overwrite=options.overwrite)
        curve = read_strength(folder)
        name = Path(backbone.name).name
        nothing = ProbeScores(sts=())
        scores = dict.fromkeys((name, f"{name} + {recipe.name}"), nothing)
        encoder = backbone.encoder(**recipe.pooling)
        untouched = Embedder(encoder)
        remarks = [
            _upgrade_remark(encoder),
            "The block only understands English. For other languages, drop it with "
            f"truncate_dim={untouched.dimension}.",
        ]
        changed = compare_models(scores, curve, remarks)
        pairs = pick_examples(package_triples(), untouched.encode, Reranker(added.model))
        report = write_report(scores, folder, comparison=changed, curve=curve, pairs=pairs)
    result = RunResult(
        run=added,
        untouched=nothing,
        trained=nothing,
        scores=scores,
        comparison=changed,
        report=report,
        timings=timings.rounded(),
    )
    result.save(folder / "results.json")
    return result


def _upgrade_remark(untouched: Any) -> str:
    """Return what becomes of stored vectors of a model that gets its first block."""
    vector = untouched.encode("a text", show_progress_bar=False)
    if abs(float(np.linalg.norm(vector)) - 1) > _UNIT:
        return _NOT_UNIT
    return UPGRADE


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(JupyterMixin):
    """Result of `opencse.run`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        untouched: Probe and task scores of the untouched backbone, pooled as in the recipe.
        trained: Scores of the trained model.
        scores: These scores, and those of the trained model with reranking if it has a block, by
            their names in the report.
        comparison: What training changed.
        report: The HTML report.
        timings: Seconds of each part of the command, the longest first.
    """

    run: TrainingRun
    untouched: ProbeScores
    trained: ProbeScores
    scores: dict[str, ProbeScores]
    comparison: Comparison
    report: Path
    timings: dict[str, float]

    def __repr__(self) -> str:
        return f"RunResult(model={str(self.run.model)!r}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        steps = Table(
            ("", ""),
            [
                (
                    "  opencse check MODEL --texts DOCS",
                    "does your model follow wording or meaning on your texts?",
                ),
                (
                    f"  opencse run {self.run.recipe.name} DOCS --backbone MODEL -o OUT",
                    "train it on them",
                ),
                (
                    "  opencse compare MODEL OUT --texts DOCS -o LISTS",
                    "which of your searches change?",
                ),
            ],
        )
        return Group(
            self.comparison.table(),
            Text(""),
            *model_lines(self.run),
            path_line(f"report: {self.report}"),
            Text("next, with your own model and texts:"),
            steps,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that the command printed, such as too little text."""
        return self.run.warnings

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`, and `tasks` for your own)."""
        return _suites(self.untouched)

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(self.trained)

    def save(self, path: Path) -> None:
        """Write the scores before and after training, and the timings, as JSON."""
        scores = {"before": _plain(self.before), "after": _plain(self.after)}
        write_json(path, {**scores, "timings": self.timings})


def _plain(suites: Mapping[str, Results]) -> dict[str, Any]:
    """Return the results by suite as plain values, for JSON."""
    plain = {}
    for name, part in suites.items():
        tasks = [asdict(task) for task in part.results]
        plain[name] = {"tasks": tasks, "metric": part.metric, "average": part.average}
    return plain


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    if scores.tasks:
        suites[OWN] = list(scores.tasks)
    return {name: Results(results=tuple(tasks)) for name, tasks in suites.items()}


@dataclass(frozen=True, kw_only=True)
class ProbedModels:
    """Scores of both models of a run.

    Attributes:
        name: Name of the untouched model.
        trained_name: Name of the trained model in the report.
        untouched: Scores of the untouched model.
        trained: Scores of the trained model.
        reranked: Those with reranking; None if the model has no block.
        cached: Scores of a semantic cache that goes by the penalised pair score; None likewise.
        stored: What becomes of the stored vectors of the untouched model.
    """

    name: str
    trained_name: str
    untouched: ProbeScores
    trained: ProbeScores
    reranked: ProbeScores | None = None
    cached: ProbeScores | None = None
    stored: str = EMBED_AGAIN
    examples: Sequence[Example] = ()

    def by_name(self) -> dict[str, ProbeScores]:
        """Return the scores by their names in the report, the untouched model first."""
        scores = {self.name: self.untouched, self.trained_name: self.trained}
        if self.reranked is not None:
            scores[f"{self.trained_name}, reranked"] = self.reranked
        return scores

    def caches(self) -> dict[str, ProbeScores]:
        """Return what a semantic cache can go by."""
        scores = {self.name: self.untouched, self.trained_name: self.trained}
        if self.cached is not None:
            scores["Reranker.predict, penalty=CACHING,"] = self.cached
        return scores


def probe_models(
    trained: TrainingRun, backbone: Backbone, probe_data: ProbeData, triples: Sequence[Triple]
) -> ProbedModels:
    """Probe the untouched and the trained model; vectors of the untouched one are cached between runs.

    Args:
        trained: The run.
        backbone: The untouched model.
        probe_data: What is measured.
        triples: Texts of the user from which examples are picked; if empty, those of the package.
    """
    precision: Precision = "auto"
    if trained.recipe.training.precision != "fp16":
        precision = trained.recipe.training.precision
    name = Path(backbone.name).name
    trained_name = f"{name} + {trained.recipe.name}"
    with timed("evaluation"):
        encoder = backbone.encoder(**trained.recipe.pooling)
        embedder = Embedder(encoder, precision=precision, progress=f"evaluating {name}")
        untouched = run_probes(
            probe_data, lambda texts: cached_vectors(embedder, texts, texts_hash(texts))
        )
        learned = load_encoder(trained.model)
        reranker = reranker_of(learned, precision)
        if reranker is None:
            encode = Embedder(learned, precision=precision, progress=f"evaluating {trained_name}")
            return ProbedModels(
                name=name,
                trained_name=trained_name,
                untouched=untouched,
                trained=run_probes(probe_data, encode),
            )
        # One encoding serves all: a packed row begins with the vector.
        packed = lru_cache(1)(partial(reranker.packed, show_progress_bar=True))
        length = reranker.length
        penalised = partial(reranker.similarity, penalty=CACHING)
        sentences = ProbeData(sentences=probe_data.sentences)
        stored = EMBED_AGAIN
        if trained.recipe.block and reranker_of(encoder) is None:
            stored = _upgrade_remark(encoder)
        return ProbedModels(
            name=name,
            trained_name=trained_name,
            untouched=untouched,
            trained=run_probes(probe_data, lambda texts: packed(tuple(texts))[:, :length]),
            reranked=run_probes(probe_data, packed, reranker.similarity),
            cached=run_probes(sentences, packed, penalised),
            stored=stored,
            examples=pick_examples(triples or package_triples(), embedder.encode, reranker),
        )


def check_own_texts(source: Source, trained: TrainingRun, options: RunOptions) -> list[str]:
    """Return what `opencse check` finds on a sample of the user's documents, a line for each model.

    Returns:
        Nothing for tables and lists of sentences, and if the rules could not rewrite any sentence.
    """
    passages = document_passages(options.corpus, _CHECKED_DOCUMENTS, column=options.column)
    if not passages:
        return []
    name = Path(source.backbone.name).name
    models = {
        name: source.backbone.encoder(**trained.recipe.pooling),
        f"{name} + {trained.recipe.name}": load_encoder(trained.model),
    }
    lines = []
    with timed("check"):
        for label, encoder in models.items():
            embedder = Embedder(encoder, precision="auto", progress=f"checking {label}")
            rewriter = SentenceRewriter(language=source.language)
            try:
                checked = check_encoder(
                    encoder,
                    embedder,
                    passages,
                    rewriter,
                    limit=_CHECKED_SENTENCES,
                    documents=_CHECKED_DOCUMENTS,
                    sentences=_PARSED_SENTENCES,
                )
            except OpencseError:
                # Texts without a sentence that the rules can contradict are no reason to fail.
                return []
            lines.append(replace(checked, model=label).headline())
    return lines


def report_run(
    trained: TrainingRun,
    probed: ProbedModels,
    data_notes: Sequence[str],
    few: Sequence[str],
    own_texts: Sequence[str],
) -> tuple[Comparison, Path]:
    """Write the report of a run, and return what training changed and where the report is."""
    curve = read_strength(trained.folder)
    with timed("report"):
        remarks = list(few)
        if curve is None and trained.outcome.first_score is None:
            remarks.append(_UNGUARDED)
        if not probed.trained.sts:
            remarks.append(_NO_PAIRS)
        remarks.extend(cache_line(probed.caches()))
        remarks.append(probed.stored)
        comparison = compare_models(probed.by_name(), curve, remarks)
        notes = [f"Training: {training_line(trained)}.", *trained.warnings]
        family = trained.recipe.family
        published = trained.recipe.published.get(family)
        if published is not None:
            notes.append(
                f"Published STS average for {family}: {published:.2f} (one run of the authors')."
            )
        notes.extend(data_notes)
        report = write_report(
            probed.by_name(),
            trained.folder,
            notes=notes,
            comparison=comparison,
            curve=curve,
            pairs=probed.examples,
            own_texts=own_texts,
        )
    return comparison, report


def add_scores(
    readme: Path, models: Mapping[str, ProbeScores], trained: ProbeScores, made_of: str
) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        trained: Scores of the trained model, for the metadata.
        made_of: Description of the training text.
    """
    body = readme.read_text(encoding="utf-8").split(f"\n{_SECTION}")[0].rstrip()
    text = f"{body}\n\n{_SECTION}\n\nText: {made_of}.\n\n{card_table(models)}\n"
    write_text(readme, _with_results(text, trained))


def _with_results(text: str, probed: ProbeScores) -> str:
    """Add the scores of the trained model to the metadata of the card, where a model hub reads them."""
    scores = [task for task in probed.sts if task.score is not None]
    if not scores or not text.startswith("---\n"):
        return text
    card = ModelCard(text, ignore_metadata_errors=True)
    data: Any = card.data
    data.model_name = data.model_name or "opencse"
    others = [
        result for result in data.eval_results or [] if result.metric_type != "spearman_cosine"
    ]
    data.eval_results = others + [
        hub_score("semantic-similarity", task.task, "spearman_cosine", float(task.score or 0))
        for task in scores
    ]
    return f"---\n{data.to_yaml()}\n---\n\n{card.text.lstrip()}"


def card_table(models: Mapping[str, ProbeScores]) -> str:
    """Return a Markdown table of the Spearman correlations (x 100) and the headline figures of the probe."""
    first = next(iter(models.values()))
    rows: list[list[Cell]] = []
    for i, task in enumerate(first.sts):
        scores = [probed.sts[i].score for probed in models.values()]
        rows.append([task.task, *("–" if score is None else Number(score) for score in scores)])
    for i, task in enumerate(first.tasks):
        for metric in task.metrics:
            values = [probed.tasks[i].metrics[metric] for probed in models.values()]
            rows.append([f"{task.task}, {metric}", *(Number(value) for value in values)])
    rows += headline_rows(models)
    return Table(["", *(shown(name, 40) for name in models)], rows).markdown().rstrip()
