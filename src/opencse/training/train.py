"""Contrastive training: from a recipe and a corpus to a trained encoder in a folder."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import set_seed

from opencse.debias.meaning_block import MeaningBlock, block_of
from opencse.debias.same_width import append_projection, fit_projection
from opencse.debias.shipped import append_block, require_whole_vectors, trained_block
from opencse.debias.strength import find_strength, standardise_block
from opencse.encoder import save_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.encoder.device import join_processes
from opencse.encoder.dropout import dropout_rates, set_rates
from opencse.encoder.embedder import cut_note
from opencse.encoder.invariant import token_limit
from opencse.encoder.loading import (
    add_lora,
    attending_padding,
    build_projector,
    exported_projector,
    keep_inputs_only,
    replace_modules,
)
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import (
    TemplateDenoising,
    encoder_frame,
    left_out_by_pooling,
    template_frame,
)
from opencse.foundation.cache import key_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.files import locked, write_text
from opencse.foundation.progress import timed
from opencse.foundation.reading import stay_inside
from opencse.losses import Objective
from opencse.recipes import Recipe, dump_recipe, load_recipe
from opencse.recipes.rows.token_store import TokenSource, TokenStore, UsableRows, open_token_store
from opencse.recipes.schema import FirstStage, ViewSettings
from opencse.recipes.settings import Block
from opencse.text.corpus import Corpus
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS
from opencse.text.mined.debiased import DebiasedPositives
from opencse.text.mined.vectors import MinedSpec
from opencse.training.batches import Collator, ViewTokens
from opencse.training.loop import TrainingLoop
from opencse.training.loss_head import LossHead, loss_modules
from opencse.training.model_card import encoder_card
from opencse.training.network import Network
from opencse.training.same_vectors import check_same_vectors
from opencse.training.session import RunControl, TrainingOutcome, TrainingSession, run_record
from opencse.training.teachers import load_teachers, teacher_vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Tokens of a forward pass of padded texts: few on a CPU, many on a GPU, where launching kernels
# takes time.
_CPU_TOKENS, _GPU_TOKENS = 2048, 32768


@dataclass(frozen=True)
class TrainingRun:
    """A finished training run.

    Attributes:
        folder: Folder with `model/`, `metrics.jsonl`, `recipe.toml`, `run.json`,
            `environment.json`.
        recipe: The recipe as resolved for the backbone.
        outcome: Steps, scores and time.
        warnings: Warnings for the user.
    """

    folder: Path
    recipe: Recipe
    outcome: TrainingOutcome
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> Path:
        """The trained model, a sentence-transformers folder."""
        return self.folder / "model"


def train_encoder(
    recipe: Recipe, corpus: Corpus, backbone: Backbone, evaluators: Evaluators, control: RunControl
) -> TrainingRun:
    """Train a sentence encoder on rows that have every column of the recipe's views.

    Args:
        recipe: The resolved recipe.
        corpus: The rows, opened; its name stands on the model card.
        backbone: The model to be trained; copies of it are.
        evaluators: What is measured while the model trains, and selects the weights that are kept
            (`NO_EVALUATORS` for nothing: those of the last step are kept).
        control: How the run is carried out.

    Raises:
        OpencseError: The input is invalid; the folder is unchanged, or has its last valid
            checkpoint.
    """
    main = join_processes().is_main_process
    with locked(control.folder) if main else nullcontext():  # the main process alone writes into it
        session = TrainingSession(control)
        batch_size, processes = recipe.training.batch_size, session.accelerator.num_processes
        if batch_size % processes:
            raise OpencseError(
                f"training.batch_size {batch_size} does not divide among {processes} processes",
                "Choose a multiple.",
            )
        recipe = replace(recipe, training=session.settle(recipe.training, backbone))
        backbone = backbone.with_seed(recipe.training.seed)
        english = likely_language(corpus.first_texts(ENOUGH_TEXTS)) in ("en", None)
        model = _TrainedModel(recipe, backbone, session.device, english)
        text = _TrainingText(recipe, corpus, backbone, model, session)
        fingerprint = _fingerprint(recipe, model, text) | evaluators.digests()
        if (outcome := session.finished(fingerprint)) is not None:
            return TrainingRun(session.folder, recipe, outcome)
        read = {"corpus": corpus.name, "rows": text.store.rows, "blank_rows": text.store.skipped}
        session.begin(run_record(recipe, backbone, fingerprint, read))
        for line in text.notes():
            session.notify(line)
        if not model.packed and recipe.block is None and not recipe.encoder.attend_padding:
            session.notify(
                f"texts are padded: a {backbone.config.get('model_type')} does not compute them packed"
            )
        set_seed(
            recipe.training.seed, device_specific=True
        )  # dropout and masks differ between processes
        network = model.network.to(session.device)
        evaluators.start(model.scored)
        collator = text.collator(model, session.on_cpu)
        usable = UsableRows(corpus, model.sources)

        def same_vectors() -> float:
            return check_same_vectors(
                model.encoder, collator, model.views, usable, packed=model.packed
            )

        same_vectors()
        if model.new_block:
            with timed("reading for the block"):
                standardise_block(
                    model.network, collator, text.store.rows, recipe, show=session.progress
                )
        loop = TrainingLoop(network, collator, text.store.rows, recipe, evaluators, session)
        with timed("training steps"):
            outcome = loop.run()
        if session.main:
            same_vectors()
            if recipe.block is not None and (block := block_of(model.encoder)) is not None:
                block.round_to_half()
                settings, rows = recipe.block, text.store.rows
                axes = (
                    fit_projection(model.encoder, corpus, rows, recipe)
                    if settings.same_width
                    else None
                )
                curve = find_strength(
                    block, evaluators, settings.tolerance, axes, fixed=settings.strength
                )
                outcome = replace(outcome, curve=curve)
                if axes is not None:
                    append_projection(model.encoder, axes(block.strength))
            if model.adapter is not None:
                model.adapter.merge_and_unload()
            # First the model, then the card about it: what a card quotes is written by strangers.
            save_encoder(model.encoder, session.folder / "model", "")
            card = encoder_card(recipe, session.record, outcome, language=text.language)
            write_text(session.folder / "model" / "README.md", card)
            session.end(outcome, loop.checkpoints.folder, loop.best_path)
        session.accelerator.wait_for_everyone()
        return TrainingRun(
            session.folder, recipe, outcome, (*text.warnings, *score_warnings(outcome))
        )


class _TrainedModel:
    """The encoder, and the network that is trained around it."""

    new_block = False  # whether the encoder has a meaning block that was not trained before

    def __init__(
        self, recipe: Recipe, backbone: Backbone, device: torch.device, english: bool
    ) -> None:
        settings, seed = recipe.encoder, recipe.training.seed
        set_seed(seed)
        self.encoder = backbone.encoder(**recipe.pooling, dropout=settings.dropout)
        transformer: Any = self.encoder[0]
        self.adapter: Any = None
        if settings.lora is not None:
            self.adapter = add_lora(transformer.auto_model, **vars(settings.lora))
        check_dropout(recipe.used_views, self.encoder, backbone)
        if recipe.block is not None:
            self._prepare_block(recipe.block, backbone, english)
        width, kind = self.encoder.get_embedding_dimension() or 0, settings.projector
        if settings.keep_projector:
            with self.encoder.truncate_embeddings(None):
                full = self.encoder.get_embedding_dimension() or 0
            self.encoder.append(exported_projector(full).to(self.encoder.device))
            kind = "none"
        # The layers of a block take padded states.
        padded = recipe.block is not None or settings.attend_padding
        self.packed: bool = not padded and prepare_for_training(self.encoder)
        if recipe.training.gradient_checkpointing:
            keep_inputs_only(transformer.auto_model, self.encoder, backbone.name)
        self.sources: list[TokenSource] = []
        self.unmarked: Any = None  # the tokenizer of views without a final mark
        self.views: dict[str, ViewTokens] = {}
        for name, view in recipe.used_views.items():
            self._add_view(name, view, recipe, backbone)
        limit = token_limit(self.encoder)
        longest = max(view.longest for view in self.views.values())
        if limit is not None and longest > limit:
            raise OpencseError(
                f"encoder.max_length is {settings.max_length}, but the backbone takes at most {limit} tokens",
                "Lower it with --set encoder.max_length=…",
            )
        denoisers: dict[str, TemplateDenoising] = {}
        if settings.denoising != "none":
            for name, tokens in self.views.items():
                denoisers[name] = TemplateDenoising(
                    transformer.auto_model,
                    tokens.frame,
                    settings.denoising_positions,
                    tokens.dropout,
                )
        self.scored = self.encoder
        if (
            settings.denoising == "train_and_dev"
        ):  # development scores see the denoising of the first view
            modules = [*self.encoder, next(iter(denoisers.values()))]
            self.scored = replace_modules(self.encoder, modules)
        torch.manual_seed(seed)  # the same initial weights in every process
        pooler = getattr(transformer.auto_model, "pooler", None)
        projector, tokenizer = build_projector(kind, width, pooler), backbone.tokenizer
        if settings.attend_padding:
            self.scored = attending_padding(self.encoder, projector)
        built = loss_modules(
            recipe.losses, self.encoder, projector, tokenizer, backbone.name, seed, device
        )
        head = LossHead(projector, Objective(recipe.losses), built, recipe.dimensions_within(width))
        self.network = Network(
            self.encoder, head, denoisers, encode_twice=recipe.training.micro_batch is not None
        )

    def _add_view(self, name: str, view: ViewSettings, recipe: Recipe, backbone: Backbone) -> None:
        settings, encoder, prompt = recipe.encoder, self.encoder, view.prompt
        if settings.pooling == "mask" and prompt:
            # The encoder's tokenizer no longer has the mask token, so templates are read with the
            # original one.
            frame, prompt = template_frame(backbone.tokenizer, prompt), None
        else:  # the prompt is tokenised together with the text
            frame = encoder_frame(encoder)
            default = encoder.prompts.get(encoder.default_prompt_name or "")
            prompt = f"{default}{{}}" if prompt is None and default else prompt
        budget = settings.max_length - (len(frame) if settings.length_counts == "total" else 0)
        if budget < 1:
            raise OpencseError(
                f"encoder.max_length is {settings.max_length}, but view '{name}' needs {len(frame)} tokens for its "
                "prompt alone",
                "Raise --set encoder.max_length, or count the content only: --set encoder.length_counts=content.",
            )
        optional = recipe.columns[view.text]
        source = TokenSource(view.text, prompt, optional, view.window, view.final_mark)
        if not view.final_mark and self.unmarked is None:
            self.unmarked = backbone.encoder(**recipe.pooling | {"final_mark": ""}).tokenizer
        if source not in self.sources:
            self.sources.append(source)
        read = any(name in loss.tokens for loss in recipe.losses)
        place = self.sources.index(source)
        self.views[name] = ViewTokens(
            source=place,
            frame=frame,
            budget=budget,
            dropout=view.dropout,
            repetition=view.repetition,
            edit=(view.edit, view.edit_share),
            cutoff=(view.cutoff, view.cutoff_share),
            read=read,
            cut_left=encoder.tokenizer.truncation_side == "left",
            prompt_length=left_out_by_pooling(encoder, prompt),
        )

    def _prepare_block(self, settings: Block, backbone: Backbone, english: bool) -> None:
        """Let the encoder have a meaning block, a trained one if the backbone has one, and freeze the rest."""
        require_whole_vectors(self.encoder)
        block = block_of(self.encoder)
        if block is None:
            trained = trained_block(backbone, english=english)
            self.new_block = trained is None
            block = copy.deepcopy(trained) or MeaningBlock.beside(self.encoder)
            append_block(self.encoder, block)
        if self.encoder[-1] is not block:
            raise OpencseError(
                f"{backbone}: its vectors were cut to the old length behind the meaning block, which can learn no more",
                "Start from the model that it was made of.",
            )
        self.encoder.requires_grad_(False)
        block.requires_grad_(True)
        block.copy.requires_grad_(settings.copy_lr > 0)
        if block.reader is not None:
            block.reader.requires_grad_(False)
        set_rates(block, 0.0)
        block.drop.p = settings.dropout
        block.strength = 1.0


class _TrainingText:
    """The corpus as tokens and as vectors of the teachers."""

    def __init__(
        self,
        recipe: Recipe,
        corpus: Corpus,
        backbone: Backbone,
        model: _TrainedModel,
        session: TrainingSession,
    ) -> None:
        self._recipe, self._views = recipe, model.views
        bar = session.progress
        with (
            session.accelerator.main_process_first()
        ):  # the others find what it puts into the cache
            with timed("teachers"):
                teachers = load_teachers(recipe, backbone)
            with timed("tokenising"):
                self.store: TokenStore = open_token_store(
                    corpus,
                    model.sources,
                    model.encoder.tokenizer,
                    recipe.encoder.max_length,
                    unmarked=model.unmarked,
                    allow_empty=bool(
                        recipe.corpus.parts
                    ),  # the parts define which views are required
                    progress=bar,
                )
            with timed("teachers"):
                self.vectors = teacher_vectors(
                    recipe, teachers, UsableRows(corpus, model.sources), progress=bar
                )
        self.teacher_digests = {name: key_hash(teacher.key()) for name, teacher in teachers.items()}
        self.language = likely_language(corpus.first_texts(ENOUGH_TEXTS))
        empty = [name for name, view in model.views.items() if not self.store.present(view.source)]
        self.warnings = (
            (f"no sentence has the views {', '.join(empty)}: they have no effect",) if empty else ()
        )

    def notes(self) -> Iterator[str]:
        """Yield what a user should know of the rows."""
        yield from (f"warning: {warning}" for warning in self.warnings)
        if self.store.skipped:
            yield f"{self.store.skipped} blank rows were left out; {self.store.rows} are used"
        if remark := cut_note(self.store.lengths(0), self._recipe.encoder.max_length):
            yield remark
        for name, view in self._recipe.used_views.items():
            if view.window is not None:
                passed, (low, high) = self.store.present(self._views[name].source), view.window
                yield f"{passed} of {self.store.rows} rows have a {name} with a match error rate of {low} to {high}"

    def collator(self, model: _TrainedModel, on_cpu: bool) -> Collator:
        """Return the builder of batches."""
        attend_padding = self._recipe.encoder.attend_padding
        budget: int | None = _CPU_TOKENS if on_cpu else _GPU_TOKENS
        if model.packed or attend_padding:  # what is padding depends on the rest of the group
            budget = None
        return Collator(
            self.store,
            model.views,
            model.encoder.tokenizer.pad_token_id or 0,
            budget=budget,
            teachers=self.vectors,
            packed=model.packed and not on_cpu,
            micro_batch=self._recipe.training.micro_batch,
            attend_padding=attend_padding,
        )


def check_dropout(
    views: Mapping[str, ViewSettings], encoder: SentenceTransformer, backbone: Backbone
) -> None:
    """Check that no two views are identical: the same text and prompt, without dropout.

    Raises:
        OpencseError: Two views are identical.
    """
    rates = dropout_rates(encoder)
    model_rate = max(rates, default=0.0)
    highest: dict[tuple[object, ...], float] = {}
    for view in views.values():
        rate = model_rate
        if view.dropout is not None:
            rate = view.dropout if rates else 0.0  # a model without dropout layers has no rate
        seen = (view.text, view.prompt, view.edit, view.cutoff)
        # Random edits and cut-offs differ from view to view; reversing does not.
        drawn = view.edit not in ("none", "reverse") or view.cutoff != "none"
        if seen in highest and not drawn and max(rate, highest[seen]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        highest[seen] = max(rate, highest.get(seen, 0.0))


def score_warnings(outcome: TrainingOutcome) -> list[str]:
    """Return warnings about scores below those of the untouched backbone."""
    if outcome.curve is not None and outcome.curve.chosen == 0:
        lost = f"a guard loses more than {outcome.curve.tolerance:g} points at every strength of the meaning block"
        return [f"{lost}: the model is the untouched one"]
    first, best = outcome.first_score, outcome.best_score
    if first is None or best is None or best >= first:
        return []
    return [
        f"no step stayed above the untouched backbone on the development set ({best:.2f} against {first:.2f})"
    ]


def _fingerprint(recipe: Recipe, model: _TrainedModel, text: _TrainingText) -> dict[str, str]:
    """Return the hashes and settings that a resumed run must share with its start, by name."""
    shared = {
        "recipe": dump_recipe(recipe),
        "corpus": text.store.corpus_hash,
        "backbone": weights_hash(model.encoder),
    }
    shared |= {f"teacher {name}": digest for name, digest in text.teacher_digests.items()}
    modules = model.network.head.modules_by_loss
    return shared | {
        f"model of the loss {loss}": module.digest
        for loss, module in modules.items()
        if module.digest
    }


def train_first_stages(
    recipe: Recipe,
    specs: Mapping[str, Any],
    corpus: Corpus,
    backbone: Backbone,
    evaluators: Evaluators,
    control: RunControl,
) -> dict[str, Path]:
    """Train the first stages of a recipe that its views use, and return their models; resume unfinished ones.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family, variant and seed.
        specs: The views to build, by name.
        corpus: As for `train_encoder`, before any column is built.
        backbone: As for `train_encoder`.
        evaluators: As for `train_encoder`.
        control: That of the run; the models are trained in `first_stages/` below its folder.
    """
    models = {}
    miners = (spec for spec in specs.values() if isinstance(spec, MinedSpec | DebiasedPositives))
    for name in dict.fromkeys(miner.model for miner in miners):
        if name not in recipe.first_stages:
            continue
        stage, folder = (
            _stage_recipe(recipe, recipe.first_stages[name]),
            stay_inside(control.folder / "first_stages", name, "Give the stage a plain name."),
        )
        resume = not control.overwrite and (folder / "run.json").is_file()
        control.notify(f"training {stage.name} first, for mining")
        own = replace(control, folder=folder, resume=resume, deadline=None)
        models[name] = train_encoder(stage, corpus, backbone, evaluators, own).model
    return models


def _stage_recipe(recipe: Recipe, stage: FirstStage) -> Recipe:
    """Return the recipe of a first stage with the family, variant, seed, precision and maximum steps of the run."""
    seed = f"training.seed={recipe.training.seed}"
    first = load_recipe(
        stage.recipe, family=recipe.family, variant=recipe.variant, overrides=[*stage.set, seed]
    )
    if first.training.precision == "auto" or first.variant == "faithful":
        first = replace(
            first, training=replace(first.training, precision=recipe.training.precision)
        )
    if recipe.training.max_steps is None:
        return first
    steps = min(recipe.training.max_steps, first.training.max_steps or recipe.training.max_steps)
    return replace(first, training=replace(first.training, max_steps=steps))
