"""Tiny random encoders with real tokenizers, written to a folder in well under a second.

`tiny_bert` has a lower-casing WordPiece tokenizer, `tiny_roberta` a byte-level BPE one: the two
families whose special tokens, padding ids and position offsets differ. Both folders hold a masked
language model (`BertForMaskedLM`, `RobertaForMaskedLM`), which `AutoModel` and
`AutoModelForMaskedLM` load alike. The weights come from a fixed seed; the caller's random state is
left as it was.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

WORDS = """
a the cat dog bird child man woman doctor teacher sits runs eats sings plays reads writes is are was not no never on in
under over with without and or but to from of for this that sentence means small big old young happy sad red blue green
house garden river street book song apple bread water today tomorrow quickly slowly very
""".split()


def tiny_bert(
    folder: str | Path, *, dropout: float = 0.1, layers: int = 2, width: int = 32, seed: int = 0
) -> Path:
    """Write a tiny BERT masked language model with a WordPiece tokenizer to `folder` and return the folder."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    vocabulary = list(
        dict.fromkeys(
            [*special, *pieces, *(f"##{p}" for p in pieces), *WORDS, "##s", "##ing", "##ed"]
        )
    )
    tokenizer = Tokenizer(
        models.WordPiece({t: i for i, t in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    marks = dict(
        zip(
            ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True
        )
    )
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, model_input_names=inputs, **marks
    )
    shape = _shape(layers, width, dropout)
    config = BertConfig(
        vocab_size=len(vocabulary), max_position_embeddings=64, pad_token_id=0, **shape
    )
    return _save(BertForMaskedLM, config, fast, Path(folder), seed)


def tiny_roberta(
    folder: str | Path, *, dropout: float = 0.1, layers: int = 2, width: int = 32, seed: int = 0
) -> Path:
    """Write a tiny RoBERTa masked language model with a byte-level BPE tokenizer to `folder` and return the folder."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(
        [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))], trainer
    )
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    marks = dict(zip(names, special, strict=True)) | {"cls_token": "<s>", "sep_token": "</s>"}
    inputs = ["input_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, model_input_names=inputs, **marks
    )
    config = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=64 + 2,  # RoBERTa's positions start at padding_idx + 1
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        **_shape(layers, width, dropout),
    )
    return _save(RobertaForMaskedLM, config, fast, Path(folder), seed)


def saved_encoder(folder: Path, *, seed: int = 0) -> Path:
    """Write a sentence-transformers model of `tiny_bert` with mean pooling below `folder` and return its folder."""
    from opencse.encoder import load_encoder

    load_encoder(tiny_bert(folder / "bert", seed=seed), pooling="mean").save(str(folder / "model"))
    return folder / "model"


def _shape(layers: int, width: int, dropout: float) -> dict[str, float]:
    """Settings of either family."""
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 2 * width,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "initializer_range": 0.2,  # wide enough that different sentences get clearly different vectors
    }


def _save(
    architecture: type, config: object, tokenizer: PreTrainedTokenizerFast, folder: Path, seed: int
) -> Path:
    """Initialise `architecture` from `seed` and save it with its tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = architecture(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
