"""Debias all-MiniLM-L6-v2 on the sample sentences: python examples/debias.py [OUT] [STEPS]

It prints two cosines before and after: the negation should end up closer to the antonym than to
the sentence. For a real model, use your own text, 100,000 sentences or more.
"""

import sys
from pathlib import Path

import opencse
from opencse.encoder import load_encoder

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "debias-out")), int(arguments.get(2, 30))
    result = opencse.run(
        "debias",
        "demo",
        backbone="minilm",
        out=out,
        pairs="demo",
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    sentence, negation, antonym = (
        "The road is safe.",
        "The road is not safe.",
        "The road is dangerous.",
    )
    for label, folder in (("before", "minilm"), ("after", result.run.model)):
        model = load_encoder(folder)
        a, b, c = model.encode([negation, sentence, antonym])
        near, right = model.similarity(a, b).item(), model.similarity(a, c).item()
        print(
            f"{label}: '{negation}' has cosine {near:.2f} with '{sentence}', {right:.2f} with '{antonym}'"
        )
    print("report:", result.report)
