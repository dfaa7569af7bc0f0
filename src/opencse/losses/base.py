"""The base class of losses, and the objective, their weighted sum."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn

from opencse.foundation.draws import RowDraws
from opencse.foundation.errors import OpencseError
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
        all_rows: Function that returns a tensor (B, ...) over the global batch as it is, for losses
            that compare their own rows with all rows; its backward pass adds the gradients of all
            processes.
        gather: Function from the part of this process (b, ...) to the global tensor, without a
            gradient.
        gather_trained: The same with a gradient, for vectors of a loss's own network.
        mean: Function from sum and count of this process (scalars, or vectors of several) to the
            mean over all processes, with its gradient; 0 if the count is 0.
        total: Function from a tensor of this process to its sum over all processes, without a
            gradient.
    """

    own_rows: Callable[[Tensor], Tensor] = lambda rows: rows
    all_rows: Callable[[Tensor], Tensor] = lambda rows: rows
    gather: Callable[[Tensor], Tensor] = lambda rows: rows.detach()
    gather_trained: Callable[[Tensor], Tensor] = lambda rows: rows
    mean: Callable[[Tensor, Tensor], Tensor] = lambda total, count: total / count.clamp(min=1)
    total: Callable[[Tensor], Tensor] = lambda part: part.detach()


@dataclass(frozen=True)
class TokenOutputs:
    """What the encoder gives for each token of a view, in the rows of this process.

    Attributes:
        vectors: Vectors (T, width) of all tokens, special ones included, in full precision.
        rows: Row of each token among the rows of this process, (T,), on the device of the vectors.
    """

    vectors: Tensor
    rows: Tensor


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
        draws: Random numbers of the rows of this process; None if the rows are unknown.
        token_outputs: The encoder's output at each token, for the views in `Loss.token_outputs`.
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
    draws: RowDraws | None = None
    token_outputs: Mapping[str, TokenOutputs] = field(default_factory=dict)

    def draws_for(self, purpose: str, rows: int) -> RowDraws:
        """Return random numbers for the rows of this process.

        They are functions of seed, step and row, so that any number of processes draws the same. If
        the rows are unknown, as in a loop of your own, they come from PyTorch's generator.

        Args:
            purpose: What they are for, such as the name of the loss. Other purposes get other
                numbers.
            rows: Number of rows.
        """
        draws = self.draws
        if draws is None:
            draws = RowDraws.from_generator(rows)
        return draws.for_purpose(purpose)

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
        value: The loss, a scalar; zero if no row has the needed views. `Loss.compute` returns it
            unweighted; calling a loss multiplies it by `Loss.weight`.
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

    def zero(self) -> Tensor:
        """Return a zero that every parameter has a gradient of, as it would seem unused without one."""
        return torch.stack([weight.sum() for weight in self.parameters()]).sum() * 0

    def observe(self, total: Tensor, context: Context) -> None:
        """Receive the objective of a step, for modules that learn from it; by default do nothing."""


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

    A loss that draws random numbers draws those of the training step, so that a run can be
    resumed. In your own loop, pass the number of the step: `loss(anchor, twin, step=step)`.

    Attributes:
        kind: Name of the class in recipes.
        name: Name of the loss in logs and `--set`; by default its kind.
        weight: Factor in the objective, and of the value if the loss is called.
    """

    kind: ClassVar[str]
    view_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that name the views: each a name, or a tuple of names or of pairs of them."""
    compares_embeddings: ClassVar[bool] = True
    """Whether the loss compares embeddings with each other, and so acts on truncated ones, too."""

    name: str = ""
    weight: float = 1.0

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Check the class, before its fields are read."""
        # Before the arguments are read: without the decorator, the fields are unknown.
        cls.check_class()
        return super().__new__(cls)

    @classmethod
    def check_class(cls) -> None:
        """Check that the class of a loss is complete.

        Raises:
            OpencseError: It has no `kind`, or fields without `@dataclass`.
        """
        if not isinstance(getattr(cls, "kind", None), str):
            raise OpencseError(
                f"the loss {cls.__name__} has no kind",
                'Add a line such as `kind = "my_loss"` to the class.',
            )
        known = {field.name for field in fields(cls)}
        for name, hint in vars(cls).get("__annotations__", {}).items():
            if name not in known and "ClassVar" not in str(hint):
                raise OpencseError(
                    f"the loss {cls.__name__} has the setting '{name}', but is no dataclass",
                    "Write @dataclass(frozen=True, kw_only=True) above the class.",
                )

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
    def token_outputs(self) -> tuple[str, ...]:
        """The views of which the loss reads the encoder's output at each token too."""
        return ()

    @property
    def needs_complete_batch(self) -> bool:
        """Whether the loss of a batch is not an average over its parts even if the rows are alone.

        Such as one with statistics over the batch. Gradients of several batches are then not
        averaged (`training.accumulation_steps`).
        """
        return False

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
        step: int | None = None,
    ) -> LossOutput:
        """Compute the weighted loss of tensors in the order of `views`, in full precision.

        A surrounding autocast context has no effect.

        Args:
            *embeddings: Embeddings (B, d), one tensor for each of `views`, or a mapping by view.
            present: Masks as for `compute`; by default every row has every view.
            context: Further inputs, for losses that read teachers, tokens or modules.
            step: Number of the training step, from 0. A loss that draws random numbers, such as
                `DCLRLoss`, draws others at each step; without it, it repeats those of step 0.

        Raises:
            ValueError: There are more or fewer tensors than views, or they have different numbers
                of rows.
            OpencseError: The loss does not return a `LossOutput` of tensors.
        """
        if len(embeddings) == 1 and isinstance(embeddings[0], Mapping):
            given: Any = embeddings[0]
        elif len(embeddings) == len(self.views):
            given = dict(zip(self.views, embeddings, strict=True))
        else:
            raise ValueError(
                f"loss '{self.name}': {len(embeddings)} tensors, but the views are "
                f"{', '.join(self.views) or 'none'}"
            )
        _check_rows(self, given)
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
        inputs = replace(context or Context(), device=device)
        if step is not None:
            inputs = replace(inputs, step=step)
        with torch.autocast(device.type, enabled=False):
            output = computed(self, named, masks, inputs)
        return replace(output, value=self.weight * output.value)

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


