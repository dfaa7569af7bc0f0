"""HiNCE with hard negatives of your own, from Python: python examples/hard_negatives.py OUT

The corpus has two columns: each sentence, and one that is close in wording but means something else (or nothing). Here
the negation constructor makes it.
"""

import sys
from pathlib import Path

import opencse
from opencse.io import demo
from opencse.views import CONSTRUCTORS, build

if __name__ == "__main__":
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "hince-out")
    views = build(demo.corpus("demo"), {"negative": CONSTRUCTORS["negation"]()}, out / "columns")
    recipe = opencse.load_recipe("hince", family="minilm")
    result = opencse.run(recipe, views, backbone="minilm", out=out / "run", pairs="demo", overwrite=True, notify=print)
    for label, suite in (("before", result.before), ("after", result.after)):
        kinds = suite["pairs"].results[0].details["subsets"]
        print(label, {kind: round(values["cosine_mean"], 2) for kind, values in kinds.items()})
