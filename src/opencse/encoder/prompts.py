"""Tokens around a sentence: special tokens, and prompt templates with a mask.

A template such as `'This sentence of "{}" means {mask}.'` (PromptBERT, Jiang et al., EMNLP 2022)
makes the vector at the mask represent the sentence. It is put around the *tokens* of the sentence,
so that no sentence can push the mask out or add another. After the template come the final special
tokens of every text, such as `[SEP]`.

A template with several masks, such as CoT-BERT's, has its vector at the last one. Poolings find the
mask by its id, so the masks before it get an id of their own, with an embedding that starts as that
of the mask.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import first_position
from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move

MASK = "{mask}"
# The end of a text and its spaces, after a character that is neither a space nor ASCII punctuation.
_UNMARKED_END = r"(?<=[^!-/:-@\[-`{-~\s])\s*\z"


@dataclass(frozen=True)
class Frame:
    """Token ids before and after the tokens of a sentence.

    Attributes:
        before: Ids before the sentence.
        after: Ids after the sentence.
        mask: Index of the mask in `after`; None without a mask.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    mask: int | None = None

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def special_frame(tokenizer: Any) -> Frame:
    """Return the special tokens around a single text, such as `[CLS]` and `[SEP]`."""
    probe = "a"
    bare = tokenizer(probe, add_special_tokens=False)["input_ids"]
    full = tokenizer(probe)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return Frame(tuple(full[:start]), tuple(full[start + len(bare) :]))
    raise OpencseError(
        "the tokenizer changes a text when it adds its special tokens", "Use a BERT-like tokenizer."
    )


def encoder_frame(model: Any) -> Frame:
    """Return the special tokens around a text as a model reads it, which its `processing_kwargs` may change."""
    first = model[0]
    if not getattr(first, "processing_kwargs", None):
        return special_frame(model.tokenizer)

    def read(text: str, **settings: Any) -> dict[str, list[int]]:
        if settings:
            return {"input_ids": model.tokenizer(text, **settings)["input_ids"]}
        features = model.preprocess([text])
        real = features["attention_mask"][0].bool()
        return {"input_ids": features["input_ids"][0][real].tolist()}

    return special_frame(read)


def left_out_by_pooling(model: Any, prompt: str | None) -> int | None:
    """Return how many tokens before a text a model's pooling leaves out (`include_prompt=False`); None if none.

    Args:
        model: The model.
        prompt: The prompt around the text, such as `query: {}`.
    """
    before = (prompt or "").partition("{}")[0]
    if not before or all(getattr(module, "include_prompt", True) for module in model):
        return None
    length: int | None = model.preprocess(["a"], prompt=before).get("prompt_length")
    return length


def add_earlier_mask(transformer: Any, mask: int) -> int:
    """Give a transformer a token for the masks before the last one, in place, and return its id.

    Its embedding starts as that of the mask. No text has this token.

    Args:
        transformer: A transformers encoder.
        mask: Id of the mask.
    """
    new = transformer.get_input_embeddings().num_embeddings
    transformer.resize_token_embeddings(new + 1, mean_resizing=False)
    weights = transformer.get_input_embeddings().weight
    with torch.no_grad():
        weights[new] = weights[mask]
    return int(new)


