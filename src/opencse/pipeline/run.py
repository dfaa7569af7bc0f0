"""`opencse.run`: build columns, train, probe before and after, and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin

from opencse.data.columns import missing_specs
from opencse.data.documents import is_prose
from opencse.data.given import corpus_file, given_name
from opencse.data.paraphrases import Paraphrases
from opencse.data.prepare import prepare_rows, recipe_for_corpus
from opencse.encoder import backbone_config, load_encoder
from opencse.encoder.device import choose_device
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.given import model_source
from opencse.encoder.precision_choice import describe, resolve_precision
from opencse.encoder.vector_cache import cached_vectors
from opencse.evaluation import STS_TASKS, Results, TaskResult
from opencse.evaluation.compatibility import StoredVectors, stored_vectors
from opencse.evaluation.development import development_scorer, development_sets, sts_text
from opencse.io import demo
from opencse.io.corpus import column_names, read_texts
from opencse.io.files import write_json
from opencse.io.lock import locks
from opencse.pipeline.display import findings_tables, run_lines, scores_tables
from opencse.pipeline.train import train, with_seed
from opencse.probing import Findings, Material, Prober
from opencse.progress import collect, timed
from opencse.recipes import Recipe, family_of, load_recipe, shortened
from opencse.runs.folder import check_folder
from opencse.runs.precision import begun_precision
from opencse.runs.session import Notify
from opencse.training import Run, train_first_stages

_UNGUARDED = (
    "No guard: there were no development pairs (--dev or --data), so nothing checked during training that the model "
    "keeps what it could do before."
)


_STORED = 1000  # sentences of the corpus whose old and new vectors are compared


@dataclass(frozen=True, repr=False)
class Result(JupyterMixin):
    """Result of `opencse.run`; it displays as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        findings: Probes and scores of the untouched backbone (pooled as in the recipe) and of the trained model, under
            the names that the report gives them.
        report: The HTML page that shows them.
        timings: Seconds of each part of the command, the longest first.
    """

    run: Run
    findings: dict[str, Findings]
    report: Path
    timings: dict[str, float]

    def __repr__(self) -> str:
        return f"Result(model={str(self.run.model)!r}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        scores = scores_tables(self.before, self.after, self.run)
        return Group(run_lines(self.run), scores, findings_tables(self.findings, self.report))

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`)."""
        return _suites(next(iter(self.findings.values())))

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(list(self.findings.values())[-1])


