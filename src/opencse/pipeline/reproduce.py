"""`opencse.reproduce`: a table of a paper from one command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opencse.data.paraphrases import Paraphrases, paraphrase_columns
from opencse.data.prepare import recipe_for_corpus
from opencse.encoder import backbone_config, load_encoder
from opencse.encoder.embedder import Embedder
from opencse.errors import OpencseError
from opencse.evaluation.development import sts_text
from opencse.io import demo
from opencse.io.corpus import content_hash
from opencse.io.files import write_json, write_text
from opencse.pipeline.run import run
from opencse.probing import Findings, Material, Prober
from opencse.probing.material import gather
from opencse.probing.sets import load_probe_sts
from opencse.recipes import Recipe, dump_recipe, family_of
from opencse.reproduction import Entry, ReproducedTable, System, load_entry, scores_table, splits_table
from opencse.runs.session import Notify

FULL = {
    "bert-base": "bert-base-uncased",
    "bert-large": "bert-large-uncased",
    "roberta-base": "roberta-base",
    "roberta-large": "roberta-large",
}
"""The backbones of the papers, by family."""
SMALL = {"bert-base": "mini-mlm"}
SMALL_SETTINGS = ("training.epochs=1", "training.max_steps=200", "training.batch_size=64", "selection.every=50")
"""Settings of a small run; what a system is compared by must not be among them."""
CANDIDATES = {"debcse": "build.positive.source"}
"""Where a recipe draws from paraphrases, if not from a column of its own."""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What all runs of a reproduction share."""

    out: Path
    corpus: Path
    data: str | None
    material: Material
    overrides: tuple[str, ...]
    paraphrases: Path | None
    progress: bool
    notify: Notify


def reproduce(
    table: str,
    *,
    out: str | Path,
    data: str | Path | None = None,
    corpus: str | Path = "demo",
    scale: Literal["small", "full"] = "small",
    seeds: Sequence[int] | None = None,
    overrides: Sequence[str] = (),
    paraphrases: str | Path | None = None,
    progress: bool = True,
    notify: Notify = lambda _: None,
) -> ReproducedTable:
    """Reproduce a table of a paper, with what the paper prints beside each figure.

    Runs are kept in `out/runs`, by a hash of everything that they depend on: tables share them, and a reproduction that
    was stopped goes on where it was.

    Args:
        table: Its name, such as `osscse/table-4` (`opencse.reproduction.entry_names`).
        out: A folder for the runs of all tables, and for `PAPER/TABLE.md` and `.json`.
        data: The STS files; the pairs that come with opencse serve without them.
        corpus: Sentences to train on, or `"demo"`.
        scale: `small` trains for a few minutes from the bundled `mini-mlm`; `full` has the paper's backbones and
            settings, and needs a GPU.
        seeds: By default 1 for `small` and as many as the paper's for `full`.
        overrides: `key=value` settings of all runs, after those of the scale.
        paraphrases: A table of sentences and paraphrases, for systems that would otherwise translate.
        progress: Show progress bars.
        notify: Receives short notes for the user.

    Returns:
        The table; a cell that could not be filled says why.

    Raises:
        OpencseError: There is no such table, or the data or the corpus cannot be read.
    """
    entry, out = load_entry(table), Path(out)
    if entry.kind == "splits":
        if data is None:
            raise OpencseError(f"{table} is about the STS sets", "Pass --data.")
        sets = load_probe_sts(data, text=sts_text(data))
        return _written(splits_table(entry, {pairs.name: pairs for pairs in sets.split_sets}, sets.lacking), out)
    pairs = [] if data is not None else [demo.pairs("demo")]
    plan = _Plan(
        out=out,
        corpus=demo.corpus(corpus),
        data=None if data is None else str(data),
        material=gather(data=data, pairs=pairs, text=sts_text(data)).material,
        overrides=(*(SMALL_SETTINGS if scale == "small" else ()), *overrides),
        paraphrases=None if paraphrases is None else Path(paraphrases),
        progress=progress,
        notify=notify,
    )
    chosen = list(seeds) if seeds else [1] if scale == "small" else list(range(1, entry.seeds + 1))
    scores: dict[str, dict[str, list[dict[str, float]] | str]] = {}
    for family in entry.families:
        backbone = (SMALL if scale == "small" else FULL).get(family)
        if backbone is not None:
            key = f"{family}: {backbone}" if scale == "small" else family
            scores[key] = {system.label: _scores(system, backbone, chosen, plan) for system in entry.systems}
    if data is None:
        entry = _on_written_pairs(entry)
    return _written(scores_table(entry, scores, _notes(plan, scale, chosen)), out)


