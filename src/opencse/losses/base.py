"""The base class of losses, and the objective, their weighted sum."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from opencse.foundation.tensors import move

Embeddings = Mapping[str, Tensor]


@dataclass(frozen=True)
class Processes:
    """Communication for losses that compute only on the rows of this process.

    The gradient of every parameter is averaged over the processes afterwards. The defaults are for
    one process.

    Attributes:
        own_rows: Function from a tensor (B, ...) over the global batch to the part of this process;
            its backward pass gathers the gradients of all parts, so that each process has the
            complete gradient.
        gather: Function from the part of this process (b, ...) to the global tensor, without a
            gradient.
        gather_trained: The same with a gradient, for vectors of a loss's own network.
        mean: Function from sum and count of this process (scalars) to the mean over all processes,
            with its gradient; 0 if the count is 0.
    """

    own_rows: Callable[[Tensor], Tensor] = lambda rows: rows
    gather: Callable[[Tensor], Tensor] = lambda rows: rows.detach()
    gather_trained: Callable[[Tensor], Tensor] = lambda rows: rows
    mean: Callable[[Tensor, Tensor], Tensor] = lambda total, count: total / count.clamp(min=1)


@dataclass(frozen=True)
class Context:
    """Inputs of a loss in addition to embeddings and masks, the same for all losses of a step.

    Attributes:
        step: The optimiser step, from 0.
        teachers: Vectors (B, d_t), fp32, over the global batch, by teacher and view; zero if a row
            lacks the view.
        tokens: Token ids (b, L) and attention mask of the rows of this process, on the CPU, for the
            views in `Loss.tokens`; the mask is zero if a row lacks the view.
        device: The device of the embeddings.
        modules: Modules built by `Loss.module`, by loss name.
        processes: Communication for losses that compute on the rows of this process.
        precision: Autocast context of the encoder; losses are computed in full precision.
        teacher_weights: Teacher weights (K,) of the earlier loss named in `Loss.weights_from`, from
            the objective.
        vectors: Sentence vectors (B, width) by view, before the projector, over the global batch.
    """

    step: int = 0
    teachers: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    tokens: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    modules: Mapping[str, Any] = field(default_factory=dict)
    processes: Processes = field(default_factory=Processes)
    precision: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    teacher_weights: Tensor | None = None
    vectors: Mapping[str, Tensor] = field(default_factory=dict)

    def rows(self, present: Embeddings, *views: str) -> Tensor:
        """Return the numbers (n,) of the rows with all of these views, on the embeddings' device.

        Args:
            present: The masks given to the loss.
            *views: At least one view.
        """
        return move(self.host_rows(present, *views), self.device)

    def host_rows(self, present: Embeddings, *views: str) -> Tensor:
        """Return the row numbers of `rows` as a CPU tensor."""
        return torch.stack([present[view] for view in views]).all(dim=0).nonzero().squeeze(1)


@dataclass(frozen=True)
class LossOutput:
    """The result of a loss.

    Attributes:
        value: The unweighted loss, a scalar; zero if no row has the needed views.
        reports: Diagnostics for the log by name, such as an in-batch accuracy (detached scalars).
        teacher_weights: The teacher weights (K,) that the loss used, for losses that reuse them.
    """

    value: Tensor
    reports: Mapping[str, Tensor] = field(default_factory=dict)
    teacher_weights: Tensor | None = None


class LossModule(nn.Module):
    """Base class of the modules of losses.

    Attributes:
        learning_rate: Learning rate of the parameters; None for that of the encoder.
        digest: Hash of models that are used but not saved, which a resumed run must share with its
            start.
    """

    learning_rate: float | None = None
    digest: str = ""


@dataclass(frozen=True)
class LossBuildContext:
    """Inputs from which a loss builds its module, before the first step.

    Attributes:
        width: Size of the embeddings.
        encoder: The sentence encoder with its initial weights: features with `input_ids` and
            `attention_mask` to features with `sentence_embedding`.
        projector: Module from sentence vectors to embeddings.
        transformer: The transformer of the encoder; None if it has none.
        tokenizer: Tokenizer of the encoder.
        masked_lm: Function that loads a masked language model with the vocabulary of this tokenizer
            by name, in evaluation mode; the model maps `input_ids` and `attention_mask` to
            `logits`.
        with_pooler: Function that loads a transformer with this vocabulary and its pooler by name;
            the model maps `input_ids` and `attention_mask` to `pooler_output`.
        seed: Seed of the run.
    """

    width: int
    encoder: nn.Module
    projector: nn.Module
    transformer: nn.Module | None
    tokenizer: Any
    masked_lm: Callable[[str], nn.Module]
    with_pooler: Callable[[str], nn.Module] | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss as a pure function of embeddings, from which it returns its value and reports.

    In your own training loop, call it with tensors in the order of `views`:
    `InfoNCELoss(temperature=0.05)(anchor, twin).value.backward()`.

    A loss neither owns nor calls the encoder, so it can be tested against a plain transcription of
    its paper, computed on gathered embeddings of all processes, and combined with any other loss.
    If a loss has parameters or a memory, they are in its `module`, which is trained, clipped,
    checkpointed and synchronised together with the encoder.

    Attributes:
        kind: Name of the class in recipes.
        name: Name of the loss in logs and `--set`; by default its kind.
        weight: Factor in the objective.
    """

    kind: ClassVar[str]
    view_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that name the views: each a name, or a tuple of names or of pairs of them."""
    compares_embeddings: ClassVar[bool] = True
    """Whether the loss compares embeddings with each other, and so acts on truncated ones, too."""

    name: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)
        if not re.fullmatch(r"[\w-]+", self.name):
            raise ValueError(
                f"name must consist of letters, digits, '_' and '-', not '{self.name}'"
            )

    @property
    def views(self) -> tuple[str, ...]:
        """The views whose embeddings the loss reads, in the order of its `view_fields`."""
        named = [getattr(self, field) for field in self.view_fields]
        return tuple(dict.fromkeys(_names(named)))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teachers whose vectors of these views the loss reads."""
        return ()

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose token ids the loss reads too."""
        return ()

    @property
    def weights_from(self) -> str:
        """Name of the earlier loss whose teacher weights the loss reuses; empty for none."""
        return ""

    def module(self, build: LossBuildContext) -> LossModule | None:
        """Return the loss's parameters, frozen models and memory; `context.modules` has them."""
        return None

    def __call__(
        self,
        *embeddings: Tensor | Embeddings,
        present: Embeddings | None = None,
        context: Context | None = None,
    ) -> LossOutput:
        """Compute the loss of tensors in the order of `views`, in full precision.

        A surrounding autocast context has no effect.

        Args:
            *embeddings: Embeddings (B, d), one tensor for each of `views`, or a mapping by view.
            present: Masks as for `compute`; by default every row has every view.
            context: Further inputs, for losses that read teachers, tokens or modules.

        Raises:
            ValueError: There are more or fewer tensors than views.
        """
        if len(embeddings) == 1 and isinstance(embeddings[0], Mapping):
            given: Any = embeddings[0]
        elif len(embeddings) == len(self.views):
            given = dict(zip(self.views, embeddings, strict=True))
        else:
            raise ValueError(
                f"{len(embeddings)} tensors, but the views are {', '.join(self.views) or 'none'}"
            )
        named = {}
        masks = {}
        for view, vectors in given.items():
            if vectors.dtype != torch.float64:
                vectors = vectors.float()
            named[view] = vectors
            masks[view] = torch.ones(len(vectors), dtype=torch.bool)
        for view, mask in (present or {}).items():
            masks[view] = mask.cpu()
        # A loss that reads no embeddings, such as a penalty on weights, needs no device.
        device = next((vectors.device for vectors in named.values()), torch.device("cpu"))
        with torch.autocast(device.type, enabled=False):
            return self.compute(named, masks, replace(context or Context(), device=device))

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """Compute the loss of embeddings by view; this is the method that a loss implements.

        Args:
            embeddings: Embeddings by view, (B, d), fp32 or fp64, over the global batch.
            present: Boolean mask (B,) of the rows that have the view, by view; on the CPU, so that
                shapes which depend on it are known without waiting for a GPU. The embedding of an
                absent row is zero.
            context: Further inputs.

        Returns:
            The loss, differentiable with respect to the embeddings, and what the loss reports.
        """
        raise NotImplementedError

    def zero(self, embeddings: Embeddings) -> LossOutput:
        """Return a loss of zero with zero gradients, for a batch without the needed views."""
        sums = [embeddings[view].sum() for view in self.views]
        return LossOutput(torch.stack(sums).sum() * 0)


