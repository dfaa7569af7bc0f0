"""What stands around a sentence: special tokens, and prompt templates with a mask.

A template such as `'This sentence of "{}" means {mask}'` (PromptBERT, Jiang et al., EMNLP 2022) makes the vector at the
mask stand for the sentence. It is put around the sentence's *tokens*, so that no sentence, however long or odd, can
push the mask out or add another. The template ends at its mask: the exported model finds the mask as the last token,
with core sentence-transformers modules only. This drops the `. [SEP]` that PromptBERT has after the mask.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from opencse.errors import OpencseError

MASK = "{mask}"


@dataclass(frozen=True)
class Frame:
    """Token ids that stand before and after the tokens of a sentence."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def special_frame(tokenizer: Any) -> Frame:
    """The special tokens that a tokenizer puts around a single text, such as `[CLS]` and `[SEP]`."""
    probe = "a"
    bare = tokenizer(probe, add_special_tokens=False)["input_ids"]
    full = tokenizer(probe)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return Frame(tuple(full[:start]), tuple(full[start + len(bare) :]))
    raise OpencseError("the tokenizer changes a text when it adds its special tokens", "Use a BERT-like tokenizer.")


def template_frame(tokenizer: Any, prompt: str) -> Frame:
    """The ids around a sentence under a template that ends with `{mask}`.

    Args:
        tokenizer: A fast tokenizer that still knows its mask token.
        prompt: The template: `{}` for the sentence, then `{mask}` as its end.

    Raises:
        OpencseError: The template does not end with its only mask, or the tokenizer has none.
    """
    prefix, suffix = prompt.split("{}")
    if not suffix.endswith(MASK) or prompt.count(MASK) != 1:
        raise OpencseError(
            f"prompt '{prompt}': must hold {{mask}} once, at its end",
            "The exported model pools the last token; leave out a final period.",
        )
    if tokenizer.mask_token is None:
        raise OpencseError("the tokenizer has no mask token", "Use a masked language model for pooling = 'mask'.")
    start = special_frame(tokenizer).before
    before = tokenizer(prefix.strip(), add_special_tokens=False)["input_ids"]
    after = tokenizer(suffix.replace(MASK, tokenizer.mask_token), add_special_tokens=False)["input_ids"]
    if after.count(tokenizer.mask_token_id) != 1 or after[-1] != tokenizer.mask_token_id:
        raise OpencseError(f"prompt '{prompt}': this tokenizer does not make one mask of its end")
    return Frame((*start, *before), tuple(after))


def bake(tokenizer: Any, prompt: str) -> Any:
    """A copy of a tokenizer that puts the template around every text by itself.

    The copy does not know the mask token as such, so that a sentence that contains `[MASK]` is read as plain text. It
    is of the generic fast class: a model's own class rebuilds its post-processor at load and would lose the template.

    Args:
        tokenizer: A fast tokenizer.
        prompt: The template, which ends with `{mask}`.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    frame = template_frame(tokenizer, prompt)
    spec = json.loads(tokenizer.backend_tokenizer.to_str())
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] != tokenizer.mask_token]
    spec["padding"] = spec["truncation"] = None

    def piece(name: str, ids: tuple[int, ...]) -> dict[str, Any]:
        return {"id": name, "ids": list(ids), "tokens": tokenizer.convert_ids_to_tokens(list(ids))}

    sides = {"<before>": piece("<before>", frame.before), "<after>": piece("<after>", frame.after)}
    sequence = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    around = [{"SpecialToken": {"id": name, "type_id": 0}} for name in sides]
    spec["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [around[0], sequence[0], around[1]],
        "pair": sequence,
        "special_tokens": sides,
    }
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "bos_token", "eos_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(spec)),
        model_max_length=tokenizer.model_max_length,
        padding_side="right",
        model_input_names=tokenizer.model_input_names,
        **{name: token for name in names if (token := getattr(tokenizer, name)) is not None},
    )
