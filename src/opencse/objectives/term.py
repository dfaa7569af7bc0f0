"""The term: one named, weighted summand of an objective."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

Embeddings = Mapping[str, Tensor]


@dataclass(frozen=True)
class Processes:
    """How a term that computes on this process's rows alone becomes one over the global batch.

    The gradient of every parameter is averaged over the processes afterwards. The defaults are those of one process.

    Attributes:
        own_rows: From a tensor (B, ...) over the global batch to this process's part; on the way back, the gradients of
            all parts are put together, so that each process goes on with the gradient of the whole.
        gather: From this process's part (b, ...) to the global tensor, without a gradient.
        mean: From this process's sum and count (scalars) to the mean over all processes, with its gradient; 0 of none.
    """

    own_rows: Callable[[Tensor], Tensor] = lambda rows: rows
    gather: Callable[[Tensor], Tensor] = lambda rows: rows.detach()
    mean: Callable[[Tensor, Tensor], Tensor] = lambda total, count: total / count.clamp(min=1)


@dataclass
class Context:
    """Inputs of a term beside the embeddings, and its diagnostics.

    Attributes:
        step: The optimiser step, from 0.
        progress: The share of the training that is done, in [0, 1].
        teachers: For each teacher the vectors (B, d_t), fp32, of the views that some term reads from it, over the
            global batch; zero where the row lacks the view.
        tokens: For each view that some term asks for (`Term.tokens`) the token ids (b, L) and their attention mask, of
            this process's rows only; no token is real where the row lacks the view.
        modules: What `Term.module` built, by the name of the term.
        processes: For terms that compute on this process's rows.
        precision: The precision in which the encoder runs, as a context; losses are computed in full precision.
        reports: Diagnostics by name, filled by the terms (detached scalars).
        teacher_weights: By the name of each earlier distillation term the weights (K,) that it gave its teachers.
    """

    step: int = 0
    progress: float = 0.0
    teachers: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    tokens: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    processes: Processes = field(default_factory=Processes)
    precision: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    reports: dict[str, Tensor] = field(default_factory=dict)
    teacher_weights: dict[str, Tensor] = field(default_factory=dict)

    def report(self, name: str, value: Tensor) -> None:
        """Record a diagnostic, such as an in-batch accuracy, for the log."""
        self.reports[name] = value.detach()


@dataclass(frozen=True)
class TermBuildContext:
    """Inputs from which a term builds its module, before the first step.

    Attributes:
        width: Size of the embeddings.
        encoder: The sentence encoder with its initial weights: features with `input_ids` and `attention_mask` to
            features with `sentence_embedding`.
        projector: What makes embeddings of its vectors.
        transformer: The part of the encoder that makes hidden states of token ids; None where it has no such part.
        tokenizer: The encoder's.
        masked_lm: Loads a masked language model with this tokenizer's vocabulary, by name, in evaluation mode; it takes
            `input_ids` and `attention_mask` and gives `logits`.
        seed: Of the run.
    """

    width: int
    encoder: nn.Module
    projector: nn.Module
    transformer: nn.Module | None
    tokenizer: Any
    masked_lm: Callable[[str], nn.Module]
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Term:
    """A pure function of named embeddings.

    A term neither owns nor calls the encoder, so it can be tested against a plain transcription of its paper, gathered
    across processes, and combined with any other. One that needs parameters or a memory says so (`module`): these live
    beside the encoder and are trained, clipped, checkpointed and synchronised with it.

    Attributes:
        kind: What recipes call this class.
        name: What this term is called in logs and `--set`; its kind where empty.
        weight: Its factor in the objective.
    """

    kind: ClassVar[str]
    acts_on_embeddings: ClassVar[bool] = True
    """Whether the gradient goes through the embeddings, not straight to the encoder's weights."""

    name: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)
        if not re.fullmatch(r"[\w-]+", self.name):
            raise ValueError(f"name must be made of letters, digits, '_' and '-', not '{self.name}'")

    @property
    def views(self) -> tuple[str, ...]:
        """The views whose embeddings the term reads."""
        raise NotImplementedError

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teachers whose vectors of these views the term reads."""
        return ()

    @property
    def tokens(self) -> tuple[str, ...]:
        """Those of these views whose token ids the term reads too."""
        return ()

    def module(self, build: TermBuildContext) -> nn.Module | None:
        """Return the parameters, frozen models and memory of the term; the term finds it in `context.modules`.

        Its parameters are trained at the rate `module.learning_rate` where it has such an attribute, and at the
        encoder's otherwise.
        """
        return None

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """Compute the unweighted loss.

        Args:
            embeddings: For each view a tensor (B, d), fp32 or fp64, over the global batch.
            present: For each view a boolean tensor (B,): whether the row has this view. The embedding of an absent
                row is zero.
            context: The step, and where to report.

        Returns:
            A scalar that is differentiable with respect to the embeddings; zero where no row has what is needed.
        """
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """Return settings that are legal but probably not meant."""
        return []
