"""From a corpus to the rows of training: sample sentences, build missing columns, mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opencse.foundation.progress import Notify
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.rows.columns import add_columns, built_by_opencse, missing_specs, with_models
from opencse.recipes.rows.label_rows import join_labels
from opencse.recipes.rows.labels import Labels
from opencse.recipes.rows.mixture import mix_rows
from opencse.recipes.rows.paraphrases import Paraphrases
from opencse.recipes.rows.sampling import sample
from opencse.text.corpus import Corpus
from opencse.text.languages import LanguagePack
from opencse.text.views.registry import build_views


def recipe_for_corpus(
    recipe: str | Path,
    corpus: Corpus,
    *,
    family: str,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    paraphrases: Paraphrases,
) -> Recipe:
    """Load a recipe, with its settings for paraphrases if the user brings some or the corpus has them.

    Args:
        recipe: A name or a TOML file.
        corpus: The corpus, for its columns.
        family: The backbone's family (`opencse.recipes.family_of`).
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        paraphrases: The user's source of paraphrases.

    Raises:
        OpencseError: The recipe is invalid, uses no paraphrases although the user brings some, or builds a view with a
            model that is not on this machine.
    """
    source = paraphrases.settings()

    def load(having: Sequence[str] = (), may_have: Sequence[str] = ()) -> Recipe:
        settings = [*source, *overrides]
        return load_recipe(recipe, family=family, variant=variant, having=having, may_have=may_have, overrides=settings)

    if source:
        return load(having=["paraphrases"])
    with_paraphrases = load(may_have=["paraphrases"])
    built = "paraphrase" in corpus.columns and built_by_opencse(with_paraphrases.build, corpus.columns)
    complete = not missing_specs(with_paraphrases.build, with_paraphrases.columns, corpus.columns)
    if built or complete:
        return with_paraphrases
    found = load()
    for spec in missing_specs(found.build, found.columns, corpus.columns).values():
        spec.check()
    return found


def prepare_rows(
    recipe: Recipe,
    corpus: Corpus,
    out: Path,
    *,
    models: Mapping[str, str | Path],
    paraphrases: Paraphrases,
    pack: LanguagePack,
    labels: Labels | None = None,
    keep: bool = True,
    notify: Notify = lambda _: None,
) -> Corpus:
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
        models: Models to mine with, by the name that constructors give them: `backbone`, the model to be trained, and
            the recipe's first stages.
        paraphrases: The user's source of paraphrases; the sentences of a table join the sample.
        pack: Rules of the language of the corpus.
        labels: The user's labels, which join the rows.
        keep: Keep the parts of an interrupted build.
        notify: Receives short notes for the user.

    Raises:
        OpencseError: The corpus cannot be read, a column cannot be built, or a part of the mixture finds no sentence.
    """
    sentences = _sampled(recipe, corpus, out, paraphrases, pack)
    rows = _with_columns(recipe, sentences, out, models, keep, notify, pack)
    parts = recipe.used_parts
    if labels is not None:
        path, seed = out / "labelled.parquet", recipe.training.seed
        rows = join_labels(rows, labels, path, columns=recipe.columns, drawn=not parts, seed=seed)
    if not parts:
        return rows
    out.mkdir(parents=True, exist_ok=True)
    return mix_rows(rows, parts, out / "mixture.parquet", seed=recipe.training.seed, notify=notify)


def _sampled(recipe: Recipe, corpus: Corpus, out: Path, paraphrases: Paraphrases, pack: LanguagePack) -> Corpus:
    """Return the sample of the corpus that columns are built for; the corpus itself if all of it is used."""
    complete = recipe.build and not missing_specs(recipe.build, recipe.columns, corpus.columns)
    whole = not (recipe.corpus.rows or recipe.corpus.clauses) or built_by_opencse(recipe.build, corpus.columns)
    if complete or (whole and paraphrases.table is None):
        return corpus
    path, seed = out / "corpus.parquet", recipe.training.seed
    return sample(corpus, recipe.corpus, path, table=paraphrases.table, seed=seed, pack=pack)


def _with_columns(
    recipe: Recipe,
    corpus: Corpus,
    out: Path,
    models: Mapping[str, str | Path],
    keep: bool,
    notify: Notify,
    pack: LanguagePack,
) -> Corpus:
    """Return the corpus with all columns that the recipe's views read; the missing ones are built in `out/views`."""
    missing = missing_specs(recipe.build, recipe.columns, corpus.columns)
    if not missing:
        return corpus
    notify(f"building {', '.join(missing)}")
    pooling = "backbone" if recipe.encoder.pooling == "mask" else recipe.encoder.pooling
    specs = pack.localise(with_models(missing, models, pooling))
    built = build_views(corpus.path, specs, out / "views", seed=recipe.training.seed, resume=keep)
    return add_columns(corpus, built, list(recipe.columns))
