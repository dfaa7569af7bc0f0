"""`opencse.train`: from a corpus with the columns of a recipe to a trained encoder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from opencse.commands.command_line import apply, takes
from opencse.commands.options import TrainCommand, TrainOptions
from opencse.debias.shipped import trained_block
from opencse.debias.training import BlockTraining, block_evaluators
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Precision
from opencse.evaluation.evaluators import PairGeometry, TaskEvaluator, TrainingGeometry
from opencse.evaluation.sts import development_sets
from opencse.foundation.errors import OpencseError, imported
from opencse.foundation.evaluator import NO_EVALUATORS, Evaluators
from opencse.foundation.numbers import few_sentences
from opencse.foundation.plugins import CALLBACKS, ways_to_add
from opencse.foundation.result_table import show
from opencse.recipes import Recipe
from opencse.recipes.load import adapt_recipe, check_columns
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS
from opencse.text.user_text import UserText
from opencse.training.callbacks import TrainingCallback
from opencse.training.folder import check_flags, read_record
from opencse.training.run_groups import parse_seeds, seed_folders
from opencse.training.session import RunControl
from opencse.training.tracking import Tracking
from opencse.training.train import TrainingRun, train_encoder

UNCHECKED = (
    "no development pairs (--dev or --data): the weights of the last step are kept, and nothing "
    "checks that the model is still as good as before"
)


@takes(TrainOptions)
def train(options: TrainOptions) -> TrainingRun:
    """Train an encoder.

    Returns:
        The finished run; `.model` is the folder of the trained encoder.

    Raises:
        OpencseError: The input is invalid; the message tells how to fix it.
    """
    control = run_control(options)
    text = UserText(options.corpus, options.column)
    rows = text.corpus(split=False)
    few = few_sentences(rows.texts())
    backbone = Backbone(options.backbone)
    language = likely_language(rows.first_texts(ENOUGH_TEXTS))
    recipe = resolve_recipe(options, backbone, rows.columns, language)
    check_columns(recipe.name, recipe.columns, rows.columns, rows.name)
    if recipe.used_parts and "part" not in rows.columns:
        options.notify(
            f"{recipe.name} trains on a mixture of parts, each with some of the columns: `opencse run` draws it; "
            "`opencse train` takes every row with all its columns, as it is"
        )
    evaluators = read_validation(recipe, options)
    callbacks = recipe_callbacks(recipe, rows, language, options)
    for line in few:
        options.notify(line)
    control = replace(control, callbacks=callbacks, language=language)
    trained = train_on_rows(recipe, rows, backbone, evaluators, control)
    told = [line.removeprefix("warning: ") for line in few]
    return replace(trained, warnings=(*told, *trained.warnings))


def run_control(options: TrainOptions) -> RunControl:
    """Return how a training run is carried out."""
    folder = Path(options.out)
    check_flags(
        folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone
    )
    return RunControl(
        folder=folder,
        resume=options.resume,
        overwrite=options.overwrite,
        progress=options.progress,
        notify=options.notify,
    )


def command(options: TrainCommand) -> None:
    """Train with one seed or several, and print where the models are."""
    from accelerate import PartialState

    if options.seed is not None and options.seeds is not None:
        raise OpencseError("--seed and --seeds exclude each other")
    out = Path(options.out)
    runs = [options]
    if options.seeds is not None:
        runs = []
        for seed, folder in seed_folders(out, parse_seeds(options.seeds)).items():
            # Some of several runs may not have started before an interruption.
            resume = options.resume and (folder / "run.json").is_file()
            runs.append(replace(options, seed=seed, out=folder, resume=resume))
    for own in runs:
        trained = apply(train, own)
        if PartialState().is_main_process:
            show(Text(training_line(trained)), *model_lines(trained))


def train_on_rows(
    recipe: Recipe, rows: Corpus, backbone: Backbone, evaluators: Evaluators, control: RunControl
) -> TrainingRun:
    """Train on opened rows with every column of a resolved recipe; `read_validation` gives the evaluators.

    Raises:
        OpencseError: The input is invalid; the message tells how to fix it.
    """
    warnings = []
    if evaluators.development is None and recipe.block is None:
        warnings.append(UNCHECKED)
        control.notify(UNCHECKED)
    if "training" in recipe.selection.watch:
        evaluators = replace(evaluators, watch=[*evaluators.watch, TrainingGeometry(rows)])
    trained = train_encoder(recipe, rows, backbone, evaluators, control)
    return replace(trained, warnings=(*warnings, *trained.warnings))


def resolve_recipe(
    options: TrainOptions,
    backbone: Backbone,
    columns: Collection[str],
    language: str | None,
    *,
    paraphrases: Path | None = None,
    builds: bool = False,
) -> Recipe:
    """Return the recipe that the user asked for, resolved once with everything that is known.

    Args:
        options: The options.
        backbone: The model to start from.
        columns: Columns of the corpus.
        language: Language of the corpus; None for unknown.
        paraphrases: The user's table of paraphrases.
        builds: Whether missing columns are built, so that the models for that must be there.
    """
    if options.recipe_file is None:
        return adapt_recipe(
            options.recipe,
            family=backbone.family,
            variant=options.variant,
            overrides=options.settings,
        )

    def has_trained_block() -> bool:
        return trained_block(backbone, english=language in ("en", None)) is not None

    recipe = recipe_for_corpus(
        options.recipe_file,
        columns,
        family=backbone.family,
        variant=options.variant,
        overrides=options.settings,
        paraphrases=paraphrases,
        trained_block=has_trained_block,
        builds=builds,
    )
    if recipe.encoder.lora is not None:
        # A missing package should stop the command now, not after the text is built.
        imported("peft", "lora")
    if recipe.dimensions is not None:
        # Told before any text is built.
        width = backbone.encoder(**recipe.pooling).get_embedding_dimension() or 0
        recipe.dimensions_within(width)
    return recipe


def read_validation(recipe: Recipe, options: TrainOptions) -> Evaluators:
    """Read the data on which a model is scored while it trains.

    Args:
        recipe: The resolved recipe.
        options: The options; a run that is resumed is scored in the precision that it began with.

    Returns:
        Development score, and what the recipe watches of the first development set
        (`Selection.watch`). With a meaning block there is none: the pairs are guards.

    Raises:
        OpencseError: A file cannot be read.
    """
    if recipe.block is not None:
        return NO_EVALUATORS
    precision = scoring_precision(recipe, options)
    sets = development_sets(options.dev, options.data, recipe.selection.tasks)
    if not sets:
        return NO_EVALUATORS
    watch = []
    if recipe.selection.watch:
        watch.append(PairGeometry(sets[0], recipe.selection.watch, precision))
    return Evaluators(development=TaskEvaluator(sets, precision), watch=watch)


def scoring_precision(recipe: Recipe, options: TrainOptions) -> Precision:
    """Return the number format in which a model is scored while it trains: the one it trains in."""
    begun = Path(options.out) / "run.json"
    precision = recipe.training.precision
    if options.resume and begun.is_file():
        precision = read_record(begun.parent)["precision"]
    return "auto" if precision == "fp16" else precision


def recipe_callbacks(
    recipe: Recipe, corpus: Corpus | None, language: str | None, options: TrainOptions
) -> list[TrainingCallback]:
    """Return the callbacks of a run: what trains the meaning block, if the recipe has one, and the user's.

    Args:
        recipe: The resolved recipe.
        corpus: The user's texts, which your searches search if the guard has no documents of its
            own; None without.
        language: Language of the text; None for unknown.
        options: The options.

    Raises:
        OpencseError: The folder holds no guards, or the recipe uses none.
    """
    if recipe.block is None:
        if options.guard is not None:
            raise OpencseError(
                f"the recipe {recipe.name} uses no guards",
                "They are for recipes with a meaning block.",
            )
        return user_callbacks(options)
    evaluators = block_evaluators(
        precision=scoring_precision(recipe, options),
        own=options.guard,
        pairs=development_sets(options.dev, options.data, recipe.selection.tasks),
        documents=() if corpus is None else corpus.texts(),
    )
    english = language in ("en", None)
    block = BlockTraining(recipe.block, evaluators, english=english)
    return [block, *user_callbacks(options)]


def user_callbacks(options: TrainOptions) -> list[TrainingCallback]:
    """Return the trackers and the callbacks that the user asks for."""
    callbacks = []
    for callback in options.callbacks:
        if isinstance(callback, str):
            callback = named_callback(callback)
        if not isinstance(callback, TrainingCallback):
            name = getattr(callback, "__name__", type(callback).__name__)
            raise OpencseError(
                f"the callback {name} is no object of opencse.training.callbacks.TrainingCallback",
                f"Derive its class from that one, and give an object: callbacks=[{name}()].",
            )
        callbacks.append(callback)
    if options.track is not None:
        callbacks.append(Tracking(options.track))
    return callbacks


def named_callback(name: str) -> TrainingCallback:
    """Return a registered callback.

    Raises:
        OpencseError: There is none of this name.
    """
    if name not in CALLBACKS:
        raise OpencseError(f"there is no callback {name!r}", ways_to_add(CALLBACKS.group))
    callback: TrainingCallback = CALLBACKS[name]()
    return callback


def training_line(run: TrainingRun) -> str:
    """Return the steps and the time of a training, and the score of the weights that were kept."""
    outcome = run.outcome
    steps = "1 step" if outcome.steps == 1 else f"{outcome.steps:,} steps"
    line = f"{steps} in {outcome.seconds:,.0f} s"
    if outcome.best_score is not None:
        line += f"; kept step {outcome.best_step:,}, development Spearman {outcome.best_score:.2f}"
        if outcome.first_score is not None:
            line += f" (before training {outcome.first_score:.2f})"
    return line


def model_lines(run: TrainingRun) -> list[Text]:
    """Return the warnings that training gave, where the model is, and how to load it."""
    lines = [Text(f"warning: {warning}") for warning in run.warnings]
    load = f'SentenceTransformer("{run.model}")'
    if (run.model / "meaning_block.py").is_file():
        # The block is a module of its own, whose code is in the folder.
        load = f'SentenceTransformer("{run.model}", trust_remote_code=True)'
    lines.append(path_line(f"model: {run.model}   load it with {load}"))
    return lines


def path_line(text: str) -> Text:
    """Return a text with a path in it, which is never cut."""
    return Text(text, overflow="fold", no_wrap=True)
