"""A transformer conditioned on a sentence vector, and the masked language model that generates tokens (DiffCSE)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from opencse.foundation.tensors import move, tensors_hash, true_cells
from opencse.losses.term import Frozen

_ROWS = 16  # rows per pass of the generator, because logits over the vocabulary take much memory


class ConditionalTransformer(nn.Module):
    """A copy of a transformer whose first token is replaced by a given vector.

    The vector replaces the *output* of the embedding layer at position 0: no position embedding, LayerNorm or dropout
    is applied to it (DiffCSE's code).

    Args:
        transformer: A transformers encoder, which is copied with its weights.
        width: Size of the vectors; if it differs from that of the embeddings, a linear map is added.
        outputs: Number of classes for each token; None for the vocabulary.

    Raises:
        ValueError: The encoder has no embedding layer by that name.
    """

    def __init__(self, transformer: nn.Module, width: int, outputs: int | None) -> None:
        super().__init__()
        if not isinstance(getattr(transformer, "embeddings", None), nn.Module):
            raise ValueError(f"a {type(transformer).__name__} has no embedding layer that can take a vector")
        config: Any = transformer.config
        inner = config.embedding_size if hasattr(transformer, "embeddings_project") else config.hidden_size
        self.transformer = copy.deepcopy(transformer)
        self.bridge: nn.Module = nn.Identity() if width == inner else nn.Linear(width, inner, bias=False)
        self.head: nn.Module
        if outputs is None:
            table = self.transformer.get_input_embeddings()  # type: ignore[operator]
            self.head = _VocabularyHead(config.hidden_size, table)
        else:
            self.head = nn.Linear(config.hidden_size, outputs)

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor, counted: Tensor, whole: bool = False) -> Tensor:
        """Return the predictions for the counted tokens.

        Args:
            ids: Token ids, (n, L).
            mask: Attention mask, (n, L).
            vectors: (n, width), one for each sequence.
            counted: (n, L) bool, the tokens to predict; should be on the CPU.
            whole: Also compute padding that could be skipped.

        Returns:
            Logits (tokens counted, outputs).
        """
        vectors = self.bridge(vectors)
        starts = mask.sum(1).cumsum(0) - mask.sum(1)

        def with_vectors(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            first = vectors.to(output.dtype)
            if output.shape[:2] == ids.shape:
                return torch.cat([first[:, None], output[:, 1:]], dim=1)
            return output.index_copy(1, starts, first[None])  # packed: all sequences in one row, in order

        handle = self.transformer.embeddings.register_forward_hook(with_vectors)  # type: ignore[union-attr]
        try:
            # A batch passed by position is not packed, so padding is computed too.
            out = self.transformer(ids, mask) if whole else self.transformer(input_ids=ids, attention_mask=mask)
        finally:
            handle.remove()
        return self.head(out.last_hidden_state.flatten(0, 1)[true_cells(counted, ids.device)])


class _VocabularyHead(nn.Module):
    """Logits over the vocabulary with tied embeddings, as in masked language models."""

    def __init__(self, width: int, table: nn.Embedding) -> None:
        super().__init__()
        inner = table.weight.shape[1]
        self.transform = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.LayerNorm(inner))
        self.bias = nn.Parameter(torch.zeros(table.weight.shape[0]))
        self._table = (table,)  # in a tuple: it belongs to the transformer

    def forward(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(self.transform(hidden), self._table[0].weight, self.bias)


def sample_classes(probabilities: Tensor) -> Tensor:
    """Return a sampled class (n,) for each row of probabilities (n, C), by inverse transform sampling.

    It needs one random number per row, while `torch.multinomial` draws one for each class.
    """
    sums = probabilities.cumsum(-1)
    reached = torch.rand_like(sums[:, :1]) * sums[:, -1:]
    return torch.searchsorted(sums, reached, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


class TokenGenerator(Frozen):
    """A frozen masked language model that fills in tokens.

    Args:
        model: Model from `input_ids` and `attention_mask` to `logits`.
        dropout: Keep its dropout on.
    """

    def __init__(self, model: nn.Module, dropout: bool = False) -> None:
        super().__init__(model.train(dropout))
        base = getattr(model, "base_model", model)
        heads = [child for child in model.children() if child is not base]
        self._head = (heads[0] if len(heads) == 1 and base is not model else None,)

    @property
    def digest(self) -> str:
        """Hash of the weights."""
        return tensors_hash(self.module.state_dict())

    @torch.no_grad()
    def fill(self, ids: Tensor, mask: Tensor, chosen: Tensor, temperature: float | None) -> Tensor:
        """Replace the chosen tokens by predictions.

        Args:
            ids: Token ids, (n, L), on the CPU.
            mask: Attention mask, (n, L), on the CPU; real tokens come first.
            chosen: (n, L) bool, on the CPU; padding stays unchanged.
            temperature: Temperature of the softmax to sample from; None for the most probable token.

        Returns:
            The ids (n, L) with the chosen tokens replaced, on the device of the model.
        """
        device = next(self.module.parameters()).device
        filled = move(ids, device).clone()
        cells = torch.arange(ids.numel(), device="cpu").view(ids.shape)
        lengths, order = mask.sum(1).sort(stable=True)  # rows of similar length together, for less padding
        for rows, longest in zip(order.split(_ROWS), lengths.split(_ROWS), strict=True):
            width = int(longest[-1])
            chosen_part = chosen[rows, :width]
            logits = self._logits(move(ids[rows, :width], device), move(mask[rows, :width], device), chosen_part)
            if temperature is None:
                tokens = logits.argmax(-1)
            elif len(logits):
                tokens = sample_classes((logits.float() / temperature).softmax(-1))
            else:
                continue
            filled.view(-1).index_copy_(0, move(cells[rows, :width][chosen_part], device), tokens)
        return filled

    def _logits(self, ids: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the logits (chosen tokens, vocabulary); a separate head is computed for these tokens only."""
        model: Any = self.module
        cells = true_cells(chosen, ids.device)
        if self._head[0] is None:
            return model(input_ids=ids, attention_mask=mask).logits.flatten(0, 1)[cells]
        hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._head[0](hidden.flatten(0, 1)[cells])
