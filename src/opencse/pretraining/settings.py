"""Settings of a pre-training run: one frozen dataclass per table of its TOML file."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from opencse.errors import OpencseError
from opencse.io.reading import LARGEST_SETTINGS, read_text
from opencse.settings import Optimizer, Schedule, Selection, Training
from opencse.settings.decode import decode, encode, unknown_name_error
from opencse.settings.tables import merge_tables, nested_table, parse_override, parse_toml

_PACKAGED = importlib.resources.files("opencse.pretraining") / "toml"


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A WordPiece vocabulary, learned from the corpus (Wu et al., 2016, as in BERT).

    Attributes:
        size: Number of pieces, special tokens included.
        lowercase: Lower-case and strip accents first, like bert-base-uncased.
        alphabet: Number of most frequent characters kept; words with others become `[UNK]`.
    """

    size: int = 12_000
    lowercase: bool = True
    alphabet: int = 400

    def __post_init__(self) -> None:
        if self.alphabet < 1 or self.size < 6:
            raise ValueError("size must be at least 6 (five special tokens and a piece) and alphabet at least 1")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Shape of a new encoder with BERT's architecture.

    Attributes:
        layers: Number of transformer layers.
        width: Size of the hidden states.
        heads: Number of attention heads; divides `width`.
        feed_forward: Size of the inner layer.
        positions: Maximum input length in tokens.
        dropout: Dropout rate in the saved configuration, for fine-tuning; pre-training uses `InputSettings.dropout`.
        embeddings: `random`, or from `cooccurrence` counts (`opencse.pretraining.initial`).
    """

    layers: int = 4
    width: int = 256
    heads: int = 4
    feed_forward: int = 1024
    positions: int = 256
    dropout: float = 0.1
    embeddings: Literal["random", "cooccurrence"] = "cooccurrence"

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.heads, self.feed_forward) < 1 or self.positions < 8:
            raise ValueError("layers, width, heads and feed_forward must be at least 1, and positions at least 8")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if not 0 <= self.dropout < 1:
            raise ValueError("dropout must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class Masking:
    """Selection of the tokens that the model predicts (Devlin et al., 2019, section 3.1).

    Attributes:
        rate: Share of tokens chosen.
        whole_words: Choose all pieces of a word together, or none of them.
        random: Share of the chosen tokens that are replaced by a random one instead of `[MASK]`.
        keep: Share of the chosen tokens that stay unchanged.
    """

    rate: float = 0.2
    whole_words: bool = True
    random: float = 0.1
    keep: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError("rate must be above 0 and below 1")
        if min(self.random, self.keep) < 0 or self.random + self.keep > 1:
            raise ValueError("random and keep must be at least 0 and add up to at most 1")


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Settings of the inputs.

    Attributes:
        max_length: Maximum input length in tokens, `[CLS]` and `[SEP]` included; longer sentences are truncated.
        joined: Share of batches in which sentences are joined into inputs of up to `max_length` tokens, so that the
            later positions are trained too; in the other batches every sentence is one input.
        held_out: Share of the sentences, chosen by a hash of their text, that are held out from vocabulary and
            training.
        dropout: Dropout rate during pre-training. With few epochs there is no overfitting, and dropout only slows the
            learning.
    """

    max_length: int = 256
    joined: float = 0.1
    held_out: float = 0.005
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.max_length < 3:
            raise ValueError("max_length must be at least 3")
        if not (0 <= self.joined <= 1 and 0 <= self.held_out < 1 and 0 <= self.dropout < 1):
            raise ValueError("joined, held_out and dropout are shares")


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """All settings of a pre-training run.

    Attributes:
        vocabulary: See `Vocabulary`; not read in continued pre-training.
        model: See `ModelSettings`; not read in continued pre-training.
        masking: See `Masking`.
        text: See `InputSettings`.
        optimizer: See `opencse.settings.Optimizer`.
        schedule: See `opencse.settings.Schedule`.
        training: See `opencse.settings.Training`; the batch size counts sentences.
        selection: How often the held-out accuracy is measured.
    """

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    model: ModelSettings = field(default_factory=ModelSettings)
    masking: Masking = field(default_factory=Masking)
    text: InputSettings = field(default_factory=InputSettings)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    training: Training = field(default_factory=Training)
    selection: Selection = field(default_factory=Selection)


def settings_names() -> list[str]:
    """Return the names of the settings that come with the package."""
    return sorted(f.name.removesuffix(".toml") for f in _PACKAGED.iterdir() if f.name.endswith(".toml"))


def load_settings(name: str | Path, overrides: Sequence[str] = ()) -> Pretraining:
    """Read settings by name (`mini-mlm`) or from a TOML file.

    Args:
        name: One of `settings_names()`, or the path of a TOML file.
        overrides: `key=value` strings, such as `training.max_steps=2000`.

    Raises:
        OpencseError: There are no such settings, or they have an unknown key, a wrong type or an invalid value.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not os.path.exists(path):  # false for any string, where Path.exists raises
            raise OpencseError(f"{path}: no such settings file", f"Packaged: {', '.join(settings_names())}.")
        text, label = read_text(path, limit=LARGEST_SETTINGS), str(path)
    elif str(name) in settings_names():
        text, label = (_PACKAGED / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml"
    else:
        raise unknown_name_error("settings", str(name), settings_names())
    table = parse_toml(text, label)
    for key, value in map(parse_override, overrides):
        table = merge_tables(table, nested_table(key, value), f"--set {key}")
    return decode(Pretraining, table, label)


def dump_settings(settings: Pretraining) -> str:
    """Return the resolved settings as TOML, which `load_settings` reads back to equal ones."""
    import tomli_w

    return tomli_w.dumps(encode(settings))
