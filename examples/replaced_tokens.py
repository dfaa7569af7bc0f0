"""DiffCSE: find replaced tokens with the sentence vector: python examples/replaced_tokens.py [OUT] [STEPS]

A masked language model replaces some tokens, and a discriminator that reads the sentence vector
finds them.
"""

import sys
from pathlib import Path

import opencse
from opencse.text.corpus import demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "replaced-tokens-out")), int(arguments.get(2, 30))
    run = opencse.train(
        "diffcse",
        "demo",
        backbone="mini-mlm",
        out=out,
        dev=demo_path("demo", "pairs.tsv"),
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print("Spearman before:", run.outcome.first_score, "after:", run.outcome.best_score)
