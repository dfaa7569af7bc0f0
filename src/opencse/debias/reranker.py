"""`opencse.Reranker`: sorts the first hits of a search by what they claim, with each text encoded once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from opencse.debias import payload
from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.payload import CACHING, RANKING, Parts, Penalty, is_yes_no_question
from opencse.debias.shipped import append_block, shipped_block
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.loading import load_encoder
from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# `batch_size` is meant for texts of about so many tokens.
_TOKENS = 32


class Reranker:
    """Scores texts by topic and by what they claim, with the methods of a `CrossEncoder`.

    A cross-encoder reads every pair of query and document. This one encodes each text once, compares
    a few hundred numbers per pair, and can read those numbers from a database (`parts`).

    Args:
        model: A model with a meaning block: a folder that `opencse run debias` wrote, or a loaded
            `SentenceTransformer`. A model without one gets the block that comes with opencse, if
            there is one for it.
        precision: Precision of the encoding, as for `Embedder`.

    Raises:
        OpencseError: There is no such model, or no meaning block for it.

    Example:
        >>> reranker = Reranker("minilm")  # doctest: +SKIP
        >>> hits = ["The hotel has a pool.", "There is no pool at this hotel."]  # doctest: +SKIP
        >>> reranker.rank("hotel without a pool", hits)[0]["corpus_id"]  # doctest: +SKIP
        1
    """

    def __init__(
        self, model: str | Path | SentenceTransformer, *, precision: Precision = "fp32"
    ) -> None:
        self.model = _with_block(model)
        self.block = _block(self.model)
        self._embedder = Embedder(_packing(self.model, self.block), precision=precision)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> list[dict[str, Any]]:
        """Sort documents by their score with a query, the best first.

        Args:
            query: The query.
            documents: The texts to sort, such as the first hundred hits of a search.
            top_k: How many are returned; None for all.
            return_documents: Return the texts as well.
            batch_size: About how many texts are encoded at a time.
            show_progress_bar: Show the progress of the encoding.

        Returns:
            For each document a dictionary: its place in `documents` (`corpus_id`), its `score`, and
            with `return_documents` its `text`.
        """
        parts = self.parts([query, *documents], batch_size, show_progress_bar)
        scores = payload.score(parts[:1], parts[1:])[0]
        ranking = []
        for place in np.argsort(-scores, kind="stable")[:top_k]:
            hit: dict[str, Any] = {"corpus_id": int(place), "score": float(scores[place])}
            if return_documents:
                hit["text"] = documents[place]
            ranking.append(hit)
        return ranking

    def predict(
        self,
        pairs: Sequence[Sequence[str]],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        *,
        penalty: Penalty = RANKING,
    ) -> np.ndarray:
        """Return the score of each pair of texts, float32 (n,); of one pair, a single number.

        Args:
            pairs: The pairs, or one pair.
            batch_size: About how many texts are encoded at a time.
            show_progress_bar: Show the progress of the encoding.
            penalty: `CACHING` for a semantic cache, which compares a score with a threshold.
        """
        if _is_one_pair(pairs):
            one: Any = [pairs]
            return self.predict(one, batch_size, show_progress_bar, penalty=penalty)[0]
        sides = self._sides(pairs, batch_size, show_progress_bar)
        return payload.score_pairs(*sides, penalty)

    def agreement(
        self,
        pairs: Sequence[Sequence[str]],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> np.ndarray:
        """Return how far the texts of each pair claim the same, (n,): −1 the opposite, 1 the same.

        It means little if the texts are about different things, and if one of them is a yes/no
        question: `readings` says so.
        """
        if _is_one_pair(pairs):
            one: Any = [pairs]
            return self.agreement(one, batch_size, show_progress_bar)[0]
        return payload.agreement(*self._sides(pairs, batch_size, show_progress_bar))

    def readings(
        self,
        pairs: Sequence[Sequence[str]],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> list[str]:
        """Return in words what the agreement of each pair means, such as "says the opposite"."""
        return payload.readings(*self._sides(pairs, batch_size, show_progress_bar))

    def parts(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> Parts:
        """Return what to store of each text: its vector, and code and topic as payload next to it.

        `opencse.debias.payload.score` compares them later with NumPy alone.

        Raises:
            OpencseError: A text is not a string.
        """
        if isinstance(texts, str):
            raise OpencseError("parts takes a list of texts", f"Give [{texts[:40]!r}].")
        return self.unpacked(self.packed(texts, batch_size, show_progress_bar))

    def packed(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> np.ndarray:
        """Return vector, code, topic and whether it asks of each text in one row, float32 (n, …).

        For code that passes one matrix around, such as opencse's tasks, with `similarity`.
        """
        self._embedder.token_budget = batch_size * _TOKENS
        self._embedder.progress = "encoding" if show_progress_bar else None
        if not len(texts):
            return np.zeros((0, self.length + self._inner + 1), np.float32)
        asks = np.array([[float(is_yes_no_question(text))] for text in texts], np.float32)
        return np.concatenate([self._embedder.encode(texts), asks], axis=1)

    def unpacked(self, packed: np.ndarray) -> Parts:
        """Return what rows of `packed` hold; they may have been scaled."""
        vectors, code, topic, asks = np.split(
            np.asarray(packed),
            np.cumsum([self.length, self.block.config["code"], self.block.config["inner"]]),
            axis=1,
        )
        return Parts(vectors=vectors, code=code, topic=topic, asks=asks[:, 0] > 0)

    def similarity(
        self, first: np.ndarray, second: np.ndarray, penalty: Penalty = RANKING
    ) -> np.ndarray:
        """Return the scores of n and m rows of `packed`, (n, m)."""
        return payload.score(self.unpacked(first), self.unpacked(second), penalty)

    @property
    def length(self) -> int:
        """Length of the vectors."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def _inner(self) -> int:
        return int(self.block.config["code"]) + int(self.block.config["inner"])

    def _sides(
        self,
        pairs: Sequence[Sequence[str]],
        batch_size: int,
        show_progress_bar: bool | None,
    ) -> tuple[Parts, Parts]:
        """Return the parts of the first and of the second texts; each different text is encoded once."""
        for row, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise OpencseError(f"pair {row} is {pair!r}", "Give two texts in each pair.")
        first = [pair[0] for pair in pairs]
        second = [pair[1] for pair in pairs]
        parts = self.parts([*first, *second], batch_size, show_progress_bar)
        return parts[: len(first)], parts[len(first) :]


