"""Conditional replaced-token detection (DiffCSE).

A generator edits tokens, and a discriminator conditioned on the sentence vector finds them.

Functions on tokens take ids (n, L) with an attention mask (n, L) of 1 for real tokens, padded at
the end.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.draws import RowDraws
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
"""Ids, attention mask and marks, each (n, L').

Marked are the tokens that were masked or inserted, or whose predecessor was deleted.
"""

_LANGUAGE_TASKS = ("masked_lm", "corrective_lm")
# Rows of a pass of the generator, because logits over the vocabulary take much memory.
_ROWS = 16


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
            `corrective_lm` (predict the original tokens after those of the generator).
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
        return _Discriminator(
            ConditionalTransformer(build.transformer, build.width, outputs), generator, tokenizer
        )

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one pass of the generator, a forward and backward of the discriminator."""
        module: _Discriminator = context.modules[self.name]
        own = context.processes.own_rows
        pairs = list(zip(self.sentences, self.tokens, strict=True))
        vectors = torch.cat([own(embeddings[sentence]) for sentence, _ in pairs])
        # Tokens are edited on the CPU, where every shape is known; only the generator's predictions
        # stay on a GPU.
        valid = torch.cat([own(present[sentence] & present[text]) for sentence, text in pairs])
        ids, mask = module.join([context.tokens[text] for _, text in pairs])
        rows = len(ids) // len(pairs)
        draws = context.draws_for(self.name, rows).of_views(len(pairs))
        any_valid = bool(valid.any())
        if not any_valid:
            # The other processes wait for the gradients of this one, so it computes one row for
            # nothing.
            valid = torch.arange(len(valid), device="cpu") == 0
            mask = mask.clone()
            mask[0, 0] = 1
        ids = ids[valid]
        mask = mask[valid]
        draws = draws[valid.numpy()]
        width = int(mask.sum(1).max())
        device = vectors.device
        with context.precision():
            edited = self._edit(ids[:, :width], mask[:, :width], module, draws)
            inputs = move(edited.ids, device)
            attended = move(edited.mask, device)
            labels = move(edited.labels, device)
            conditions = vectors[true_cells(valid, device)]
            logits = module.predict(
                inputs, attended, conditions, edited.counted, whole=self.counted == "all"
            )
        if logits.dtype != torch.float64:
            logits = logits.float()
        labels = labels.flatten()[true_cells(edited.counted, device)]
        total = F.cross_entropy(logits, labels, reduction="sum")
        count = total.new_full((), len(labels) if any_valid else 0, dtype=torch.long)
        if not any_valid:
            total = total * 0
        reports = self._reports(logits.detach(), labels, any_valid, context)
        return LossOutput(context.processes.mean(total, count), reports)

    def _edit(self, ids: Tensor, mask: Tensor, module: _Discriminator, draws: RowDraws) -> _Edited:
        """Edit token ids and mask, both (n, L) on the CPU, as the task says."""
        content = module.is_content(ids) & mask.bool()
        chosen = sample_tokens(content, self.ratio, draws)
        if self.task == "delete":
            ids, mask, marked = delete_tokens(ids, mask, chosen, module.pad_id)
            return _Edited(ids, mask, marked.long(), self._counted(ids, mask, marked, module))
        if self.task == "insert":
            ids, mask, marked = insert_tokens(
                ids, mask, chosen, module.mask_id, module.pad_id, module.max_length
            )
            ids = module.generator.fill(ids, mask, marked, self.temperature, draws)
            counted = self._counted(ids, mask, marked, module) | marked
            return _Edited(ids, mask, marked.long(), counted)
        masked = mask_tokens(ids, chosen, module.mask_id, module.vocabulary, self.masking, draws)
        if self.task == "masked_lm":
            return _Edited(masked, mask, labels=ids, counted=chosen)
        wanted = chosen
        if self.fill == "all":
            # All but the first token, which the sentence vector replaces.
            wanted = (torch.arange(ids.shape[1], device="cpu") > 0).expand_as(chosen)
        filled = module.generator.fill(masked, mask, wanted, self.temperature, draws)
        if self.task == "corrective_lm":
            return _Edited(filled, mask, labels=ids, counted=chosen)
        original = move(ids, filled.device)
        real = move(mask, filled.device)
        if self.fill == "all":
            # As published: padding becomes token 0.
            filled = filled * real
        replaced = (filled != original) & real.bool()
        counted = content
        if self.counted == "all":
            counted = torch.ones_like(content)
        return _Edited(filled, mask, replaced.long(), counted)

    def _counted(self, ids: Tensor, mask: Tensor, marked: Tensor, module: _Discriminator) -> Tensor:
        if self.counted == "all":
            return torch.ones_like(marked)
        # Waits for the generator's predictions if tokens were inserted.
        content = module.is_content(ids.cpu())
        if self.task == "delete":
            # A deleted last token shows at the token after it, which may be a special token.
            content = content | marked
        return content & mask.bool()

    def _reports(
        self, logits: Tensor, labels: Tensor, any_valid: bool, context: Context
    ) -> dict[str, Tensor]:
        """Return shares of the counted tokens of all processes."""
        used = logits.new_full((len(labels),), float(any_valid))
        correct = (logits.argmax(-1) == labels).to(logits.dtype) * used
        mean = context.processes.mean
        reports = {"accuracy": mean(correct.sum(), used.sum())}
        if self.task not in _LANGUAGE_TASKS:
            changed = labels.to(logits.dtype) * used
            reports["changed"] = mean(changed.sum(), used.sum())
            reports["found"] = mean((correct * changed).sum(), changed.sum())
        return reports


class _Edited(NamedTuple):
    """Edited sequences, the discriminator's input.

    The first three are on the device of the generator if they depend on it.

    Attributes:
        ids: Token ids, (n, L').
        mask: Attention mask, (n, L').
        labels: Label of each token, (n, L').
        counted: The tokens to predict, (n, L') bool, on the CPU.
    """

    ids: Tensor
    mask: Tensor
    labels: Tensor
    counted: Tensor


class _Discriminator(VocabularyModule):
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
        # RoBERTa's positions start at 2. For BERT, two tokens less than it has room for do no harm.
        self.max_length = limit - 2
        self.digest = "" if generator is None else generator.digest

    def join(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return the ids and masks of several views, concatenated and padded to one length."""
        width = max(ids.shape[1] for ids, _ in parts)
        all_ids = []
        all_masks = []
        for ids, mask in parts:
            missing = (0, width - ids.shape[1])
            all_ids.append(F.pad(ids, missing, value=self.pad_id))
            all_masks.append(F.pad(mask, missing))
        return torch.cat(all_ids), torch.cat(all_masks)


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
        # ELECTRA's embeddings have another size, which a projection changes.
        inner = config.hidden_size
        if hasattr(transformer, "embeddings_project"):
            inner = config.embedding_size
        self.transformer = copy.deepcopy(transformer)
        self.bridge: nn.Module = nn.Identity()
        if width != inner:
            self.bridge = nn.Linear(width, inner, bias=False)
        table: Any = self.transformer.get_input_embeddings()  # type: ignore[operator]
        self.head: nn.Module
        if outputs is None:
            self.head = _VocabularyHead(config.hidden_size, table)
        else:
            self.head = nn.Linear(config.hidden_size, outputs)

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
            # Packed: all sequences are in one row, in order.
            return output.index_copy(1, starts, first[None])

        handle = self.transformer.embeddings.register_forward_hook(with_vectors)  # type: ignore[union-attr]
        try:
            if whole:
                # A batch passed by position is not packed, so padding is computed as well.
                out = self.transformer(ids, mask)
            else:
                out = self.transformer(input_ids=ids, attention_mask=mask)
        finally:
            handle.remove()
        cells = true_cells(counted, ids.device)
        return self.head(out.last_hidden_state.flatten(0, 1)[cells])


class _VocabularyHead(nn.Module):
    """Logits over the vocabulary with tied embeddings, as in masked language models."""

    def __init__(self, width: int, table: nn.Embedding) -> None:
        super().__init__()
        inner = table.weight.shape[1]
        self.transform = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.LayerNorm(inner))
        self.bias = nn.Parameter(torch.zeros(table.weight.shape[0]))
        # In a tuple, because it belongs to the transformer.
        self._table = (table,)

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
        # Only a head that is a single module can be computed for the chosen tokens alone.
        head = heads[0] if len(heads) == 1 and base is not model else None
        self._head = (head,)

    @property
    def digest(self) -> str:
        """Hash of the weights."""
        return tensors_hash(self.module.state_dict())

    @torch.no_grad()
    def fill(
        self, ids: Tensor, mask: Tensor, chosen: Tensor, temperature: float, draws: RowDraws
    ) -> Tensor:
        """Replace the chosen tokens by predictions.

        Args:
            ids: Token ids, (n, L), on the CPU.
            mask: Attention mask, (n, L), on the CPU; real tokens come first.
            chosen: Which tokens to replace, (n, L) bool, on the CPU.
            temperature: Temperature of the softmax to sample from; 0 for the most probable token.
            draws: Random numbers of the n sequences.

        Returns:
            The ids (n, L) with the chosen tokens replaced, on the device of the model.
        """
        device = next(self.module.parameters()).device
        filled = move(ids, device).clone()
        cells = torch.arange(ids.numel(), device="cpu").view(ids.shape)
        uniform = draws.uniform("sample", ids.shape[1])
        # Rows of similar length together, for less padding.
        lengths, order = mask.sum(1).sort(stable=True)
        for rows, longest in zip(order.split(_ROWS), lengths.split(_ROWS), strict=True):
            width = int(longest[-1])
            chosen_part = chosen[rows, :width]
            ids_part = move(ids[rows, :width], device)
            mask_part = move(mask[rows, :width], device)
            logits = self._logits(ids_part, mask_part, chosen_part)
            if not temperature:
                tokens = logits.argmax(-1)
            else:
                reached = move(uniform[rows, :width][chosen_part], device)
                tokens = sample_classes((logits.float() / temperature).softmax(-1), reached)
            places = move(cells[rows, :width][chosen_part], device)
            filled.view(-1).index_copy_(0, places, tokens)
        return filled

    def _logits(self, ids: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the logits (chosen tokens, vocabulary); only theirs if the head is separate."""
        model: Any = self.module
        cells = true_cells(chosen, ids.device)
        if self._head[0] is None:
            return model(input_ids=ids, attention_mask=mask).logits.flatten(0, 1)[cells]
        hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        return self._head[0](hidden.flatten(0, 1)[cells])


def sample_classes(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Sample a class (n,) from each row of probabilities (n, C), by inverse transform sampling.

    Args:
        probabilities: They need not sum to exactly 1.
        uniform: A random number from 0 to below 1 for each row, (n,).
    """
    sums = probabilities.cumsum(-1)
    reached = uniform[:, None] * sums[:, -1:]
    return torch.searchsorted(sums, reached, right=True).squeeze(1).clamp(max=sums.shape[1] - 1)


def insert_tokens(
    ids: Tensor, mask: Tensor, before: Tensor, token: int, pad_id: int, max_length: int
) -> EditedTokens:
    """Insert a token before each token in `before`, (n, L) bool, up to `max_length` tokens."""
    real = mask.bool()
    free = (max_length - mask.sum(1, keepdim=True)).clamp(min=0)
    before = before & real & (before.cumsum(1) <= free)
    # Each token moves to the right by the number of tokens that are inserted up to it.
    places = torch.arange(ids.shape[1], device=ids.device)
    target = places + before.cumsum(1)
    lengths = mask.sum(1) + before.sum(1)
    width = int(lengths.max())
    # The last column collects discarded tokens.
    out = ids.new_full((len(ids), width + 1), pad_id)
    out.scatter_(1, torch.where(real, target, width), ids)
    inserted = torch.where(before, target - 1, width)
    out.scatter_(1, inserted, token)
    marked = torch.zeros_like(out, dtype=torch.bool)
    marked.scatter_(1, inserted, True)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return out[:, :width], new_mask, marked[:, :width]


def delete_tokens(ids: Tensor, mask: Tensor, chosen: Tensor, pad_id: int) -> EditedTokens:
    """Delete the chosen tokens; the tokens after a deleted one are marked."""
    remains = mask.bool() & ~chosen
    # A token follows a deleted one if the column before it is chosen.
    never = torch.zeros_like(chosen[:, :1])
    follows = torch.cat([never, chosen[:, :-1]], dim=1)
    lengths = remains.sum(1)
    # As in `insert_tokens`, the last column collects discarded tokens.
    width = int(lengths.max())
    target = torch.where(remains, remains.cumsum(1) - 1, width)
    out = ids.new_full((len(ids), width + 1), pad_id)
    out.scatter_(1, target, ids)
    marked = torch.zeros_like(out, dtype=torch.bool)
    marked.scatter_(1, target, follows)
    new_mask = (torch.arange(width, device=ids.device) < lengths[:, None]).to(mask.dtype)
    return out[:, :width], new_mask, marked[:, :width]
