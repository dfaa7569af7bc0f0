"""From text to a masked language model in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from opencse.encoder import special_frame
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.fast import prepare_for_training
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.pretraining.batches import MaskingAssembler
from opencse.pretraining.card import model_card
from opencse.pretraining.initial import piece_counts, start_from_counts
from opencse.pretraining.model import load_model, load_tokenizer, new_model, save_model, set_frequencies
from opencse.pretraining.network import MaskedLMNetwork
from opencse.pretraining.settings import Pretraining, dump_settings, load_settings
from opencse.pretraining.store import SentenceIds, open_sentences, sentences
from opencse.pretraining.vocabulary import Pieces, train_tokenizer
from opencse.runs.checkpoint import Checkpoints
from opencse.runs.folder import check_folder, environment, prepare_folder
from opencse.runs.log import check_trackers
from opencse.runs.loop import Loop, Outcome
from opencse.runs.memory import keep_freed_memory
from opencse.runs.sampling import Sampler
from opencse.settings import Schedule

# What one more forward pass costs, in tokens: little on a CPU, a lot where launching is what takes time.
_GROUP_OVERHEAD = {True: 256.0, False: 65536.0}
DEV_SENTENCES = 2000
"""So many of the held-out sentences, the first, choose the step whose weights are kept."""


@dataclass(frozen=True)
class PretrainingRun:
    """A finished pre-training run.

    Attributes:
        folder: Holds `model/`, `metrics.jsonl`, `settings.toml`, `run.json` and `environment.json`.
        settings: As they were resolved.
        outcome: Steps, time, and the share of guesses in held-out sentences that were right, in %.
    """

    folder: Path
    settings: Pretraining
    outcome: Outcome

    @property
    def model(self) -> Path:
        """The trained model, which transformers and sentence-transformers load."""
        return self.folder / "model"


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
    tell: Callable[[str], None] = lambda _: None,
) -> PretrainingRun:
    """Train a masked language model, a new one or a given one further.

    A run that was stopped and goes on with `resume` equals one that never stopped. It may be given another
    `training.max_steps` and, with a `stable` schedule, another decay than it began with.

    Args:
        corpora: Text, each in any format of `opencse.io.corpus` with a column `text`.
        out: The run's folder; new, or see `resume` and `overwrite`.
        backbone: A model to train further, by folder, hub id or bundled name; None for a new one.
        settings: A name, a TOML file, or resolved settings (then `overrides` have no say); by default `mini-mlm` for a
            new model and `adapt` for a given one.
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
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    out = Path(out)
    check_folder(out, resume=resume, overwrite=overwrite)
    check_trackers(list(track))
    if not isinstance(settings, Pretraining):
        settings = load_settings(settings or ("adapt" if backbone else "mini-mlm"), overrides)
    accelerator = Accelerator(log_with=list(track) or None, project_dir=out / "tracking" if track else None)
    main, on_cpu = accelerator.is_main_process, accelerator.device.type == "cpu"
    if on_cpu:
        keep_freed_memory()
    say = tell if main else lambda _: None
    seed = settings.training.seed
    set_seed(seed)
    model, new_head = load_model(backbone) if backbone else (None, True)
    with accelerator.main_process_first():
        tokenizer = _tokenizer(corpora, settings, backbone, out if resume else None, say)
        text = replace(settings.text, max_length=_longest(settings, model, tokenizer))
        train, held_out, corpus_hash = open_sentences(
            corpora, tokenizer, text.max_length, text.held_out, progress=progress and main
        )
    fingerprint = {"corpus": corpus_hash, "settings": _lasting(settings), "backbone": str(backbone)}
    checkpoints = Checkpoints(out / "checkpoints", settings.training.keep_checkpoints, fingerprint)
    if resume and (finished := _finished(out, settings, fingerprint)):
        say(f"{out}: this run is finished; nothing to resume")
        return finished
    set_seed(seed)
    model = new_model(settings.model, tokenizer) if model is None else model
    pieces = Pieces.of(tokenizer, model.config.vocab_size)
    if new_head and not (resume and checkpoints.latest()):
        say("counting words")
        if backbone is None and settings.model.embeddings == "cooccurrence":
            start_from_counts(model, train, pieces, seed)
        set_frequencies(model, piece_counts(train, model.config.vocab_size))
    prepare_for_training(model)
    record: dict[str, Any] = {
        "corpora": [str(c) for c in corpora],
        "backbone": None if backbone is None else str(backbone),
        "sentences": len(train),
        "held_out": len(held_out),
        "parameters": sum(p.numel() for p in model.parameters()),
        "fingerprint": fingerprint,
    }
    if main:
        prepare_folder(out, overwrite=overwrite)
        tokenizer.save_pretrained(out / "tokenizer")
        write_json(out / "run.json", record)
        write_json(out / "environment.json", environment())
        write_text(out / "settings.toml", dump_settings(settings))
    say(f"{len(train):,} sentences to train on, {len(held_out):,} held out; {record['parameters']:,} parameters")
    accelerator.wait_for_everyone()
    if track:
        accelerator.init_trackers("opencse", config={"backbone": str(backbone)})

    set_seed(seed, device_specific=True)  # masks differ between processes
    frame = special_frame(tokenizer)
    assembler = MaskingAssembler(
        train,
        (frame.before, frame.after),
        tokenizer.pad_token_id or 0,
        pieces,
        settings.masking,
        text,
        _GROUP_OVERHEAD[on_cpu],
    )
    network = MaskedLMNetwork(model).to(accelerator.device)
    loop = Loop(
        network=network,
        assembler=assembler,
        sampler=Sampler(len(train), min(settings.training.batch_size, len(train)), seed),
        recipe=settings,
        folder=out,
        accelerator=accelerator,
        checkpoints=checkpoints,
        dev=_dev(network, held_out, assembler, accelerator.device) if len(held_out) else None,
        progress=progress,
    )
    with dropout_rate(model, text.dropout):
        outcome = loop.run(resume)
    if main:
        save_model(model, tokenizer, out / "model", model_card(settings, record, outcome), backbone)
        write_json(out / "run.json", record | {"outcome": asdict(outcome)})
        loop.clean_up()
    if track:
        accelerator.end_training()
    accelerator.wait_for_everyone()
    return PretrainingRun(out, settings, outcome)


