"""Train one recipe on several models: python examples/backbones.py [OUT] [STEPS] [MODEL ...]"""

import sys
from pathlib import Path

import opencse

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "backbones-out")), int(arguments.get(2, 30))
    models = sys.argv[3:] or ["mini-mlm", "minilm"]
    for model in models:
        result = opencse.run(
            "simcse",
            "demo",
            backbone=model,
            out=out / Path(model).name,
            pairs="demo",
            overwrite=True,
            overrides=[f"training.max_steps={steps}"],
        )
        recipe = result.run.recipe
        print(model, recipe.family, recipe.encoder.pooling, recipe.optimizer.lr)
        print("before", result.before["pairs"].average, "after", result.after["pairs"].average)
