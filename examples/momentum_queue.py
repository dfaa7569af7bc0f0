"""ESimCSE: repeated words and a queue of negatives: python examples/momentum_queue.py [OUT] [STEPS]

Some words of the positive are repeated, so its length does not reveal it.
"""

import sys
from pathlib import Path

import opencse

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "momentum-queue-out")), int(arguments.get(2, 30))
    result = opencse.run(
        "esimcse",
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
