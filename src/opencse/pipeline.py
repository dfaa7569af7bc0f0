"""What users do, in one call each: train a recipe; or build, train, probe before and after, and report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opencse.encoder import backbone_config, load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.vector_cache import cached_vectors
from opencse.errors import OpencseError
from opencse.evaluation import (
    STS_TASKS,
    Embeddings,
    PairsTask,
    Results,
    ScoredPairs,
    TaskResult,
    distinct_texts,
    load_sts,
    read_pairs,
)
from opencse.io import demo
from opencse.io.corpus import column_names
from opencse.io.files import write_json
from opencse.probing import Findings, Material, Prober
from opencse.recipes import Recipe, family_of, load_recipe, shortened
from opencse.training import Run
from opencse.training import train as train_run

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Tell = Callable[[str], None]
_UNGUARDED = (
    "No guard: there were no development pairs (--dev or --data), so nothing checked during training that the model "
    "keeps what it could do before."
)


@dataclass(frozen=True)
class Result:
    """What `run` came to.

    Attributes:
        run: The training run.
        findings: What was probed and scored, of the untouched backbone (pooled as in the recipe) and of the trained
            model, under the names that the report gives them.
        report: The page that shows it.
    """

    run: Run
    findings: dict[str, Findings]
    report: Path

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`)."""
        return _suites(next(iter(self.findings.values())))

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(list(self.findings.values())[-1])


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
        corpus: Raw sentences in any format of `opencse.io.corpus`, or `"demo"`.
        backbone: A folder, a hub id or a bundled name.
        out: The run's folder.
        dev: Scored pairs that choose the best step: a file, `"stsb"` (STS-B dev below `data`) or `"none"`. By default
            the development sets that the recipe names (`Selection.tasks`) where `data` is given, and none otherwise.
        data: The STS files (`opencse.evaluation.load_sts`).
        tell: Receives short notes for the user.
        **options: `variant`, `overrides`, `resume`, `overwrite`, `track`, `progress`: see `opencse.training.train`.

    Raises:
        OpencseError: Anything that the user can mend.
    """
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        settings = {key: options.pop(key) for key in ("variant", "overrides") if key in options}
        recipe = load_recipe(recipe, family=family, **settings)
    pairs = _dev_pairs(dev, data, recipe.selection.tasks)
    if not pairs:
        tell(
            "no development pairs (--dev or --data): the last step's weights are kept, and nothing checks that "
            "the model keeps what it could do before"
        )
    return train_run(
        recipe,
        demo.corpus(corpus),
        backbone=backbone,
        out=out,
        dev=None if not pairs else lambda encoder: _scorer(encoder, pairs),
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
    llm: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    quick: bool = False,
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
        out: As for `train`; `views/` (if columns were built), `results.json` and `report.html` are written there too.
        dev: As for `train`.
        data: As for `train`; where given, the seven STS tasks are evaluated.
        pairs: Further scored pairs to evaluate on: a file, or `"demo"`.
        paraphrases: A table of sentences and paraphrases, for recipes that have a use for one; its sentences join the
            corpus.
        llm: An OpenAI-compatible endpoint and the model's name there, `URL#MODEL`, that writes paraphrases in place of
            a table.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        quick: Make a trial of a few steps on a few sentences (`opencse.recipes.shortened`).
        resume: Go on with what `out` holds.
        overwrite: Start anew in an `out` that holds a run.
        tell: Receives short notes for the user.
        **options: `track`, `progress`.
    """
    from opencse.data.columns import has_views, missing_specs, with_backbone
    from opencse.probing.material import gather
    from opencse.reports import add_scores, write_report

    corpus = demo.corpus(corpus)
    # Read before any training, so that a mistake in a path costs nothing.
    own = [] if pairs is None else [demo.pairs(pairs)]
    gathered = gather(data=data, pairs=own, text=_text(data) if data is not None else "senteval")
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        source = _source_of_paraphrases(paraphrases, llm)
        overrides = [*(f"build.paraphrase.{key}={value}" for key, value in source.items()), *overrides]
        load = partial(load_recipe, recipe, family=family, variant=variant, overrides=overrides)
        recipe = load(having=["paraphrases"]) if source else load(may_have=["paraphrases"])
        columns = column_names(corpus)
        with_paraphrases = "paraphrase" in columns and has_views(recipe.build, corpus)
        if not source and not with_paraphrases and missing_specs(recipe.build, recipe.columns, columns):
            recipe = load()  # else these are built views, with their paraphrases
    if quick:
        recipe = shortened(recipe)
    mining = replace(recipe, build=with_backbone(recipe.build, backbone))
    built = _built(mining, corpus, paraphrases, Path(out), resume, overwrite, tell)
    finished = train(
        recipe,
        built,
        backbone=backbone,
        out=out,
        dev=dev,
        data=data,
        resume=resume and (Path(out) / "run.json").is_file(),
        overwrite=overwrite,
        tell=tell,
        **options,
    )
    findings = _before_and_after(recipe, backbone, finished.model, gathered.material)
    notes = [*finished.warnings, *([_UNGUARDED] if finished.outcome.first_score is None else []), *gathered.notes]
    report = write_report(findings, finished.folder, notes=notes)
    made_of = [corpus.name, *([] if paraphrases is None else [f"paraphrases from {Path(paraphrases).name}"])]
    add_scores(finished.model / "README.md", findings, made_of=", ".join(made_of))
    result = Result(finished, findings, report)
    write_json(finished.folder / "results.json", {"before": _plain(result.before), "after": _plain(result.after)})
    return result


def with_seed(overrides: Sequence[str], seed: int | None) -> list[str]:
    """The overrides of `--set`, with that of `--seed` put last."""
    return [*overrides, *([] if seed is None else [f"training.seed={seed}"])]