def _check_rows(loss: Loss, embeddings: Mapping[str, Tensor]) -> None:
    """Check that all views have equally many rows.

    Raises:
        ValueError: They have not.
    """
    counts = {view: len(vectors) for view, vectors in embeddings.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{view} {count}" for view, count in counts.items())
        raise ValueError(
            f"loss '{loss.name}': the views have different numbers of rows ({listed}). Give each view "
            "one row per sentence; if a row lacks a view, give zeros, and its mask in `present`."
        )


def check_is_loss(given: Any, name: str = "") -> None:
    """Check that something is the class of a loss.

    Args:
        given: What was registered, or the class of what was given.
        name: Its name in recipes.

    Raises:
        OpencseError: It is something else, such as a plain `nn.Module`; the message names it and the
            fix.
    """
    if isinstance(given, type) and issubclass(given, Loss):
        return
    called = getattr(given, "__name__", type(given).__name__)
    problem = f"the loss {called} is no opencse.losses.Loss"
    if name:
        problem = f"the loss '{name}' ({called}) is no opencse.losses.Loss"
    remedy = "Derive its class from Loss, and compute the value in its method `compute`."
    if isinstance(given, type) and issubclass(given, nn.Module):
        remedy += " Its method `module` returns what has parameters."
    raise OpencseError(problem, remedy)


def computed(
    loss: Loss, embeddings: Embeddings, present: Embeddings, context: Context
) -> LossOutput:
    """Return what `Loss.compute` returns, checked.

    Raises:
        OpencseError: It fails in a loss from outside the package, or returns something else; the
            message names the loss and the fix.
    """
    try:
        output = loss.compute(embeddings, present, context)
    except _MISTAKES as error:
        ours = type(loss).__module__.startswith("opencse.")
        if ours or isinstance(error, torch.OutOfMemoryError):
            raise
        raise _failed(loss, embeddings, error) from error
    return checked_output(loss, output)


_MISTAKES = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, NameError)


def _failed(loss: Loss, embeddings: Embeddings, error: Exception) -> OpencseError:
    """Return the error for a loss whose `compute` fails, with the line that fails."""
    lines = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "/torch/" not in frame.filename
    ]
    place = ""
    if lines:
        place = f" in {Path(lines[-1].filename).name}, line {lines[-1].lineno}"
    shapes = ", ".join(f"{view} {tuple(rows.shape)}" for view, rows in embeddings.items())
    remedy = f"It got {shapes}."
    if isinstance(error, RuntimeError | IndexError):
        remedy += (
            " If views lack different rows, take those that have all of them: "
            "rows = context.rows(present, *self.views)."
        )
    return OpencseError(
        f"loss '{loss.name}': compute fails{place} ({type(error).__name__}: {error})", remedy
    )


