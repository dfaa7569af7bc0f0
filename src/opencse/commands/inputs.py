"""The inputs of a run: the opened corpus, the backbone, and the recipe resolved for both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opencse.commands.options import RunOptions
from opencse.encoder import backbone_config
from opencse.encoder.device import choose_device
from opencse.encoder.given import model_source
from opencse.encoder.precision_choice import describe, resolve_precision
from opencse.recipes import Recipe, family_of, load_recipe, shortened
from opencse.recipes.rows.columns import missing_specs
from opencse.recipes.rows.label_rows import with_labels
from opencse.recipes.rows.labels import Labels, read_labels
from opencse.recipes.rows.paraphrases import Paraphrases
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.text.language import ENOUGH_TEXTS
from opencse.text.languages import ChosenLanguage, choose_language
from opencse.text.user_text import open_corpus
from opencse.text.views.constructor import ConstructorSpec


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """The inputs of a run.

    Attributes:
        recipe: Resolved for the backbone's family and for the columns that the corpus has.
        corpus: The user's text, opened.
        backbone: A folder, a hub id or a bundled name.
        paraphrases: Source of paraphrases.
        labels: The user's labels; the recipe has their views and terms.
        language: The language of the corpus, and the rules for it.
    """

    recipe: Recipe
    corpus: Corpus
    backbone: str
    paraphrases: Paraphrases
    labels: Labels | None
    language: ChosenLanguage

    @property
    def missing_specs(self) -> dict[str, ConstructorSpec]:
        """Constructors of the columns that the recipe's views read and the corpus lacks."""
        return missing_specs(self.recipe.build, self.recipe.columns, self.corpus.columns)

    def language_line(self) -> str:
        """Return one line about the language of the corpus; empty if no view that needs grammar is built."""
        return self.language.line(self.missing_specs)


def resolve_inputs(options: RunOptions) -> RunInputs:
    """Return the inputs of a run.

    Documents are split into sentences, unless they are a table with columns that the recipe's views read.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    recipe = options.recipe
    needed = set((recipe if isinstance(recipe, Recipe) else load_recipe(recipe)).columns) - {"text"}
    backbone = model_source(options.backbone)
    corpus = open_corpus(options.corpus, column=options.column, needed=needed)
    table = None if options.paraphrases is None else Path(options.paraphrases)
    source = Paraphrases(table=table, llm=options.llm)
    if not isinstance(recipe, Recipe):
        recipe = recipe_for_corpus(
            recipe,
            corpus,
            family=options.family or family_of(backbone_config(backbone)),
            variant=options.variant,
            overrides=options.settings,
            paraphrases=source,
        )
    if options.quick:
        recipe = shortened(recipe)
    own = None if options.labels is None else read_labels(options.labels, options.label_share)
    if own is not None:
        recipe = with_labels(recipe, own)
    language = choose_language(recipe.corpus.language, corpus.first_texts(ENOUGH_TEXTS), recipe.corpus.syntax)
    return RunInputs(recipe=recipe, corpus=corpus, backbone=backbone, paraphrases=source, labels=own, language=language)


def with_precision(inputs: RunInputs, begun: str | None = None) -> tuple[RunInputs, str]:
    """Return the inputs with the precision that the run uses in place of `auto`, and a line about it and the device.

    Args:
        inputs: The inputs.
        begun: The precision of a run that is resumed, which is kept.
    """
    config, device = backbone_config(inputs.backbone), choose_device()
    precision: Any = inputs.recipe.training.precision
    if precision == "auto" and begun:
        precision = begun
    line = f"{inputs.recipe.name} {describe(precision, config, device)}"
    training = replace(inputs.recipe.training, precision=resolve_precision(precision, config, device))
    return replace(inputs, recipe=replace(inputs.recipe, training=training)), line
