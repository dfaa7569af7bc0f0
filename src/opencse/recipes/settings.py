"""Settings of corpus and training in a recipe: the rows, optimizer, schedule, loop and model selection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from opencse.foundation.numbers import LARGEST_SEED, check_least, check_range


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """The optimiser: by default AdamW (Loshchilov and Hutter, 2019).

    Attributes:
        name: `adamw`; `adamw_transformers` for the one of transformers 4, which adds `eps` before
            the bias correction (`opencse.training.optimizers`) and was used for the published
            systems; or another one of PyTorch's, in lower case.
        lr: Peak learning rate.
        weight_decay: Decoupled weight decay of matrices; 0 in all systems that come with opencse.
        betas: Decay rates of the moving averages of the gradient and of its square, if it has them.
        eps: Added to the denominator.
        max_grad_norm: Global norm to which the gradient is clipped; 0 for no clipping.
        options: Further settings of PyTorch's optimisers, such as `momentum` of `sgd`.
    """

    name: Literal[
        "adamw",
        "adamw_transformers",
        "adadelta",
        "adafactor",
        "adagrad",
        "adam",
        "adamax",
        "nadam",
        "radam",
        "rmsprop",
        "sgd",
    ] = "adamw"
    lr: float = 3e-5
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    max_grad_norm: float = 1.0
    options: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_range(self, "(0, inf)", "lr", "eps")
        check_range(self, "[0, 1)", "betas")
        check_least(self, 0, "weight_decay", "max_grad_norm")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Learning rate schedule.

    Attributes:
        kind: After the warm-up: `linear` decay to 0, `constant`, or one of transformers' other
            schedules by its name there (`opencse.training.schedules`).
        warmup: Steps in which the rate rises linearly from 0: a number of steps (integer) or a
            share of all (below 1).
        options: Further settings of transformers' schedules, such as `num_cycles` of a cosine.
    """

    kind: Literal[
        "linear",
        "constant",
        "constant_with_warmup",
        "cosine",
        "cosine_with_restarts",
        "cosine_with_min_lr",
        "polynomial",
        "inverse_sqrt",
        "warmup_stable_decay",
    ] = "linear"
    warmup: int | float = 0
    options: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.warmup < 0 or (isinstance(self.warmup, float) and self.warmup >= 1):
            raise ValueError("warmup must be a number of steps or a share below 1.0")


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the training loop.

    Attributes:
        epochs: Passes over the training rows.
        max_steps: Number of optimiser steps; overrides `epochs`, as in transformers' Trainer. If a
            recipe sets it and a user sets `epochs` alone, the user's epochs count.
        most_steps: Maximum number of steps, if `epochs` asks for more.
        batch_size: Rows per optimiser step, over all processes; the in-batch negatives are among
            them.
        accumulation_steps: Number of batches whose gradients are averaged for one optimiser step. A
            sentence is contrasted with those of its own batch only; `micro_batch` keeps the
            negatives of a large batch.
        micro_batch: Number of texts that are encoded at once, for large batches in little memory.
            The loss is that of the full batch; for its gradient, each part is encoded a second
            time with the same dropout masks (GradCache, Gao et al., 2021). By default a batch is
            encoded at once.
        gradient_checkpointing: Keep the activations of each layer's input alone, and compute the
            others again for the gradient: less memory, about a third more time, the same weights.
        compile: Compile the transformer with `torch.compile`: `inductor` for its own compiler, which
            needs a C++ compiler on a CPU; `reduce-overhead` for CUDA graphs too; `eager` and
            `aot_eager` for finding what cannot be compiled, without any gain in speed. Batches are
            padded to at most four lengths. Saved models are the same.
        shard_weights: Divide weights, gradients and moments among the processes (PyTorch's FSDP2), for
            models that do not fit on one device. The result is that of a run without it, up to
            rounding. Each process writes its own part of a checkpoint.
        precision: `bf16`, `fp16` (on an accelerator), `fp32`, or `auto`: bf16 or fp32, whichever
            multiplies faster on this machine; a resumed run keeps its precision. Losses are always
            computed in fp32.
        teacher_precision: `fp32` for teachers in full precision (the authors' code), or `training` for
            fp32 in an fp32 run and bf16 otherwise.
        seed: Seed of all random choices.
        log_every: Steps between lines in `metrics.jsonl`.
        checkpoint_every: Steps between checkpoints; 0 for none.
        keep_checkpoints: Number of checkpoints that are kept, the latest ones. With two, a damaged
            one costs only the steps since the one before it.
    """

    epochs: int = 1
    max_steps: int | None = None
    most_steps: int | None = None
    batch_size: int = 64
    accumulation_steps: int = 1
    micro_batch: int | None = None
    gradient_checkpointing: bool = False
    compile: Literal["none", "inductor", "reduce-overhead", "eager", "aot_eager"] = "none"
    shard_weights: bool = False
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    teacher_precision: Literal["training", "fp32"] = "training"
    seed: int = 42
    log_every: int = 25
    checkpoint_every: int = 500
    keep_checkpoints: int = 2

    def __post_init__(self) -> None:
        if self.batch_size < 2:
            raise ValueError(
                "batch_size must be at least 2: the negatives are the other sentences of the batch"
            )
        check_least(self, 1, "epochs", "max_steps", "most_steps", "micro_batch", "log_every")
        check_least(self, 1, "keep_checkpoints", "accumulation_steps")
        check_least(self, 0, "checkpoint_every")
        check_range(self, f"[0, {LARGEST_SEED}]", "seed")

    def steps(self, batches_per_epoch: int) -> int:
        """Return the number of optimiser steps, given the batches of an epoch."""
        if self.max_steps is not None:
            return self.max_steps
        steps = max(1, self.epochs * batches_per_epoch // self.accumulation_steps)
        if self.most_steps is not None:
            steps = min(steps, self.most_steps)
        return steps


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which step's model is kept, by Spearman correlation on scored development pairs.

    Attributes:
        every: Steps between evaluations.
        last: Evaluate after the last step too, if it is no multiple of `every` (the authors' trainer
            does not).
        patience: Number of evaluations without a new best score after which training ends; None
            trains to the end.
        tasks: Whose development sets are scored where `--data` is given and `--dev` is not: their
            mean counts.
        watch: What else is measured on the development pairs at each evaluation, for
            `metrics.jsonl` alone: their `geometry` (alignment and uniformity), and the correlation
            on OssCSE's consistent and opposed `splits`; and the alignment and uniformity of
            `training` sentences, with dropout.
    """

    every: int = 125
    last: bool = True
    patience: int | None = None
    tasks: tuple[Literal["STS-B", "SICK-R"], ...] = ("STS-B",)
    watch: tuple[Literal["geometry", "splits", "training"], ...] = ()

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("tasks must name at least one development set")
        check_least(self, 1, "every", "patience")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A meaning block next to the untouched model (`opencse.debias.meaning_block`): nothing but the block is trained.

    Attributes:
        tolerance: How many points (of 100) a guard may lose, a score of search or classification
            (`opencse.evaluation.written_sets.load_guard`). The block gets the largest strength at
            which none loses more.
        copy_lr: Peak learning rate of the copied layers (0: they stay); other parts of the block
            have the optimizer's.
        dropout: Dropout rate of what code and φ read.
        same_width: Project the vectors to the old length, so that all of them change
            (`opencse.debias.same_width`).
        strength: The strength β of the meaning vector, whatever the guards lose; None for the
            largest that `tolerance` allows.
    """

    tolerance: float = 0.3
    copy_lr: float = 2e-4
    dropout: float = 0.1
    same_width: bool = False
    strength: float | None = None

    def __post_init__(self) -> None:
        check_least(self, 0, "tolerance", "copy_lr")
        check_range(self, "[0, 1)", "dropout")
        if self.strength is not None:
            check_range(self, "(0, 5]", "strength")


@dataclass(frozen=True, kw_only=True)
class MixturePart:
    """One sort of training rows, drawn from the sentences of which certain views could be built.

    Attributes:
        rows: How many; 0 leaves the part out.
        needs: Columns that a sentence must have.
        keeps: Further columns that its rows keep where the sentence has them; all others are left
            out of these rows.
        words: Sentences of more white-space words are left out.
    """

    rows: int
    needs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    words: int | None = None

    def __post_init__(self) -> None:
        check_least(self, 0, "rows")
        check_least(self, 1, "words")


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """Sampling of the raw text before views are built, and of the built rows before training.

    Attributes:
        clauses: Share of the sentences that are cut to their main clause, where one can be cut out.
        rows: Sentences used at most, drawn at random; all where absent.
        opposites: So many more sentences, drawn for the adjectives and verbs in them that have an
            opposite, each adjective as often as any other as far as the text has it, and each verb
            four times as often. An attribute ("the dirty water") becomes a separate sentence
            ("The water is dirty.").
        paraphrases: Sentences of a table of paraphrases used at most, drawn at random; all where
            absent.
        language: Code of the language whose rules build the views (`opencse.text.languages`);
            `auto` for the likeliest one of the text.
        parts: The sorts of rows that training mixes, by name; where absent, every sentence is one
            row with all its views.
    """

    clauses: float = 0.0
    rows: int | None = None
    opposites: int = 0
    paraphrases: int | None = None
    language: str = "auto"
    parts: dict[str, MixturePart] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_range(self, "[0, 1]", "clauses")
        check_least(self, 2, "rows")
        check_least(self, 0, "opposites")
        check_least(self, 1, "paraphrases")