def _source_of_paraphrases(table: str | Path | None, llm: str | None) -> dict[str, str]:
    """What a recipe's `build.paraphrase` becomes; nothing where the user brings no paraphrases."""
    if table is not None and llm is not None:
        raise OpencseError("paraphrases come from a table or from a language model", "Give one of both.")
    if table is not None:
        from opencse.data.sampling import paraphrase_columns

        text, paraphrase = paraphrase_columns(table)
        return {"path": str(table), "text_column": text, "candidate_column": paraphrase}
    if llm is None:
        return {}
    url, _, model = llm.partition("#")
    if not model:
        raise OpencseError(f"{llm}: the name of the model is missing", "Write it like http://localhost:8000/v1#NAME.")
    return {"kind": "llm", "url": url, "model": model, "task": "paraphrase"}


def _built(
    recipe: Recipe, corpus: Path, table: str | Path | None, out: Path, resume: bool, overwrite: bool, tell: Tell
) -> Path:
    """The rows to train on: the corpus itself, or what is made of it in `out`."""
    from opencse.data.mixture import mix
    from opencse.runs.folder import check_folder

    settings, columns = recipe.corpus, recipe.columns
    if not resume:
        check_folder(out, resume=False, overwrite=overwrite)
    corpus = _with_views(recipe, corpus, table, out, resume or not overwrite, tell)
    if not settings.parts:
        return corpus
    # Without the views that no term reads, rows are drawn as if these did not exist.
    parts = {
        name: replace(
            part,
            needs=tuple(c for c in part.needs if c in columns),
            keeps=tuple(c for c in part.keeps if c in columns),
        )
        for name, part in settings.parts.items()
    }
    out.mkdir(parents=True, exist_ok=True)
    return mix(corpus, parts, out / "mixture.parquet", seed=recipe.training.seed, tell=tell)


def _with_views(recipe: Recipe, corpus: Path, table: str | Path | None, out: Path, resume: bool, tell: Tell) -> Path:
    """The corpus with the columns that the recipe's views read; those that it lacks are built."""
    from opencse.data.columns import beside, has_views, missing_specs
    from opencse.data.sampling import assemble
    from opencse.views import build

    if recipe.build and not missing_specs(recipe.build, recipe.columns, column_names(corpus)):
        return corpus  # all done before
    whole = not (recipe.corpus.rows or recipe.corpus.clauses) or has_views(recipe.build, corpus)
    if table is not None or not whole:
        corpus = assemble(corpus, recipe.corpus, out / "corpus.parquet", table=table, seed=recipe.training.seed)
    missing = missing_specs(recipe.build, recipe.columns, column_names(corpus))
    if not missing:
        return corpus
    tell(f"building {', '.join(missing)}")
    built = build(corpus, missing, out / "views", seed=recipe.training.seed, resume=resume)
    return beside(corpus, built, list(recipe.columns))


def _dev_pairs(dev: str | Path | None, data: str | Path | None, tasks: Sequence[str]) -> list[ScoredPairs]:
    """The development sets that choose the best step; several count by their mean score."""
    if str(dev) == "none" or (dev is None and data is None):
        return []
    if dev is not None and str(dev) != "stsb":
        return [read_pairs(demo.pairs(dev))]
    if data is None:
        raise OpencseError("--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev.")
    if dev is not None or str(data) == "hub":  # which has no other development set
        tasks = ["STS-B"]
    return load_sts(data, text=_text(data), tasks=tasks, split="dev")


def _scorer(encoder: SentenceTransformer, sets: Sequence[ScoredPairs]) -> Callable[[], float]:
    """A function that scores the encoder's current weights; the pairs are tokenised once."""
    embedder, tasks = Embedder(encoder), [PairsTask(pairs=pairs) for pairs in sets]
    texts = distinct_texts(tasks)
    prepared = embedder.prepare(texts)

    def current() -> float:
        embeddings, scores = Embeddings(texts, embedder.encode(prepared)), []
        for task in tasks:
            result = task.score(embeddings)
            if result.score is None:
                raise OpencseError(f"{task.pairs.name}: the development score is undefined ({result.undefined})")
            scores.append(result.score)
        return sum(scores) / len(scores)

    return current


def _text(data: str | Path) -> Literal["senteval", "raw"]:
    """The hub has the raw text only; everywhere else the text of published numbers is there."""
    return "raw" if str(data) == "hub" else "senteval"


def _before_and_after(recipe: Recipe, backbone: str | Path, model: Path, material: Material) -> dict[str, Findings]:
    """Probe both models; each encodes every distinct text once, the backbone once for all runs."""
    name = Path(str(backbone)).name
    trained = f"{name} + {recipe.name}"

    def untouched(texts: Sequence[str]) -> np.ndarray:
        encoder = load_encoder(backbone, **recipe.pooling)
        return cached_vectors(Embedder(encoder, progress=f"evaluating {name}"), texts)

    prober = Prober(material)
    before = prober(untouched)
    return {name: before, trained: prober(Embedder(load_encoder(model), progress=f"evaluating {trained}"))}


def _suites(findings: Findings) -> dict[str, Results]:
    """The scored pairs of one model, the STS tasks and the user's own apart."""
    suites: dict[str, list[TaskResult]] = {}
    for task in findings.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    return {name: Results(results=tuple(tasks), texts=0, seconds=findings.seconds) for name, tasks in suites.items()}


def _plain(suites: dict[str, Results]) -> dict[str, Any]:
    return {
        name: {"tasks": [asdict(task) for task in results.results], "average": results.average}
        for name, results in suites.items()
    }
