"""Search with LlamaIndex: python examples/search/llama_index_store.py [MODEL] [QUERY] [TEXTS]

MODEL is a folder that opencse wrote, a hub id, or `minilm`. TEXTS is a file with one text per line.
`HuggingFaceEmbedding` of the package llama-index-embeddings-huggingface takes the same
folder, if you have that package.
"""

import sys

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import PrivateAttr
from sentence_transformers import SentenceTransformer

from opencse import Reranker
from opencse.text.corpus import Corpus, demo_path


class SentenceEmbedding(BaseEmbedding):
    """A sentence-transformers model as LlamaIndex's embedding."""

    _model: SentenceTransformer = PrivateAttr()

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__(embed_batch_size=64)
        self._model = model

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.encode(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._model.encode(text).tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class PairScore(BaseNodePostprocessor):
    """opencse's reranker as LlamaIndex's node postprocessor."""

    top_n: int = 3
    _reranker: Reranker = PrivateAttr()

    def __init__(self, reranker: Reranker, top_n: int = 3) -> None:
        super().__init__(top_n=top_n)
        self._reranker = reranker

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not nodes:
            return nodes
        texts = [node.get_content() for node in nodes]
        hits = self._reranker.rank(query_bundle.query_str, texts, top_k=self.top_n)
        return [
            NodeWithScore(node=nodes[hit["corpus_id"]].node, score=hit["score"]) for hit in hits
        ]


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    reranker = Reranker(arguments.get(1, "minilm"))
    query = arguments.get(2, "The road is not safe.")

    nodes = [
        TextNode(text=text)
        for text in Corpus(demo_path(arguments.get(3, "demo"), "sentences.txt")).texts()
    ]
    index = VectorStoreIndex(nodes, embed_model=SentenceEmbedding(reranker.model))
    hits = index.as_retriever(similarity_top_k=100).retrieve(query)
    for hit in PairScore(reranker).postprocess_nodes(hits, query_str=query):
        print(f"{hit.score:.2f}  {hit.text}")
