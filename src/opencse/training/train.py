"""From a recipe and a corpus to a trained model in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.data.token_store import Source, open_store
from opencse.encoder import (
    backbone_config,
    build_projector,
    load_encoder,
    save_encoder,
    special_frame,
    template_frame,
)
from opencse.encoder.denoising import TemplateDenoising
from opencse.encoder.dropout import dropout_rates
from opencse.encoder.fast import prepare_for_training
from opencse.encoder.weights_hash import weights_hash
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.objectives import Objective
from opencse.recipes import Recipe, View, dump_recipe, family_of, load_recipe
from opencse.runs.checkpoint import Checkpoints
from opencse.runs.folder import check_folder, environment, prepare_folder
from opencse.runs.log import check_trackers
from opencse.runs.loop import Loop, Outcome
from opencse.runs.memory import keep_freed_memory
from opencse.runs.sampling import Sampler
from opencse.training.batches import Assembler, ViewTokens
from opencse.training.card import model_card
from opencse.training.network import Network
from opencse.training.task_vectors import weighted_sum
from opencse.training.teachers import load_teachers, teacher_vectors
from opencse.training.term_modules import term_modules

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# What one more forward pass costs, in tokens: little on a CPU, a lot where launching is what takes time.
_GROUP_OVERHEAD = {True: 64.0, False: 8192.0}


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Holds `model/`, `metrics.jsonl`, `recipe.toml`, `run.json`, `environment.json`.
        recipe: As it was resolved for the backbone.
        outcome: Steps, scores and time.
        warnings: What the user should know.
    """

    folder: Path
    recipe: Recipe
    outcome: Outcome
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> Path:
        """The trained model, a sentence-transformers folder."""
        return self.folder / "model"


