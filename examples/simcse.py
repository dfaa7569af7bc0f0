"""SimCSE on the sample sentences, from Python: python examples/simcse.py OUT

Two dropout masks of one sentence are a positive pair, the other sentences of the batch are negatives. The sample
sentences are few, and the backbone is good already: expect a run, not a gain.
"""

import sys

from sentence_transformers import SentenceTransformer

import opencse

if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "simcse-out"
    recipe = opencse.load_recipe("simcse", family="minilm", overrides=["training.seed=1"])
    result = opencse.run(recipe, "demo", backbone="minilm", out=out, pairs="demo", overwrite=True, notify=print)
    print("Spearman before:", result.before["pairs"].average, "after:", result.after["pairs"].average)

    model = SentenceTransformer(str(result.run.model))
    a, b, c = model.encode(["The valve is open.", "The valve is not closed.", "The valve is closed."])
    to_paraphrase, to_contradiction = model.similarity(a, b).item(), model.similarity(a, c).item()
    print(f"cosine to its paraphrase {to_paraphrase:.2f}, to its contradiction {to_contradiction:.2f}")
