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
from opencse.io.corpus import Corpus
from opencse.io.files import write_json, write_text
from opencse.pipeline.run import run
from opencse.probing import ProbeData, ProbeScores, ProbeSuite, load_probe_data
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
"""Settings of a small run; a setting in which the compared systems differ must not be among them."""
CANDIDATES = {"debcse": "build.positive.source"}
"""The constructor source that takes a table of paraphrases, for recipes without a column of paraphrases."""


@dataclass(frozen=True, kw_only=True)
class _SharedSettings:
    """Settings of all runs of a reproduction."""

    out: Path
    corpus: Corpus
    data: str | None
    probe_data: ProbeData
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
    """Reproduce a table of a paper, with the published figures beside the measured ones.

    Runs are kept in `out/runs` under a hash of everything that they depend on. Tables share them, and an interrupted
    reproduction continues where it stopped.

    Args:
        table: Name, such as `osscse/table-4` (`opencse.reproduction.entry_names`).
        out: A folder for the runs of all tables, and for `PAPER/TABLE.md` and `.json`.
        data: The STS files; by default the pairs that come with opencse are scored.
        corpus: Sentences to train on, or `"demo"`.
        scale: `small` trains for a few minutes from the bundled `mini-mlm`; `full` has the paper's backbones and
            settings, and needs a GPU.
        seeds: By default 1 for `small`, and as many as in the paper for `full`.
        overrides: `key=value` settings of all runs, after those of the scale.
        paraphrases: A table of sentences and paraphrases, in place of back-translation.
        progress: Show progress bars.
        notify: Receives short notes for the user.

    Returns:
        The table; an empty cell gives the reason.

    Raises:
        OpencseError: There is no such table, or the data or the corpus cannot be read.
    """
    entry, out = load_entry(table), Path(out)
    if entry.kind == "splits":
        if data is None:
            raise OpencseError(f"{table} is about the STS sets", "Pass --data.")
        sets = load_probe_sts(data, text=sts_text(data))
        return _written(splits_table(entry, {pairs.name: pairs for pairs in sets.split_sets}, sets.missing), out)
    pairs = [] if data is not None else [demo.pairs("demo")]
    shared = _SharedSettings(
        out=out,
        corpus=Corpus(demo.corpus(corpus)),
        data=None if data is None else str(data),
        probe_data=load_probe_data(data=data, pairs=pairs, text=sts_text(data)),
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
            scores[key] = {system.label: _scores(system, backbone, chosen, shared) for system in entry.systems}
    if data is None:
        entry = _on_written_pairs(entry)
    return _written(scores_table(entry, scores, _notes(shared, scale, chosen)), out)


def _scores(
    system: System, backbone: str, seeds: Sequence[int], shared: _SharedSettings
) -> list[dict[str, float]] | str:
    """Return the scores of a system for each seed, or the reason why there are none."""
    if system.missing:
        return system.missing
    try:
        backbone_config(backbone)
    except OpencseError:
        return f"the backbone {backbone}"
    if system.pooling:
        return [
            _stored_or_measured(
                shared,
                {"backbone": backbone, "pooling": system.pooling},
                lambda folder: _probe_untouched(system, backbone, shared),
            )
        ]
    try:
        return [_trained(system, backbone, seed, shared) for seed in seeds]
    except OpencseError as error:
        shared.notify(f"{system.label}: {error}")
        return error.problem


def _probe_untouched(system: System, backbone: str, shared: _SharedSettings) -> ProbeScores:
    return ProbeSuite(shared.probe_data)(Embedder(load_encoder(backbone, pooling=system.pooling), precision="auto"))


def _trained(system: System, backbone: str, seed: int, shared: _SharedSettings) -> dict[str, float]:
    source, source_key = Paraphrases(table=shared.paraphrases), CANDIDATES.get(system.recipe)
    settings = [*shared.overrides, *system.set, f"training.seed={seed}"]
    if shared.paraphrases is not None and source_key is not None:
        text, candidate = paraphrase_columns(shared.paraphrases)
        named = f"text_column='{text}', candidate_column='{candidate}'"
        settings.insert(0, f"{source_key}={{kind='candidate_table', path='{shared.paraphrases.resolve()}', {named}}}")
    family = family_of(backbone_config(backbone))
    options: dict[str, Any] = {"family": family, "overrides": settings}
    try:
        recipe = recipe_for_corpus(system.recipe, shared.corpus, **options, paraphrases=source)
    except OpencseError:
        if shared.paraphrases is None:
            raise
        source = Paraphrases()  # this system uses no paraphrases
        recipe = recipe_for_corpus(system.recipe, shared.corpus, **options, paraphrases=source)
    key = {"recipe": dump_recipe(recipe), "backbone": backbone}
    return _stored_or_measured(shared, key, lambda folder: _run(recipe, backbone, folder, source, shared))


def _run(recipe: Recipe, backbone: str, folder: Path, source: Paraphrases, shared: _SharedSettings) -> ProbeScores:
    shared.notify(f"training {recipe.name}, seed {recipe.training.seed}, in {folder}")
    result = run(
        recipe,
        shared.corpus.path,
        backbone=backbone,
        out=folder,
        data=shared.data,
        dev=None if shared.data is not None else "demo",
        pairs=None if shared.data is not None else "demo",
        paraphrases=source.table,
        resume=(folder / "run.json").is_file(),
        progress=shared.progress,
        notify=shared.notify,
    )
    return list(result.scores.values())[-1]


def _stored_or_measured(shared: _SharedSettings, key: Mapping[str, str], measure: Any) -> dict[str, float]:
    """Return the scores of a run; they are measured unless an earlier reproduction stored them."""
    dependencies = {**key, "corpus": shared.corpus.content_hash, "data": shared.data or "written pairs"}
    digest = hashlib.blake2b(json.dumps(dependencies, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = shared.out / "runs" / digest
    file = folder.with_suffix(".json")
    if not file.is_file():
        write_json(file, _by_task(measure(folder)) | {"of": dict(dependencies)})
    return {name: score for name, score in json.loads(file.read_text(encoding="utf-8")).items() if name != "of"}


def _by_task(scores: ProbeScores) -> dict[str, Any]:
    """Return the scores by task and the correlations on OssCSE's splits, times 100."""
    by_task = {task.task: task.score for task in scores.sts if task.score is not None}
    if scores.splits is not None:
        splits = {"Cont.": scores.splits.consistent.value, "Oppn.": scores.splits.opposed.value}
        by_task |= {name: 100 * value for name, value in splits.items() if value is not None}
    return by_task


def _on_written_pairs(entry: Entry) -> Entry:
    """Return the table on the pairs that come with opencse, for users without STS data."""
    from dataclasses import replace

    systems = tuple(
        replace(system, printed={family: printed[-1:] for family, printed in system.printed.items()})
        for system in entry.systems
    )
    return replace(
        entry, columns=("Avg.",), systems=systems, note=f"{entry.note} Scored on opencse's own pairs.".strip()
    )


def _notes(shared: _SharedSettings, scale: str, seeds: Sequence[int]) -> list[str]:
    settings = ", ".join(shared.overrides) or "the recipes' own"
    return [f"Scale {scale}; seeds {', '.join(map(str, seeds))}; corpus {shared.corpus.name}; settings: {settings}."]


def _written(table: ReproducedTable, out: Path) -> ReproducedTable:
    write_text(out / f"{table.entry}.md", table.markdown())
    write_json(out / f"{table.entry}.json", table.plain())
    return table
