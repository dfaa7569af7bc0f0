"""The inputs of a run: the corpus, the backbone, the recipe resolved for both, and what is measured in training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opencse.commands.options import RunOptions, TrainOptions
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Precision
from opencse.encoder.large_models import require_peft
from opencse.evaluation import PairsTask, ScoredPairs, Task, load_development, load_guard
from opencse.evaluation.measures import PairGeometry, TaskScores
from opencse.evaluation.sts import development_sets
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.foundation.numbers import few_sentences
from opencse.recipes import Recipe, shortened
from opencse.recipes.rows.prepare import missing_specs, recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.text.languages import ENOUGH_TEXTS, ChosenLanguage, choose_language
from opencse.text.user_text import UserText
from opencse.text.views.constructor import ConstructorSpec
from opencse.training.folder import read_record


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """The inputs of a run.

    Attributes:
        recipe: Resolved for the backbone's family and for the columns that the corpus has.
        few: A warning if the corpus has few sentences, and no table of paraphrases adds any.
    """

    recipe: Recipe
    corpus: Corpus
    backbone: Backbone
    paraphrases: Path | None
    language: ChosenLanguage
    few: list[str]

    @property
    def missing_specs(self) -> dict[str, ConstructorSpec]:
        """Constructors of the columns that the recipe's views read and the corpus lacks."""
        return missing_specs(self.recipe.build, self.recipe.columns, self.corpus.columns)


def resolve_inputs(options: RunOptions) -> RunInputs:
    """Return the inputs of a run.

    Documents are split into sentences, unless they are a table with columns that the recipe's views read.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    backbone, text = Backbone(options.backbone), UserText(options.corpus, options.column)
    table = None if options.paraphrases is None else Path(options.paraphrases)
    recipe = resolve_recipe(options, backbone, text.columns, table)
    if options.quick:
        recipe = shortened(recipe)
    backbone.seed = recipe.training.seed
    corpus = text.corpus(set(recipe.columns) - {"text"})
    few = few_sentences(corpus.texts()) if table is None else []
    language = choose_language(recipe.corpus.language, corpus.first_texts(ENOUGH_TEXTS), recipe.corpus.syntax)
    return RunInputs(recipe=recipe, corpus=corpus, backbone=backbone, paraphrases=table, language=language, few=few)


def resolve_recipe(
    options: TrainOptions, backbone: Backbone, columns: Collection[str], paraphrases: Path | None
) -> Recipe:
    """Return the recipe that the user asked for, resolved for a backbone and for the columns of the corpus."""
    if isinstance(options.recipe, Recipe):
        return options.recipe
    recipe = recipe_for_corpus(
        options.recipe,
        columns,
        family=options.family or backbone.family,
        variant=options.variant,
        overrides=options.settings,
        paraphrases=paraphrases,
        trained_block=lambda: backbone.block is not None,
    )
    if recipe.encoder.lora is not None:
        require_peft()
    if recipe.dimensions is not None:  # told before any text is built
        recipe.weight_of_dimensions(backbone.encoder(**recipe.pooling).get_embedding_dimension() or 0)
    return recipe


def read_validation(recipe: Recipe, corpus: Corpus, options: TrainOptions) -> Measures:
    """Read the data on which a model is scored while it trains.

    Args:
        recipe: The resolved recipe.
        corpus: The user's texts, which your searches search if the guard has no documents of its own.
        options: The options; a run that is resumed is scored in the precision that it began with.

    Returns:
        Development score, and what the recipe watches of the first development set (`Selection.watch`); for a recipe
        with a meaning block, its guards, the development sets among them, and measures of meaning.

    Raises:
        OpencseError: A file cannot be read, the folder holds no guards, or the recipe uses none.
    """
    selection, begun = recipe.selection, Path(options.out) / "run.json"
    resumed = options.resume and begun.is_file()
    trained = read_record(begun.parent)["precision"] if resumed else recipe.training.precision
    precision: Precision = "auto" if trained == "fp16" else trained
    sets = development_sets(options.dev, options.data, selection.tasks)
    guards = _guards(recipe, options.guard, corpus.texts)
    if recipe.block is not None:  # pairs guard what the untouched model knows; what the block learns, they don't show
        return Measures(
            guards=TaskScores([*guards, *(PairsTask(pairs=pairs) for pairs in sets)], precision),
            meaning=TaskScores(load_development(), precision),
        )
    return Measures(
        development=_development(sets, precision),
        watch=[PairGeometry(sets[0], selection.watch, precision)] if sets and selection.watch else [],
    )


def first_stage_measures(dev: str | Path | None, data: str | Path | None) -> Measures:
    """Return the measures of a model that builds text columns: one development score, with arguments as above."""
    return Measures(development=_development(development_sets(dev, data), "auto"))


def _development(sets: Sequence[ScoredPairs], precision: Precision) -> TaskScores | None:
    """Return Spearman's correlation x 100 on each set; None without sets."""
    return TaskScores([PairsTask(pairs=pairs) for pairs in sets], precision) if sets else None


def _guards(recipe: Recipe, own: str | Path | None, texts: Callable[[], Iterator[str]]) -> list[Task]:
    """Return the guards of a run: those that come with opencse, and the user's own."""
    if recipe.block is None:
        if own is not None:
            raise OpencseError(f"the recipe {recipe.name} uses no guards", "They are for recipes with a meaning block.")
        return []
    if own is None:
        return load_guard()
    return [*load_guard(), *load_guard(own, prefix="own", documents=texts())]
