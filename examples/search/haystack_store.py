"""Search with Haystack: python examples/search/haystack_store.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`. TEXTS is a file with one text per line.
Haystack's telemetry is switched off here.
"""

import os
import sys

from opencse import Reranker
from opencse.text.corpus import Corpus, demo_path

if __name__ == "__main__":
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # is read when haystack is imported
    from haystack import Document, Pipeline, component
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class PairScoreRanker:
        """opencse's reranker as Haystack's ranker."""

        def __init__(self, reranker: Reranker, top_k: int = 3) -> None:
            self.reranker = reranker
            self.top_k = top_k

        @component.output_types(documents=list[Document])
        def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
            texts = [document.content or "" for document in documents]
            ranked = []
            for hit in self.reranker.rank(query, texts, top_k=self.top_k):
                document = documents[hit["corpus_id"]]
                ranked.append(
                    Document(id=document.id, content=document.content, score=hit["score"])
                )
            return {"documents": ranked}

    arguments = dict(enumerate(sys.argv))
    reranker = Reranker(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")
    texts = list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts())

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    documents = []
    for text, vector in zip(texts, reranker.model.encode(texts).tolist(), strict=True):
        documents.append(Document(content=text, embedding=vector))
    store.write_documents(documents)

    search = Pipeline()
    search.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=100))
    search.add_component("ranker", PairScoreRanker(reranker))
    search.connect("retriever.documents", "ranker.documents")
    vector = reranker.model.encode(query).tolist()
    found = search.run({"retriever": {"query_embedding": vector}, "ranker": {"query": query}})
    for hit in found["ranker"]["documents"]:
        print(f"{hit.score:.2f}  {hit.content}")
