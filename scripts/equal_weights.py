"""Train six recipes for 20 steps each, and print a hash of their weights.

    python scripts/equal_weights.py [RECIPE ...]

Run it before and after a change of the training code: a refactoring must not change a single bit.
Each recipe is trained twice, the second time interrupted after 13 steps and resumed; both hashes must
be the same. To measure another checkout, point PYTHONPATH at its `src`.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

import opencse
from opencse.training.batches import BatchSampler

RECIPES = ("simcse", "osscse", "diffcse", "debcse", "san-rankcse", "debias")
ROWS = 80
STEPS = 20
STOPPED_AT = 13
SETTINGS = (
    "training.batch_size=8",
    "training.epochs=2",
    f"training.max_steps={STEPS}",
    "training.precision=fp32",
    "training.log_every=3",
    "training.checkpoint_every=4",
)
# The meaning block stands beside a model that already has sentence vectors.
OVERRIDES = {"debias": ("encoder.pooling=mean",)}

WHO = ("The old gardener", "A young nurse", "My neighbour", "The train driver", "Our teacher")
WHAT = ("repairs", "paints", "carries", "describes", "sells", "cleans", "forgets", "measures")
WHICH = ("the wooden gate", "a broken lamp", "her red bicycle", "the heavy box", "an empty bottle")
WHEN = ("every morning", "after lunch", "on rainy days", "without any help", "in a great hurry")
# The text columns that the six recipes read; the base column is `text`.
COLUMNS = (
    "paraphrase positive_1 positive_2 negation negative_1 negative_2 substitution "
    "same_paraphrase same_negation same_antonym reordered roles_kept roles_exchanged swapped "
    "claim_reworded claim_opposed claim_opposed_reworded claim_exchanged negative_word antonym_swap "
    "number entity related_1 related_2 related_3 keywords passage question topic_question"
).split()


def write_table(path: Path) -> None:
    """Write rows of sentences; every fifth row lacks the columns besides `text`."""
    draw = random.Random(5)
    with path.open("w", encoding="utf-8") as file:
        for number in range(ROWS):
            row: dict[str, str | None] = {"text": f"{sentence(draw)} ({number})."}
            for column in COLUMNS:
                row[column] = None if number % 5 == 0 else f"{sentence(draw)}."
            file.write(json.dumps(row) + "\n")


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choice(words) for words in (WHO, WHAT, WHICH, WHEN))


def train(recipe: str, table: Path, out: Path, *, resume: bool = False) -> None:
    opencse.train(
        recipe,
        table,
        backbone="mini-mlm",
        out=out,
        overrides=[*SETTINGS, *OVERRIDES.get(recipe, ())],
        resume=resume,
        progress=False,
        notify=lambda line: None,
    )


def train_interrupted(recipe: str, table: Path, out: Path) -> None:
    """Train until the process is interrupted, as by Ctrl-C, then resume."""
    original = BatchSampler.batch

    def interrupting(self: BatchSampler, step: int) -> np.ndarray:
        # The check on two rows before the first step also asks for a batch, but only for step 0.
        if step == STOPPED_AT:
            raise KeyboardInterrupt
        return original(self, step)

    BatchSampler.batch = interrupting  # type: ignore[method-assign]
    try:
        train(recipe, table, out)
    except KeyboardInterrupt:
        pass
    finally:
        BatchSampler.batch = original  # type: ignore[method-assign]
    train(recipe, table, out, resume=True)


def weights_digest(out: Path) -> str:
    """Return the SHA-256 of all weight files of the saved model."""
    digest = hashlib.sha256()
    for path in sorted((out / "model").rglob("*.safetensors")):
        digest.update(str(path.relative_to(out)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.jsonl"
        write_table(table)
        for recipe in sys.argv[1:] or RECIPES:
            whole = Path(folder) / recipe
            resumed = Path(folder) / f"{recipe}-resumed"
            train(recipe, table, whole)
            train_interrupted(recipe, table, resumed)
            digest = weights_digest(whole)
            same = (
                "resumed run equal" if weights_digest(resumed) == digest else "RESUMED RUN DIFFERS"
            )
            print(f"{recipe:12} {digest[:32]}  {same}", flush=True)


if __name__ == "__main__":
    main()