def reranker_of(model: SentenceTransformer, precision: Precision = "fp32") -> Reranker | None:
    """Return the reranker of a model that has a meaning block; None if it has none, or if its vectors are cut."""
    if _block(model) is None or model.truncate_dim is not None:
        return None
    return Reranker(model, precision=precision)


class _Packing(nn.Module):
    """Puts code and topic behind the vector, in place of the vector alone."""

    def __init__(self, code: int, inner: int) -> None:
        super().__init__()
        self.sizes = (code, inner)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        # A block that was loaded by the code in an older folder has the former name.
        name = "training_embedding" if "training_embedding" in features else "meaning_parts"
        _, _, code, topic = features[name].chunk(4, dim=-1)
        code_size, topic_size = self.sizes
        packed = [features["sentence_embedding"], code[:, :code_size], topic[:, :topic_size]]
        return {**features, "sentence_embedding": torch.cat(packed, dim=-1)}


def _block(model: nn.Module) -> Any:
    """Return the meaning block of a model, also one that was loaded by the code in its folder; None if it has none."""
    for module in model.children():
        if type(module).__name__ == MeaningBlock.__name__:
            return module
    return None


def _packing(model: SentenceTransformer, block: Any) -> SentenceTransformer:
    """Return a model of the same modules, whose vectors have code and topic behind them."""
    from sentence_transformers import SentenceTransformer

    head = _Packing(int(block.config["code"]), int(block.config["inner"]))
    packing = SentenceTransformer(
        modules=[*model, head],
        prompts=cast(dict[str, str], model.prompts),
        default_prompt_name=model.default_prompt_name,
        device=str(model.device),
    )
    return packing.eval()


def _with_block(given: Any) -> SentenceTransformer:
    """Return a model with a meaning block: its own, or the one that comes with opencse."""
    if isinstance(given, str | Path):
        model = load_encoder(given)
    elif hasattr(given, "encode") and isinstance(given, nn.Module):
        model = given  # type: ignore[assignment]
    else:
        raise OpencseError(
            f"a model of the type {type(given).__name__} cannot rerank",
            "Give a folder, a bundled name or a SentenceTransformer.",
        )
    if model.truncate_dim is not None:
        raise OpencseError(
            f"the vectors of this model are cut to {model.truncate_dim} numbers",
            "Load it without truncate_dim to rerank.",
        )
    if _block(model) is not None:
        return model
    block, _ = shipped_block(model)
    if block is None:
        raise OpencseError(
            "this model has no meaning block, and none that comes with opencse fits it",
            "Train one on your own text: opencse run debias DOCUMENTS --backbone MODEL -o OUT.",
        )
    # The model is not changed: its transformer has to return more with a block.
    own = copy.deepcopy(model)
    append_block(own, block)
    return own.eval()


def _is_one_pair(pairs: Sequence[Any]) -> bool:
    return len(pairs) == 2 and all(isinstance(text, str) for text in pairs)


__all__ = ["CACHING", "RANKING", "Reranker", "reranker_of"]
