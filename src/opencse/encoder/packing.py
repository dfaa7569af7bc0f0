"""Sentences of one batch laid end to end, so that no time is spent on padding.

A batch padded to its longest sentence wastes a fifth (length cap 32, encyclopaedic text) to more
than half (no cap) of an encoder's work. Every layer but attention treats tokens one by one, so the
batch can be one long row of real tokens. Attention pads sentences of similar length to one another
and calls PyTorch's kernel; it is registered through transformers' `AttentionInterface`, so that no
model code is forked. The hidden states are those of the padded batch, up to rounding.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import MethodType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from opencse.encoder.dropout import evaluation_mode, fast_dropout, use_fast_dropout
from opencse.foundation.tensors import move

ATTENTION = "opencse_packed"
"""Name of `packed_attention` in transformers' registry."""


# A packed row is filled up to a multiple of this. Matrix kernels are generated for each new shape,
# which takes as long as a tenth of a small product. Round shapes come again and again, exact ones
# are always new.
_MULTIPLE = 32
# Sentences of one group of attention have lengths within one step of this many tokens ...
_LENGTH_STEP = 16
# ... or of this many on an accelerator, where launching a group's kernels takes longer than the
# padding of short sentences ...
ACCELERATOR_STEP = 64
# ... unless the group would have fewer sentences than this.
_FEWEST = 8


class _SentenceGroup(NamedTuple):
    """Sentences of similar length, which attention pads to the longest of them.

    Attributes:
        mask: True for real tokens, (n, longest).
        cells: Cell of each token in the packed row; 0 for padding, (n, longest).
    """

    mask: Tensor
    cells: Tensor


@dataclass(frozen=True)
class Packing:
    """Where each token of a padded (B, L) batch stands in the packed row of its real tokens.

    The row has T cells, a multiple of 32: the real tokens in the order of the batch, then cells that
    nothing reads.

    Attributes:
        mask: True for real tokens, (B, L).
        tokens: Index of each real token in the flattened padded batch, (tokens,).
        groups: The sentences by length.
        places: Index of the token of each cell in the joined, flattened groups, (T,); 0 for cells
            that nothing reads.
    """

    mask: Tensor
    tokens: Tensor
    groups: tuple[_SentenceGroup, ...]
    places: Tensor

    @classmethod
    def of(cls, attention_mask: Tensor, step: int = _LENGTH_STEP) -> Packing:
        """Lay out a batch.

        Args:
            attention_mask: 1 for real tokens and 0 for padding, (B, L). It should be on the CPU; the
                process would wait for one on a GPU.
            step: Difference in length of the sentences of a group, in tokens.
        """
        mask = attention_mask.bool()
        lengths = mask.sum(1)
        starts = lengths.cumsum(0) - lengths
        groups = []
        for rows in _similar(lengths, step):
            offsets = torch.arange(int(lengths[rows].max()), device=lengths.device)
            real = offsets < lengths[rows, None]
            cells = (starts[rows, None] + offsets) * real
            groups.append(_SentenceGroup(real, cells))
        all_cells = torch.cat([group.cells.flatten() for group in groups])
        all_real = _true_places(torch.cat([group.mask.flatten() for group in groups]))
        tokens = _true_places(mask)
        places = tokens.new_zeros(len(tokens) + -len(tokens) % _MULTIPLE)
        places[all_cells[all_real]] = all_real
        return cls(mask, tokens, tuple(groups), places)

    def to(self, device: torch.device) -> Packing:
        """Return the same layout for a batch on a device."""
        groups = []
        for group in self.groups:
            moved = [move(tensor, device) for tensor in group]
            groups.append(_SentenceGroup(*moved))
        return Packing(
            mask=move(self.mask, device),
            tokens=move(self.tokens, device),
            groups=tuple(groups),
            places=move(self.places, device),
        )

    @property
    def positions(self) -> Tensor:
        """Position of each packed token within its sentence, from 0, (1, T)."""
        return self.pack(self.mask.long().cumsum(1) - 1)

    def pack(self, values: Tensor) -> Tensor:
        """Return the real tokens' values of a padded (B, L, ...) tensor as (1, T, ...)."""
        return _filled(values.flatten(0, 1).index_select(0, self.tokens))

    def unpack(self, values: Tensor) -> Tensor:
        """Return a packed (1, T, ...) tensor as padded (B, L, ...), zero at padding."""
        padded = values.new_zeros(self.mask.numel(), *values.shape[2:])
        real = values[0, : len(self.tokens)]
        return padded.index_copy(0, self.tokens, real).view(*self.mask.shape, *values.shape[2:])

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None
    ) -> Tensor:
        """Return attention within each sentence, (1, T, H, d), from projections (1, H, T, d)."""
        # Together, because each indexing is a launch: (T, 3, H, d).
        rows = torch.stack([projection[0].transpose(0, 1) for projection in (query, key, value)], 1)
        outputs = []
        for group in self.groups:
            padded = rows.index_select(0, group.cells.flatten()).unflatten(0, group.cells.shape)
            q, k, v = padded.permute(2, 0, 3, 1, 4)
            mask = group.mask[:, None, None, :]
            if dropout and q.device.type == "cpu":
                mixed = _attention_with_dropout(q, k, v, mask, dropout, scaling)
            else:
                mixed = F.scaled_dot_product_attention(
                    q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling
                )
            outputs.append(mixed.transpose(1, 2).flatten(0, 1))
        joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return joined.index_select(0, self.places).unsqueeze(0)


