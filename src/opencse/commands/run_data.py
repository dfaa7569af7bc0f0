"""What `opencse.run` trains on: the text, the model and the recipe, opened and decided once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opencse.commands.options import RunOptions
from opencse.commands.train import (
    resolve_recipe,
)
from opencse.encoder.backbone import Backbone
from opencse.evaluation.evaluators import TaskEvaluator
from opencse.evaluation.sts import development_sets
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.numbers import few_sentences
from opencse.foundation.progress import collect, timed
from opencse.recipes import Recipe, shortened
from opencse.recipes.rows.prepare import RowSources, is_sampled, missing_specs, prepare_rows
from opencse.text.corpus import Corpus
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS, ChosenLanguage, choose_language
from opencse.text.memory_tables import data_file, data_name
from opencse.text.user_text import UserText
from opencse.text.views.registry import View
from opencse.training.first_stages import train_first_stages
from opencse.training.session import RunControl
from opencse.training.trained_model import load_start


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a run trains on, opened and decided once.

    Attributes:
        text: The user's text, as it was given.
        corpus: The user's text, one sentence per row.
        recipe: The resolved recipe.
        backbone: The model to start from.
        likely: The likely language of the text; None for unknown.
        language: The rules for the language of the text.
        paraphrases: The user's table of paraphrases.
        paraphrases_name: Its name in reports.
        few: A warning if the text has few sentences.
    """

    text: UserText
    corpus: Corpus
    recipe: Recipe
    backbone: Backbone
    likely: str | None
    language: ChosenLanguage
    paraphrases: Path | None
    paraphrases_name: str
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
        return f"{self.corpus.name}, paraphrases from {self.paraphrases_name}"


def open_source(options: RunOptions) -> Source:
    """Open the text and the model, and resolve the recipe with everything that is known of both.

    Raises:
        OpencseError: The text, the recipe or the model cannot be used.
    """
    text = UserText(options.corpus, options.column)
    likely = likely_language(text.first_texts(ENOUGH_TEXTS))
    paraphrases = None
    if options.paraphrases is not None:
        paraphrases = data_file(options.paraphrases)
    backbone = Backbone(options.backbone)
    recipe = resolve_recipe(
        options, backbone, text.columns, likely, paraphrases=paraphrases, builds=True
    )
    if options.quick:
        recipe = shortened(recipe)
    # Documents are split into sentences, unless they are a table with columns that the recipe's
    # views read. A sample is stored in the run's folder, so its source need not be stored, too.
    sampled = is_sampled(recipe, text.columns, paraphrases) and not recipe.first_stages
    corpus = text.corpus(set(recipe.columns) - {"text"}, stored=not sampled)
    few = few_sentences(corpus.texts()) if paraphrases is None else []
    backbone = backbone.with_seed(recipe.training.seed)
    # A model that cannot be used is refused before any text is built.
    load_start(recipe, backbone)
    return Source(
        text=text,
        corpus=corpus,
        recipe=recipe,
        backbone=backbone,
        likely=likely,
        language=choose_language(recipe.corpus.language, likely),
        paraphrases=paraphrases,
        paraphrases_name=data_name(options.paraphrases),
        few=few,
    )


def train_miners(source: Source, control: RunControl, options: RunOptions) -> dict[str, Path]:
    """Train the models that the recipe mines with, and return their folders by name."""
    # What is timed inside counts as a part of it.
    with timed("first stages"), collect():
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
