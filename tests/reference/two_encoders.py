"""Slow, literal transcriptions of losses of two encoders: Contrastive Tension, SG-OPT and PCL."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.contrastive import cosine


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def contrastive_tension(
    first: np.ndarray, second: np.ndarray, partner: list[int], same: list[bool]
) -> float:
    """The mean binary cross-entropy of the dot products (Carlsson et al., ICLR 2021, §4)."""
    losses = []
    for i in range(len(first)):
        probability = sigmoid(float(first[i] @ second[partner[i]]))
        losses.append(-math.log(probability if same[i] else 1 - probability))
    return sum(losses) / len(losses)


def self_guided(vectors: np.ndarray, layers: np.ndarray, *, t: float) -> float:
    """SG-OPT (Kim et al., ACL 2021, eq. 5), of vectors (N, d) and layers (N, L, d)."""
    losses = []
    for i in range(len(vectors)):
        negatives = sum(
            math.exp(cosine(vectors[i], layers[j, layer]) / t)
            for j in range(len(vectors))
            if j != i
            for layer in range(layers.shape[1])
        )
        for k in range(layers.shape[1]):
            positive = math.exp(cosine(vectors[i], layers[i, k]) / t)
            losses.append(-math.log(positive / (positive + negatives)))
    return sum(losses) / len(losses)


def peer_contrastive(own: np.ndarray, peer: np.ndarray, *, t: float) -> dict[str, float]:
    """The summands of PCL's code, of views (V, N, d) as two networks see them."""
    _, count, _ = own.shape

    def row(i: int, anchors: np.ndarray, texts: np.ndarray) -> list[float]:
        """Cosines over t of one anchor with its positives and the other sentences."""
        positives = [cosine(anchors[0, i], texts[p, i]) / t for p in range(1, len(texts))]
        others = [cosine(anchors[0, i], texts[0, j]) / t for j in range(count) if j != i]
        return positives + others

    def softmax(values: list[float]) -> list[float]:
        top = [math.exp(value) for value in values]
        return [value / sum(top) for value in top]

    def info_nce(views: np.ndarray) -> float:
        losses = []
        for i in range(count):
            weights = [math.exp(cosine(views[0, i], views[1, j]) / t) for j in range(count)]
            losses.append(-math.log(weights[i] / sum(weights)))
        return sum(losses) / count

    def group(views: np.ndarray) -> float:
        cells = []
        for i in range(count):
            for place, share in enumerate(softmax(row(i, views, views))):
                right = sigmoid(share) if place < len(views) - 1 else 1 - sigmoid(share)
                cells.append(-math.log(right))
        return sum(cells) / len(cells)

    def divergence(seen: list[list[float]], target: list[list[float]]) -> float:
        cells = []
        for p, q in zip(seen, target, strict=True):
            for a, b in zip(softmax(p), softmax(q), strict=True):
                cells.append(b * (math.log(b) - math.log(a)))
        return sum(cells) / len(cells)

    rows = range(count)
    return {
        "info_nce": info_nce(own),
        "group": group(own),
        "peer_info_nce": info_nce(peer),
        "peer_group": group(peer),
        "within": divergence([row(i, own, own) for i in rows], [row(i, peer, peer) for i in rows]),
        "across": divergence([row(i, own, peer) for i in rows], [row(i, peer, own) for i in rows]),
    }
