"""From a corpus to the rows of training: sample sentences, build missing columns, mix."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from opencse.encoder.backbone import Backbone
from opencse.foundation.progress import Notify
from opencse.recipes import Recipe
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.columns import add_columns, built_by_opencse, missing_specs, with_models
from opencse.recipes.rows.labels import Labels, join_labels
from opencse.recipes.rows.mixture import mix_rows
from opencse.recipes.rows.paraphrases import Paraphrases
from opencse.recipes.rows.sampling import sample
from opencse.text.corpus import Corpus
from opencse.text.languages import LanguagePack
from opencse.text.views.registry import build_views


def recipe_for_corpus(
    name: str | Path,
    columns: Collection[str],
    *,
    family: str,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    paraphrases: Paraphrases,
) -> Recipe:
    """Load a recipe, with its settings for paraphrases if the user brings some or the corpus has them.

    Args:
        name: A name or a TOML file.
        columns: Columns of the corpus.
        family: The backbone's family (`opencse.encoder.family_of`).
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        paraphrases: The user's source of paraphrases.

    Raises:
        OpencseError: The recipe is invalid, uses no paraphrases although the user brings some, or builds a view with a
            model that is not on this machine.
    """
    file = RecipeFile.read(name)
    source = paraphrases.settings(file.layers["with"].get("paraphrases", {}))
    load = partial(file.resolve, family=family, variant=variant, overrides=[*source, *overrides])
    if source:
        return load(having=["paraphrases"])
    if "paraphrases" in file.layers["with"]:
        found = load(having=["paraphrases"])
        built = "paraphrase" in columns and built_by_opencse(found.build, columns)
        if built or not missing_specs(found.build, found.columns, columns):
            return found
    found = load()
    for spec in missing_specs(found.build, found.columns, columns).values():
        spec.check()
    return found


@dataclass(frozen=True, kw_only=True)
class RowSources:
    """What rows are made with, beside the corpus.

    Attributes:
        models: Models to mine with, by the name that constructors give them: `backbone`, the model to be trained, and
            the recipe's first stages.
        paraphrases: The user's source of paraphrases; the sentences of a table join the sample.
        pack: Rules of the language of the corpus.
        labels: The user's labels, which join the rows.
        keep: Keep the parts of an interrupted build.
    """

    models: Mapping[str, Backbone]
    paraphrases: Paraphrases
    pack: LanguagePack
    labels: Labels | None = None
    keep: bool = True


def prepare_rows(recipe: Recipe, corpus: Corpus, out: Path, sources: RowSources, notify: Notify) -> Corpus:
    """Return the rows to train on: the corpus itself, or files in `out` that are made from it.

    1. `corpus.parquet`: a sample of the sentences, some cut to their main clause (`[corpus]` of the recipe).
    2. `views/`: the text columns that the recipe's views read and the corpus lacks (`[build]`).
    3. `labelled.parquet`: the user's labels behind them.
    4. `mixture.parquet`: rows drawn by the columns that a sentence has (`[corpus.parts]`).

    A step is left out if the recipe does not ask for it, or if the corpus already has its result.

    Args:
        recipe: The resolved recipe.
        corpus: Raw sentences, or views that were built before.
        out: The run's folder.
        sources: What rows are made with.
        notify: Receives short notes for the user.

    Returns:
        The rows, under the name of the corpus.

    Raises:
        OpencseError: The corpus cannot be read, a column cannot be built, or a part of the mixture finds no sentence.
    """
    rows = _with_columns(recipe, _sampled(recipe, corpus, out, sources), out / "views", sources, notify)
    parts, seed, labels = recipe.used_parts, recipe.training.seed, sources.labels
    if labels is not None:
        path = out / "labelled.parquet"
        rows = join_labels(rows, labels, path, columns=recipe.columns, drawn=not parts, seed=seed)
    if parts:
        out.mkdir(parents=True, exist_ok=True)
        rows = mix_rows(rows, parts, out / "mixture.parquet", seed=seed, notify=notify)
    return Corpus(rows.path, corpus.name)


def _sampled(recipe: Recipe, corpus: Corpus, out: Path, sources: RowSources) -> Corpus:
    """Return the sample of the corpus that columns are built for; the corpus itself if all of it is used."""
    complete = recipe.build and not missing_specs(recipe.build, recipe.columns, corpus.columns)
    whole = not (recipe.corpus.rows or recipe.corpus.clauses) or built_by_opencse(recipe.build, corpus.columns)
    table = sources.paraphrases.table
    if complete or (whole and table is None):
        return corpus
    path = out / "corpus.parquet"
    return sample(corpus, recipe.corpus, path, table=table, seed=recipe.training.seed, pack=sources.pack)


def _with_columns(recipe: Recipe, corpus: Corpus, out: Path, sources: RowSources, notify: Notify) -> Corpus:
    """Return the corpus with all columns that the recipe's views read; the missing ones are built in `out`."""
    missing = missing_specs(recipe.build, recipe.columns, corpus.columns)
    if not missing:
        return corpus
    notify(f"building {', '.join(missing)}")
    pooling = "backbone" if recipe.encoder.pooling == "mask" else recipe.encoder.pooling
    specs = sources.pack.localise(with_models(missing, sources.models, pooling))
    models = list(sources.models.values())
    built = build_views(corpus.path, specs, out, seed=recipe.training.seed, resume=sources.keep, models=models)
    return add_columns(corpus, built, list(recipe.columns))
