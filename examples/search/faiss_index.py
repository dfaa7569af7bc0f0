"""Search with FAISS: python examples/search/faiss_index.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`. TEXTS is a file with one text per line.
The first hundred hits are reranked from what was stored next to their vectors: no text is
encoded again.
"""

import sys

import faiss

from opencse import Reranker
from opencse.debias.payload import score
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    reranker = Reranker(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    stored = reranker.parts(texts).int8()  # vectors for the index, 200 bytes of payload for each
    index = faiss.IndexFlatIP(stored.vectors.shape[1])  # inner products of unit vectors are cosines
    index.add(stored.vectors)

    asked = reranker.parts([query])
    _, rows = index.search(asked.vectors, min(100, len(texts)))
    scores = score(asked, stored[rows[0]])[0]
    for place in (-scores).argsort(kind="stable")[:3]:
        print(f"{scores[place]:.2f}  {texts[rows[0][place]]}")
