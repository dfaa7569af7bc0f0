"""Sentences of one batch laid end to end, so that no computation is spent on padding.

A batch padded to its longest sentence wastes a fifth (length cap 32, encyclopaedic text) to more than half (no cap) of
an encoder's work. Every layer but attention treats tokens one by one, so the batch can be one long row of real tokens;
only attention has to know where sentences end, and `opencse.encoder.attention` does. The hidden states are those of
the padded batch, up to rounding.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from opencse.foundation.tensors import move

ATTENTION = "opencse_dropout"
"""Name of `opencse.encoder.attention.dropout_attention` in transformers' registry."""


_MULTIPLE = 32
"""A packed row is filled up to a multiple of this. Matrix kernels are generated for each new shape, which takes as long
as a tenth of a small product: a few round shapes come again and again, where exact ones are always new."""
_LENGTH_STEP, _FEWEST = 16, 8
"""Sentences of one group of attention have lengths within one step, unless there are fewer than eight of them."""


@dataclass(frozen=True)
class SentenceGroup:
    """Sentences of similar length, one after another in a packed row, which attention pads to the longest of them.

    Attributes:
        cells: Number of tokens, which is that of cells in the packed row.
        mask: True for real tokens, (n, longest).
        slots: Cell of each token, counted from the group's first; 0 for padding, (n, longest).
        real: Index of each token in the flattened padded group, (cells,); None if nothing is padded.
    """

    cells: int
    mask: Tensor
    slots: Tensor
    real: Tensor | None

    @classmethod
    def of(cls, lengths: Tensor) -> SentenceGroup:
        """Lays out sentences of these lengths, (n,)."""
        mask = torch.arange(int(lengths.max()), device=lengths.device) < lengths[:, None]
        flat = mask.flatten()
        real = None if bool(flat.all()) else flat.nonzero()[:, 0]
        return cls(int(lengths.sum()), mask, ((flat.cumsum(0) - 1) * flat).view(mask.shape), real)


@dataclass(frozen=True)
class Sequences:
    """Where the sentences of a packed row begin, for kernels for sequences of varying length.

    Attributes:
        offsets: First cell of each sentence, and the number of cells, (sentences + 1,); cells of zeros at the end count
            as one more sentence, so that every cell belongs to one.
        longest: Cells of the longest sentence.
    """

    offsets: Tensor
    longest: int

    @classmethod
    def of(cls, lengths: Tensor) -> Sequences:
        """Sentences of these lengths (n,), on the CPU, in their order in the row."""
        lengths = torch.cat([lengths, -lengths.sum(0, keepdim=True) % _MULTIPLE])
        lengths = lengths[lengths > 0]  # the kernels refuse empty sentences
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        return cls(offsets, int(lengths.max()))

    def to(self, device: torch.device) -> Sequences:
        """The same sentences for a row on a device."""
        return Sequences(move(self.offsets, device), self.longest)


@dataclass(frozen=True)
class Packing:
    """Where each token of a padded (B, L) batch stands in the packed row of its real tokens.

    The row has T cells, a multiple of 32: the real tokens, shorter sentences first, then cells of zeros that nothing
    reads.

    Attributes:
        mask: True for real tokens, (B, L).
        tokens: Index of each real token in the flattened padded batch, (tokens,).
        groups: The sentences in their order in the row.
        sequences: Where they begin, for kernels that take no mask.
    """

    mask: Tensor
    tokens: Tensor
    groups: tuple[SentenceGroup, ...]
    sequences: Sequences | None = None

    @classmethod
    def of(cls, attention_mask: Tensor, sequences: bool = False) -> Packing:
        """Lays out a batch, given its attention mask (B, L) of 1 for real tokens and 0 for padding.

        Args:
            attention_mask: Should be on the CPU: the layout of one on a GPU would be waited for.
            sequences: Whether to note where the sentences stand.
        """
        mask = attention_mask.bool()
        lengths, order = mask.sum(1).sort(stable=True)
        cells = torch.arange(mask.numel(), device=mask.device).view(mask.shape)
        groups = tuple(SentenceGroup.of(part) for part in _similar(lengths))
        return cls(mask, cells[order][mask[order]], groups, Sequences.of(lengths) if sequences else None)

    def to(self, device: torch.device) -> Packing:
        """The same layout for a batch on a device whose kernels take no mask."""
        assert self.sequences is not None
        return Packing(move(self.mask, device), move(self.tokens, device), (), self.sequences.to(device))

    @property
    def positions(self) -> Tensor:
        """Position of each packed token within its sentence, from 0, (1, T)."""
        return self.pack(self.mask.long().cumsum(1) - 1)

    def pack(self, values: Tensor) -> Tensor:
        """Real tokens' values of a padded (B, L, ...) tensor as (1, T, ...)."""
        real = values.flatten(0, 1).index_select(0, self.tokens)
        filling = -len(real) % _MULTIPLE
        return torch.cat([real, real.new_zeros(filling, *real.shape[1:])]).unsqueeze(0)

    def unpack(self, values: Tensor) -> Tensor:
        """A packed (1, T, ...) tensor as padded (B, L, ...), zero at padding."""
        padded = values.new_zeros(self.mask.numel(), *values.shape[2:])
        real = values[0, : len(self.tokens)]
        return padded.index_copy(0, self.tokens, real).view(*self.mask.shape, *values.shape[2:])


