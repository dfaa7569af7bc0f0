"""Vectors of the old width that follow meaning: python examples/same_width.py [OUT] [STEPS] [TEXTS]

The debiased model's vectors are turned so that their first half says most, and cut there. Old vectors cannot stay in
use. TEXTS is a file of some thousand sentences like yours, one per line; the sample only shows that it works. Nothing
is trained: STEPS is there for the sake of the other examples.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import Dense, Normalize

import opencse
from opencse.encoder import load_encoder, save_encoder
from opencse.text.corpus import Corpus, demo_path

STRENGTH = 0.5


def cut(model, texts):
    """Append the projection to the principal axes of the vectors of some texts."""
    axes = np.linalg.svd(model.encode(texts), full_matrices=False)[2]
    width = model.get_embedding_dimension()
    dense = Dense(width, width // 2, bias=False, activation_function=torch.nn.Identity())
    with torch.no_grad():
        dense.linear.weight[: len(axes)] = torch.from_numpy(axes[: width // 2])
    model.append(dense.to(model.device))
    model.append(Normalize())


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, texts = Path(arguments.get(1, "same-width-out")), arguments.get(3, demo_path("demo", "sentences.txt"))
    model = load_encoder(opencse.run("debias", backbone="minilm", out=out, overwrite=True).run.model)
    model[-1].strength = STRENGTH
    cut(model, list(Corpus(texts).texts()))
    save_encoder(model, out / "same-width")
    sentence, negation, antonym = "The road is safe.", "The road is not safe.", "The road is dangerous."
    a, b, c = load_encoder(out / "same-width").encode([negation, sentence, antonym])
    print(f"{len(a)} numbers: '{negation}' has cosine {a @ b:.2f} with '{sentence}', {a @ c:.2f} with '{antonym}'")
