"""SimCSE on the sample sentences: python examples/simcse.py [OUT] [STEPS]

Two dropout masks of one sentence are a positive pair; the other sentences of the batch are its
negatives. The sample is small and the model is already good, so expect a run, not a gain.
"""

import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer

import opencse

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "simcse-out")), int(arguments.get(2, 30))
    result = opencse.run(
        "simcse",
        "demo",
        backbone="minilm",
        out=out,
        pairs="demo",
        overwrite=True,
        overrides=[f"training.max_steps={steps}", "training.seed=1"],
    )
    print(
        "Spearman before:", result.before["pairs"].average, "after:", result.after["pairs"].average
    )

    model = SentenceTransformer(str(result.run.model))
    valve, paraphrase, contradiction = model.encode(
        ["The valve is open.", "The valve is not closed.", "The valve is closed."]
    )
    print(f"cosine to the paraphrase {model.similarity(valve, paraphrase).item():.2f}")
    print(f"cosine to the contradiction {model.similarity(valve, contradiction).item():.2f}")
