"""From a corpus to the rows of training: sample sentences, build missing columns, mix."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced
from opencse.foundation.progress import Notify
from opencse.foundation.tables import read_parquet, write_texts
from opencse.recipes import Recipe
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.sentence_sample import paraphrase_settings, sample
from opencse.recipes.settings import MixturePart
from opencse.text.corpus import Corpus, Row
from opencse.text.languages import LanguagePack
from opencse.text.mined.vectors import HardNegatives, MinedView, Pooling
from opencse.text.views.builder import build_views, column_makers
from opencse.text.views.registry import View


def missing_specs(
    specs: Mapping[str, View], wanted: Collection[str], present: Collection[str] = ()
) -> dict[str, View]:
    """Return the views of the wanted columns that are not present, and the views that these depend on.

    Args:
        specs: Views by name, as in a recipe's `[build]`.
        wanted: Columns that are needed.
        present: Columns of the corpus.
    """
    maker = column_makers(specs)
    queue = [maker[column] for column in wanted if column in maker and column not in present]
    names: set[str] = set()
    while queue:
        name = queue.pop()
        if name not in names:
            names.add(name)
            queue += [maker[need] for need in specs[name].sources if need in maker]
    return {name: spec for name, spec in specs.items() if name in names}


def chosen_specs(specs: Mapping[str, View], only: Collection[str]) -> dict[str, View]:
    """Return the views that a user chose by name or by column, and the views that these depend on.

    Raises:
        OpencseError: A name is neither that of a view nor that of a column.
    """
    maker = column_makers(specs)
    for name in only:
        if name not in maker and name not in specs:
            raise OpencseError(
                f"--only {name}: no such column", f"The recipe builds {', '.join(specs)}."
            )
    columns: list[str] = []
    for name in only:
        if name in specs:
            columns.extend(specs[name].columns(name))
        else:
            columns.append(name)
    return missing_specs(specs, columns)


def built_by_opencse(specs: Mapping[str, View], present: Collection[str]) -> bool:
    """Return whether a corpus was built with some of these views: it then has a column `NAME.rule` for each.

    A column `NAME` alone says little: a raw table may have a column "number".

    Args:
        specs: Views by name, as in a recipe's `[build]`.
        present: Columns of the corpus.
    """
    for name, spec in specs.items():
        for column in spec.columns(name):
            if f"{column}.rule" in present:
                return True
    return False


def with_models(
    specs: Mapping[str, View],
    models: Mapping[str, Backbone],
    pooling: Pooling = "backbone",
) -> dict[str, View]:
    """Return the views with the names of models in place of their roles, for those that mine.

    Args:
        specs: Views by name, as in a recipe's `[build]`.
        models: Models by role: `backbone`, the model to be trained, and the recipe's first stages.
        pooling: Pooling of the backbone, for views that name none.
    """
    resolved = dict(specs)
    for name, spec in specs.items():
        if not isinstance(spec, MinedView) or spec.model not in models:
            continue
        own_pooling = spec.pooling
        # Another model than the backbone keeps its own pooling.
        if spec.pooling == "backbone" and spec.model == "backbone":
            own_pooling = pooling
        resolved[name] = replace(spec, model=models[spec.model].name, pooling=own_pooling)
    return resolved


def add_columns(corpus: Corpus, built: Corpus, columns: Sequence[str]) -> Corpus:
    """Add columns of a corpus to the columns that were built from it.

    Args:
        corpus: The sentences that `built` was built from.
        built: What `build_views` returned.
        columns: Columns of the corpus to add; of two with one name, the built one is kept.

    Returns:
        `built` if there is nothing to add, else the file `joined.parquet` next to its folder, whose
        files are its rows.
    """
    table = pa.concat_tables([read_parquet(part) for part in _parts(built)])
    added = []
    for column in columns:
        if column in corpus.columns and column not in table.column_names:
            added.append(column)
    if not added:
        return built
    rows = []
    for text, *others in corpus.rows(("text", *added)):
        # The builder leaves out blank texts, too.
        if text is not None:
            rows.append(others)
    for column, cells in zip(added, zip(*rows, strict=True), strict=True):
        table = table.append_column(column, pa.array(cells, pa.string()))
    joined = built.path.with_name("joined.parquet")
    with replaced(joined) as path:
        pq.write_table(table, path, write_page_checksum=True)
    return Corpus(joined, corpus.name)


def _parts(built: Corpus) -> list[Path]:
    """Return the files of built views, in order."""
    return sorted(built.path.glob("part-*.parquet"))


def skipped_lines(built: Corpus, specs: Mapping[str, View]) -> Iterator[str]:
    """Yield how many candidates mining skipped as likely false negatives, from what `build_views` returned."""
    for name, spec in specs.items():
        if not isinstance(spec, HardNegatives) or spec.max_ratio is None:
            continue
        column = f"{spec.columns(name)[0]}.skipped"
        parts = [read_parquet(part, columns=[column]) for part in _parts(built)]
        counts = pa.concat_tables(parts)[column].to_numpy()
        yield (
            f"{name}: {counts.sum():,} candidates of {(counts > 0).sum():,} sentences skipped as "
            "likely false negatives, with a cosine above "
            f"{spec.max_ratio:g} times that of the positive"
        )


def recipe_for_corpus(
    file: RecipeFile,
    columns: Collection[str],
    *,
    family: str,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    paraphrases: Path | None,
    trained_block: Callable[[], bool] = lambda: False,
    builds: bool = True,
) -> Recipe:
    """Load a recipe, with its settings for paraphrases if the user brings some or the corpus has them.

    Args:
        file: The file of the recipe.
        columns: Columns of the corpus.
        family: The backbone's family (`opencse.encoder.names.family_of`).
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        paraphrases: The user's table of paraphrases.
        trained_block: Whether the backbone already has a trained meaning block. Called lazily,
            because it loads the weights.
        builds: Whether missing columns will be built: then the models that write them must be on
            this machine.

    Raises:
        OpencseError: The recipe is invalid, uses no paraphrases although the user brings some, or
            builds a view with a model that is not on this machine.
    """
    source = paraphrase_settings(paraphrases, file.layers["with"].get("paraphrases", {}))
    load = partial(file.resolve, family=family, variant=variant, overrides=[*source, *overrides])
    having = []
    # Asked last, because the answer loads the weights.
    if "block" in file.layers["with"] and trained_block():
        having.append("block")
    if source:
        return load(having=["paraphrases", *having])
    # Plain text has no paraphrases, so the recipe needs to be resolved only once.
    only_text = set(columns) <= {"text"}
    if "paraphrases" in file.layers["with"] and not only_text:
        recipe = load(having=["paraphrases", *having])
        built = "paraphrase" in columns and built_by_opencse(recipe.build, columns)
        if built or not missing_specs(recipe.build, recipe.columns, columns):
            return recipe
    recipe = load(having=having)
    if builds:
        for spec in missing_specs(recipe.build, recipe.columns, columns).values():
            spec.check()
    return recipe


@dataclass(frozen=True, kw_only=True)
class RowSources:
    """What rows are made with, next to the corpus.

    Attributes:
        models: Models to mine with, by the name that views give them: `backbone`, the model
            to be trained, and the recipe's first stages.
        paraphrases: The user's table of paraphrases, whose sentences join the sample.
        pack: Rules of the language of the corpus.
        keep: Keep the parts of an interrupted build.
    """

    models: Mapping[str, Backbone]
    paraphrases: Path | None
    pack: LanguagePack
    keep: bool = True


def prepare_rows(
    recipe: Recipe, corpus: Corpus, out: Path, sources: RowSources, notify: Notify
) -> Corpus:
    """Return the rows to train on: the corpus itself, or files in `out` that are made from it.

    1. `corpus.parquet`: a sample of the sentences, some cut to their main clause (`[corpus]` of the
    recipe).
    2. `views/`: the text columns that the recipe's views read and the corpus lacks (`[build]`);
       `joined.parquet` has those of the corpus, too.
    3. `mixture.parquet`: rows drawn by the columns that a sentence has (`[corpus.parts]`).

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
        OpencseError: The corpus cannot be read, a column cannot be built, or a part of the mixture
            finds no sentence.
    """
    seed = recipe.training.seed
    sampled = is_sampled(recipe, corpus.columns, sources.paraphrases)
    rows = corpus
    if sampled:
        rows = sample(
            corpus,
            recipe.corpus,
            out / "corpus.parquet",
            table=sources.paraphrases,
            seed=seed,
            pack=sources.pack,
            columns=recipe.columns,
        )

    missing = missing_specs(recipe.build, recipe.columns, rows.columns)
    if missing:
        notify(f"building {', '.join(missing)}")
        # A template's mask is no pooling of plain sentences.
        pooling = "backbone" if recipe.encoder.pooling == "mask" else recipe.encoder.pooling
        specs = sources.pack.localise(with_models(missing, sources.models, pooling))
        built = build_views(
            rows,
            specs,
            out / "views",
            seed=seed,
            resume=sources.keep,
            models=list(sources.models.values()),
            sampled=sampled,
        )
        for line in skipped_lines(built, specs):
            notify(line)
        rows = add_columns(rows, built, list(recipe.columns))

    if recipe.used_parts:
        out.mkdir(parents=True, exist_ok=True)
        mixture = out / "mixture.parquet"
        rows = mix_rows(rows, recipe.used_parts, mixture, seed=seed, notify=notify)
    return rows


def is_sampled(recipe: Recipe, columns: Collection[str], paraphrases: Path | None) -> bool:
    """Return whether a recipe trains on a sample of the sentences: some of them, cut, or with those of a table.

    Args:
        recipe: The resolved recipe.
        columns: Columns of the corpus.
        paraphrases: The user's table of paraphrases.
    """
    if recipe.build and not missing_specs(recipe.build, recipe.columns, columns):
        return False
    if paraphrases is not None:
        return True
    # The sentences of built views have been sampled before.
    asked = bool(recipe.corpus.rows or recipe.corpus.clauses)
    return asked and not built_by_opencse(recipe.build, columns)


def mix_rows(
    built: Corpus,
    parts: Mapping[str, MixturePart],
    out: Path,
    *,
    seed: int = 0,
    notify: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Write the training rows, with the columns `text`, every view that a part keeps, and `part`, the part's name.

    A sentence can occur in several parts, with different views. A part with fewer sentences than
    rows repeats all of them equally often; a part without sentences is left out.

    Args:
        built: Sentences and views.
        parts: The parts of the mixture, by name.
        out: The Parquet file to write.
        seed: Seed of the sample of rows and of their order.
        notify: Receives a note on each part that is left out.

    Returns:
        The rows, opened.

    Raises:
        OpencseError: No sentence has the columns that any part needs.
    """
    parts = {name: part for name, part in parts.items() if part.rows}
    columns: list[str] = []
    for part in parts.values():
        for column in (*part.needs, *part.keeps):
            if column not in columns:
                columns.append(column)
    sentences = [row for row in built.rows(("text", *columns)) if row[0] is not None]

    rows: list[Row] = []
    without_rows: list[str] = []
    for name, part in parts.items():
        fitting = _fitting(sentences, part, columns)
        if not fitting:
            without_rows.append(_wanted(name, part))
            continue
        kept = {columns.index(column) + 1 for column in (*part.needs, *part.keeps)}
        for row in _drawn(fitting, part.rows, random.Random(f"{seed} {name}")):
            cells = [row[i] if i in kept else None for i in range(1, len(row))]
            rows.append((row[0], *cells, name))
    if not rows:
        raise OpencseError(
            f"none of the {len(sentences)} sentences fits any part of the training rows: {', '.join(without_rows)}",
            "Give more text. The views are built by grammar rules: they need sentences in English, or another language "
            "that has rules.",
        )
    for empty_part in without_rows:
        notify(f"no sentence fits the part {empty_part} of the training rows: it is left out")
    random.Random(seed).shuffle(rows)
    names = ["text", *columns, "part"]
    write_texts(out, dict(zip(names, zip(*rows, strict=True), strict=True)))
    return Corpus(out, built.name)


def _fitting(sentences: Sequence[Row], part: MixturePart, columns: Sequence[str]) -> list[Row]:
    """Return the rows that a part can draw: with every view that it needs, and not too long."""
    needed = [columns.index(column) + 1 for column in part.needs]
    fitting = []
    for row in sentences:
        words = len((row[0] or "").split())
        if part.words is not None and words > part.words:
            continue
        if all(row[i] for i in needed):
            fitting.append(row)
    return fitting


def _drawn(fitting: Sequence[Row], count: int, rng: random.Random) -> list[Row]:
    """Return `count` rows, of which each occurs equally often, or once more than others."""
    drawn: list[Row] = []
    while len(drawn) < count:
        drawn += rng.sample(fitting, min(count - len(drawn), len(fitting)))
    return drawn


def _wanted(name: str, part: MixturePart) -> str:
    """Return a part's name, and what it asks of a sentence, for messages."""
    wishes = []
    if part.needs:
        wishes.append(f"needs {' and '.join(part.needs)}")
    if part.words:
        wishes.append(f"at most {part.words} words")
    return f"{name} ({', '.join(wishes)})"
