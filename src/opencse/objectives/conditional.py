"""A transformer that is told a sentence vector, and the masked language model that makes its riddles (DiffCSE)."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import torch
from torch import Tensor, nn

from opencse.objectives.frozen import Frozen

_ROWS = 16  # that the generator scores at once: scores over the vocabulary fill the memory


class Conditional(nn.Module):
    """A copy of a transformer in which a given vector stands for the first token.

    The vector takes the place of the *output* of the embedding layer at position 0: no position, LayerNorm or dropout
    is applied to it (DiffCSE's code).

    Args:
        transformer: A transformers encoder, which is copied with its weights.
        width: Size of the vectors; where it is not that of the embeddings, a linear map comes in between.
        outputs: Classes of each token; None for the whole vocabulary.

    Raises:
        ValueError: The encoder has no embedding layer by that name.
    """

    def __init__(self, transformer: nn.Module, width: int, outputs: int | None) -> None:
        super().__init__()
        if not isinstance(getattr(transformer, "embeddings", None), nn.Module):
            raise ValueError(f"a {type(transformer).__name__} has no embedding layer that could be told a vector")
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
        """Predict.

        Args:
            ids: (n, L).
            mask: (n, L), 1 for real tokens.
            vectors: (n, width), one for each sequence.
            counted: (n, L) bool, the tokens to predict for.
            whole: Compute padding too, where it would be skipped.

        Returns:
            Logits (tokens counted, outputs).
        """
        vectors = self.bridge(vectors)
        starts = mask.sum(1).cumsum(0) - mask.sum(1)

        def with_vectors(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            given = vectors.to(output.dtype)
            if output.shape[:2] == ids.shape:
                return torch.cat([given[:, None], output[:, 1:]], dim=1)
            return output.index_copy(1, starts, given[None])  # all sequences in one row (opencse.encoder.packing)

        handle = self.transformer.embeddings.register_forward_hook(with_vectors)  # type: ignore[union-attr]
        try:
            if whole:  # ids that are not passed by keyword are not packed: padding is computed like all else
                out = self.transformer(ids, attention_mask=mask)
            else:
                out = self.transformer(input_ids=ids, attention_mask=mask)
        finally:
            handle.remove()
        return self.head(out.last_hidden_state[counted])


class _VocabularyHead(nn.Module):
    """Logits over the vocabulary by the embedding table itself, as masked language models have it."""

    def __init__(self, width: int, table: nn.Embedding) -> None:
        super().__init__()
        inner = table.weight.shape[1]
        self.transform = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.LayerNorm(inner))
        self.bias = nn.Parameter(torch.zeros(table.weight.shape[0]))
        self._table = (table,)  # in a tuple: it belongs to the transformer

    def forward(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(self.transform(hidden), self._table[0].weight, self.bias)


def draw(probabilities: Tensor) -> Tensor:
    """Return one class for each row (n, C), by where a uniform number falls among the sums of the probabilities before.

    Needs one random number a row, where `torch.multinomial` draws one for each class.
    """
    sums = probabilities.cumsum(-1)
    reached = torch.rand_like(sums[:, :1]) * sums[:, -1:]
    return torch.searchsorted(sums, reached, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


class Generator(Frozen):
    """A masked language model that fills in tokens, and never learns.

    Args:
        model: Takes `input_ids` and `attention_mask`, gives `logits`.
        dropout: Leave its dropout on.
    """

    def __init__(self, model: nn.Module, dropout: bool = False) -> None:
        super().__init__(model.train(dropout))
        base = getattr(model, "base_model", model)
        heads = [child for child in model.children() if child is not base]
        self._head = (heads[0] if len(heads) == 1 and base is not model else None,)

    @property
    def digest(self) -> str:
        """A hash of its weights."""
        joined = hashlib.sha256()
        for name, value in sorted(self.module.state_dict().items()):
            joined.update(name.encode() + value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return joined.hexdigest()

    @torch.no_grad()
    def fill(self, ids: Tensor, mask: Tensor, chosen: Tensor, temperature: float | None) -> Tensor:
        """Predict the chosen tokens.

        Args:
            ids: (n, L).
            mask: (n, L), 1 for real tokens, which stand first.
            chosen: (n, L) bool; padding is left as it is.
            temperature: Of the softmax to draw from; None for the likeliest token.

        Returns:
            The ids (n, L) with the chosen ones replaced.
        """
        filled = ids.clone()
        lengths, order = mask.sum(1).sort(stable=True)  # rows of like length together: less padding
        for rows, longest in zip(order.split(_ROWS), lengths.split(_ROWS), strict=True):
            width = int(longest[-1])
            here = chosen[rows, :width]
            logits = self._logits(ids[rows, :width], mask[rows, :width], here)
            if temperature is None:
                tokens = logits.argmax(-1)
            elif len(logits):
                tokens = draw((logits.float() / temperature).softmax(-1))
            else:
                continue
            filled[rows, :width] = ids[rows, :width].masked_scatter(here, tokens)
        return filled

    def _logits(self, ids: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return scores (tokens chosen, vocabulary); the head sees only those where it is a module of its own."""
        model: Any = self.module
        if self._head[0] is None:
            return model(input_ids=ids, attention_mask=mask).logits[chosen]
        hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._head[0](hidden[chosen])
