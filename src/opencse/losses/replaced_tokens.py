"""Conditional replaced-token detection (DiffCSE): a generator edits tokens, a conditioned discriminator finds them.

Functions on tokens take ids (n, L) with an attention mask (n, L) of 1 for real tokens, padded at
the end, and use PyTorch's global generator.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, tensors_hash, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Frozen,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
)
from opencse.losses.forgetting import VocabularyModule, mask_tokens, sample_tokens

EditedTokens = tuple[Tensor, Tensor, Tensor]
"""Ids, attention mask, and the tokens that were masked or inserted, or whose predecessor was deleted, each (n, L')."""

_LANGUAGE_TASKS = ("masked_lm", "corrective_lm")
_ROWS = 16  # of a pass of the generator, because logits over the vocabulary take much memory


@dataclass(frozen=True, kw_only=True)
class ReplacedTokenDetectionLoss(Loss):
    r"""Replaced-token detection conditioned on the sentence vector.

    A frozen masked language model G edits the sentence x to x''. A discriminator D, initialised as
    a copy of the encoder, reads x'' with the sentence vector h in place of its first token, and
    predicts for each token whether it is the original one:

    .. math:: L = \frac{1}{T} \sum_t -\mathbb{1}(x''_t = x_t) \log D(x'', h, t)
              - \mathbb{1}(x''_t \neq x_t) \log (1 - D(x'', h, t))

    over all counted tokens of all sentences. To help D, h must contain information about x that x''
    lacks. Source: DiffCSE (Chuang et al., NAACL 2022) §3 and its code, which averages while the
    paper sums.

    As published (`masking="bert"`, `fill="all"`, `temperature=0`, `counted="all"`,
    `generator_dropout=True`) the most probable token of the generator replaces *every* token except
    the first, and padding and special tokens count. The defaults follow the paper: masked tokens
    are replaced by samples, and only content tokens count.

    Attributes:
        sentences: Views whose vectors condition the discriminator.
        texts: Views whose tokens are edited, one for each of `sentences`; by default the same. With
            another text, such as the next sentence, there is no "difference" to detect (DiffCSE
            §5).
        generator: A masked language model with the encoder's vocabulary: folder, hub id or bundled
            name, or `backbone`, the initial model of the run. `delete` and `masked_lm` do not use
            it.
        task: `replace`; `insert` (detect inserted tokens, filled in by the generator); `delete`
            (detect tokens that follow a deleted one); `masked_lm` (predict the masked tokens);
            `corrective_lm` (predict the original tokens behind those of the generator).
        ratio: Probability of masking, inserting before or deleting a content token.
        masking: `mask`, or `bert` for BERT's 80/10/10.
        fill: Whether the generator replaces only the `masked` tokens or `all`; with `insert`, only
            the inserted ones.
        temperature: Sampling temperature of the generator; 0 for its most probable token.
        counted: `content` counts content tokens only; `all` also counts padding and special tokens.
        generator_dropout: Keep the dropout of the generator on.

    Example:
        >>> loss = ReplacedTokenDetectionLoss(sentences=("anchor",), texts=("next",), weight=0.005)
        >>> loss.views, loss.tokens  # vectors of both, token ids of the second
        (('anchor', 'next'), ('next',))
    """

    kind: ClassVar[str] = "replaced_token_detection"
    view_fields: ClassVar[tuple[str, ...]] = ("sentences", "texts")
    compares_embeddings: ClassVar[bool] = False

    sentences: tuple[str, ...] = ("anchor", "twin")
    texts: tuple[str, ...] = ()
    generator: str = "backbone"
    task: Literal["replace", "insert", "delete", "masked_lm", "corrective_lm"] = "replace"
    ratio: float = 0.3
    masking: Literal["mask", "bert"] = "mask"
    fill: Literal["masked", "all"] = "masked"
    temperature: float = 1.0
    counted: Literal["content", "all"] = "content"
    generator_dropout: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sentences or len(set(self.sentences)) != len(self.sentences):
            raise ValueError("sentences must name at least one view, and none twice")
        if self.texts and len(self.texts) != len(self.sentences):
            raise ValueError("texts must name one view for each of sentences, or none")
        check_range(self, "(0, 1)", "ratio")
        check_least(self, 0, "temperature")
        if self.task in _LANGUAGE_TASKS and self.counted == "all":
            raise ValueError(f"task '{self.task}' counts the masked tokens only: leave out counted")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose tokens are edited."""
        return self.texts or self.sentences

    def module(self, build: LossBuildContext) -> LossModule:
        """Return generator and discriminator."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer for a discriminator")
        tokenizer = build.tokenizer
        if tokenizer.cls_token_id is None:
            raise ValueError(
                "the tokenizer has no first token that the sentence vector could replace"
            )
        generator = None
        if self.task not in ("delete", "masked_lm"):
            generator = TokenGenerator(build.masked_lm(self.generator), self.generator_dropout)
        outputs = None if self.task in _LANGUAGE_TASKS else 2
        return Discriminator(
            ConditionalTransformer(build.transformer, build.width, outputs), generator, tokenizer
        )

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one forward pass of the generator, and one forward and backward pass of the discriminator."""
        module: Discriminator = context.modules[self.name]
        own = context.processes.own_rows
        pairs = list(zip(self.sentences, self.tokens, strict=True))
        vectors = torch.cat([own(embeddings[sentence]) for sentence, _ in pairs])
        # Tokens are edited on the CPU, where every shape is known; only the generator's predictions
        # stay on a GPU.
        valid = torch.cat([own(present[sentence] & present[text]) for sentence, text in pairs])
        ids, mask = module.join([context.tokens[text] for _, text in pairs])
        any_valid = bool(valid.any())
        if not any_valid:  # the other processes wait for the gradients of this one
            valid = torch.arange(len(valid), device="cpu") == 0
            mask = mask.clone()
            mask[0, 0] = 1
        ids, mask = ids[valid], mask[valid]
        width = int(mask.sum(1).max())
        device = vectors.device
        with context.precision():
            *edited, counted = self._edit(ids[:, :width], mask[:, :width], module)
            inputs, attended, labels = (move(x, device) for x in edited)
            conditions = vectors[true_cells(valid, device)]
            logits = module.predict(
                inputs, attended, conditions, counted, whole=self.counted == "all"
            )
        logits = logits if logits.dtype == torch.float64 else logits.float()
        labels = labels.flatten()[true_cells(counted, device)]
        total = F.cross_entropy(logits, labels, reduction="sum")
        count = total.new_full((), len(labels) if any_valid else 0, dtype=torch.long)
        mean = context.processes.mean(total if any_valid else total * 0, count)
        return LossOutput(mean, self._reports(logits, labels))

    def _edit(
        self, ids: Tensor, mask: Tensor, module: Discriminator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the discriminator's ids and attention mask, the label of each token, and the mask of those that count.

        The last is on the CPU, as are `ids` and `mask`; what depends on the generator is on its
        device.
        """
        content = module.is_content(ids) & mask.bool()
        chosen = sample_tokens(content, self.ratio)
        if self.task == "delete":
            ids, mask, marked = delete_tokens(ids, mask, chosen, module.pad_id)
            return ids, mask, marked.long(), self._counted(ids, mask, marked, module)
        if self.task == "insert":
            ids, mask, marked = insert_tokens(
                ids, mask, chosen, module.mask_id, module.pad_id, module.max_length
            )
            ids = module.generator.fill(ids, mask, marked, self.temperature)
            return ids, mask, marked.long(), self._counted(ids, mask, marked, module) | marked
        masked = mask_tokens(ids, chosen, module.mask_id, module.vocabulary, self.masking)
        if self.task == "masked_lm":
            return masked, mask, ids, chosen
        # The sentence vector replaces the first token.
        others = (torch.arange(ids.shape[1], device="cpu") > 0).expand_as(chosen)
        filled = module.generator.fill(
            masked, mask, others if self.fill == "all" else chosen, self.temperature
        )
        if self.task == "corrective_lm":
            return filled, mask, ids, chosen
        original, real = move(ids, filled.device), move(mask, filled.device)
        if self.fill == "all":
            filled = filled * real  # as published: padding becomes token 0
        replaced = (filled != original) & real.bool()
        all_tokens = torch.ones_like(content)
        return filled, mask, replaced.long(), all_tokens if self.counted == "all" else content

    def _counted(self, ids: Tensor, mask: Tensor, marked: Tensor, module: Discriminator) -> Tensor:
        if self.counted == "all":
            return torch.ones_like(marked)
        content = module.is_content(
            ids.cpu()
        )  # waits for the generator's predictions, if tokens were inserted
        # A deleted last token shows at the token after it, which may be a special token.
        return (content | marked if self.task == "delete" else content) & mask.bool()

    def _reports(self, logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        correct = (logits.argmax(-1) == labels).to(logits.dtype)
        reports = {"accuracy": correct.sum() / max(len(correct), 1)}
        if self.task not in _LANGUAGE_TASKS:
            changed = labels.to(logits.dtype)
            reports["changed"] = changed.sum() / max(len(changed), 1)
            reports["found"] = (correct * changed).sum() / changed.sum().clamp(min=1)
        return reports


class Discriminator(VocabularyModule):
    """The modules of the loss: generator and conditional discriminator.

    Args:
        predict: The discriminator.
        generator: Fills in masks; None if the task needs none.
        tokenizer: Tokenizer of the encoder.
    """

    def __init__(
        self, predict: ConditionalTransformer, generator: TokenGenerator | None, tokenizer: Any
    ) -> None:
        super().__init__(tokenizer)
        self.predict = predict
        self.generator: Any = generator
        self.pad_id: int = tokenizer.pad_token_id or 0
        limit = int(getattr(predict.transformer.config, "max_position_embeddings", 512))
        self.max_length = limit - 2  # RoBERTa's positions start at 2
        self.digest = "" if generator is None else generator.digest

    def join(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return the ids and masks of several views, concatenated and padded to one length."""
        width = max(ids.shape[1] for ids, _ in parts)
        ids = torch.cat(
            [F.pad(ids, (0, width - ids.shape[1]), value=self.pad_id) for ids, _ in parts]
        )
        return ids, torch.cat([F.pad(mask, (0, width - mask.shape[1])) for _, mask in parts])


class ConditionalTransformer(nn.Module):
    """A copy of a transformer whose first token is replaced by a given vector.

    The vector replaces the *output* of the embedding layer at position 0: no position embedding,
    LayerNorm or dropout is applied to it (DiffCSE's code).

    Args:
        transformer: A transformers encoder, which is copied with its weights.
        width: Size of the vectors; if it differs from that of the embeddings, a linear map is
            added.
        outputs: Number of classes for each token; None for the vocabulary.

    Raises:
        ValueError: The encoder has no embedding layer by that name.
    """

    def __init__(self, transformer: nn.Module, width: int, outputs: int | None) -> None:
        super().__init__()
        if not isinstance(getattr(transformer, "embeddings", None), nn.Module):
            raise ValueError(
                f"a {type(transformer).__name__} has no embedding layer that can take a vector"
            )
        config: Any = transformer.config
        inner = (
            config.embedding_size
            if hasattr(transformer, "embeddings_project")
            else config.hidden_size
        )
        self.transformer = copy.deepcopy(transformer)
        self.bridge: nn.Module = (
            nn.Identity() if width == inner else nn.Linear(width, inner, bias=False)
        )
        table: Any = self.transformer.get_input_embeddings()  # type: ignore[operator]
        width = config.hidden_size
        self.head: nn.Module = (
            _VocabularyHead(width, table) if outputs is None else nn.Linear(width, outputs)
        )

    def forward(
        self, ids: Tensor, mask: Tensor, vectors: Tensor, counted: Tensor, whole: bool = False
    ) -> Tensor:
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
            return output.index_copy(
                1, starts, first[None]
            )  # packed: all sequences in one row, in order

        handle = self.transformer.embeddings.register_forward_hook(with_vectors)  # type: ignore[union-attr]
        try:
            # A batch passed by position is not packed, so padding is computed too.
            out = (
                self.transformer(ids, mask)
                if whole
                else self.transformer(input_ids=ids, attention_mask=mask)
            )
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
    def fill(self, ids: Tensor, mask: Tensor, chosen: Tensor, temperature: float) -> Tensor:
        """Replace the chosen tokens by predictions.

        Args:
            ids: Token ids, (n, L), on the CPU.
            mask: Attention mask, (n, L), on the CPU; real tokens come first.
            chosen: Which tokens to replace, (n, L) bool, on the CPU.
            temperature: Temperature of the softmax to sample from; 0 for the most probable token.

        Returns:
            The ids (n, L) with the chosen tokens replaced, on the device of the model.
        """
        device = next(self.module.parameters()).device
        filled = move(ids, device).clone()
        cells = torch.arange(ids.numel(), device="cpu").view(ids.shape)
        lengths, order = mask.sum(1).sort(
            stable=True
        )  # rows of similar length together, for less padding
        for rows, longest in zip(order.split(_ROWS), lengths.split(_ROWS), strict=True):
            width = int(longest[-1])
            chosen_part = chosen[rows, :width]
            logits = self._logits(
                move(ids[rows, :width], device), move(mask[rows, :width], device), chosen_part
            )
            if not temperature:
                tokens = logits.argmax(-1)
            else:
                tokens = sample_classes((logits.float() / temperature).softmax(-1))
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


def sample_classes(probabilities: Tensor) -> Tensor:
    """Return a sampled class (n,) for each row of probabilities (n, C), by inverse transform sampling.

    It needs one random number per row, while `torch.multinomial` draws one for each class.
    """
    sums = probabilities.cumsum(-1)
    reached = torch.rand_like(sums[:, :1]) * sums[:, -1:]
    return torch.searchsorted(sums, reached, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


def insert_tokens(
    ids: Tensor, mask: Tensor, before: Tensor, token: int, pad_id: int, max_length: int
) -> EditedTokens:
    """Insert a token before each token in `before`, (n, L) bool, up to `max_length` tokens per sequence."""
    free = (max_length - mask.sum(1, keepdim=True)).clamp(min=0)
    before = before & mask.bool() & (before.cumsum(1) <= free)
    target = torch.arange(ids.shape[1], device=ids.device) + before.cumsum(1)
    lengths = mask.sum(1) + before.sum(1)
    width = int(lengths.max())
    out = ids.new_full((len(ids), width + 1), pad_id)  # the last column collects discarded tokens
    marked = torch.zeros_like(out, dtype=torch.bool)
    inserted = torch.where(before, target - 1, width)
    out.scatter_(1, torch.where(mask.bool(), target, width), ids).scatter_(1, inserted, token)
    marked.scatter_(1, inserted, True)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return out[:, :width], new_mask, marked[:, :width]


def delete_tokens(ids: Tensor, mask: Tensor, chosen: Tensor, pad_id: int) -> EditedTokens:
    """Delete the chosen tokens; the tokens after a deleted one are marked."""
    remains = mask.bool() & ~chosen
    follows = torch.cat([torch.zeros_like(chosen[:, :1]), chosen[:, :-1]], dim=1)
    lengths = remains.sum(1)
    width = int(lengths.max())
    target = torch.where(remains, remains.cumsum(1) - 1, width)
    out = ids.new_full((len(ids), width + 1), pad_id).scatter_(1, target, ids)
    marked = torch.zeros_like(out, dtype=torch.bool).scatter_(1, target, follows)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return out[:, :width], new_mask, marked[:, :width]
