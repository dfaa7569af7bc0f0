"""Train a small masked language model from text, or continue a given one on your text.

    python scripts/make_mini_mlm.py corpus.txt -o new/
    python scripts/make_mini_mlm.py domain.txt -o adapted/ --model bert-base-uncased
    opencse run simcse domain.txt --backbone adapted/ -o out/

CORPUS has one sentence per line, or a column `text` (JSONL, CSV, Parquet). OUT/model is the trained
model, which
opencse takes as a backbone. A new model has the architecture and the settings of the bundled `mini-mlm`: a BERT of 4
layers of 256, and 12,000 lower-cased word pieces. That one saw 1.3 million sentences, in 20,000
steps and 3.3 hours on one core. A continued model keeps its architecture and its vocabulary.

Whole words are masked, so that a word's other pieces do not give it away. One line in a hundred
(2,000 at most) is held out; the perplexity of its masked tokens is printed. OUT/checkpoints is
written every 250 steps, and --resume continues from the last one. Its weights are safetensors, but
transformers writes the optimizer's state and the random state as pickles, and reads them without
running code in them; resume in folders of your own only.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint

from opencse.encoder.loading import load_masked_lm
from opencse.foundation.errors import OpencseError
from opencse.text.corpus import Corpus

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ALPHABET = 400  # words with rarer characters become [UNK]
SHAPE = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
POSITIONS = 256
DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
NEW = {"learning_rate": 1.5e-3, "adam_beta2": 0.98, "lr_scheduler_type": "warmup_stable_decay"}
CONTINUED = {"learning_rate": 1e-4, "lr_scheduler_type": "linear"}


def learn_vocabulary(texts: list[str], size: int) -> BertTokenizer:
    """Learn a lower-cased WordPiece vocabulary; the same texts give the same one.

    The trainer numbers the characters that continue a word in the order of a hash table, and breaks
    ties by these numbers. It gets them in a fixed order instead.
    """
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer, raw.pre_tokenizer = (
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    )
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update("".join(raw.normalizer.normalize_str(text).split()))
    letters = sorted(sorted(counts, key=lambda c: (-counts[c], c))[:ALPHABET])
    fixed = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters if letter.isalnum())]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, initial_alphabet=letters, limit_alphabet=len(letters), special_tokens=fixed
    )
    raw.train_from_iterator(texts, trainer)
    if raw.get_vocab_size() != size:
        raise OpencseError(
            f"the text yields {raw.get_vocab_size()} word pieces, not {size}", "Pass more text."
        )
    return BertTokenizer(vocab=raw.get_vocab(), model_max_length=POSITIONS)


def new_model(tokenizer: BertTokenizer) -> BertForMaskedLM:
    """Return a BERT with random weights; in so few epochs nothing overfits, and dropout would only slow it down."""
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=POSITIONS, **SHAPE)
    for name in DROPOUT:
        setattr(config, name, 0.0)
    return BertForMaskedLM(config)


class WholeWordCollator:
    """Tokenises texts and masks whole words; every chosen token becomes the mask token."""

    def __init__(self, tokenizer: Any, max_length: int, rate: float) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length
        self.mask = DataCollatorForLanguageModeling(
            tokenizer,
            mlm_probability=rate,
            whole_word_mask=True,
            mask_replace_prob=1,
            random_replace_prob=0,
        )

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return ids, attention mask and labels (-100 where nothing is predicted), each (rows, longest)."""
        options = {"return_special_tokens_mask": True, "return_offsets_mapping": True}
        texts = [row["text"] for row in rows]
        batch = self.tokenizer(
            texts, truncation=True, max_length=self.max_length, padding=True, **options
        )
        return self.mask(
            [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        )


def dataset(texts: list[str]) -> Dataset:
    """Return the texts with their lengths, by which batches of similar length are made."""
    return Dataset.from_dict({"text": texts, "length": [len(text) for text in texts]})


def save(model: Any, tokenizer: Any, folder: Path, new: bool) -> None:
    """Write the model; a new one as 16-bit floats, which load as 32-bit ones, and with BERT's dropout."""
    if new:
        for name in DROPOUT:
            setattr(model.config, name, 0.1)
        model.half()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    place = folder / "config.json"
    config = json.loads(place.read_text(encoding="utf-8")) | {"dtype": "float32"}
    place.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def train(args: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    checkpoints = args.out / "checkpoints"
    last = get_last_checkpoint(str(checkpoints)) if args.resume and checkpoints.is_dir() else None
    if args.resume and last is None:
        raise OpencseError(f"{args.out}: holds no checkpoint to resume", "Leave out --resume.")
    if not args.resume and args.out.exists() and any(args.out.iterdir()):
        raise OpencseError(
            f"{args.out}: is not empty", "Use --resume to continue, or another folder."
        )
    texts = [text for (text,) in Corpus(args.corpus).rows(("text",)) if text]
    held_out = texts[::100][:2000]
    texts = [text for i, text in enumerate(texts) if i % 100 or i >= 200_000]
    set_seed(args.seed)
    new = args.model is None
    if new:
        tokenizer = (
            AutoTokenizer.from_pretrained(last)
            if last
            else learn_vocabulary(texts, args.vocabulary)
        )
        model, batch, rate, length = new_model(tokenizer), 64, 0.25, POSITIONS
        # Encoders see single sentences; longer inputs train the later positions.
        texts += [" ".join(texts[i : i + 8]) for i in range(0, len(texts), 80)]
    else:
        model, tokenizer = load_masked_lm(args.model)
        batch, rate, length = 32, 0.2, min(128, tokenizer.model_max_length)
    if len(texts) < batch:
        raise OpencseError(
            f"{args.corpus}: {len(texts)} sentences are too few for a batch of {batch}"
        )
    steps = args.steps or math.ceil(len(texts) / batch)
    settings: dict[str, Any] = dict(NEW if new else CONTINUED)
    if new:
        settings["lr_scheduler_kwargs"] = {
            "num_decay_steps": math.ceil(steps / 4),
            "decay_type": "linear",
        }
    trainer = Trainer(
        model,
        TrainingArguments(
            output_dir=str(checkpoints),
            max_steps=steps,
            warmup_steps=min(400, steps // 10) if new else math.ceil(0.06 * steps),
            per_device_train_batch_size=batch,
            per_device_eval_batch_size=batch,
            weight_decay=0.01,
            adam_epsilon=1e-6,
            train_sampling_strategy="group_by_length",
            remove_unused_columns=False,
            save_steps=250,
            save_total_limit=2,
            logging_steps=50,
            report_to="none",
            seed=args.seed,
            bf16=args.bf16,
            use_cpu=not torch.accelerator.is_available(),  # else bf16 is refused
            **settings,
        ),
        data_collator=WholeWordCollator(tokenizer, length, rate),
        train_dataset=dataset(texts),
        eval_dataset=dataset(held_out),
        processing_class=tokenizer,
    )
    trainer.train(resume_from_checkpoint=last)
    perplexity = math.exp(trainer.evaluate()["eval_loss"])
    save(model, tokenizer, args.out / "model", new)
    print(f"perplexity of masked tokens in {len(held_out):,} held-out sentences: {perplexity:.1f}")
    print(f"model: {args.out / 'model'}   use it with --backbone {args.out}")


def main(arguments: list[str] | None = None) -> None:
    """Read the command line; bad input is one line and exit code 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "corpus", type=Path, help="the text: one sentence per line, or a table with a column `text`"
    )
    parser.add_argument(
        "-o", "--out", type=Path, required=True, help="a new folder for checkpoints and model"
    )
    parser.add_argument(
        "--model", help="continue this masked language model (folder, hub id, or mini-mlm)"
    )
    parser.add_argument(
        "--steps", type=int, help="optimiser steps (default: one pass over the text)"
    )
    parser.add_argument(
        "--vocabulary", type=int, default=12_000, help="word pieces of a new model (default: 12000)"
    )
    parser.add_argument(
        "--seed", type=int, default=42, help="seed of all random choices (default: 42)"
    )
    parser.add_argument(
        "--bf16", action="store_true", help="multiply in bf16: faster on hardware that has it"
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue from the last checkpoint in OUT"
    )
    try:
        train(parser.parse_args(arguments))
    except OpencseError as error:
        print(f"make_mini_mlm.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
