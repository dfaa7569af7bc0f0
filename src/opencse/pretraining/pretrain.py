"""Pre-training: from text to a masked language model in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from opencse.encoder import backbone_config, special_frame
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.fast import prepare_for_training
from opencse.errors import OpencseError
from opencse.io.files import replaced_folder
from opencse.io.lock import locks
from opencse.pretraining.batches import MaskingAssembler
from opencse.pretraining.card import masked_lm_card
from opencse.pretraining.initial import initialise_embeddings, piece_counts
from opencse.pretraining.model import load_model, load_tokenizer, new_model, save_model, set_output_bias
from opencse.pretraining.network import MaskedLMNetwork
from opencse.pretraining.settings import InputSettings, Pretraining, dump_settings, load_settings
from opencse.pretraining.store import SentenceIds, iter_sentences, open_sentence_ids
from opencse.pretraining.vocabulary import Pieces, train_tokenizer
from opencse.progress import Notify
from opencse.runs.loop import TrainingOutcome
from opencse.runs.session import TrainingSession
from opencse.settings import Schedule

# The cost of one more forward pass, in tokens: little on a CPU, much on a GPU, where launching kernels takes time.
_GROUP_OVERHEAD = {True: 256.0, False: 65536.0}
DEV_SENTENCES = 2000
"""Number of held-out sentences for choosing the step whose weights are kept."""


@dataclass(frozen=True)
class PretrainingRun:
    """A finished pre-training run.

    Attributes:
        folder: Folder with `model/`, `metrics.jsonl`, `settings.toml`, `run.json` and `environment.json`.
        settings: The resolved settings.
        outcome: Steps, time, and the accuracy on held-out masked tokens, in %.
    """

    folder: Path
    settings: Pretraining
    outcome: TrainingOutcome

    @property
    def model(self) -> Path:
        """The trained model, which transformers and sentence-transformers load."""
        return self.folder / "model"


@locks("out")
def pretrain(
    corpora: Sequence[str | Path],
    *,
    out: str | Path,
    backbone: str | Path | None = None,
    settings: str | Path | Pretraining | None = None,
    overrides: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    notify: Notify = lambda _: None,
) -> PretrainingRun:
    """Train a new masked language model, or continue to train a given one.

    A resumed run equals one that never stopped. It may have another `training.max_steps` and, with a `stable` schedule,
    another decay than at its start.

    Args:
        corpora: Text, each in any format of `opencse.io.corpus` with a column `text`.
        out: Folder of the run; new, unless `resume` or `overwrite` is set.
        backbone: A model to train further, by folder, hub id or bundled name; None for a new one.
        settings: A name, a TOML file, or resolved settings (then `overrides` are ignored); by default `mini-mlm` for a
            new model and `adapt` for a given one.
        overrides: `key=value` settings.
        resume: Continue from the last checkpoint in `out`, if there is one.
        overwrite: Replace the run in `out`.
        track: Trackers beside `metrics.jsonl`: `tensorboard`, `wandb`, `trackio`.
        progress: Show progress bars.
        notify: Receives short notes for the user.

    Returns:
        The finished run.

    Raises:
        OpencseError: The input is invalid; `out` is unchanged, or has its last valid checkpoint.
    """
    session = TrainingSession(out, resume=resume, overwrite=overwrite, track=track, progress=progress, notify=notify)
    if not isinstance(settings, Pretraining):
        settings = load_settings(settings or ("adapt" if backbone else "mini-mlm"), overrides)
    settings = replace(settings, training=session.settle(settings.training, _shapes(settings, backbone)))
    seed = settings.training.seed
    session.seed(seed)
    model, new_head = load_model(backbone) if backbone else (None, True)
    with session.main_first():
        tokenizer = _tokenizer(corpora, settings, backbone, session)
        text = replace(settings.text, max_length=_max_length(settings, model, tokenizer))
        train, held_out, corpus_hash = open_sentence_ids(
            corpora, tokenizer, text.max_length, text.held_out, progress=session.progress
        )
    fingerprint = {"corpus": corpus_hash, "settings": _resume_settings(settings), "backbone": str(backbone)}
    if (outcome := session.finished(fingerprint)) is not None:
        return PretrainingRun(session.folder, settings, outcome)
    checkpoints = session.checkpoints(settings.training, fingerprint)
    session.seed(seed)
    model = new_model(settings.model, tokenizer) if model is None else model
    pieces = Pieces.of(tokenizer, model.config.vocab_size)
    if new_head and not (resume and checkpoints.latest()):
        _initialise_from_counts(model, train, pieces, settings, backbone, session)
    prepare_for_training(model)
    record = _record(corpora, backbone, train, held_out, model, fingerprint)
    record["precision"] = settings.training.precision
    session.begin(record, {"settings.toml": dump_settings(settings)})
    if session.main:
        with replaced_folder(session.folder / "tokenizer") as temporary:  # a partial one could not be resumed from
            tokenizer.save_pretrained(str(temporary))
    session.notify(
        f"{len(train):,} sentences to train on, {len(held_out):,} held out; {record['parameters']:,} parameters"
    )
    session.seed(seed, per_process=True)  # masks differ between processes
    assembler = _assembler(train, tokenizer, pieces, settings, text, session)
    network = MaskedLMNetwork(model).to(session.device)
    dev = _dev(network, held_out, assembler, session.device, settings.training.precision) if len(held_out) else None

    def save(outcome: TrainingOutcome) -> None:
        card = masked_lm_card(settings, record, outcome)
        save_model(model, tokenizer, session.folder / "model", card, backbone)

    with dropout_rate(model, text.dropout):
        outcome = session.train(network, assembler, len(train), settings, checkpoints, record, save, dev=dev)
    return PretrainingRun(session.folder, settings, outcome)


def _initialise_from_counts(
    model: Any,
    train: SentenceIds,
    pieces: Pieces,
    settings: Pretraining,
    backbone: str | Path | None,
    session: TrainingSession,
) -> None:
    """Initialise the biases of a new head, and the embeddings of a new model, from word counts."""
    session.notify("counting words")
    if backbone is None and settings.model.embeddings == "cooccurrence":
        initialise_embeddings(model, train, pieces, settings.training.seed)
    set_output_bias(model, piece_counts(train, model.config.vocab_size))


def _record(
    corpora: Sequence[str | Path],
    backbone: str | Path | None,
    train: SentenceIds,
    held_out: SentenceIds,
    model: torch.nn.Module,
    fingerprint: dict[str, str],
) -> dict[str, Any]:
    return {
        "corpora": [str(c) for c in corpora],
        "backbone": None if backbone is None else str(backbone),
        "sentences": len(train),
        "held_out": len(held_out),
        "parameters": sum(p.numel() for p in model.parameters()),
        "fingerprint": fingerprint,
    }


def _assembler(
    train: SentenceIds,
    tokenizer: Any,
    pieces: Pieces,
    settings: Pretraining,
    text: InputSettings,
    session: TrainingSession,
) -> MaskingAssembler:
    frame, padding = special_frame(tokenizer), tokenizer.pad_token_id or 0
    return MaskingAssembler(
        train,
        (frame.before, frame.after),
        padding,
        pieces,
        settings.masking,
        text,
        _GROUP_OVERHEAD[session.on_cpu],
    )


def _tokenizer(
    corpora: Sequence[str | Path], settings: Pretraining, backbone: str | Path | None, session: TrainingSession
) -> Any:
    if backbone is not None:
        return load_tokenizer(backbone)
    learned = session.folder / "tokenizer"
    if session.resume and learned.is_dir():
        return load_tokenizer(learned)
    session.notify("learning the vocabulary")
    texts = partial(iter_sentences, corpora, settings.text.held_out, held_out=False)
    return train_tokenizer(texts, settings.vocabulary, settings.model.positions)


def _shapes(settings: Pretraining, backbone: str | Path | None) -> dict[str, Any]:
    """Return the part of the model's configuration that decides the shapes of its matrices."""
    if backbone is not None:
        return backbone_config(backbone)
    return {"hidden_size": settings.model.width, "intermediate_size": settings.model.feed_forward}


