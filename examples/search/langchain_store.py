"""Search with LangChain: python examples/search/langchain_store.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`; TEXTS a file with one text in each
line. `HuggingFaceEmbeddings` of the package langchain-huggingface takes the same folder, if you
have that package.
"""

import sys

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from sentence_transformers import SentenceTransformer

from opencse.encoder import load_encoder
from opencse.text.corpus import Corpus, demo_path


class SentenceEmbeddings(Embeddings):
    """A sentence-transformers model as LangChain's embeddings."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.model.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.model.encode(text).tolist()


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    model = load_encoder(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")

    store = InMemoryVectorStore(SentenceEmbeddings(model))
    store.add_texts(list(Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts()))
    for document, cosine in store.similarity_search_with_score(query, k=3):
        print(f"{cosine:.2f}  {document.page_content}")