def template_frame(tokenizer: Any, prompt: str, earlier: int | None = None) -> Frame:
    """Return the ids around a sentence in a template with `{mask}`, special tokens included.

    Prefix and suffix are tokenised separately, spaces included, like in the code of PromptBERT and
    SNCSE.

    Args:
        tokenizer: A fast tokenizer with its mask token.
        prompt: The template: `{}` for the sentence, and `{mask}` after it. Text may follow the
            mask.
        earlier: Id of the masks before the last one (`add_earlier_mask`), for templates with
            several.

    Raises:
        OpencseError: The template has no mask after its sentence, one before it, or the tokenizer
            has no mask token.
    """
    prefix, suffix = prompt.split("{}")
    if MASK in prefix or MASK not in suffix:
        raise OpencseError(
            f"prompt '{prompt}': must contain {{mask}} after {{}}, not before it",
            """For example 'This sentence of "{}" means {mask}.'.""",
        )
    if tokenizer.mask_token is None:
        raise OpencseError(
            "the tokenizer has no mask token", "Use a masked language model for pooling = 'mask'."
        )
    special = special_frame(tokenizer)
    before = tokenizer(prefix, add_special_tokens=False)["input_ids"]
    suffix = suffix.replace(MASK, tokenizer.mask_token)
    after = tokenizer(suffix, add_special_tokens=False)["input_ids"]
    places = [i for i, token in enumerate(after) if token == tokenizer.mask_token_id]
    if len(places) != prompt.count(MASK):
        raise OpencseError(
            f"prompt '{prompt}': this tokenizer does not turn {{mask}} into one mask token"
        )
    *before_last, mask = places
    if before_last and earlier is None:
        raise ValueError("a template with several masks needs the id of the earlier ones")
    for place in before_last:
        after[place] = earlier
    return Frame((*special.before, *before), (*after, *special.after), mask)


