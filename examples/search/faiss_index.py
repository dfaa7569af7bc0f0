"""Search with FAISS: python examples/search/faiss_index.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`; TEXTS a file with one text in each
line.
"""

import sys

import faiss

from opencse.debias.meaning_block import MeaningBlock
from opencse.encoder import load_encoder
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    model = load_encoder(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    vectors = model.encode(texts, normalize_embeddings=True)
    index = faiss.IndexFlatIP(vectors.shape[1])  # inner products of unit vectors are cosines
    index.add(vectors)

    wanted = model.encode([query], normalize_embeddings=True)
    scores, rows = index.search(wanted, min(100, len(texts)))
    if isinstance(model[-1], MeaningBlock):  # contradictions of the query fall behind
        scores = model[-1].similarity(wanted, vectors[rows[0]]).numpy()
    for place in (-scores[0]).argsort(kind="stable")[:3]:
        print(f"{scores[0][place]:.2f}  {texts[rows[0][place]]}")
