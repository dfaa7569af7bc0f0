"""Training a meaning block: the callback that adds it, trains it alone, and finds its strength."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from opencse.debias.meaning_block import MeaningBlock, block_of
from opencse.debias.same_width import append_projection, fit_projection
from opencse.debias.shipped import append_block, require_whole_vectors, trained_block
from opencse.debias.strength import BlockEvaluators, StrengthCurve, find_strength
from opencse.encoder.backbone import Backbone
from opencse.encoder.device import autocast
from opencse.encoder.dropout import set_rates
from opencse.encoder.embedder import Precision
from opencse.evaluation.evaluators import TaskEvaluator
from opencse.evaluation.task import Task
from opencse.evaluation.written_sets import load_development, load_guard
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase, timed
from opencse.foundation.reading import read_json
from opencse.foundation.toml_tables import decode
from opencse.recipes.settings import Block
from opencse.training.batches import BatchSampler
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.model_card import CardAdditions, hub_score, render

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Batches from which the mean and the deviation of what a new block reads are taken.
_READ_BATCHES = 40
# Key of the scores by strength in `run.json`.
_KEY = "strength"


class BlockTraining(TrainingCallback):
    """Trains a meaning block behind an encoder that stays as it is.

    Before the first step, what a new block reads is standardised. After the last one, the block
    gets the largest strength that harms no guard.

    Args:
        settings: The table `[block]` of the recipe.
        evaluators: Guards and evaluators of meaning.
        english: Whether the text is English, which a block that ships needs next to another model.
    """

    def __init__(self, settings: Block, evaluators: BlockEvaluators, *, english: bool) -> None:
        self._settings = settings
        self._evaluators = evaluators
        self._english = english
        self._new = False

    def prepare_encoder(self, encoder: SentenceTransformer, backbone: Backbone) -> None:
        """Append a meaning block, a trained one if the backbone has one, and freeze the rest."""
        require_whole_vectors(encoder)
        block = block_of(encoder)
        if block is None:
            trained = trained_block(backbone, english=self._english)
            self._new = trained is None
            block = copy.deepcopy(trained) or MeaningBlock.beside(encoder)
            append_block(encoder, block)
        if encoder[-1] is not block:
            raise OpencseError(
                f"{backbone}: its vectors were cut to the old length after the meaning block, which "
                "can learn no more",
                "Start from the model that it was made of.",
            )
        encoder.requires_grad_(False)
        block.requires_grad_(True)
        block.copy.requires_grad_(self._settings.copy_lr > 0)
        if block.reader is not None:
            block.reader.requires_grad_(False)
        set_rates(block, 0.0)
        block.drop.p = self._settings.dropout
        block.strength = 1.0

    def digests(self) -> dict[str, str]:
        """Return the hashes of guards and measures, which decide the strength."""
        return self._evaluators.digests()

    def parameter_groups(self, network: nn.Module) -> Iterable[dict[str, Any]]:
        """Return the copied layers, which learn at a rate of their own."""
        block = _block(network.encoder)
        return [{"params": list(block.copy.parameters()), "lr": self._settings.copy_lr}]

    def on_train_begin(self, run: ActiveRun) -> None:
        """Start the evaluators, and standardise what a new block reads."""
        self._evaluators.start(run.encoder)
        # A checkpoint has the mean and the deviation already.
        if self._new and run.step == 0:
            with timed("reading for the block"):
                standardise_block(run)

    def on_train_end(self, run: ActiveRun) -> None:
        """Find the strength, and cut the vectors to the old length if the recipe asks for it."""
        if not run.main:
            return
        block = _block(run.encoder)
        # It is saved like this, so the scores are those of the saved model.
        block.round_to_half()
        axes = None
        if self._settings.same_width:
            axes = fit_projection(run.encoder, run.corpus, run.sampler.rows, run.recipe)
        curve = find_strength(
            block,
            self._evaluators,
            self._settings.tolerance,
            axes,
            fixed=self._settings.strength,
        )
        if axes is not None:
            append_projection(run.encoder, axes(block.strength))
        run.session.write_record(**{_KEY: asdict(curve)})
        describe(run.card, curve, same_width=self._settings.same_width)
        if curve.chosen == 0:
            run.warnings.append(
                f"a guard loses more than {curve.tolerance:g} points at every strength of the "
                "meaning block: the model is the untouched one"
            )


def block_evaluators(
    *,
    precision: Precision,
    own: Any = None,
    pairs: Sequence[Task] = (),
    documents: Iterable[str] = (),
) -> BlockEvaluators:
    """Return the guards that come with opencse and the user's own, and the evaluators of meaning.

    Args:
        precision: Number format of the encoder.
        own: The user's own guards, as for `load_guard`.
        pairs: Scored pairs. They guard what the untouched model knows; what the block learns, they
            don't show.
        documents: The user's texts, which the user's searches search if they bring no documents.
    """
    guards = list(load_guard())
    if own is not None:
        guards.extend(load_guard(own, prefix="own", documents=documents))
    guards.extend(pairs)
    return BlockEvaluators(
        guards=TaskEvaluator(guards, precision),
        meaning=TaskEvaluator(load_development(), precision),
    )


def standardise_block(run: ActiveRun) -> None:
    """Standardise what a new block reads, by some batches of the training text."""
    block = _block(run.encoder)
    training = run.recipe.training
    rows = run.sampler.rows
    # Every process reads the same batches.
    sampler = BatchSampler(rows, min(training.batch_size, rows), training.seed)
    batches = min(_READ_BATCHES, sampler.batches_per_epoch)
    device = block.center.device
    copied = []
    frozen = []
    phase = Phase("reading for the block", total=batches, unit="batches", show=run.session.progress)
    run.network.eval()
    with torch.no_grad(), autocast(training.precision, device), phase:
        for step in range(batches):
            batch = run.collator(sampler.batch(step))
            for ids, mask, _ in chain.from_iterable(part.groups for part in batch.passes):
                features: Any = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
                for module in list(run.encoder.children())[:-1]:
                    features = module(features)
                copied.append(block.copied(features).float())
                frozen.append(block.read(features)[1].float())
            phase.update()
    block.standardise(torch.cat(copied), torch.cat(frozen))
    run.network.train()


def describe(card: CardAdditions, curve: StrengthCurve, *, same_width: bool) -> None:
    """Add the block to a model card: its strength, its scores, and how to change it."""
    card.own_code = True
    table = replace(curve.table(), title="").markdown().rstrip()
    template = Path(__file__).parent / "card_section.md.j2"
    section = render(template, curve=curve, same_width=same_width, table=table)
    card.sections.append(section.rstrip())
    for name, (_, after) in curve.before_and_after(curve.meaning).items():
        card.results.append(hub_score("triplet", f"opencse {name}", "cosine_accuracy", after))


def read_strength(run: Path) -> StrengthCurve | None:
    """Return the scores by strength of a finished run; None if it trained no block.

    Args:
        run: The run's folder.
    """
    path = run / "run.json"
    record = read_json(path)
    if _KEY not in record:
        return None
    curve: StrengthCurve = decode(StrengthCurve, record[_KEY], f"{path}: {_KEY}")
    return curve


def _block(encoder: Any) -> MeaningBlock:
    block = block_of(encoder)
    assert block is not None
    return block