def _max_length(settings: Pretraining, model: Any, tokenizer: Any) -> int:
    """Return the maximum input length in tokens: `text.max_length`, or less if the model takes less."""
    if model is None:
        limit = settings.model.positions
    else:
        offset = (model.config.pad_token_id or 0) + 1 if "roberta" in model.config.model_type else 0
        limit = min(getattr(model.config, "max_position_embeddings", 512) - offset, tokenizer.model_max_length)
    if model is None and settings.text.max_length > limit:
        raise OpencseError(
            f"text.max_length is {settings.text.max_length}, but model.positions only {limit}",
            f"Set --set text.max_length={limit}, or more positions.",
        )
    return min(settings.text.max_length, limit)


def _resume_settings(settings: Pretraining) -> str:
    """Return the settings that a resumed run must share: all except its length and, if stable, its decay."""
    training = replace(settings.training, max_steps=None, epochs=1)
    schedule = settings.schedule
    if schedule.kind == "stable":
        schedule = replace(schedule, decay=Schedule().decay)
    return dump_settings(replace(settings, training=training, schedule=schedule))


def _dev(
    network: MaskedLMNetwork, held_out: SentenceIds, assembler: MaskingAssembler, device: torch.device, precision: str
) -> Callable[[], float]:
    """Return a function that computes the accuracy on fixed masked tokens of held-out sentences, in %."""
    batches = assembler.fixed(held_out, DEV_SENTENCES)

    @torch.no_grad()
    def score() -> float:
        network.eval()
        correct = predicted = 0
        for batch in batches:
            for inputs in batch.to(device).groups:
                with torch.autocast(device.type, torch.bfloat16, enabled=precision != "fp32"):
                    tokens = network.logits(inputs).argmax(-1)
                correct += int((tokens == inputs.labels).sum())
            predicted += batch.predicted
        return 100 * correct / predicted

    return score