def _scores(system: System, backbone: str, seeds: Sequence[int], plan: _Plan) -> list[dict[str, float]] | str:
    """The scores of a system for each seed; or the reason why there are none."""
    if system.missing:
        return system.missing
    try:
        backbone_config(backbone)
    except OpencseError:
        return f"the backbone {backbone}"
    if system.pooling:
        return [
            _known(
                plan,
                {"backbone": backbone, "pooling": system.pooling},
                lambda folder: _untouched(system, backbone, plan),
            )
        ]
    try:
        return [_trained(system, backbone, seed, plan) for seed in seeds]
    except OpencseError as error:
        plan.notify(f"{system.label}: {error}")
        return error.problem


def _untouched(system: System, backbone: str, plan: _Plan) -> Findings:
    return Prober(plan.material)(Embedder(load_encoder(backbone, pooling=system.pooling), precision="auto"))


def _trained(system: System, backbone: str, seed: int, plan: _Plan) -> dict[str, float]:
    source, place = Paraphrases(table=plan.paraphrases), CANDIDATES.get(system.recipe)
    settings = [*plan.overrides, *system.set, f"training.seed={seed}"]
    if plan.paraphrases is not None and place is not None:
        text, candidate = paraphrase_columns(plan.paraphrases)
        columns = f"text_column='{text}', candidate_column='{candidate}'"
        settings.insert(0, f"{place}={{kind='candidate_table', path='{plan.paraphrases.resolve()}', {columns}}}")
    family = family_of(backbone_config(backbone))
    options: dict[str, Any] = {"family": family, "overrides": settings}
    try:
        recipe = recipe_for_corpus(system.recipe, plan.corpus, **options, paraphrases=source)
    except OpencseError:
        if plan.paraphrases is None:
            raise
        source = Paraphrases()  # a system that has no use for paraphrases
        recipe = recipe_for_corpus(system.recipe, plan.corpus, **options, paraphrases=source)
    key = {"recipe": dump_recipe(recipe), "backbone": backbone}
    return _known(plan, key, lambda folder: _run(recipe, backbone, folder, source, plan))


def _run(recipe: Recipe, backbone: str, folder: Path, source: Paraphrases, plan: _Plan) -> Findings:
    plan.notify(f"training {recipe.name}, seed {recipe.training.seed}, in {folder}")
    result = run(
        recipe,
        plan.corpus,
        backbone=backbone,
        out=folder,
        data=plan.data,
        dev=None if plan.data is not None else "demo",
        pairs=None if plan.data is not None else "demo",
        paraphrases=source.table,
        resume=(folder / "run.json").is_file(),
        progress=plan.progress,
        notify=plan.notify,
    )
    return list(result.findings.values())[-1]


def _known(plan: _Plan, key: Mapping[str, str], measure: Any) -> dict[str, float]:
    """The scores of a run, measured unless an earlier table or an interrupted reproduction left them."""
    whole = {**key, "corpus": content_hash(plan.corpus), "data": plan.data or "written pairs"}
    digest = hashlib.blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = plan.out / "runs" / digest
    file = folder.with_suffix(".json")
    if not file.is_file():
        write_json(file, _plain(measure(folder)) | {"of": dict(whole)})
    return {name: score for name, score in json.loads(file.read_text(encoding="utf-8")).items() if name != "of"}


def _plain(findings: Findings) -> dict[str, Any]:
    """The scores by task, and the correlations on OssCSE's splits, x 100."""
    scores = {task.task: task.score for task in findings.sts if task.score is not None}
    if findings.splits is not None:
        splits = {"Cont.": findings.splits.consistent.value, "Oppn.": findings.splits.opposed.value}
        scores |= {name: 100 * value for name, value in splits.items() if value is not None}
    return scores


def _on_written_pairs(entry: Entry) -> Entry:
    """The table on the pairs that come with opencse, for those who have no STS data."""
    from dataclasses import replace

    systems = tuple(
        replace(system, printed={family: printed[-1:] for family, printed in system.printed.items()})
        for system in entry.systems
    )
    return replace(
        entry, columns=("Avg.",), systems=systems, note=f"{entry.note} Scored on opencse's own pairs.".strip()
    )


def _notes(plan: _Plan, scale: str, seeds: Sequence[int]) -> list[str]:
    settings = ", ".join(plan.overrides) or "the recipes' own"
    return [f"Scale {scale}; seeds {', '.join(map(str, seeds))}; corpus {plan.corpus.name}; settings: {settings}."]


def _written(table: ReproducedTable, out: Path) -> ReproducedTable:
    write_text(out / f"{table.entry}.md", table.markdown())
    write_json(out / f"{table.entry}.json", table.plain())
    return table
