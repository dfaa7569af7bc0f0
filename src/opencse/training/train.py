"""Contrastive training: from a recipe and a corpus to a trained encoder in a folder."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from opencse.encoder import build_projector, exported_projector, save_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.blocks import append_block
from opencse.encoder.denoising import TemplateDenoising
from opencse.encoder.dropout import dropout_rates, set_rates
from opencse.encoder.meaning_block import MeaningBlock, block_of
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.token_batches import cut_note
from opencse.encoder.weights_hash import weights_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.foundation.progress import timed
from opencse.losses import Objective
from opencse.recipes import Block, Recipe, Training, ViewSettings, dump_recipe
from opencse.recipes.rows.token_store import TokenSource, TokenStore, UsableRows, open_token_store
from opencse.text.corpus import Corpus
from opencse.text.language import ENOUGH_TEXTS, likely_language
from opencse.training.batches import Assembler
from opencse.training.block_fit import fit_block
from opencse.training.card import encoder_card
from opencse.training.loop import TrainingOutcome
from opencse.training.network import LossHead, Network
from opencse.training.session import RunControl, TrainingSession, joined
from opencse.training.strength import find_strength
from opencse.training.teachers import load_teachers, teacher_vectors
from opencse.training.term_modules import term_modules
from opencse.training.view_tokens import sources_and_views

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# The cost of one more forward pass, in tokens: little on a CPU, much on a GPU, where launching kernels takes time.
_GROUP_OVERHEAD = {True: 64.0, False: 8192.0}


@dataclass(frozen=True)
class TrainingRun:
    """A finished training run.

    Attributes:
        folder: Folder with `model/`, `metrics.jsonl`, `recipe.toml`, `run.json`, `environment.json`.
        recipe: The recipe as resolved for the backbone.
        outcome: Steps, scores and time.
        warnings: Warnings for the user.
        early_warnings: Those of them that `notify` received before the first step.
    """

    folder: Path
    recipe: Recipe
    outcome: TrainingOutcome
    warnings: tuple[str, ...] = ()
    early_warnings: tuple[str, ...] = ()

    @property
    def model(self) -> Path:
        """The trained model, a sentence-transformers folder."""
        return self.folder / "model"


def train_encoder(
    recipe: Recipe, corpus: Corpus, backbone: Backbone, measures: Measures, control: RunControl
) -> TrainingRun:
    """Train a sentence encoder on rows that have every column of the recipe's views.

    Args:
        recipe: The resolved recipe.
        corpus: The rows, opened; its name stands on the model card.
        backbone: The model to be trained; copies of it are.
        measures: What is measured while the model trains, and selects the weights that are kept (`UNMEASURED` for
            nothing: those of the last step are kept).
        control: How the run is carried out.

    Raises:
        OpencseError: The input is invalid; the folder is unchanged, or has its last valid checkpoint.
    """
    with joined(control.folder):
        session = TrainingSession(control)
        for warning in recipe.warnings():
            session.notify(f"warning: {warning}")
        check_batch(recipe.training, session.accelerator.num_processes)
        recipe = replace(recipe, training=session.settle(recipe.training, backbone))
        model = _TrainedModel(recipe, backbone, session)
        text = _TrainingText(recipe, corpus, backbone, model, session)
        fingerprint = _fingerprint(recipe, model, text)
        if (outcome := session.finished(fingerprint)) is not None:
            return TrainingRun(session.folder, recipe, outcome)
        record = {
            "recipe": recipe.name,
            "variant": recipe.variant,
            "family": recipe.family,
            "backbone": backbone.name,
            "corpus": corpus.name,
            "rows": text.store.rows,
            "blank_rows": text.store.skipped,
            "seed": recipe.training.seed,
            "precision": recipe.training.precision,
            "fingerprint": fingerprint,
        }
        session.begin(record, {"recipe.toml": fingerprint["recipe"]})
        for line in text.notes():
            session.notify(line)
        session.seed(recipe.training.seed, per_process=True)

        def finish(outcome: TrainingOutcome) -> TrainingOutcome:
            if recipe.block is not None and (block := block_of(model.encoder)) is not None:
                outcome = replace(outcome, curve=find_strength(block, measures, recipe.block.tolerance))
            card = encoder_card(recipe, record, outcome, language=text.language)
            save_encoder(model.encoder, session.folder / "model", card)
            return outcome

        network = model.network.to(session.device)
        measures.start(model.scored)
        assembler = text.assembler(model, session)
        if model.new_block and recipe.block is not None:
            with timed("fitting the block"):
                fit_block(model.network, assembler, text.store.rows, recipe)
        outcome = session.train(network, assembler, text.store.rows, recipe, measures, record, finish)
        warnings = (*text.warnings, *score_warnings(outcome))
        return TrainingRun(session.folder, recipe, outcome, warnings, text.warnings)


class _TrainedModel:
    """The encoder, and the network that is trained around it.

    Attributes:
        new_block: Whether the encoder has a meaning block that was not trained before.
    """

    new_block = False

    def __init__(self, recipe: Recipe, backbone: Backbone, session: TrainingSession) -> None:
        session.seed(recipe.training.seed)
        self._denoising = recipe.encoder.denoising
        backbone.seed = recipe.training.seed
        self.encoder = backbone.encoder(**recipe.pooling, dropout=recipe.encoder.dropout)
        check_dropout(recipe.used_views, self.encoder, backbone)
        if recipe.block is not None:
            self._prepare_block(recipe.block, backbone)
        width = self.encoder.get_embedding_dimension()
        assert width is not None
        kind = recipe.encoder.projector
        if recipe.encoder.keep_projector:
            self.encoder.append(exported_projector(width).to(self.encoder.device))
            kind = "none"
        # The layers of a block take padded states.
        self.packed: bool = recipe.block is None and prepare_for_training(self.encoder)
        self.sources, self.views = sources_and_views(recipe, self.encoder, backbone)
        self._denoisers: dict[str, TemplateDenoising] = {}
        if self._denoising != "none":
            first: Any = self.encoder[0]
            model, positions = first.auto_model, recipe.encoder.denoising_positions
            for name, view in self.views.items():
                self._denoisers[name] = TemplateDenoising(model, view.frame, positions, view.dropout)
        torch.manual_seed(recipe.training.seed)  # the same initial weights in every process
        projector = build_projector(kind, width)
        tokenizer, seed = backbone.tokenizer, recipe.training.seed
        modules = term_modules(recipe.terms, self.encoder, projector, tokenizer, backbone.name, seed, session.device)
        head = LossHead(projector, Objective(recipe.terms), modules)
        encode_twice = recipe.training.micro_batch is not None
        self.network = Network(self.encoder, head, self._denoisers, encode_twice)

    def _prepare_block(self, settings: Block, backbone: Backbone) -> None:
        """Let the encoder have a meaning block, a trained one if the backbone has one, and freeze the rest."""
        block = block_of(self.encoder)
        if block is None:
            self.new_block = backbone.block is None
            sizes = {name: getattr(settings, name) for name in ("code", "inner", "hidden", "code_hidden")}
            block = copy.deepcopy(backbone.block) or MeaningBlock.beside(self.encoder, **sizes)
            append_block(self.encoder, block)
        self.encoder.requires_grad_(False)
        block.requires_grad_(True)
        set_rates(block.copy, 0.0)
        block.drop.p = settings.dropout
        block.strength = 1.0

    @property
    def scored(self) -> SentenceTransformer:
        """The encoder for development scores: the exported one, or the same with the denoising of the first view."""
        if self._denoising != "train_and_dev":
            return self.encoder
        from sentence_transformers import SentenceTransformer

        modules = [*self.encoder, next(iter(self._denoisers.values()))]
        return SentenceTransformer(modules=modules, device=str(self.encoder.device))


class _TrainingText:
    """The corpus as tokens and as vectors of the teachers."""

    def __init__(
        self, recipe: Recipe, corpus: Corpus, backbone: Backbone, model: _TrainedModel, session: TrainingSession
    ) -> None:
        self._recipe, self._views = recipe, model.views
        self.sources: list[TokenSource] = model.sources
        bar = session.progress
        with session.main_first():
            with timed("teachers"):
                teachers = load_teachers(recipe, backbone)
            with timed("tokenising"):
                self.store: TokenStore = open_token_store(
                    corpus,
                    self.sources,
                    model.encoder.tokenizer,
                    recipe.encoder.max_length,
                    allow_empty=bool(recipe.corpus.parts),  # the parts define which views are required
                    progress=bar,
                )
            with timed("teachers"):
                self.vectors = teacher_vectors(recipe, teachers, UsableRows(corpus, self.sources), progress=bar)
        self.teacher_digests = {name: teacher.digest for name, teacher in teachers.items()}
        self.language = likely_language(corpus.first_texts(ENOUGH_TEXTS))
        self.warnings = tuple(
            f"no sentence has the view '{name}': it has no effect"
            for name, view in model.views.items()
            if not self.store.present(view.source)
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

    def assembler(self, model: _TrainedModel, session: TrainingSession) -> Assembler:
        """Return the builder of batches."""
        return Assembler(
            self.store,
            model.views,
            model.encoder.tokenizer.pad_token_id or 0,
            group_overhead=None if model.packed else _GROUP_OVERHEAD[session.on_cpu],
            teachers=self.vectors,
            tokens=[view for view in model.views if any(view in term.tokens for term in self._recipe.terms)],
            packed=model.packed and not session.on_cpu,
            micro_batch=self._recipe.training.micro_batch,
        )


def check_dropout(views: Mapping[str, ViewSettings], encoder: SentenceTransformer, backbone: Backbone) -> None:
    """Check that no two views are identical: the same text and prompt, without dropout.

    Raises:
        OpencseError: Two views are identical.
    """
    rates = dropout_rates(encoder)
    base = max(rates, default=0.0)
    seen: dict[tuple[str, str | None], float] = {}
    for view in views.values():
        key, rate = (view.text, view.prompt), base if view.dropout is None else (view.dropout if rates else 0.0)
        if key in seen and max(rate, seen[key]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        seen[key] = max(rate, seen.get(key, 0.0))


def check_batch(training: Training, processes: int) -> None:
    """Check that the batch divides evenly among the processes.

    Raises:
        OpencseError: It does not.
    """
    part = training.batch_size // training.accumulate
    if part % processes:
        raise OpencseError(
            f"training.batch_size {training.batch_size} does not divide among {processes} processes "
            f"(times accumulate {training.accumulate})",
            "Choose a multiple.",
        )


def score_warnings(outcome: TrainingOutcome) -> list[str]:
    """Return warnings about scores below those of the untouched backbone."""
    if outcome.curve is not None and outcome.curve.chosen == 0:
        lost = f"a guard loses more than {outcome.curve.tolerance:g} points at every strength of the meaning block"
        return [f"{lost}: the model is the untouched one"]
    first, best = outcome.first_score, outcome.best_score
    if first is None or best is None or best >= first:
        return []
    return [f"no step stayed above the untouched backbone on the development set ({best:.2f} against {first:.2f})"]


def _fingerprint(recipe: Recipe, model: _TrainedModel, text: _TrainingText) -> dict[str, str]:
    """Return the hashes and settings that a resumed run must share with its start, by name."""
    found = {
        "recipe": dump_recipe(recipe),
        "corpus": text.store.corpus_hash,
        "backbone": weights_hash(model.encoder),
    }
    found |= {f"teacher {name}": digest for name, digest in text.teacher_digests.items()}
    modules = model.network.head.modules_by_term
    return found | {f"model of the term {term}": module.digest for term, module in modules.items() if module.digest}