def _names(value: Any) -> Iterator[str]:
    """Yield the names in nested sequences."""
    if isinstance(value, str):
        yield value
    else:
        for item in value:
            yield from _names(item)


class Objective:
    """The weighted sum of losses, whose values are logged by name.

    Args:
        losses: The losses, with distinct names.
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.losses = tuple(losses)

    def __call__(
        self,
        embeddings: Embeddings,
        present: Embeddings,
        context: Context,
        truncated: Mapping[int, Embeddings] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the objective.

        Args:
            embeddings: As for `Loss.compute`.
            present: As for `Loss.compute`.
            context: As for `Loss.compute`.
            truncated: Embeddings by number of dimensions, the largest first. A loss that compares
                embeddings is then its sum over these (Matryoshka representation learning, Kusupati
                et al., 2022).

        Returns:
            The weighted sum, the unweighted value of each loss by name, and what the losses report,
            as `loss/report`.
        """
        outputs: dict[str, LossOutput] = {}
        for loss in self.losses:
            weights = None
            if loss.weights_from:
                weights = outputs[loss.weights_from].teacher_weights
            given = replace(context, teacher_weights=weights)
            if truncated and loss.compares_embeddings:
                outputs[loss.name] = _at_each_dimension(loss, truncated, present, given)
            else:
                outputs[loss.name] = loss.compute(embeddings, present, given)
        values = {name: output.value for name, output in outputs.items()}
        total = torch.stack([loss.weight * values[loss.name] for loss in self.losses]).sum()
        reports = {}
        for name, output in outputs.items():
            for key, report in output.reports.items():
                reports[f"{name}/{key}"] = report
        return total, values, reports


