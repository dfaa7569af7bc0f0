"""What users do, in one call each: train a recipe; or build, train, evaluate before and after, and summarise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opencse import demo
from opencse.encoder import backbone_config, load_encoder
from opencse.encoder.embedder import Embedder
from opencse.errors import OpencseError
from opencse.evaluation import (
    Embeddings,
    PairsTask,
    Results,
    ScoredPairs,
    distinct_texts,
    load_sts,
    read_pairs,
    score,
)
from opencse.files import write_json
from opencse.recipes import Corpus, Recipe, family_of, load_recipe
from opencse.text import column_names
from opencse.training import Run
from opencse.training import train as train_run

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What `run` came to.

    Attributes:
        run: The training run.
        before: Results of the untouched backbone, pooled as in the recipe, by suite (`sts`, `pairs`).
        after: Results of the trained model.
    """

    run: Run
    before: dict[str, Results]
    after: dict[str, Results]


def train(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    backbone: str | Path,
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    tell: Tell = lambda _: None,
    **options: Any,
) -> Run:
    """Train a sentence encoder.

    Args:
        recipe: A name, a TOML file, or a resolved recipe.
        corpus: Raw sentences in any format of `opencse.text`, or `"demo"`.
        backbone: A folder, a hub id or a bundled name.
        out: The run's folder.
        dev: Scored pairs that choose the best step: a file, `"stsb"` (STS-B dev below `data`) or `"none"`. By default
            STS-B dev where `data` is given, and none otherwise.
        data: The STS files (`opencse.evaluation.load_sts`).
        tell: Receives short notes for the user.
        **options: `variant`, `overrides`, `resume`, `overwrite`, `track`, `progress`: see `opencse.training.train`.

    Raises:
        OpencseError: Anything that the user can mend.
    """
    pairs = _dev_pairs(dev, data)
    if pairs is None:
        tell("no development pairs (--dev or --data): the last step's weights are kept, not the best")
    return train_run(
        recipe,
        demo.corpus(corpus),
        backbone=backbone,
        out=out,
        dev=None if pairs is None else lambda encoder: _scorer(encoder, pairs),
        tell=tell,
        **options,
    )


def run(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    backbone: str | Path = "minilm",
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    pairs: str | Path | None = None,
    paraphrases: str | Path | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    tell: Tell = lambda _: None,
    **options: Any,
) -> Result:
    """Build the text columns that a recipe needs, train, and evaluate backbone and result.

    Args:
        recipe: As for `train`.
        corpus: As for `train`.
        backbone: As for `train`.
        out: As for `train`; `views/` (if columns were built) and `results.json` are written there too.
        dev: As for `train`.
        data: As for `train`; where given, the seven STS tasks are evaluated.
        pairs: Further scored pairs to evaluate on: a file, or `"demo"`.
        paraphrases: A table of sentences and paraphrases, for recipes that have a use for one; its sentences join the
            corpus.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        resume: Go on with what `out` holds.
        overwrite: Start anew in an `out` that holds a run.
        tell: Receives short notes for the user.
        **options: `track`, `progress`.
    """
    suites = _suites(data, pairs)  # before any training, so that a mistake in a path costs nothing
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        extras, options_of_table = _with_table(paraphrases)
        overrides = [*options_of_table, *overrides]
        recipe = load_recipe(recipe, family=family, variant=variant, having=extras, overrides=overrides)
    source = _built(recipe, demo.corpus(corpus), paraphrases, Path(out), resume, overwrite, tell)
    finished = train(
        recipe,
        source,
        backbone=backbone,
        out=out,
        dev=dev,
        data=data,
        resume=resume and (Path(out) / "run.json").is_file(),
        overwrite=overwrite,
        tell=tell,
        **options,
    )
    before: dict[str, Results] = {}
    after: dict[str, Results] = {}
    if suites:
        prompt = next(iter(recipe.used_views.values())).prompt if recipe.encoder.pooling == "mask" else None
        untouched = load_encoder(backbone, pooling=recipe.encoder.pooling, prompt=prompt)
        before = _evaluate(untouched, suites, "before")
        after = _evaluate(load_encoder(finished.model), suites, "after")
    write_json(finished.folder / "results.json", {"before": _plain(before), "after": _plain(after)})
    return Result(finished, before, after)


