"""Make `mini-mlm`, the small masked language model that comes with opencse.

    opencse pretrain CORPUS... -o FIRST [--set training.max_steps=...]
    opencse pretrain CORPUS... -o RUN --settings mini-mlm --backbone FIRST/model [--set ...]
    python scripts/make_mini_mlm.py FIRST RUN --out src/opencse/assets/mini-mlm

CORPUS is text, one sentence per line: for the model that is shipped, a million sentences of the English Wikipedia. This
script turns the last of the finished runs, each of which went on from the one before, into the folder that is shipped:
the weights as 16-bit floats, which load as 32-bit ones; the tokenizer; and a model card. It prints the checksum that
`opencse.models.names` holds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from opencse.io.files import replaced_folder, write_text
from opencse.pretraining.settings import load_settings

MOST = 14_000_000  # bytes of weights
TOKENIZER = (  # what its settings are; the rest is what it was last used with
    "backend cls_token do_lower_case mask_token model_max_length pad_token sep_token strip_accents "
    "tokenize_chinese_chars tokenizer_class unk_token"
).split()
TOKENS = 33  # of a sentence on average, with [CLS] and [SEP]

CARD = """---
language: en
license: cc-by-sa-4.0
library_name: transformers
pipeline_tag: fill-mask
tags:
- fill-mask
- opencse
---

# mini-mlm

A small masked language model of English, and the smallest real backbone of opencse: {layers} layers of {width},
{heads} heads, {pieces:,} lower-cased word pieces, {parameters:,} parameters, inputs of up to {positions} tokens. It
comes with the package and loads without a network.

```python
from opencse.models import resolve
from transformers import pipeline

pipeline("fill-mask", model=resolve("mini-mlm"))("The band released their first [MASK].")
```

`opencse run simcse CORPUS --backbone mini-mlm -o out/` trains a sentence encoder from it. It is meant for tests, first
runs and machines without a model hub. It saw some {seen:.0f} million tokens, where BERT saw thousands of times as many:
expect no knowledge of rare things, and no sentence vectors worth using before a contrastive step.

## Data, licence and attribution

{sentences:,} sentences of the English Wikipedia (articles of 2018 and 2021), of which it read {share:.2f} times as
many in all; another {held_out:,}, chosen by a hash of their text, were held out. The text is by Wikipedia contributors
and is used under [CC BY-SA](https://creativecommons.org/licenses/by-sa/4.0/); the weights and the vocabulary are given
under the same licence. No sentence of the text is in the package.

## Recipe and cost

`opencse pretrain`, settings `mini-mlm`:

{runs}

AdamW; {rate:.0%} of the tokens masked, whole words at a time (80 % `[MASK]`, 10 % random, 10 % kept); word embeddings
started from counts of words that occur together; no dropout; bf16 products with fp32 weights. {hours:.1f} hours on one
core of a machine that others were using.

Right guesses of masked tokens in held-out sentences at the end: {accuracy:.1f} % (with the masks of training). The docs
of opencse (`docs/measurements/mini-mlm.md`) have perplexities beside word counts, and how to measure them.
"""


def export(runs: list[Path], out: Path) -> str:
    """Write the folder; return the SHA-256 of its weights."""
    run = runs[-1]
    weights = load_file(run / "model" / "model.safetensors")
    halves = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    for name, tensor in halves.items():
        if not torch.isfinite(tensor).all():
            raise SystemExit(f"{name}: too large for 16-bit floats")
    config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    config = {k: v for k, v in config.items() if k not in ("transformers_version", "torch_dtype")}
    config["dtype"] = "float32"  # else transformers would compute in the type of the file
    with replaced_folder(out) as temporary:
        save_file(halves, temporary / "model.safetensors", metadata={"format": "pt"})
        write_text(temporary / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
        pieces = Tokenizer.from_file(str(run / "model" / "tokenizer.json"))
        pieces.no_truncation()
        pieces.no_padding()
        pieces.save(str(temporary / "tokenizer.json"))
        tokenizer = json.loads((run / "model" / "tokenizer_config.json").read_text(encoding="utf-8"))
        kept = {k: v for k, v in tokenizer.items() if k in TOKENIZER}
        write_text(temporary / "tokenizer_config.json", json.dumps(kept, indent=2, sort_keys=True) + "\n")
        write_text(temporary / "README.md", card(runs))
    for file in out.iterdir():
        file.chmod(0o644)
    size = (out / "model.safetensors").stat().st_size
    if size > MOST:
        raise SystemExit(f"{out}: {size:,} bytes of weights, more than {MOST:,}")
    print(f"{size:,} bytes of weights, {sum(f.stat().st_size for f in out.iterdir()):,} in all")
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def card(runs: list[Path]) -> str:
    records = [json.loads((run / "run.json").read_text(encoding="utf-8")) for run in runs]
    settings = [load_settings(run / "settings.toml") for run in runs]
    outcomes = [record["outcome"] for record in records]
    model, record = settings[0].model, records[-1]
    read = sum(outcome["steps"] * each.training.batch_size for outcome, each in zip(outcomes, settings, strict=True))
    return CARD.format(
        layers=model.layers,
        width=model.width,
        heads=model.heads,
        pieces=settings[0].vocabulary.size,
        parameters=record["parameters"],
        positions=model.positions,
        seen=read * TOKENS / 1e6,
        sentences=record["sentences"],
        share=read / record["sentences"],
        held_out=record["held_out"],
        runs="\n".join(map(recipe, settings, outcomes)),
        rate=settings[-1].masking.rate,
        hours=sum(outcome["seconds"] for outcome in outcomes) / 3600,
        accuracy=outcomes[-1]["best_score"],
    )


def recipe(settings, outcome: dict) -> str:
    schedule, training = settings.schedule, settings.training
    return (
        f"- {outcome['steps']:,} steps of {training.batch_size} sentences (seed {training.seed}; learning rate up to "
        f"{settings.optimizer.lr:g} in {schedule.warmup} steps, later linearly to 0)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print("SHA-256", export(arguments.runs, arguments.out))


if __name__ == "__main__":
    main()