@locks("out")
def run(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any = "minilm",
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    pairs: str | Path | None = None,
    paraphrases: str | Path | None = None,
    llm: str | None = None,
    column: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int | None = None,
    quick: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    notify: Notify = lambda _: None,
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
        column: As for `train`.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        seed: As for `train`.
        quick: Make a trial of a few steps on a few sentences (`opencse.recipes.shortened`).
        resume: Continue from what `out` holds.
        overwrite: As for `train`.
        track: As for `train`.
        progress: As for `train`.
        notify: As for `train`.

    Returns:
        Scores and probes before and after, and the trained model's folder; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    from opencse.probing.material import gather
    from opencse.reports import add_scores, write_report

    with collect() as timings:
        folder, name = Path(out), given_name(corpus)
        needed = set((recipe if isinstance(recipe, Recipe) else load_recipe(recipe)).columns) - {"text"}
        split = isinstance(corpus, str | Path) and not needed & set(_columns(corpus))
        corpus, backbone = corpus_file(corpus, column=column, split=split), model_source(backbone)
        # Read before any training, so that a mistake in a path costs nothing.
        own_pairs = [] if pairs is None else [demo.pairs(pairs)]
        judged_on = gather(data=data, pairs=own_pairs, text=sts_text(data))
        source = Paraphrases(table=None if paraphrases is None else Path(paraphrases), llm=llm)
        if not isinstance(recipe, Recipe):
            family = family_of(backbone_config(backbone))
            recipe = recipe_for_corpus(
                recipe, corpus, family=family, variant=variant, overrides=with_seed(overrides, seed), paraphrases=source
            )
        if quick:
            recipe = shortened(recipe)
        if not resume:
            check_folder(folder, resume=False, overwrite=overwrite)
        recipe = _settled(recipe, backbone, folder, resume, notify)
        sets = development_sets(dev, data)
        with timed("first stages", whole=True):
            stages = train_first_stages(
                recipe,
                missing_specs(recipe.build, recipe.columns, column_names(corpus)),
                corpus,
                folder,
                backbone=backbone,
                dev=None if not sets else lambda encoder: development_scorer(encoder, sets),
                progress=progress,
                overwrite=overwrite,
                notify=notify,
            )
        rows = prepare_rows(
            recipe,
            corpus,
            folder,
            models={"backbone": backbone, **stages},
            paraphrases=source,
            keep=resume or not overwrite,
            notify=notify,
        )
        trained = train(
            recipe,
            rows,
            backbone=backbone,
            out=folder,
            dev=dev,
            data=data,
            resume=resume and (folder / "run.json").is_file(),
            overwrite=overwrite,
            track=track,
            progress=progress,
            notify=notify,
            corpus_name=name,
        )
        with timed("evaluation"):
            findings = _before_and_after(trained.recipe, backbone, trained.model, judged_on.material)
            stored = _stored_vectors(recipe, backbone, trained.model, corpus)
        unguarded = [_UNGUARDED] if trained.outcome.first_score is None else []
        with timed("report"):
            report = write_report(
                findings, folder, notes=[*trained.warnings, *unguarded, stored.advice(), *judged_on.notes]
            )
        made_of = [name, *([] if source.table is None else [f"paraphrases from {source.table.name}"])]
        add_scores(trained.model / "README.md", findings, made_of=", ".join(made_of), stored=stored)
    result = Result(trained, findings, report, timings.rounded())
    scores = {"before": _plain(result.before), "after": _plain(result.after)}
    write_json(folder / "results.json", scores | {"timings": result.timings})
    notify(timings.line())
    return result


def _settled(recipe: Recipe, backbone: str | Path, folder: Path, resume: bool, notify: Notify) -> Recipe:
    """Return the recipe with its precision settled, and say where and in which one the run computes."""
    config, device, training = backbone_config(backbone), choose_device(), recipe.training
    if training.precision == "auto" and resume and (begun := begun_precision(folder)):
        training = replace(training, precision=begun)
    notify(f"{recipe.name} {describe(training.precision, config, device)}")
    return replace(recipe, training=replace(training, precision=resolve_precision(training.precision, config, device)))


def _before_and_after(recipe: Recipe, backbone: str | Path, model: Path, material: Material) -> dict[str, Findings]:
    """Probe both models; each encodes every distinct text once, the backbone once for all runs."""
    precision: Precision = "auto" if recipe.training.precision == "fp16" else recipe.training.precision
    name = Path(str(backbone)).name
    trained = f"{name} + {recipe.name}"

    def untouched(texts: Sequence[str]) -> np.ndarray:
        encoder = load_encoder(backbone, **recipe.pooling)
        return cached_vectors(Embedder(encoder, precision=precision, progress=f"evaluating {name}"), texts)

    prober = Prober(material)
    before = prober(untouched)
    after = prober(Embedder(load_encoder(model), precision=precision, progress=f"evaluating {trained}"))
    return {name: before, trained: after}


def _columns(corpus: str | Path) -> list[str]:
    """Return the columns of a table, none for documents."""
    path = demo.corpus(corpus)
    return column_names(path) if path.exists() and not is_prose(path) else []


def _stored_vectors(recipe: Recipe, backbone: str, model: Path, corpus: Path) -> StoredVectors:
    """Measure whether vectors of the backbone can stay in an index beside those of the trained model."""
    texts = list(dict.fromkeys(islice(read_texts(corpus), _STORED)))
    old = cached_vectors(Embedder(load_encoder(backbone, **recipe.pooling)), texts)
    return stored_vectors(old, Embedder(load_encoder(model))(texts))


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