def with_seed(overrides: Sequence[str], seed: int | None) -> list[str]:
    """The overrides of `--set`, with that of `--seed` put last."""
    return [*overrides, *([] if seed is None else [f"training.seed={seed}"])]


def _with_table(table: str | Path | None) -> tuple[list[str], list[str]]:
    """The recipe's table and the settings that a table of paraphrases stands for."""
    if table is None:
        return [], []
    from opencse.views.assemble import paraphrase_columns

    text, paraphrase = paraphrase_columns(table)
    values = {"path": str(table), "text_column": text, "candidate_column": paraphrase}
    return ["paraphrases"], [f"build.paraphrase.{key}={value}" for key, value in values.items()]


def _built(
    recipe: Recipe, corpus: Path, table: str | Path | None, out: Path, resume: bool, overwrite: bool, tell: Tell
) -> Path:
    """The corpus itself, or `out/views` with the columns that it lacks."""
    missing = [c for c in recipe.columns if c in recipe.build and c not in column_names(corpus)]
    raw = recipe.corpus == Corpus() and table is None
    if raw and not missing:
        return corpus
    from opencse.training.folder import check_folder
    from opencse.views import build
    from opencse.views.assemble import assemble

    if not resume:
        check_folder(out, resume=False, overwrite=overwrite)
    if not raw:
        out.mkdir(parents=True, exist_ok=True)
        corpus = assemble(corpus, recipe.corpus, out / "corpus.parquet", table=table, seed=recipe.training.seed)
    if not missing:
        return corpus
    tell(f"building {', '.join(missing)}")
    return build(corpus, recipe.build, out / "views", seed=recipe.training.seed, resume=resume or not overwrite)


def _dev_pairs(dev: str | Path | None, data: str | Path | None) -> ScoredPairs | None:
    if str(dev) == "none" or (dev is None and data is None):
        return None
    if dev is not None and str(dev) != "stsb":
        return read_pairs(demo.pairs(dev))
    if data is None:
        raise OpencseError("--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev.")
    return load_sts(data, text=_text(data), tasks=["STS-B"], split="dev")[0]


def _scorer(encoder: SentenceTransformer, pairs: ScoredPairs) -> Callable[[], float]:
    """A function that scores the encoder's current weights; the pairs are tokenised once."""
    embedder, task = Embedder(encoder), PairsTask(pairs=pairs)
    texts = distinct_texts([task])
    prepared = embedder.prepare(texts)

    def current() -> float:
        result = task.score(Embeddings(texts, embedder.encode(prepared)))
        if result.score is None:
            raise OpencseError(f"{pairs.name}: the development score is undefined ({result.undefined})")
        return result.score

    return current


def _suites(data: str | Path | None, pairs: str | Path | None) -> dict[str, list[PairsTask]]:
    suites: dict[str, list[PairsTask]] = {}
    if data is not None:
        suites["sts"] = [PairsTask(pairs=task) for task in load_sts(data, text=_text(data))]
    if pairs is not None:
        suites["pairs"] = [PairsTask(pairs=read_pairs(demo.pairs(pairs)))]
    return suites


def _text(data: str | Path) -> Literal["senteval", "raw"]:
    """The hub has the raw text only; everywhere else the text of published numbers is there."""
    return "raw" if str(data) == "hub" else "senteval"


def _evaluate(model: SentenceTransformer, suites: dict[str, list[PairsTask]], label: str) -> dict[str, Results]:
    """Encode every distinct text once, for all suites."""
    texts = distinct_texts([task for tasks in suites.values() for task in tasks])
    matrix = Embedder(model, progress=f"evaluating {label}").encode(texts)
    return {name: score(tasks, texts, matrix) for name, tasks in suites.items()}


def _plain(suites: dict[str, Results]) -> dict[str, Any]:
    return {
        name: {"tasks": [asdict(task) for task in results.results], "average": results.average}
        for name, results in suites.items()
    }
