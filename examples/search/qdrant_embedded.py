"""Search with Qdrant inside this process: python examples/search/qdrant_embedded.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`; TEXTS a file with one text in each
line. Replace ":memory:" by `path="folder"` to keep the index, or by `url="http://localhost:6333"`
for a server.
"""

import sys

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from opencse.encoder import load_encoder
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    model = load_encoder(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    client = QdrantClient(":memory:")
    vectors = model.encode(texts)
    client.create_collection("texts", VectorParams(size=vectors.shape[1], distance=Distance.COSINE))
    points = [
        PointStruct(id=row, vector=vector.tolist(), payload={"text": text})
        for row, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    client.upsert("texts", points)

    for hit in client.query_points("texts", query=model.encode(query).tolist(), limit=3).points:
        print(f"{hit.score:.2f}  {hit.payload['text']}")
