"""The encoder's own pre-training task beside the contrast, so that it forgets less (SimCSE §3, "w/ MLM")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.edits import choose, mask_tokens
from opencse.objectives.term import Context, Embeddings, Term, TermBuildContext


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModel(Term):
    r"""Masked language modelling by the encoder that is trained.

    .. math:: L = -\frac{1}{|M|} \sum_{t \in M} \log p_\theta(x_t \mid \tilde{x})

    over the hidden content tokens M of the batch. The head begins as that of a masked language model and is trained
    too. Source: Gao et al., SimCSE (EMNLP 2021), §3 and its code, with a weight of 0.1.

    Attributes:
        sentences: Views whose tokens are hidden and predicted.
        ratio: Share of the content tokens that is hidden; each is drawn for itself.
        masking: `bert` for BERT's 80/10/10, or `mask`.
        head: The masked language model whose head training begins with.
    """

    kind: ClassVar[str] = "masked_language_model"
    acts_on_embeddings: ClassVar[bool] = False

    sentences: tuple[str, ...] = ("anchor", "twin")
    ratio: float = 0.15
    masking: Literal["mask", "bert"] = "bert"
    head: str = "backbone"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sentences or len(set(self.sentences)) != len(self.sentences):
            raise ValueError("sentences must name at least one view, and none twice")
        if not 0 < self.ratio < 1:
            raise ValueError("ratio must lie between 0 and 1")

    @property
    def views(self) -> tuple[str, ...]:
        """Those whose tokens are read."""
        return self.sentences

    @property
    def tokens(self) -> tuple[str, ...]:
        """Likewise."""
        return self.sentences

    def module(self, facts: TermBuildContext) -> nn.Module:
        """Return the head."""
        if facts.transformer is None:
            raise ValueError("the encoder has no transformer that could be a masked language model")
        model = facts.masked_lm(self.head)
        head = getattr(model, "cls", None) or getattr(model, "lm_head", None)
        if not isinstance(head, nn.Module):
            raise ValueError(f"a {type(model).__name__} has no head that this term knows")
        return MaskedLanguageHead(facts.transformer, head, facts.tokenizer)

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; one more pass of the encoder for each view."""
        module = context.modules[self.name]
        assert isinstance(module, MaskedLanguageHead)
        total, count = embeddings[self.sentences[0]].sum() * 0, torch.zeros(())
        for view in self.sentences:
            ids, mask = context.tokens[view]
            chosen = choose(module.is_content(ids) & mask.bool(), self.ratio)
            hidden = mask_tokens(ids, mask, chosen, module.mask_id, module.vocabulary, self.masking)
            some = mask.any(1)
            if not some.any():
                continue
            with context.precision():
                logits = module(hidden.ids[some], mask[some], chosen[some])
            logits = logits if logits.dtype == torch.float64 else logits.float()
            total = total + F.cross_entropy(logits, ids[chosen], reduction="sum")
            count = count.to(chosen.device) + chosen.sum()
            with torch.no_grad():
                right = (logits.argmax(-1) == ids[chosen]).sum() / max(int(chosen.sum()), 1)
                context.report(f"{self.name}/accuracy", right)
        return context.processes.mean(total, count)


class MaskedLanguageHead(nn.Module):
    """From the encoder's hidden states to its vocabulary.

    Args:
        transformer: The encoder's, which stays the encoder's own.
        head: From hidden states to logits.
        tokenizer: The encoder's.
    """

    def __init__(self, transformer: nn.Module, head: nn.Module, tokenizer: Any) -> None:
        super().__init__()
        self._transformer = (transformer,)  # in a tuple, where PyTorch does not look
        self.head = head
        self.vocabulary = len(tokenizer)
        self.mask_id: int = tokenizer.mask_token_id
        special = torch.zeros(self.vocabulary, dtype=torch.bool)
        special[tokenizer.all_special_ids] = True
        self.register_buffer("_special", special, persistent=False)

    def is_content(self, ids: Tensor) -> Tensor:
        """Return which ids are not special tokens."""
        special = self._special
        assert isinstance(special, Tensor)
        return ~special[ids]

    def forward(self, ids: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Logits (tokens chosen, vocabulary) of sequences (n, L)."""
        hidden = self._transformer[0](input_ids=ids, attention_mask=mask).last_hidden_state
        return self.head(hidden[chosen])