def train(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    backbone: str | Path,
    out: str | Path,
    dev: Callable[[SentenceTransformer], Callable[[], float]] | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Run:
    """Train a sentence encoder.

    Args:
        recipe: A name, a TOML file, or a resolved recipe (then `variant` and `overrides` have no say).
        corpus: Text in any format of `opencse.io.corpus`, with the columns that the recipe's views read.
        backbone: A folder, a hub id or a bundled name.
        out: The run's folder; new, or see `resume` and `overwrite`.
        dev: Given the encoder, makes a function that scores its current weights, higher is better
            (`opencse.evaluation.dev_scorer`); the best step's weights are kept. Without it the last are.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        resume: Go on from the last checkpoint in `out`, if it holds one.
        overwrite: Start anew in an `out` that holds a run.
        track: Further trackers: `tensorboard`, `wandb`, `trackio`.
        progress: Show progress bars.
        tell: Receives short notes for the user.

    Returns:
        The finished run.

    Raises:
        OpencseError: Anything that the user can mend; `out` is left as it was, or with its last good checkpoint.
    """
    out = Path(out)
    check_folder(out, resume=resume, overwrite=overwrite)
    check_trackers(list(track))
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        recipe = load_recipe(recipe, family=family, variant=variant, overrides=overrides)
    for warning in recipe.warnings():
        tell(f"warning: {warning}")

    from accelerate import Accelerator
    from accelerate.utils import InitProcessGroupKwargs, set_seed

    # While the main process tokenises or runs a teacher over the corpus, the others wait longer than by default.
    patience = InitProcessGroupKwargs(timeout=timedelta(days=1))
    accelerator = Accelerator(
        log_with=list(track) or None, project_dir=out / "tracking" if track else None, kwargs_handlers=[patience]
    )
    _check_batch(recipe, accelerator.num_processes)
    main = accelerator.is_main_process
    if accelerator.num_processes > 1:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    set_seed(recipe.training.seed)
    encoder = load_encoder(backbone, **recipe.pooling, dropout=recipe.encoder.dropout)
    _check_dropout(recipe, encoder, backbone)
    on_cpu = accelerator.device.type == "cpu"
    packed = prepare_for_training(encoder) and on_cpu
    if on_cpu:
        keep_freed_memory()
    sources, views = _sources(recipe, encoder, backbone)
    denoisers = _denoisers(recipe, encoder, views)
    network = _network(recipe, encoder, backbone, denoisers)
    with accelerator.main_process_first():
        bar = progress and main
        teachers = load_teachers(recipe, backbone, str(accelerator.device), corpus, progress=bar)
        store = open_store(
            corpus,
            sources,
            encoder.tokenizer,
            recipe.encoder.max_length,
            allow_empty=bool(recipe.corpus.parts),  # the parts say which views are needed
            progress=bar,
        )
        vectors = teacher_vectors(recipe, teachers, corpus, sources, progress=bar)
    fingerprint = {"recipe": dump_recipe(recipe), "corpus": store.corpus_hash, "backbone": weights_hash(encoder)}
    fingerprint |= {f"teacher {name}": teacher.digest for name, teacher in teachers.items()}
    del teachers  # their memory
    for term, module in zip(network.module_names, network.auxiliary, strict=True):
        if hasattr(module, "digest"):
            fingerprint[f"model of the term {term}"] = str(module.digest)
    others = _train_others(
        recipe, corpus, backbone=backbone, out=out, dev=dev, overwrite=overwrite, progress=progress, tell=tell
    )
    added, hashes = weighted_sum(recipe, encoder, others)
    fingerprint |= {f"task vector {name}": digest for name, digest in hashes.items()}
    if main:
        prepare_folder(out, overwrite=overwrite)
    accelerator.wait_for_everyone()
    if resume and (out / "run.json").is_file() and (finished := _finished(out, recipe, fingerprint)):
        tell(f"{out}: this run is finished; nothing to resume")
        return finished
    empty = [
        f"no sentence has the view '{name}': nothing is learned from it"
        for name, view in views.items()
        if not store.present(view.source)
    ]
    sampler = Sampler(store.rows, min(recipe.training.batch_size, store.rows), recipe.training.seed)
    record = {
        "recipe": recipe.name,
        "variant": recipe.variant,
        "family": recipe.family,
        "backbone": str(backbone),
        "corpus": str(corpus),
        "rows": store.rows,
        "blank_rows": store.skipped,
        "seed": recipe.training.seed,
        "fingerprint": fingerprint,
    }
    if main:
        write_json(out / "run.json", record)
        write_json(out / "environment.json", environment())
        write_text(out / "recipe.toml", dump_recipe(recipe))
        for warning in empty:
            tell(f"warning: {warning}")
        if store.skipped:
            tell(f"{store.skipped} blank rows were left out; {store.rows} are used")
    if track:
        accelerator.init_trackers("opencse", config={"recipe": recipe.name, "backbone": str(backbone)})

    set_seed(recipe.training.seed, device_specific=True)  # dropout differs between processes
    loop = Loop(
        network=network.to(accelerator.device),
        assembler=Assembler(
            store,
            views,
            encoder.tokenizer.pad_token_id or 0,
            group_overhead=_GROUP_OVERHEAD[on_cpu] if recipe.training.length_groups and not packed else None,
            teachers=vectors,
            tokens=[view for view in views if any(view in term.tokens for term in recipe.terms)],
        ),
        sampler=sampler,
        recipe=recipe,
        folder=out,
        accelerator=accelerator,
        checkpoints=Checkpoints(out / "checkpoints", recipe.training.keep_checkpoints, fingerprint),
        dev=dev(_as_scored(recipe, encoder, denoisers)) if dev is not None else None,
        added=added,
        progress=progress,
    )
    outcome = loop.run(resume)
    warnings = [*empty, *_judge(outcome, recipe)]
    if main:
        card = model_card(recipe, record, outcome)
        save_encoder(encoder, out / "model", card)
        write_json(out / "run.json", record | {"outcome": asdict(outcome)})
        loop.clean_up()
    if track:
        accelerator.end_training()
    accelerator.wait_for_everyone()
    return Run(out, recipe, outcome, tuple(warnings))


def _train_others(
    recipe: Recipe,
    corpus: str | Path,
    *,
    out: Path,
    overwrite: bool,
    tell: Callable[[str], None],
    **options: Any,
) -> dict[str, Path]:
    """The models of the task vectors' recipes, on the run's rows, with its seed and pooling; one begun is finished."""
    models = {}
    for name, vector in recipe.task_vectors.items():
        if not vector.weight:
            continue
        folder = out / "task_vectors" / name
        settings = [f"encoder.pooling={recipe.encoder.pooling}", *vector.set, f"training.seed={recipe.training.seed}"]
        other = load_recipe(vector.recipe, family=recipe.family, overrides=settings)
        if recipe.training.max_steps is not None:  # a short trial is short in all its parts
            steps = min(recipe.training.max_steps, other.training.max_steps or recipe.training.max_steps)
            other = replace(other, training=replace(other.training, max_steps=steps))
        begun = not overwrite and (folder / "run.json").is_file()
        tell(f"training {other.name} for the task vector '{name}'")
        run = train(other, corpus, out=folder, resume=begun, overwrite=overwrite, tell=tell, **options)
        models[name] = run.model
    return models


def _denoisers(
    recipe: Recipe, encoder: SentenceTransformer, views: dict[str, ViewTokens]
) -> dict[str, TemplateDenoising]:
    settings = recipe.encoder
    if settings.denoising == "none":
        return {}
    first: Any = encoder[0]
    model, positions = first.auto_model, settings.denoising_positions
    return {name: TemplateDenoising(model, view.frame, positions, view.dropout) for name, view in views.items()}


def _as_scored(
    recipe: Recipe, encoder: SentenceTransformer, denoisers: dict[str, TemplateDenoising]
) -> SentenceTransformer:
    """The encoder as the development pairs see it: the exported one, or with the first view's denoising."""
    if recipe.encoder.denoising != "train_and_dev":
        return encoder
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(modules=[*encoder, next(iter(denoisers.values()))], device=str(encoder.device))


def _network(
    recipe: Recipe, encoder: SentenceTransformer, backbone: str | Path, denoisers: dict[str, TemplateDenoising]
) -> Network:
    import torch

    width = encoder.get_embedding_dimension()
    assert width is not None
    torch.manual_seed(recipe.training.seed)  # the same new weights in every process
    projector = build_projector(recipe.encoder.projector, width)
    modules = term_modules(recipe, encoder, projector, backbone)
    return Network(encoder, projector, Objective(recipe.terms), modules, denoisers)


def _sources(
    recipe: Recipe, encoder: SentenceTransformer, backbone: str | Path
) -> tuple[list[Source], dict[str, ViewTokens]]:
    """What to tokenise, and for each view where its tokens are and what stands around them."""
    settings = recipe.encoder
    masked = settings.pooling == "mask"
    plain = None if masked else special_frame(encoder.tokenizer)
    # The baked tokenizer does not know the mask token any more: templates are read with the original one.
    original = load_encoder(backbone, pooling="cls").tokenizer if masked else None
    sources: list[Source] = []
    views: dict[str, ViewTokens] = {}
    for name, view in recipe.used_views.items():
        frame = template_frame(original, view.prompt) if plain is None and view.prompt else plain
        assert frame is not None
        budget = settings.max_length - (len(frame) if settings.length_counts == "total" else 0)
        if budget < 1:
            raise OpencseError(
                f"encoder.max_length is {settings.max_length}, but view '{name}' needs {len(frame)} tokens for its "
                "prompt alone",
                "Raise --set encoder.max_length, or count the content only: --set encoder.length_counts=content.",
            )
        source = Source(view.text, _string_prompt(view, encoder, masked), recipe.columns[view.text])
        if source not in sources:
            sources.append(source)
        views[name] = ViewTokens(sources.index(source), frame, budget, view.dropout, view.repetition)
    limit = encoder.max_seq_length
    longest = max(len(v.frame) + v.budget + v.most_repeated for v in views.values())
    if limit is not None and longest > limit:
        raise OpencseError(
            f"encoder.max_length is {settings.max_length}, but the backbone takes at most {limit} tokens",
            "Lower it with --set encoder.max_length=…",
        )
    return sources, views


def _string_prompt(view: View, encoder: SentenceTransformer, masked: bool) -> str | None:
    """A prompt that is tokenised together with the text; by default the one that the model itself would use."""
    if masked:
        return None
    if view.prompt is not None:
        return view.prompt
    default = encoder.prompts.get(encoder.default_prompt_name or "")
    return default + "{}" if default else None


def _check_dropout(recipe: Recipe, encoder: SentenceTransformer, backbone: str | Path) -> None:
    """Two views of the same text differ by dropout alone: without any, the task is trivial."""
    rates = dropout_rates(encoder)
    base = max(rates, default=0.0)
    seen: dict[tuple[str, str | None], float] = {}
    for view in recipe.used_views.values():
        key, rate = (view.text, view.prompt), base if view.dropout is None else (view.dropout if rates else 0.0)
        if key in seen and max(rate, seen[key]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so that two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        seen[key] = max(rate, seen.get(key, 0.0))


def _check_batch(recipe: Recipe, processes: int) -> None:
    part = recipe.training.batch_size // recipe.training.accumulate
    if part % processes:
        raise OpencseError(
            f"training.batch_size {recipe.training.batch_size} does not divide among {processes} processes "
            f"(times accumulate {recipe.training.accumulate})",
            "Choose a multiple.",
        )


def _finished(out: Path, recipe: Recipe, fingerprint: dict[str, str]) -> Run | None:
    """The run in a folder, if it is complete and the same."""
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    if "outcome" not in record or not (out / "model").is_dir():
        return None
    for name, value in fingerprint.items():
        if record["fingerprint"].get(name) != value:
            raise OpencseError(
                f"{out}: holds a finished run with another {name}", "Use --overwrite, or another output folder."
            )
    return Run(out, recipe, Outcome(**record["outcome"]))


def _judge(outcome: Outcome, recipe: Recipe) -> list[str]:
    """What the development scores say that a user should not overlook."""
    first, best = outcome.first_score, outcome.best_score
    if first is None or best is None:
        return []
    tolerance = recipe.selection.tolerance
    if outcome.share == 0:
        return [
            f"nothing of the training stayed within {tolerance:g} points of the untouched backbone on the development "
            "set: the model is the untouched one"
        ]
    if outcome.share < 1:
        return [
            f"the development score fell by more than {tolerance:g} points: only {outcome.share:.0%} of the way to the "
            f"trained weights was kept ({best:.2f} against {first:.2f} before)"
        ]
    if recipe.selection.keep == "best" and best < first:
        return [f"no step stayed above the untouched backbone on the development set ({best:.2f} against {first:.2f})"]
    return []
