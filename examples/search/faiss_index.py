"""Search with FAISS: python examples/search/faiss_index.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`; TEXTS a file with one text in each line.
"""

import sys

import faiss

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

    cosines, rows = index.search(model.encode([query], normalize_embeddings=True), 3)
    for cosine, row in zip(cosines[0], rows[0], strict=True):
        print(f"{cosine:.2f}  {texts[row]}")
