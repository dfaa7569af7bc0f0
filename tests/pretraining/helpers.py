"""Small pre-training runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from opencse.pretraining import PretrainingRun, pretrain
from opencse.pretraining.settings import Vocabulary
from opencse.pretraining.vocabulary import train_tokenizer

_SUBJECTS = "the cat|a dog|my neighbour|the tall teacher|an unhappy child|the painter|our doctor".split("|")
_VERBS = "watches|is painting|has forgotten|repaired|never cleaned|was remembering|unlocks".split("|")
_OBJECTS = "the garden|an old bridge|two houses|a red bicycle|the river in winter|her unread letters".split("|")
SENTENCES = [f"{s.capitalize()} {v} {o}." for s, v, o in itertools.product(_SUBJECTS, _VERBS, _OBJECTS)]
SMALL = (
    "vocabulary.size=120",
    "vocabulary.alphabet=40",
    "model.layers=2",
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=32",
    "model.positions=48",
    "text.max_length=48",
    "text.held_out=0.1",
    "schedule.warmup=2",
    "training.batch_size=8",
    "training.precision=fp32",
    "training.log_every=2",
    "training.checkpoint_every=3",
    "training.max_steps=10",
    "selection.every=4",
)


def write_corpus(folder: Path, sentences: list[str] = SENTENCES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "corpus.txt"
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return path


def run(corpus: Path, out: Path, *settings: str, **options: Any) -> PretrainingRun:
    return pretrain([corpus], out=out, overrides=[*SMALL, *settings], progress=False, **options)


def small_tokenizer() -> Any:
    """One whose words are often several pieces."""
    return train_tokenizer(lambda: SENTENCES, Vocabulary(size=80, alphabet=40), 48)
