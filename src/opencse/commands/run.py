"""`opencse.run`: build columns, train, probe before and after, and report; or, without text, add a block."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path

from opencse.commands.command_line import apply, takes
from opencse.commands.options import RunOptions
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import compare_outcome
from opencse.commands.run_report import UPGRADE, RunResult, measure_and_report
from opencse.commands.train import first_stage_measures, read_validation, resolve_recipe, run_control, train_on_rows
from opencse.encoder import save_encoder
from opencse.encoder.backbone import MEASURED, Backbone, append_block, shipped_block, weights_hash
from opencse.encoder.meaning_block import MeaningBlock
from opencse.evaluation.probes import ProbeScores, load_probe_data
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked, write_json, write_text
from opencse.foundation.numbers import check_minutes, few_sentences
from opencse.foundation.progress import collect, timed
from opencse.foundation.reading import read_json
from opencse.foundation.result_table import show
from opencse.foundation.toml_tables import decode
from opencse.recipes import dump_recipe, load_recipe, shortened
from opencse.recipes.rows.prepare import RowSources, missing_specs, prepare_rows
from opencse.text.languages import ENOUGH_TEXTS, choose_language
from opencse.text.user_text import UserText
from opencse.training.folder import check_folder, describe_environment, prepare_folder
from opencse.training.session import TrainingOutcome, encoder_card
from opencse.training.strength import StrengthCurve
from opencse.training.train import TrainingRun, train_first_stages

_NEED_TEXT = ("paraphrases", "guard", "dev", "pairs", "minutes")


@takes(RunOptions)
def run(options: RunOptions) -> RunResult:
    """Build columns, train and evaluate.

    Returns:
        The run, and scores before and after training; it displays as tables in a notebook.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if options.corpus is None:
        return add_block(options)
    folder, notify, deadline = Path(options.out), options.notify, None
    if options.minutes is not None:
        check_minutes(options.minutes)
        deadline = time.perf_counter() + 60 * options.minutes
    with locked(folder), collect() as timings:
        control = replace(run_control(options), deadline=deadline)
        backbone, text = Backbone(options.backbone), UserText(options.corpus, options.column)
        table = None if options.paraphrases is None else Path(options.paraphrases)
        recipe = resolve_recipe(options, backbone, text.columns, table)
        if options.quick:
            recipe = shortened(recipe)
        backbone.seed = recipe.training.seed
        # Documents are split into sentences, unless they are a table with columns that the recipe's views read.
        corpus = text.corpus(set(recipe.columns) - {"text"})
        few = few_sentences(corpus.texts()) if table is None else []
        language = choose_language(recipe.corpus.language, corpus.first_texts(ENOUGH_TEXTS))
        # Read before any training, so that a mistake in a path costs nothing.
        probe_data = load_probe_data(data=options.data, pairs=[] if options.pairs is None else [options.pairs])
        if not options.resume:
            check_folder(folder, resume=False, overwrite=options.overwrite)
        measures = read_validation(recipe, corpus, options)
        missing = missing_specs(recipe.build, recipe.columns, corpus.columns)
        for line in filter(None, [*few, language.line(missing)]):
            notify(line)
        with timed("first stages"), collect():  # what is inside counts for it
            first_measures = first_stage_measures(options.dev, options.data)
            stages = train_first_stages(recipe, missing, corpus, backbone, first_measures, control)
        sources = RowSources(
            models={"backbone": backbone, **{name: Backbone(path) for name, path in stages.items()}},
            paraphrases=table,
            pack=language.pack,
            keep=options.resume or not options.overwrite,
        )
        rows = prepare_rows(recipe, corpus, folder, sources, notify)
        if not (folder / "run.json").is_file():
            control = replace(control, resume=False)
        trained = train_on_rows(recipe, rows, backbone, measures, control)
        made_of = corpus.name + ("" if table is None else f", paraphrases from {table.name}")
        scores, outcome, report = measure_and_report(trained, backbone, probe_data, few, made_of)
    result = RunResult(trained, scores, outcome, report, timings.rounded())
    result.save(folder / "results.json")
    notify(timings.line())
    return result


def command(options: RunOptions) -> None:
    """Run, and print the result."""
    show(apply(run, options))


def add_block(options: RunOptions) -> RunResult:
    """Write a model with the block that comes with the package for it; nothing is trained or measured.

    Raises:
        OpencseError: No block comes with the package for this model, the recipe has none, or an option needs text.
    """
    folder = Path(options.out)
    recipe = load_recipe(options.recipe, variant=options.variant, overrides=options.settings)
    if recipe.block is None:
        raise OpencseError(f"the recipe {recipe.name} needs text", f"Give it: opencse run {recipe.name} DOCUMENTS.")
    for name in _NEED_TEXT:
        if getattr(options, name) is not None:
            raise OpencseError(f"--{name} needs text to train on", f"Give it: opencse run {recipe.name} DOCUMENTS.")
    with locked(folder), collect() as timings:
        check_folder(folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone)
        backbone = Backbone(options.backbone)
        encoder = backbone.encoder(**recipe.pooling)
        source = shipped_block(encoder)
        if source is None:
            raise OpencseError(
                f"no meaning block for {backbone} comes with this version of opencse",
                f"Train one on your own text: opencse run {recipe.name} DOCUMENTS --backbone {backbone} -o {folder}.",
            )
        measured = read_json(source / MEASURED)
        curve = decode(StrengthCurve, measured["curve"], f"{source / MEASURED}: curve")
        block = MeaningBlock.load(str(source))
        block.strength = curve.chosen
        prepare_folder(folder, overwrite=options.overwrite)
        record = {
            "recipe": recipe.name,
            "variant": recipe.variant,
            "family": backbone.family,
            "backbone": backbone.name,
            "corpus": measured["text"],
            "rows": measured["rows"],
            "seed": recipe.training.seed,
            "precision": "fp32",
            "fingerprint": {"recipe": dump_recipe(recipe), "backbone": weights_hash(encoder)},
        }
        append_block(encoder, block)
        outcome = TrainingOutcome(0, None, None, None, 0.0, curve)
        save_encoder(encoder, folder / "model", encoder_card(recipe, record, outcome, language="en"))
        write_text(folder / "recipe.toml", dump_recipe(recipe))
        write_json(folder / "environment.json", describe_environment())
        write_json(folder / "run.json", {**record, "device": str(backbone.device), "outcome": asdict(outcome)})
        name = Path(backbone.name).name
        scores = dict.fromkeys((name, f"{name} + {recipe.name}"), ProbeScores(sts=(), seconds=0.0))
        changed = compare_outcome(scores, curve, [UPGRADE])
        report = write_report(scores, folder, outcome=changed, curve=curve)
    result = RunResult(TrainingRun(folder, recipe, outcome), scores, changed, report, timings.rounded())
    result.save(folder / "results.json")
    return result
