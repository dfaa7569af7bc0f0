"""PromptBERT: the vector at the mask of a template: python examples/templates.py [OUT] [STEPS]

It needs a masked language model, such as the small one in the package.
"""

import sys
from pathlib import Path

import opencse
from opencse.text.corpus import demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "templates-out")), int(arguments.get(2, 30))
    run = opencse.train(
        "promptbert",
        "demo",
        backbone="mini-mlm",
        out=out,
        dev=demo_path("demo", "pairs.tsv"),
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print("Spearman before:", run.outcome.first_score, "after:", run.outcome.best_score)
