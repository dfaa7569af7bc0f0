"""The model card of a pre-trained model."""

from __future__ import annotations

from typing import Any

from opencse.pretraining.settings import Pretraining
from opencse.runs.loop import TrainingOutcome

_TEMPLATE = """---
library_name: transformers
pipeline_tag: fill-mask
tags:
- fill-mask
- opencse
---

# A masked language model

{origin}

```python
from transformers import pipeline

pipeline("fill-mask", model="path/to/this/folder")("A sentence with a [MASK].")
```

It is also a backbone: `opencse run simcse CORPUS --backbone path/to/this/folder -o out/`.

| | |
|---|---|
| Parameters | {parameters:,} |
| Training text | {corpora}: {sentences:,} sentences, and {held_out:,} held out |
| Steps | {steps:,} of {batch} sentences, peak learning rate {lr:g}, seed {seed}, {precision} |
| Masked | {rate:.0%} of the {unit} |
| Accuracy on held-out masked tokens | {accuracy} |
| Training time | {seconds:.0f} s |

All settings are in `settings.toml`, and the environment in `environment.json`, beside this folder.
"""


def masked_lm_card(settings: Pretraining, record: dict[str, Any], outcome: TrainingOutcome) -> str:
    """Return the model card: data, settings and scores."""
    backbone = record["backbone"]
    training = settings.training
    return _TEMPLATE.format(
        origin="Trained from scratch by opencse." if backbone is None else f"`{backbone}`, trained further by opencse.",
        parameters=record["parameters"],
        corpora=", ".join(f"`{c}`" for c in record["corpora"]),
        sentences=record["sentences"],
        held_out=record["held_out"],
        steps=outcome.steps,
        batch=training.batch_size,
        lr=settings.optimizer.lr,
        seed=training.seed,
        precision=training.precision,
        rate=settings.masking.rate,
        unit="tokens, whole words at a time" if settings.masking.whole_words else "tokens",
        accuracy="not measured" if outcome.best_score is None else f"{outcome.best_score:.1f} %",
        seconds=outcome.seconds,
    )
