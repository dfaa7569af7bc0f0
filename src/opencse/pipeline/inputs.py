"""The inputs of a run: the recipe resolved for corpus and backbone, and the paths of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opencse.data.columns import missing_specs
from opencse.data.given import corpus_file, given_name
from opencse.data.paraphrases import Paraphrases
from opencse.data.prepare import recipe_for_corpus
from opencse.encoder import backbone_config
from opencse.encoder.given import model_source
from opencse.io.corpus import column_names
from opencse.recipes import Recipe, family_of, load_recipe, shortened
from opencse.views.constructor import ConstructorSpec


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """The inputs of a run.

    Attributes:
        recipe: Resolved for the backbone's family and for the columns that the corpus has.
        corpus: The file or folder that is read.
        columns: The columns of the corpus.
        corpus_name: The user's name for it.
        backbone: A folder, a hub id or a bundled name.
        paraphrases: Source of paraphrases.
    """

    recipe: Recipe
    corpus: Path
    columns: tuple[str, ...]
    corpus_name: str
    backbone: str
    paraphrases: Paraphrases

    @property
    def missing_specs(self) -> dict[str, ConstructorSpec]:
        """Constructors of the columns that the recipe's views read and the corpus lacks."""
        return missing_specs(self.recipe.build, self.recipe.columns, self.columns)


def resolve_inputs(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any,
    paraphrases: str | Path | None,
    llm: str | None,
    column: str | None,
    variant: str,
    overrides: Sequence[str],
    seed: int | None,
    quick: bool,
) -> RunInputs:
    """Return the inputs of a run; the arguments are those of `opencse.run`.

    Documents are split into sentences, unless they are a table with columns that the recipe's views read.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    needed = set((recipe if isinstance(recipe, Recipe) else load_recipe(recipe)).columns) - {"text"}
    name, backbone = given_name(corpus), model_source(backbone)
    corpus = corpus_file(corpus, column=column, needed=needed)
    columns = tuple(column_names(corpus))
    source = Paraphrases(table=None if paraphrases is None else Path(paraphrases), llm=llm)
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        recipe = recipe_for_corpus(
            recipe, columns, family=family, variant=variant, overrides=with_seed(overrides, seed), paraphrases=source
        )
    if quick:
        recipe = shortened(recipe)
    return RunInputs(
        recipe=recipe, corpus=corpus, columns=columns, corpus_name=name, backbone=backbone, paraphrases=source
    )


def with_precision(inputs: RunInputs, precision: str) -> RunInputs:
    """Return the inputs with the recipe's precision replaced."""
    training = replace(inputs.recipe.training, precision=precision)  # type: ignore[arg-type]
    return replace(inputs, recipe=replace(inputs.recipe, training=training))


def with_seed(overrides: Sequence[str], seed: int | None) -> list[str]:
    """Return the overrides followed by the override of the seed, if one is given."""
    return [*overrides, *([] if seed is None else [f"training.seed={seed}"])]
