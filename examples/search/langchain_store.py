"""Search with LangChain: python examples/search/langchain_store.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`. TEXTS is a file with one text per line.
`HuggingFaceEmbeddings` of the package langchain-huggingface takes the same folder, if you
have that package. `PairScore` is what `CrossEncoderReranker` takes as its model.
"""

import sys

from langchain_classic.retrievers.contextual_compression import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from sentence_transformers import SentenceTransformer

from opencse import Reranker
from opencse.text.corpus import Corpus, demo_path


class SentenceEmbeddings(Embeddings):
    """A sentence-transformers model as LangChain's embeddings."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.model.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.model.encode(text).tolist()


class PairScore(BaseCrossEncoder):
    """opencse's reranker as LangChain's cross-encoder."""

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return self.reranker.predict(text_pairs).tolist()


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    reranker = Reranker(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")

    store = InMemoryVectorStore(SentenceEmbeddings(reranker.model))
    store.add_texts(list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts()))
    retriever = ContextualCompressionRetriever(
        base_retriever=store.as_retriever(search_kwargs={"k": 100}),
        base_compressor=CrossEncoderReranker(model=PairScore(reranker), top_n=3),
    )
    for document in retriever.invoke(query):
        score = reranker.predict((query, document.page_content))
        print(f"{score:.2f}  {document.page_content}")