def _at_each_dimension(
    loss: Loss, truncated: Mapping[int, Embeddings], present: Embeddings, context: Context
) -> LossOutput:
    """Return the sum of a loss over several dimensions, with the reports of the first."""
    outputs: list[LossOutput] = []
    for embeddings in truncated.values():
        if outputs:
            context = replace(context, teacher_weights=outputs[0].teacher_weights)
        outputs.append(loss.compute(embeddings, present, context))
    total = torch.stack([output.value for output in outputs]).sum()
    reports = dict(outputs[0].reports)
    for size, output in zip(truncated, outputs, strict=True):
        reports[f"loss_{size}"] = output.value.detach()
    return replace(outputs[0], value=total, reports=reports)


class Frozen(nn.Module):
    """Container of a module that moves with the network, but is not trained, saved or synchronised.

    Its weights are read again at the start of every run, so checkpoints leave them out. The module
    keeps its mode (training or evaluation).

    Args:
        held: The module; its parameters will not require gradients.
    """

    def __init__(self, held: nn.Module) -> None:
        super().__init__()
        held.requires_grad_(False)
        # In a tuple, so that PyTorch does not register it.
        self._held = (held,)

    @property
    def module(self) -> nn.Module:
        """The contained module."""
        return self._held[0]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Frozen:
        self._held[0]._apply(fn, recurse)
        return cast(Frozen, super()._apply(fn, recurse))  # type: ignore[no-untyped-call]