def _attention_with_dropout(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float, scaling: float | None
) -> Tensor:
    """Return attention with fast dropout masks.

    With dropout on a CPU, PyTorch's own attention takes its slowest path and draws slow masks.
    """
    if scaling is None:
        scaling = q.shape[-1] ** -0.5
    scores = (q * scaling) @ k.transpose(2, 3)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1).to(v.dtype)
    return fast_dropout(weights, dropout) @ v


def _true_places(mask: Tensor) -> Tensor:
    """Return the indices of the true cells of a flattened mask."""
    return mask.flatten().nonzero()[:, 0]


def _filled(real: Tensor) -> Tensor:
    """Return the values of all real tokens (tokens, ...) as a packed row (1, T, ...)."""
    zeros = real.new_zeros(-len(real) % _MULTIPLE, *real.shape[1:])
    return torch.cat([real, zeros]).unsqueeze(0)


def _similar(lengths: Tensor, step: int) -> list[Tensor]:
    """Return rows (B,) of ascending length, split where the next multiple of the step changes.

    A group has eight sentences, or is the last; empty sentences are in none. The work of attention
    grows with the square of the length, so a batch padded to its longest sentence is mostly padding
    there. Groups of very few sentences would cost more calls than they save.
    """
    ascending, rows = lengths.sort(stable=True)
    empty = int((ascending == 0).sum())
    ascending = ascending[empty:]
    rows = rows[empty:]
    steps = (ascending + step - 1) // step
    changes = steps.diff().nonzero()[:, 0] + 1
    sizes = []
    begin = 0
    for end in changes.tolist():
        if end - begin >= _FEWEST:
            sizes.append(end - begin)
            begin = end
    sizes.append(len(rows) - begin)
    return list(rows.split(sizes))


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *args: Any,
    packing: Packing | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention as transformers' `AttentionInterface` asks for, also of packed batches.

    Returns:
        (B, L, H, d), or (1, T, H, d) for a row of T cells with its layout `packing`; and None in
        place of attention weights.
    """
    if packing is not None:
        dropout = kwargs.get("dropout", 0.0)
        return packing.attend(query, key, value, dropout, kwargs.get("scaling")), None
    out: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, *args, **kwargs)
    return out


def attention_mask(*, attention_mask: Tensor | None = None, **kwargs: Any) -> Tensor | None:
    """Make masks as transformers' `AttentionMaskInterface` asks for.

    transformers leaves the mask out if it is all ones, which it must read from the device. That
    pays off if all texts of a batch have one length, as in inference (`opencse.encoder.embedder`),
    but not in a training step.
    """
    on_accelerator = attention_mask is not None and attention_mask.device.type != "cpu"
    if on_accelerator and not torch.is_inference_mode_enabled():
        kwargs["allow_is_bidirectional_skip"] = False
    mask: Tensor | None = sdpa_mask(attention_mask=attention_mask, **kwargs)
    return mask


AttentionInterface.register(ATTENTION, packed_attention)
AttentionMaskInterface.register(ATTENTION, attention_mask)


def use_packed_attention(model: nn.Module) -> bool:
    """Switch a transformers encoder to this attention, in place.

    Returns:
        False, and nothing changed, for models that do not go through `AttentionInterface` (MPNet,
        DeBERTa), and if another attention than PyTorch's was chosen (`eager`, for example).
    """
    config: Any = model.config
    supported = getattr(model, "_supports_attention_backend", False)
    if config._attn_implementation == "sdpa" and supported:
        model.set_attn_implementation(ATTENTION)  # type: ignore[operator]
    return bool(config._attn_implementation == ATTENTION)


def first_position(model: nn.Module) -> int:
    """Return the first position id: `padding_idx + 1` for RoBERTa and the like, otherwise 0."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    if padding is None:
        return 0
    return int(padding) + 1


