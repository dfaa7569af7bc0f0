"""Search with Qdrant inside this process: python examples/search/qdrant_embedded.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`. TEXTS is a file with one text per line.
The first hundred hits are reranked from their payloads. Replace ":memory:" by
`path="folder"` to keep the index, or by `url="http://localhost:6333"` for a server.
"""

import sys

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from opencse import Reranker
from opencse.debias.payload import from_payloads, score
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    reranker = Reranker(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    client = QdrantClient(":memory:")
    stored = reranker.parts(texts).int8()
    size = stored.vectors.shape[1]
    client.create_collection("texts", VectorParams(size=size, distance=Distance.COSINE))
    points = []
    for row, text in enumerate(texts):
        payload = {"text": text, "parts": stored.payload(row)}
        points.append(PointStruct(id=row, vector=stored.vectors[row].tolist(), payload=payload))
    client.upsert("texts", points)

    asked = reranker.parts([query])
    vector = asked.vectors[0].tolist()
    hits = client.query_points("texts", query=vector, limit=100, with_vectors=True).points
    found = from_payloads([hit.vector for hit in hits], [hit.payload["parts"] for hit in hits])
    scores = score(asked, found)[0]
    for place in (-scores).argsort(kind="stable")[:3]:
        print(f"{scores[place]:.2f}  {hits[place].payload['text']}")
