"""SNCSE: a margin between paraphrase and negation: python examples/negation_margin.py [OUT] [STEPS]

The grammar rules build a negation of each sentence; the loss keeps it less similar than the
positive, by a margin.
"""

import sys
from pathlib import Path

import opencse

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "negation-margin-out")), int(arguments.get(2, 30))
    result = opencse.run(
        "sncse",
        "demo",
        backbone="minilm",
        out=out,
        pairs="demo",
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print(
        "Spearman before:", result.before["pairs"].average, "after:", result.after["pairs"].average
    )
