"""Cut-off: random tokens, features or cells of the embedding layer's output are set to zero (ConSERT)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from opencse.encoder.packing import Packing
from opencse.foundation.draws import RowDraws
from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move


@contextlib.contextmanager
def embedding_cutoff(
    encoder: nn.Module,
    mask: Tensor,
    packing: Packing | None,
    kind: str,
    share: float,
    draws: RowDraws | None = None,
) -> Iterator[None]:
    """Cut a share of the token embeddings off while the encoder runs on one batch.

    Source: ConSERT (Yan et al., ACL 2021) §3.2 and its code, which cuts after the embedding layer's
    LayerNorm and dropout.

    Args:
        encoder: A sentence encoder whose first module is a transformer.
        mask: Attention mask of the batch, (n, L).
        packing: The layout of the batch without padding, where it was computed in advance.
        kind: `token` for whole tokens, `feature` for one set of features of all tokens of a
            sentence, `cell` for single numbers; `none` for nothing.
        share: Share of the tokens, features or cells of each sentence.
        draws: Random numbers of the n sentences; by default from PyTorch's generator.

    Raises:
        OpencseError: The architecture has no embedding layer of this form.
    """
    if kind == "none":
        yield
        return
    transformer = getattr(encoder[0], "auto_model", None)  # type: ignore[index]
    layer = getattr(transformer, "embeddings", None)
    if not isinstance(layer, nn.Module):
        raise OpencseError(
            f"a {type(transformer).__name__} has no embedding layer that can be cut off",
            "Choose another backbone, or leave out `cutoff`.",
        )

    def cut(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        numbers = draws
        if numbers is None:
            numbers = RowDraws.from_generator(len(mask))
        keep = kept_cells(mask.to(output.device), output.shape[-1], kind, share, numbers)
        keep = keep.to(output.dtype)
        if output.shape[:2] == mask.shape:
            return output * keep
        # All sentences of the batch stand in one row.
        layout = packing
        if layout is None:
            layout = Packing.of(mask)
        cells = keep.expand(*mask.shape, output.shape[-1])
        return output * layout.pack(cells)

    handle = layer.register_forward_hook(cut)
    try:
        yield
    finally:
        handle.remove()


def kept_cells(mask: Tensor, width: int, kind: str, share: float, draws: RowDraws) -> Tensor:
    """Return which cells of the token embeddings stay, bool, that broadcasts to (n, L, width).

    Args:
        mask: Attention mask, (n, L).
        width: Size of the embeddings.
        kind: As for `embedding_cutoff`.
        share: As for `embedding_cutoff`; the number of zeros is rounded down, as in the code.
        draws: Random numbers of the n sentences.
    """
    sentences, longest = mask.shape
    if kind == "feature":
        order = move(draws.uniform(kind, width), mask.device).argsort(dim=1)
        keep = order >= int(width * share)
        return keep[:, None, :]
    lengths = mask.sum(dim=1)
    # Padding gets a number above all that are drawn, so it ranks last and uses up no cut.
    if kind == "token":
        uniform = move(draws.uniform(kind, longest), mask.device)
        uniform = uniform.masked_fill(mask == 0, 2.0)
        count = (lengths * share).long()
        keep = _ranks(uniform) >= count[:, None]
        return keep[:, :, None]
    uniform = move(draws.uniform(kind, longest * width), mask.device)
    uniform = uniform.view(sentences, longest, width)
    uniform = uniform.masked_fill(mask[:, :, None] == 0, 2.0).flatten(1)
    count = (lengths * width * share).long()
    keep = _ranks(uniform) >= count[:, None]
    return keep.view(sentences, longest, width)


def _ranks(numbers: Tensor) -> Tensor:
    """Return the rank of each number in its row, from 0."""
    return numbers.argsort(dim=1).argsort(dim=1)
