"""Dropout rates of a model, and dropout on CPUs many times as fast as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Fields of transformers' configurations that set dropout in the encoder itself, not in task heads.
_CONFIG_FIELDS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "hidden_dropout",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
)
# Modules that keep an attention dropout rate as a plain number, not as an nn.Dropout (ModernBERT,
# NomicBERT, EuroBERT).
_RATE_ATTRIBUTE = "attention_dropout"


def _slots(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """Return every (module, attribute) of `model` that holds a dropout rate."""
    slots: list[tuple[nn.Module, str]] = []
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            slots.append((module, "p"))
        elif isinstance(getattr(module, _RATE_ATTRIBUTE, None), float | int):
            slots.append((module, _RATE_ATTRIBUTE))
    return slots


def dropout_rates(model: nn.Module) -> list[float]:
    """Return the rates of all dropouts of a model, attention included, in module order.

    If all are 0 (or there are none), two passes of one sentence are identical and contrastive
    training without other views cannot work.
    """
    return [float(getattr(*slot)) for slot in _slots(model)]


@contextmanager
def dropout_rate(model: nn.Module, p: float | None) -> Iterator[None]:
    """Set the rate of *all* dropouts of a model, attention included, in a `with` block.

    HiNCE gives its hard-negative view another rate than the other views; a view may also have none.

    Args:
        model: Any module.
        p: Rate in [0, 1]; None leaves the model's own rates.
    """
    slots: list[tuple[nn.Module, str, float]] = []
    if p is not None:
        slots = [(module, name, p) for module, name in _slots(model)]
    with _rates(slots):
        yield


@contextmanager
def _rates(slots: list[tuple[nn.Module, str, float]]) -> Iterator[None]:
    """Set rates by (module, attribute, rate) in a `with` block, and restore the old ones."""
    before = [(module, name, getattr(module, name)) for module, name, _ in slots]
    try:
        for module, name, rate in slots:
            setattr(module, name, rate)
        yield
    finally:
        for module, name, rate in before:
            setattr(module, name, rate)


def checkpoint_contexts(model: nn.Module) -> Callable[[], tuple[AbstractContextManager[None], ...]]:
    """Return the `context_fn` that recomputes a checkpoint at the same dropout rates."""

    def contexts() -> tuple[AbstractContextManager[None], ...]:
        # The rates of the first pass, which may have changed when it is computed again.
        current = [(module, name, getattr(module, name)) for module, name in _slots(model)]
        return nullcontext(), _rates(current)

    return contexts


def dropout_config_overrides(config: Any, p: float) -> dict[str, float]:
    """Return the configuration fields of dropout, to be set *before* the model is built.

    Some models (ModernBERT) replace a dropout of rate 0 by `nn.Identity` when they are built, so
    that it cannot be raised afterwards.

    Args:
        config: A transformers configuration.
        p: Rate in [0, 1].

    Returns:
        Field names and values for `from_pretrained(..., **overrides)`; empty if the configuration
        knows no dropout.
    """
    overrides = {}
    for name in _CONFIG_FIELDS:
        if isinstance(getattr(config, name, None), float | int):
            overrides[name] = p
    return overrides


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, without dropout, and restore every module's mode after."""
    with ExitStack() as stack:
        for module in model.modules():
            if module.training:
                stack.callback(setattr, module, "training", True)
                module.training = False
        yield


def set_rates(model: nn.Module, p: float) -> None:
    """Set the rate of all dropouts of a module, attention included; its configuration stays."""
    for module, name in _slots(model):
        setattr(module, name, p)


# Probabilities are multiples of 1 / 65,536, because each element takes 16 random bits.
_LEVELS = 1 << 16


class _Dropout(torch.autograd.Function):
    """Dropout of a CPU tensor with a mask of int16: 0 to drop, -1 (all bits set) to keep."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        dropped = min(max(round(p * _LEVELS), 1), _LEVELS - 1)
        seed = int(torch.randint(2**63 - 1, (), device="cpu"))
        # Each 64-bit word gives four masks of 16 bits.
        words = np.random.SFC64(seed).random_raw((x.numel() + 3) // 4)
        draws = torch.from_numpy(words.view(np.int16))[: x.numel()]
        # Comparing into the integers themselves is vectorized; into booleans it would not be.
        kept = torch.ge(draws, dropped - _LEVELS // 2, out=draws)
        mask = kept.neg_().view(x.shape)
        ctx.save_for_backward(mask)
        ctx.scale = _LEVELS / (_LEVELS - dropped)
        return _masked(x, mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _masked(gradients[0], ctx.saved_tensors[0]).mul_(ctx.scale), None


def _masked(x: Tensor, mask: Tensor) -> Tensor:
    """Return a copy that is zero where the mask is 0; its other values, -1, are all bits set."""
    if x.dtype == torch.float32:
        return x.view(torch.int32).bitwise_and(mask.to(torch.int32)).view(x.dtype)
    if x.element_size() == 2:
        return x.view(torch.int16).bitwise_and(mask).view(x.dtype)
    return x * mask.neg().to(x.dtype)


def fast_dropout(x: Tensor, p: float) -> Tensor:
    """Return `x` with each element zeroed with probability p, to within 2^-17, and the rest scaled.

    PyTorch draws a CPU's masks one element at a time, which takes a sixth of a training step in
    bf16; here an element takes 16 random bits. Each call takes one seed from PyTorch's global
    generator. So `torch.manual_seed`, checkpoints and recomputed activations work as usual, with
    any number of threads.
    """
    # A compiler cannot follow NumPy's generator.
    if not 0 < p < 1 or x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p)
    dropped: Tensor = _Dropout.apply(x, p)  # type: ignore[no-untyped-call]
    return dropped


class FastDropout(nn.Dropout):
    """`nn.Dropout` by `fast_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Zero elements in training mode."""
        return fast_dropout(input, self.p) if self.training else input


def use_fast_dropout(model: nn.Module) -> None:
    """Turn every plain `nn.Dropout` in a model into `FastDropout`, in place."""
    for module in model.modules():
        if type(module) is nn.Dropout and not module.inplace:
            module.__class__ = FastDropout
