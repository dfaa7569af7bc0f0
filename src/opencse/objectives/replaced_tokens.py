"""Conditional replaced-token detection (DiffCSE), its edits and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.conditional import Conditional, Generator
from opencse.objectives.edits import Edit, choose, delete_tokens, insert_tokens, mask_tokens
from opencse.objectives.term import Context, Embeddings, Term, TermBuildContext

_LANGUAGE_TASKS = ("masked_lm", "corrective_lm")


@dataclass(frozen=True, kw_only=True)
class ReplacedTokenDetection(Term):
    r"""Find out which tokens of a sentence were changed, knowing its vector.

    A frozen masked language model G makes a changed sentence x'' of x; a discriminator D, which begins as a copy of the
    encoder, reads x'' with the sentence vector h in the place of its first token and says for each token whether it is
    the original:

    .. math:: L = \frac{1}{T} \sum_t -\mathbb{1}(x''_t = x_t) \log D(x'', h, t)
              - \mathbb{1}(x''_t \neq x_t) \log (1 - D(x'', h, t))

    over all counted tokens of all sentences. To help D, h must know x beyond what x'' still says. Source: DiffCSE
    (Chuang et al., NAACL 2022) §3 and its code, which averages where the paper sums.

    As published (`masking="bert"`, `fill="all"`, `temperature=0`, `counted="all"`, `generator_dropout=True`) the
    generator's likeliest token replaces *every* token but the first, and padding and special tokens count. The defaults
    do what the paper says: hidden tokens are replaced by draws, and only content tokens count.

    Attributes:
        sentences: Views whose vectors condition the discriminator.
        texts: Views whose tokens are changed, one for each of `sentences`; the same where empty. With another text,
            such as the next sentence, there is no "difference" to find (DiffCSE §5).
        generator: A masked language model with the encoder's vocabulary: folder, hub id or bundled name, or
            `backbone`, the model that the run begins with. `delete` and `masked_lm` have no use for it.
        task: `replace`; `insert` (masks are inserted and filled in; which tokens are new?); `delete` (which tokens
            follow a deleted one?); `masked_lm` (predict the hidden tokens); `corrective_lm` (predict what stood where
            the generator's tokens are).
        ratio: Share of the content tokens that is masked, inserted or deleted; each is drawn for itself.
        masking: `mask`, or `bert` for BERT's 80/10/10.
        fill: Whether the generator replaces only the `masked` tokens or `all`.
        temperature: Of the generator's draws; 0 for its likeliest token.
        counted: Whether `content` tokens count, or `all`, padding and special tokens included.
        generator_dropout: Leave the generator's dropout on.
    """

    kind: ClassVar[str] = "replaced_token_detection"

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
        if not 0 < self.ratio < 1:
            raise ValueError("ratio must lie between 0 and 1")
        if self.temperature < 0:
            raise ValueError("temperature must not be negative")
        if self.task in _LANGUAGE_TASKS and self.counted == "all":
            raise ValueError(f"task '{self.task}' counts the masked tokens only: leave out counted")

    @property
    def views(self) -> tuple[str, ...]:
        """Those with the vectors and those with the tokens."""
        return tuple(dict.fromkeys((*self.sentences, *self.texts)))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose tokens are changed."""
        return self.texts or self.sentences

    def module(self, build: TermBuildContext) -> nn.Module:
        """Generator and discriminator."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer that a discriminator could be a copy of")
        tokenizer = build.tokenizer
        if tokenizer.cls_token_id is None:
            raise ValueError("the tokenizer has no first token in whose place the sentence vector could stand")
        generator = None
        if self.task not in ("delete", "masked_lm"):
            generator = Generator(build.masked_lm(self.generator), self.generator_dropout)
        outputs = None if self.task in _LANGUAGE_TASKS else 2
        return Discriminator(Conditional(build.transformer, build.width, outputs), generator, tokenizer)

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; one pass of the generator and one, with its way back, of the discriminator."""
        module = context.modules[self.name]
        assert isinstance(module, Discriminator)
        own = context.processes.own_rows
        pairs = list(zip(self.sentences, self.tokens, strict=True))
        vectors = torch.cat([own(embeddings[sentence]) for sentence, _ in pairs])
        here = torch.cat([own(present[sentence] & present[text]) for sentence, text in pairs])
        ids, mask = module.joined([context.tokens[text] for _, text in pairs])
        some = here.any()
        if not some:  # other processes wait for the gradients of this one
            here = torch.arange(len(here), device=here.device) == 0
            mask = mask.clone()
            mask[0, 0] = 1
        ids, mask = ids[here], mask[here]
        width = int(mask.sum(1).max())
        with context.precision():
            edit, labels, counted = self._riddle(ids[:, :width], mask[:, :width], module)
            logits = module.predict(edit.ids, edit.mask, vectors[here], counted, whole=self.counted == "all")
        logits = logits if logits.dtype == torch.float64 else logits.float()
        total = F.cross_entropy(logits, labels[counted], reduction="sum")
        self._report(logits, labels[counted], context)
        count = counted.sum() if some else counted.sum() * 0
        return context.processes.mean(total if some else total * 0, count)

    def _riddle(self, ids: Tensor, mask: Tensor, module: Discriminator) -> tuple[Edit, Tensor, Tensor]:
        """Return the discriminator's input ids, the label of every token, and the mask of tokens that count."""
        content = module.is_content(ids) & mask.bool()
        chosen = choose(content, self.ratio)
        if self.task == "delete":
            edit = delete_tokens(ids, mask, chosen, module.pad_id)
            return edit, edit.marked.long(), self._counted(edit, module)
        if self.task == "insert":
            hidden = insert_tokens(ids, mask, chosen, module.mask_id, module.pad_id, module.longest)
            edit = Edit(self._filled(hidden, hidden.marked, module), hidden.mask, hidden.marked)
            return edit, edit.marked.long(), self._counted(edit, module) | hidden.marked
        hidden = mask_tokens(ids, mask, chosen, module.mask_id, module.vocabulary, self.masking)
        if self.task == "masked_lm":
            return hidden, ids, chosen
        filled = self._filled(hidden, chosen, module)
        if self.task == "corrective_lm":
            return Edit(filled, mask, chosen), ids, chosen
        if self.fill == "all":
            filled = filled * mask  # as published: padding becomes token 0, whatever that is
        replaced = (filled != ids) & mask.bool()
        whole = torch.ones_like(content)
        return Edit(filled, mask, replaced), replaced.long(), whole if self.counted == "all" else content

    def _filled(self, hidden: Edit, chosen: Tensor, module: Discriminator) -> Tensor:
        """Return the generator's answer; the first token always stays."""
        if self.fill == "all":
            chosen = torch.ones_like(chosen)
            chosen[:, 0] = False
        assert module.generator is not None
        return module.generator.fill(hidden.ids, hidden.mask, chosen, self.temperature or None)

    def _counted(self, edit: Edit, module: Discriminator) -> Tensor:
        if self.counted == "all":
            return torch.ones_like(edit.marked)
        # A token that is cut off at the end shows at what follows it, be that a special token.
        content = module.is_content(edit.ids) | (
            edit.marked if self.task == "delete" else torch.zeros_like(edit.marked)
        )
        return content & edit.mask.bool()

    def _report(self, logits: Tensor, labels: Tensor, context: Context) -> None:
        """How many of the tokens that count are guessed right, and of the changed ones."""
        with torch.no_grad():
            right = (logits.argmax(-1) == labels).to(logits.dtype)
            context.report(f"{self.name}/accuracy", right.sum() / max(len(right), 1))
            if self.task not in _LANGUAGE_TASKS:
                changed = labels.to(logits.dtype)
                context.report(f"{self.name}/changed", changed.sum() / max(len(changed), 1))
                context.report(f"{self.name}/found", (right * changed).sum() / changed.sum().clamp(min=1))


class Discriminator(nn.Module):
    """The parts of the term: generator, conditional discriminator, and what has to be known of the vocabulary.

    Args:
        predict: The discriminator.
        generator: Fills in masks; None where the task needs none.
        tokenizer: The encoder's.
    """

    def __init__(self, predict: Conditional, generator: Generator | None, tokenizer: Any) -> None:
        super().__init__()
        self.predict = predict
        self.generator = generator
        self.vocabulary = len(tokenizer)
        self.mask_id: int = tokenizer.mask_token_id
        self.pad_id: int = tokenizer.pad_token_id or 0
        limit = int(getattr(predict.transformer.config, "max_position_embeddings", 512))
        self.longest = limit - 2  # RoBERTa's positions begin at 2
        self.digest = "" if generator is None else generator.digest
        special = torch.zeros(self.vocabulary, dtype=torch.bool)
        special[tokenizer.all_special_ids] = True
        self.register_buffer("_special", special, persistent=False)

    def is_content(self, ids: Tensor) -> Tensor:
        """Return which ids are not special tokens."""
        special = self._special
        assert isinstance(special, Tensor)
        return ~special[ids]

    def joined(self, parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return ids and masks of several views below each other, padded to one length."""
        width = max(ids.shape[1] for ids, _ in parts)
        ids = torch.cat([F.pad(ids, (0, width - ids.shape[1]), value=self.pad_id) for ids, _ in parts])
        return ids, torch.cat([F.pad(mask, (0, width - mask.shape[1])) for _, mask in parts])
