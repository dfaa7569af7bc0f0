"""The model card of a trained encoder, and what the card of its base model says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCardData, metadata_load

from opencse.encoder.model_folder import OLDEST
from opencse.recipes import Recipe
from opencse.training.session import TrainingOutcome

_HEADER = """---
{metadata}
---

# {title}

{summary}

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder"{trust})
embeddings = model.encode(["A sentence.", "Another one."])
```

It loads in sentence-transformers {oldest} and later.

"""
_BLOCK = """## Strength

A vector is [e; βz; 0] / √(1 + β²). Its first half is that of the backbone, which `truncate_dim` at half the length
gives back; its second half is a meaning vector. `meaning_block.py` has the formula and the upgrade of an index, and
runs nothing but this module; with opencse installed, `opencse.encoder.load_encoder` loads the model without running it.

The strength is β = {chosen:g}, the largest at which no guard loses more than {tolerance:g} points. It is a number in
the block's `config.json`, or:

```python
model[-1].strength = 0.3
```

{table}

"""
_RUN = """| | |
|---|---|
| Backbone | `{backbone}` ({family}) |
| Method | {paper} |
| Training text | `{corpus}`, {rows} rows |
| Steps | {steps}, batch {batch}, peak learning rate {lr:g}, seed {seed}, {precision} |
| Weights kept | {kept} |
| Development score before the first step | {first} |
| Training time | {seconds:.0f} s |

The resolved recipe is in `recipe.toml` and the environment in `environment.json` beside this folder.

## Limits

Trained on text of at most {length} tokens. Longer input, other languages and other kinds of text than the above were
not measured. {differs}
"""


def encoder_card(
    recipe: Recipe, record: dict[str, Any], outcome: TrainingOutcome, *, language: str | None = None
) -> str:
    """Return the model card: metadata for a model hub, then method, data, settings and scores.

    Args:
        recipe: The resolved recipe.
        record: The content of `run.json`.
        outcome: Steps, scores and time.
        language: Code of the language of the training text.
    """
    kept = "of the last step"
    if outcome.best_step is not None:
        kept = f"of step {outcome.best_step}, Spearman {outcome.best_score:.2f} on the development pairs"
    summary = f"A sentence encoder trained without labels by opencse, recipe `{recipe.name}` ({recipe.variant})."
    name, license = base_model(record["backbone"])
    metadata = ModelCardData(
        language=language,
        license=license,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "opencse"],
        base_model=name,
    )
    header = _HEADER.format(
        metadata=metadata.to_yaml().strip(),
        title=recipe.title,
        summary=summary,
        oldest=OLDEST,
        trust="" if outcome.curve is None else ", trust_remote_code=True",
    )
    if outcome.curve is not None:
        chosen, tolerance = outcome.curve.chosen, outcome.curve.tolerance
        header += _BLOCK.format(
            chosen=chosen, tolerance=tolerance, table=replace(outcome.curve.table(), title="").markdown().rstrip()
        )
    return header + _RUN.format(
        backbone=record["backbone"],
        family=recipe.family,
        paper=recipe.paper or "own",
        corpus=record["corpus"],
        rows=f"{record['rows']:,}",
        steps=f"{outcome.steps:,}",
        batch=recipe.training.batch_size,
        lr=recipe.optimizer.lr,
        seed=recipe.training.seed,
        precision=recipe.training.precision,
        length=recipe.encoder.max_length,
        differs=recipe.differs,
        kept=kept,
        first="none" if outcome.first_score is None else f"{outcome.first_score:.2f}",
        seconds=outcome.seconds,
    )


_BUNDLED = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")}


def base_model(name: str | Path) -> tuple[str | None, str | None]:
    """Return the hub id of the base model and the licence; None if unknown.

    Args:
        name: A hub id, a bundled name, or a folder, whose model card is read.
    """
    if str(name) in _BUNDLED:
        return _BUNDLED[str(name)]
    folder = Path(name)
    if not folder.is_dir():
        return (str(name) if re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(name)) else None), None
    card = next((path for path in (folder / "README.md", folder / "model" / "README.md") if path.is_file()), None)
    try:
        found = {} if card is None else metadata_load(card) or {}
    except (ValueError, yaml.YAMLError):
        return None, None
    base, license = found.get("base_model"), found.get("license")
    base = base[0] if isinstance(base, list) and base else base
    return (base if isinstance(base, str) else None), (license if isinstance(license, str) else None)