def checked_output(loss: Loss, output: Any) -> LossOutput:
    """Return what a loss computed, if it is a `LossOutput` of tensors.

    Raises:
        OpencseError: It is something else; the message names the loss and the fix.
    """
    if not isinstance(output, LossOutput):
        raise OpencseError(
            f"loss '{loss.name}': compute returned {_described(output)}",
            "Return LossOutput(value).",
        )
    if not isinstance(output.value, Tensor) or output.value.numel() != 1:
        raise OpencseError(
            f"loss '{loss.name}': the value is {_described(output.value)}, not a scalar tensor",
            "Average over the rows, such as losses.mean().",
        )
    for key, report in output.reports.items():
        if not isinstance(report, Tensor):
            raise OpencseError(
                f"loss '{loss.name}': the report '{key}' is {_described(report)}, not a tensor",
                "Report the tensor itself, such as accuracy.detach() instead of accuracy.item().",
            )
    return output


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"of the type {type(value).__name__}"


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
        for loss in losses:
            check_is_loss(type(loss))
        self.losses = tuple(losses)

    @property
    def token_outputs(self) -> tuple[str, ...]:
        """The views of which a loss reads the encoder's output at each token."""
        views: dict[str, None] = {}
        for loss in self.losses:
            views |= dict.fromkeys(loss.token_outputs)
        return tuple(views)

    def __call__(
        self,
        embeddings: Embeddings,
        present: Embeddings | None = None,
        context: Context | None = None,
        truncated: Mapping[int, Embeddings] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the objective.

        Args:
            embeddings: As for `Loss.compute`.
            present: As for `Loss.compute`; by default every row has every view.
            context: As for `Loss.compute`.
            truncated: Embeddings by number of dimensions, the largest first. A loss that compares
                embeddings is then its sum over these (Matryoshka representation learning, Kusupati
                et al., 2022).

        Returns:
            The weighted sum, the unweighted value of each loss by name, and what the losses report,
            as `loss/report`.
        """
        if context is None:
            device = next((v.device for v in embeddings.values()), torch.device("cpu"))
            context = Context(device=device)
        if present is None:
            present = {
                view: torch.ones(len(vectors), dtype=torch.bool)
                for view, vectors in embeddings.items()
            }
        outputs: dict[str, LossOutput] = {}
        for loss in self.losses:
            weights = None
            if loss.weights_from:
                weights = outputs[loss.weights_from].teacher_weights
            given = replace(context, teacher_weights=weights)
            if truncated and loss.compares_embeddings:
                outputs[loss.name] = _at_each_dimension(loss, truncated, present, given)
            else:
                outputs[loss.name] = computed(loss, embeddings, present, given)
        values = {name: output.value for name, output in outputs.items()}
        total = torch.stack([loss.weight * values[loss.name] for loss in self.losses]).sum()
        trains = torch.is_grad_enabled() and any(v.requires_grad for v in embeddings.values())
        if trains and not total.requires_grad:
            names = ", ".join(f"'{name}'" for name in values)
            raise OpencseError(
                f"the value of {names} has no gradient, so nothing can be trained",
                "Compute it from the embeddings, without detach(), item() or NumPy.",
            )
        for module in context.modules.values():
            if isinstance(module, LossModule):
                module.observe(total, context)
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
        outputs.append(computed(loss, embeddings, present, context))
    total = torch.stack([output.value for output in outputs]).sum()
    reports = dict(outputs[0].reports)
    for size, output in zip(truncated, outputs, strict=True):
        reports[f"loss_{size}"] = output.value.detach()
    return replace(outputs[0], value=total, reports=reports)


def own_positions(rows: Tensor, size: int, context: Context) -> Tensor:
    """Return the positions in `rows` of the rows that belong to this process, (m,), on the CPU.

    Args:
        rows: Numbers of rows of the batch, (n,), on the CPU.
        size: Number of rows of the batch.
        context: As given to the loss.
    """
    numbers = context.processes.own_rows(torch.arange(size, device="cpu"))
    return torch.isin(rows, numbers).nonzero().squeeze(1)


def global_mean(total: Tensor, count: int, context: Context) -> Tensor:
    """Return a mean over all processes from the sum and the count of this process.

    Args:
        total: The sum, a scalar.
        count: The number of values in it, which differs from process to process.
        context: As given to the loss.
    """
    return context.processes.mean(total, total.new_full((), float(count)))


def mean_reports(sums: Mapping[str, tuple[Tensor, int]], context: Context) -> dict[str, Tensor]:
    """Return means over all processes from the sums and counts of this process, by name.

    Args:
        sums: Scalars of one type, each with the number that it is divided by.
        context: As given to the loss.
    """
    totals = torch.stack([total for total, _ in sums.values()])
    divisors = [float(count) for _, count in sums.values()]
    counts = torch.tensor(divisors, dtype=totals.dtype, device="cpu")
    # All at once, because each mean is a message between the processes.
    means = context.processes.mean(totals, move(counts, totals.device))
    return dict(zip(sums, means.unbind(), strict=True))


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
