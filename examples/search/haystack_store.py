"""Search with Haystack: python examples/search/haystack_store.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`; TEXTS a file with one text in each
line. Haystack's telemetry is switched off here.
"""

import os
import sys

from opencse.encoder import load_encoder
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # is read when haystack is imported
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    arguments = dict(enumerate(sys.argv))
    model = load_encoder(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    vectors = model.encode(texts).tolist()
    store.write_documents(
        [
            Document(content=text, embedding=vector)
            for text, vector in zip(texts, vectors, strict=True)
        ]
    )
    retriever = InMemoryEmbeddingRetriever(store, top_k=3)
    for hit in retriever.run(query_embedding=model.encode(query).tolist())["documents"]:
        print(f"{hit.score:.2f}  {hit.content}")