def _tokenizer(
    corpora: Sequence[str | Path],
    settings: Pretraining,
    backbone: str | Path | None,
    resumed: Path | None,
    say: Callable[[str], None],
) -> Any:
    if backbone is not None:
        return load_tokenizer(backbone)
    if resumed is not None and (resumed / "tokenizer").is_dir():
        return load_tokenizer(resumed / "tokenizer")
    say("learning the vocabulary")
    texts = partial(sentences, corpora, settings.text.held_out, held_out=False)
    return train_tokenizer(texts, settings.vocabulary, settings.model.positions)


def _longest(settings: Pretraining, model: Any, tokenizer: Any) -> int:
    """Tokens of the longest input: `text.max_length`, or less where the model takes fewer."""
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


def _lasting(settings: Pretraining) -> str:
    """What a resumed run must share: everything but how long it lasts and, if it is stable, how it decays."""
    training = replace(settings.training, max_steps=None, epochs=1)
    schedule = settings.schedule
    if schedule.kind == "stable":
        schedule = replace(schedule, decay=Schedule().decay)
    return dump_settings(replace(settings, training=training, schedule=schedule))


def _finished(out: Path, settings: Pretraining, fingerprint: dict[str, str]) -> PretrainingRun | None:
    """The run in a folder if it is complete.

    Raises:
        OpencseError: It was begun with another corpus, other settings or another backbone.
    """
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    for name, value in fingerprint.items():
        if record.get("fingerprint", {}).get(name) != value:
            raise OpencseError(
                f"{out}: was begun with another {name}",
                "Resume with what the run began with, or start anew with --overwrite.",
            )
    if "outcome" not in record or not (out / "model").is_dir():
        return None
    return PretrainingRun(out, settings, Outcome(**record["outcome"]))


def _dev(
    network: MaskedLMNetwork, held_out: SentenceIds, assembler: MaskingAssembler, device: torch.device
) -> Callable[[], float]:
    """Share of the guesses in held-out sentences that are right, in %; always the same guesses."""
    batches = assembler.fixed(held_out, DEV_SENTENCES)

    @torch.no_grad()
    def score() -> float:
        network.eval()
        right = guesses = 0
        for batch in batches:
            for inputs in batch.to(device).groups:
                with torch.autocast(device.type, torch.bfloat16):
                    found = network.logits(inputs).argmax(-1)
                right += int((found == inputs.labels).sum())
            guesses += batch.guesses
        return 100 * right / guesses

    return score