def _packed_forward(
    model: nn.Module, *args: Any, packing: Packing | None = None, **kwargs: Any
) -> Any:
    """Run a model's own `forward`, on a packed batch if it is called plainly in training mode."""
    forward = type(model).forward
    if len(args) == 1 and "input_ids" not in kwargs:
        # A model with a head passes its encoder the ids by position.
        kwargs = {"input_ids": args[0]} | kwargs
        args = ()
    if not model.training or args or not _is_plain_call(kwargs):
        return forward(model, *args, **kwargs)
    ids = kwargs["input_ids"]
    mask = kwargs["attention_mask"]
    same_shape = ids.device.type == "cpu" and ids.shape == mask.shape
    if packing is None and same_shape and not mask.all():
        packing = Packing.of(mask)
    if packing is None:
        return forward(model, *args, **kwargs)

    del kwargs["attention_mask"]
    for name in ("input_ids", "token_type_ids"):
        if isinstance(kwargs.get(name), Tensor):
            kwargs[name] = packing.pack(kwargs[name])
    positions = packing.positions + first_position(model)
    output = forward(model, **kwargs, position_ids=positions, packing=packing)
    output["last_hidden_state"] = packing.unpack(output.last_hidden_state)
    if output.get("hidden_states") is not None:
        layers = [packing.unpack(layer) for layer in output.hidden_states]
        output["hidden_states"] = tuple(layers)
    if output.get("pooler_output") is not None:
        # The model pooled the packed row, whose first token is that of the first sentence only.
        output["pooler_output"] = model.pooler(output.last_hidden_state)  # type: ignore[operator]
    return output


def _is_plain_call(kwargs: dict[str, Any]) -> bool:
    """Return whether a call gives ids and a mask, and no positions or tuple output."""
    if kwargs.get("position_ids") is not None or kwargs.get("return_dict") is False:
        return False
    ids = kwargs.get("input_ids")
    mask = kwargs.get("attention_mask")
    return isinstance(ids, Tensor) and isinstance(mask, Tensor)


def prepare_for_training(encoder: nn.Module, *, packed: bool = True) -> bool:
    """Let the encoders in a module compute real tokens only when they train, in place.

    Weights, state dicts and saved configurations stay the same, and so do results without dropout,
    up to rounding.

    Args:
        encoder: A `SentenceTransformer`, a transformers encoder or a module with such encoders.
        packed: Compute batches packed. Otherwise only dropout and attention are replaced, and
            batches stay padded, as a compiler needs them: packed ones all differ in shape.

    Returns:
        Whether all transformers in `encoder` compute packed batches; if not, groups of
        similar length (`opencse.training.batches`) are the next best way to reduce padding.
    """
    use_fast_dropout(encoder)
    layouts = []
    for module in encoder.modules():
        # A model with a task head has its encoder as another module, which has the embeddings.
        if isinstance(module, PreTrainedModel) and hasattr(module, "embeddings"):
            possible = use_packed_attention(module)
            layouts.append(possible and packed and use_packing(module))
    return bool(layouts) and all(layouts)


def use_packing(model: nn.Module) -> bool:
    """Make a transformers encoder compute real tokens only when it trains, in place.

    Callers see no difference: they pass a padded batch by keyword,
    `model(input_ids=..., attention_mask=...)`, and get padded hidden states back, zero at padding.
    On an accelerator, a batch is packed only if its layout is passed as `packing`, so that its mask
    need not be read there. The model's `forward` itself is replaced, because sentence-transformers
    calls it directly, past all hooks.

    Returns:
        False, and nothing changed, for models whose attention does not receive the layout (MPNet,
        DeBERTa), that have no position ids to set, whose `forward` something else has replaced, or
        that attend within a window (ModernBERT): sentences of one row would see each other.
    """
    replaced = vars(model).get("forward")
    if replaced is not None:
        return getattr(replaced, "__func__", None) is _packed_forward
    config: Any = getattr(model, "config", None)
    possible = (
        getattr(config, "_attn_implementation", None) == ATTENTION
        and "position_ids" in inspect.signature(type(model).forward).parameters
        and "sliding_attention" not in (getattr(config, "layer_types", None) or ())
        and _same_if_packed(model)
    )
    if possible:
        # Bound to this model, so that a copy of the model gets its own.
        model.forward = MethodType(_packed_forward, model)
    return possible


@torch.no_grad()
def _same_if_packed(model: nn.Module) -> bool:
    """Return whether a packed batch gives this model's own hidden states, by trying it."""
    config: Any = model.config
    words = [i for i in range(7) if i != config.pad_token_id][:6]
    device = next(model.parameters()).device
    ids = torch.tensor(words, device=device).view(2, 3)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]], device=device)
    packing = Packing.of(mask)
    positions = packing.positions + first_position(model)
    try:
        with evaluation_mode(model):
            padded = model(input_ids=ids, attention_mask=mask).last_hidden_state
            packed = model(input_ids=packing.pack(ids), position_ids=positions, packing=packing)
    # Its `forward` does not pass further arguments on to the layers.
    except TypeError:
        return False
    unpacked = packing.unpack(packed.last_hidden_state)
    return torch.allclose(unpacked[packing.mask], padded[packing.mask], rtol=1e-3, atol=1e-4)