def bake_template(
    tokenizer: Any, prompt: str, final_mark: str = "", earlier: int | None = None
) -> Any:
    """Return a copy of a tokenizer that adds the template to every text.

    The copy has no mask token, so that `[MASK]` in a sentence is read as plain text. It is of the
    generic fast class, because the class of a model rebuilds its post-processor at load and would
    lose the template.

    Args:
        tokenizer: A fast tokenizer.
        prompt: The template.
        final_mark: Appended to texts that do not end in ASCII punctuation, like `" ."` in SNCSE.
        earlier: As for `template_frame`.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    frame = template_frame(tokenizer, prompt, earlier)
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] != tokenizer.mask_token]
    # Padding and truncation of the last call, which are no part of the tokenizer.
    spec["padding"] = None
    spec["truncation"] = None
    if final_mark:
        marked = {"type": "Replace", "pattern": {"Regex": _UNMARKED_END}, "content": final_mark}
        steps = [marked]
        if spec["normalizer"] is not None:
            steps.append(spec["normalizer"])
        spec["normalizer"] = {"type": "Sequence", "normalizers": steps}
    spec["post_processor"] = _post_processor(tokenizer, frame, earlier)
    special_tokens = {}
    for name in ("pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token"):
        token = getattr(tokenizer, name)
        if token is not None:
            special_tokens[name] = token
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spec)),
        model_max_length=tokenizer.model_max_length,
        padding_side="right",
        truncation_side=tokenizer.truncation_side,
        model_input_names=tokenizer.model_input_names,
        **special_tokens,
    )


def _post_processor(tokenizer: Any, frame: Frame, earlier: int | None) -> dict[str, Any]:
    """Return the settings of a post-processor that puts a frame around a text, in the form of `tokenizer.json`."""

    def token_text(token: int) -> str:
        if token == earlier:
            # It is not in the vocabulary, so that no text contains it; any name will do.
            return str(tokenizer.mask_token)
        return str(tokenizer.convert_ids_to_tokens(token))

    # Each side of the frame is one "special token" that stands for several ids.
    special_tokens = {}
    for name, ids in (("<before>", frame.before), ("<after>", frame.after)):
        tokens = [token_text(token) for token in ids]
        special_tokens[name] = {"id": name, "ids": list(ids), "tokens": tokens}
    before, after = [{"SpecialToken": {"id": name, "type_id": 0}} for name in special_tokens]
    first, second = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {
        "type": "TemplateProcessing",
        "single": [before, first, after],
        "pair": [first, second],
        "special_tokens": special_tokens,
    }


class TemplateDenoising(nn.Module):
    """Template denoising: subtraction of the prompt's own vector (PromptBERT, Jiang et al., §3.3).

    The template is encoded alone, with its second part at its positions after a sentence of ℓ
    tokens. The vector of the mask is then the contribution δ(ℓ) of the template, and the sentence
    vector becomes h − δ(ℓ): as the last module of a `SentenceTransformer`, or with `delta`.

    Args:
        transformer: The transformers encoder; its weights do not become weights of this module.
        frame: Token ids of the template, with its mask.
        positions: `model` uses the model's position ids. `zero` begins at 0 for every model, like
            PromptBERT's code; for RoBERTa, whose first position is 2, δ is then computed at shifted
            positions. `padding` puts ℓ padding tokens, which are attended to, in the place of the
            sentence, with the positions that the model gives them (CoT-BERT, §3.3).
        dropout: Dropout rate for the template; None for that of the model.
        padding: Id of the padding token, for `padding`.

    Raises:
        OpencseError: The model takes no position ids.
    """

    def __init__(
        self,
        transformer: nn.Module,
        frame: Frame,
        positions: str = "model",
        dropout: float | None = None,
        padding: int = 0,
    ) -> None:
        super().__init__()
        if getattr(getattr(transformer, "embeddings", None), "position_embeddings", None) is None:
            raise OpencseError(
                f"template denoising needs position embeddings, which {type(transformer).__name__} lacks",
                "Switch it off with --set encoder.denoising=none.",
            )
        # In a tuple, so that PyTorch does not register it as a part of this module.
        self._transformer = (transformer,)
        if frame.mask is None:
            raise ValueError("the frame has no mask")
        self.frame = frame
        self._mask = frame.mask
        self._dropout = dropout
        self._start = 0 if positions == "zero" else first_position(transformer)
        self._padding = padding if positions == "padding" else None

    def delta(self, lengths: Tensor) -> Tensor:
        """Return δ(ℓ), (n, width), for the numbers of tokens ℓ of n sentences, in one pass.

        In training mode dropout applies, with one mask for all sentences of one length, and
        gradients flow. The lengths should be on the CPU: if they are not, the process waits for
        their device.
        """
        distinct, inverse = lengths.cpu().unique(return_inverse=True)
        if self._padding is None:
            ids, mask, positions = self._shifted(distinct)
        else:
            ids, mask, positions = self._padded(distinct, self._padding)

        model: Any = self._transformer[0]
        device = next(model.parameters()).device
        with dropout_rate(model, self._dropout):
            output = model(
                input_ids=move(ids, device),
                attention_mask=move(mask, device),
                position_ids=move(positions, device),
            )
        place = torch.full_like(distinct, len(self.frame.before) + self._mask)
        if self._padding is not None:
            place += distinct
        rows = torch.arange(len(distinct), device="cpu")
        vectors = output.last_hidden_state[move(rows, device), move(place, device)]
        return vectors[move(inverse, device)]

    def _shifted(self, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ids, attention mask and positions of the template, its second part after ℓ positions, each (n, L)."""
        before = len(self.frame.before)
        template = torch.tensor([*self.frame.before, *self.frame.after], device="cpu")
        ids = template.expand(len(lengths), -1)
        positions = torch.arange(ids.shape[1], device="cpu").expand(len(lengths), -1).clone()
        positions[:, before:] += lengths[:, None]
        return ids, torch.ones_like(ids), positions + self._start

    def _padded(self, lengths: Tensor, padding: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the same of the template around ℓ padding tokens, which are attended to."""
        longest = len(self.frame) + int(lengths.max())
        ids = torch.full((len(lengths), longest), padding, device="cpu")
        mask = torch.zeros_like(ids)
        before = torch.tensor(self.frame.before, device="cpu")
        after = torch.tensor(self.frame.after, device="cpu")
        for row, length in enumerate(lengths.tolist()):
            end = len(before) + length
            ids[row, : len(before)] = before
            ids[row, end : end + len(after)] = after
            mask[row, : end + len(after)] = 1
        if self._start == 0:
            return ids, mask, torch.arange(longest, device="cpu").expand_as(ids)
        # RoBERTa counts no padding, and gives it the position before the first one.
        real = ids != padding
        return ids, mask, real.long().cumsum(dim=1) * real + self._start - 1

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Subtract δ(ℓ) from `sentence_embedding`."""
        lengths = features["attention_mask"].sum(1) - len(self.frame)
        vectors = features["sentence_embedding"]
        features["sentence_embedding"] = vectors - self.delta(lengths).to(vectors.dtype)
        return features