def _similar(lengths: Tensor) -> list[Tensor]:
    """Split ascending lengths (B,) where the next multiple of 16 changes; a group has eight sentences, or is the last.

    The work of attention grows with the square of the length, so a batch padded to its longest sentence is mostly
    padding there. Groups of very few sentences would cost more calls than they save.
    """
    steps = (lengths + _LENGTH_STEP - 1) // _LENGTH_STEP
    cuts, begin = [], 0
    for end in (steps.diff().nonzero()[:, 0] + 1).tolist():
        if end - begin >= _FEWEST:
            cuts.append(end - begin)
            begin = end
    return list(lengths.split([*cuts, len(lengths) - begin]))


_given: ContextVar[tuple[Tensor, Packing] | None] = ContextVar("packing", default=None)


@contextlib.contextmanager
def packed_as(mask: Tensor, packing: Packing | None) -> Iterator[None]:
    """Tells encoders the layout of a batch, so that they need not read its mask.

    On an accelerator, only such batches are packed.

    Args:
        mask: The attention mask (B, L) of the batch: this very object is passed to the encoder.
        packing: Its layout, on the same device; None if it is not known.
    """
    token = _given.set(None if packing is None else (mask, packing))
    try:
        yield
    finally:
        _given.reset(token)


def first_position(model: nn.Module) -> int:
    """The first position id: RoBERTa and its relatives count from `padding_idx + 1`, all others from 0."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def _packed_forward(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The model's `forward`, of a packed batch where the one given can be packed."""
    forward = type(model).forward
    inputs = _pack_inputs(model, args, kwargs)
    if inputs is None:
        return forward(model, *args, **kwargs)
    return _unpack_outputs(model, inputs["packing"], forward(model, **inputs))


def _pack_inputs(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """A packed batch for a padded one, in training mode and where it is a plain one."""
    if len(args) == 1 and "input_ids" not in kwargs:  # as a model with a head calls its encoder
        kwargs = {"input_ids": args[0]} | kwargs
    elif args:
        return None
    ids, mask = kwargs.get("input_ids"), kwargs.get("attention_mask")
    if not model.training or not isinstance(ids, Tensor) or not isinstance(mask, Tensor):
        return None
    if kwargs.get("position_ids") is not None or kwargs.get("return_dict") is False:
        return None
    packing = _layout(ids, mask)
    if packing is None:
        return None
    packed = {name: value for name, value in kwargs.items() if name != "attention_mask"}
    for name in ("input_ids", "token_type_ids"):
        if isinstance(packed.get(name), Tensor):
            packed[name] = packing.pack(packed[name])
    return packed | {"position_ids": packing.positions + first_position(model), "packing": packing}


def _layout(ids: Tensor, mask: Tensor) -> Packing | None:
    """The given layout of this mask, or on a CPU its own; None where nothing is to be packed."""
    given = _given.get()
    if given is not None and given[0] is mask:
        return given[1]
    if ids.device.type != "cpu" or ids.shape != mask.shape or bool(mask.all()):
        return None
    return Packing.of(mask)


def _unpack_outputs(model: nn.Module, packing: Packing, output: Any) -> Any:
    """Return the output of a packed batch, padded again."""
    output["last_hidden_state"] = packing.unpack(output.last_hidden_state)
    if output.get("hidden_states") is not None:
        output["hidden_states"] = tuple(packing.unpack(layer) for layer in output.hidden_states)
    if output.get("pooler_output") is not None:
        output["pooler_output"] = model.pooler(output.last_hidden_state)  # type: ignore[operator]
    return output


def is_packed(model: nn.Module) -> bool:
    """Whether `use_packing` was applied to it, or to what it is a copy of."""
    return getattr(vars(model).get("forward"), "__func__", None) is _packed_forward


def use_packing(model: nn.Module) -> bool:
    """Makes `model` compute real tokens only when it trains, in place; callers see no difference.

    They go on passing a padded batch by keyword, `model(input_ids=..., attention_mask=...)`, and get padded hidden
    states back, zero at padding. On an accelerator, batches are packed only inside `packed_as`. The model's `forward`
    itself is replaced: sentence-transformers calls that, past all hooks.

    Args:
        model: A transformers encoder, after `opencse.encoder.attention.use_dropout_attention`.

    Returns:
        False, and nothing changed, where `supports_packing` is False.
    """
    if is_packed(model):
        return True
    if not supports_packing(model):
        return False
    model.forward = MethodType(_packed_forward, model)  # a copy of the model gets one of its own
    return True


@torch.no_grad()
def supports_packing(model: nn.Module) -> bool:
    """Whether a packed batch gives this model's own hidden states: tried out, not assumed.

    Args:
        model: A transformers encoder, after `opencse.encoder.attention.use_dropout_attention`.

    Returns:
        False for models whose attention does not receive the layout (MPNet, DeBERTa), that have no position ids to
        set, whose `forward` something else has replaced, or that attend within a window (ModernBERT): sentences of one
        row would see each other.
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "_attn_implementation", None) != ATTENTION:
        return False
    if "forward" in vars(model) and not is_packed(model):
        return False
    if "position_ids" not in inspect.signature(type(model).forward).parameters:
        return False
    if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
        return False
    words = [i for i in range(7) if i != config.pad_token_id][:6]
    device = next(model.parameters()).device
    ids, mask = torch.tensor(words, device=device).view(2, 3), torch.tensor([[1, 1, 1], [1, 1, 0]], device=device)
    training = model.training
    model.eval()
    try:
        padded = model(input_ids=ids, attention_mask=mask).last_hidden_state
        packing = Packing.of(mask)
        positions = packing.positions + first_position(model)
        row = model(input_ids=packing.pack(ids), position_ids=positions, packing=packing).last_hidden_state
    except TypeError:  # a forward that passes no further arguments on
        return False
    finally:
        model.train(training)
    return torch.allclose(packing.unpack(row)[packing.mask], padded[packing.mask], rtol=1e-3, atol=1e-4)
