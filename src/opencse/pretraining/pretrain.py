"""From text to a masked language model in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from opencse.encoder import special_frame
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.fast import prepare_for_training
from opencse.files import write_json, write_text
from opencse.pretraining.batches import MaskingAssembler, masked_batch
from opencse.pretraining.initial import start_from_counts
from opencse.pretraining.model import new_model, save_model
from opencse.pretraining.network import MaskedLMNetwork
from opencse.pretraining.settings import Pretraining, dump_settings, load_settings
from opencse.pretraining.store import SentenceIds, open_sentences, sentences
from opencse.pretraining.vocabulary import Pieces, train_tokenizer
from opencse.training.checkpoint import Checkpoints
from opencse.training.folder import check_folder, environment, prepare_folder
from opencse.training.log import check_trackers
from opencse.training.loop import Loop, Outcome
from opencse.training.memory import keep_freed_memory
from opencse.training.sampling import Sampler

# What one more forward pass costs, in tokens: little on a CPU, a lot where launching is what takes time.
_GROUP_OVERHEAD = {True: 256.0, False: 65536.0}
_DEV_SENTENCES = 2000


@dataclass(frozen=True)
class Run:
    """A finished pre-training run.

    Attributes:
        folder: Holds `model/`, `tokenizer/`, `metrics.jsonl`, `settings.toml`, `run.json`, `environment.json`.
        settings: As they were resolved.
        outcome: Steps, held-out accuracy and time.
    """

    folder: Path
    settings: Pretraining
    outcome: Outcome

    @property
    def model(self) -> Path:
        """The trained model."""
        return self.folder / "model"


def pretrain(
    corpora: Sequence[str | Path],
    *,
    out: str | Path,
    settings: str | Path | Pretraining = "mini-mlm",
    overrides: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Run:
    """Train a masked language model from nothing."""
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    out = Path(out)
    check_folder(out, resume=resume, overwrite=overwrite)
    check_trackers(list(track))
    if not isinstance(settings, Pretraining):
        settings = load_settings(settings, overrides)
    accelerator = Accelerator(log_with=list(track) or None, project_dir=out / "tracking" if track else None)
    on_cpu = accelerator.device.type == "cpu"
    if on_cpu:
        keep_freed_memory()
    seed = settings.training.seed
    share = settings.text.held_out
    tokenizer = _tokenizer(corpora, settings, out, resume, tell)
    train, held_out, corpus_hash = open_sentences(corpora, tokenizer, settings.text.max_length, share)
    set_seed(seed)
    model = new_model(settings.model, tokenizer)
    pieces = Pieces.of(tokenizer, model.config.vocab_size)
    if settings.model.embeddings == "cooccurrence" and not resume:
        tell("counting words that occur together")
        start_from_counts(model, train, pieces, seed)
    prepare_for_training(model)
    if not resume:
        prepare_folder(out, overwrite=overwrite)
    tokenizer.save_pretrained(out / "tokenizer")
    record: dict[str, Any] = {
        "corpora": [str(c) for c in corpora],
        "sentences": len(train),
        "held_out": len(held_out),
        "corpus_hash": corpus_hash,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    write_json(out / "run.json", record)
    write_json(out / "environment.json", environment())
    write_text(out / "settings.toml", dump_settings(settings))
    tell(f"{len(train)} sentences to train on, {len(held_out)} held out, {record['parameters']:,} parameters")
    frame = special_frame(tokenizer)
    assembler = MaskingAssembler(
        train,
        (frame.before, frame.after),
        tokenizer.pad_token_id or 0,
        pieces,
        settings.masking,
        settings.text,
        _GROUP_OVERHEAD[on_cpu],
    )
    network = MaskedLMNetwork(model).to(accelerator.device)
    set_seed(seed, device_specific=True)
    fingerprint = {"corpus": corpus_hash, "settings": _fingerprint(settings)}
    loop = Loop(
        network=network,
        assembler=assembler,
        sampler=Sampler(len(train), min(settings.training.batch_size, len(train)), seed),
        recipe=settings,
        folder=out,
        accelerator=accelerator,
        checkpoints=Checkpoints(out / "checkpoints", settings.training.keep_checkpoints, fingerprint),
        dev=_dev(network, held_out, assembler, accelerator.device) if len(held_out) else None,
        progress=progress,
    )
    with dropout_rate(model, settings.text.dropout):
        outcome = loop.run(resume)
    save_model(model, tokenizer, out / "model", "")
    write_json(out / "run.json", record | {"outcome": asdict(outcome)})
    loop.clean_up()
    return Run(out, settings, outcome)


def _fingerprint(settings: Pretraining) -> str:
    """All that a resumed run must share: everything but how long it lasts and how it decays."""
    from dataclasses import replace

    from opencse.recipes import Schedule

    training = replace(settings.training, max_steps=None, epochs=1)
    schedule = settings.schedule
    if schedule.kind == "stable":
        schedule = Schedule(kind="stable", warmup=schedule.warmup)
    return dump_settings(replace(settings, training=training, schedule=schedule))


def _tokenizer(
    corpora: Sequence[str | Path], settings: Pretraining, out: Path, resume: bool, tell: Callable[[str], None]
) -> Any:
    from transformers import AutoTokenizer

    if resume and (out / "tokenizer").is_dir():
        return AutoTokenizer.from_pretrained(out / "tokenizer", local_files_only=True)
    tell("learning the vocabulary")
    texts = sentences(corpora, settings.text.held_out, held_out=False)
    return train_tokenizer(texts, settings.vocabulary, settings.model.positions)


def _dev(
    network: MaskedLMNetwork, held_out: SentenceIds, assembler: MaskingAssembler, device: torch.device
) -> Callable[[], float]:
    """Share of the guesses in held-out sentences that are right, in %; always the same guesses."""
    batches = assembler.fixed(held_out, _DEV_SENTENCES)

    @torch.no_grad()
    def score() -> float:
        network.eval()
        right = guesses = 0
        for batch in batches:
            for inputs in batch.groups:
                moved = inputs.to(device)
                with torch.autocast(device.type, torch.bfloat16):
                    found = network.logits(moved).argmax(-1)
                right += int((found == moved.labels).sum())
            guesses += batch.guesses
        return 100 * right / guesses

    return score
