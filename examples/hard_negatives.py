"""HiNCE with your own hard negatives: python examples/hard_negatives.py [OUT] [STEPS]

The corpus has two columns: each sentence, and one that is close in wording and means something
else. Here the negation rules write it; you can also use a file with a column `negative`.
"""

import sys
from pathlib import Path

import opencse
from opencse.text.corpus import Corpus, demo_path
from opencse.text.views.registry import VIEWS, build_views

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "hard-negatives-out")), int(arguments.get(2, 30))
    corpus = Corpus(demo_path("demo", "sentences.txt"))
    views = build_views(corpus, {"negative": VIEWS["negation"]()}, out / "columns")
    recipe = opencse.load_recipe(
        "hince", family="minilm", overrides=[f"training.max_steps={steps}"]
    )
    result = opencse.run(
        recipe, views.path, backbone="minilm", out=out / "run", pairs="demo", overwrite=True
    )
    for label, suite in (("before", result.before), ("after", result.after)):
        kinds = suite["pairs"].results[0].details["subsets"]
        print(label, {kind: round(values["cosine_mean"], 2) for kind, values in kinds.items()})
