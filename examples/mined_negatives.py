"""SimCSE with negatives mined from the corpus: python examples/mined_negatives.py [OUT] [STEPS]

The recipe extends a packaged one. Its negatives are drawn before training, from sentences that
are neither too similar nor too different.
"""

import sys
from pathlib import Path

import opencse

RECIPE = """
extends = "simcse"
title = "SimCSE with two mined negatives"

[build.negative]
kind = "debiased_negatives"
model = "minilm"
count = 2
window = [0.25, 0.75]

[views]
negative_1 = { text = "negative_1", optional = true }
negative_2 = { text = "negative_2", optional = true }

[losses.info_nce]
negatives = ["negative_1", "negative_2"]
"""

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "mined-negatives-out")), int(arguments.get(2, 30))
    out.mkdir(parents=True, exist_ok=True)
    (out / "mined.toml").write_text(RECIPE, encoding="utf-8")
    result = opencse.run(
        out / "mined.toml",
        "demo",
        backbone="minilm",
        out=out / "run",
        pairs="demo",
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print(
        "Spearman before:", result.before["pairs"].average, "after:", result.after["pairs"].average
    )
