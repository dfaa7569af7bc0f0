"""BERT-flow: an invertible map from sentence vectors to a standard normal distribution.

This file stands next to a saved model, so that it loads without opencse (`trust_remote_code=True`).
It therefore needs nothing but torch and safetensors.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

_WEIGHTS = "model.safetensors"
_CONFIG = "config.json"


class SentenceFlow(nn.Module):
    r"""Last module of a sentence-transformers model: a small Glow on its vectors.

    .. math:: \log p(x) = \log \mathcal{N}(f(x); 0, I) + \log \left| \det \frac{\partial f}{\partial x} \right|

    f is trained to make the vectors of a corpus as likely as possible; the embedding is f(x). The
    vectors of BERT lie in a narrow cone, and f spreads them out without losing anything, because it
    is invertible. Source: Li et al., On the Sentence Embeddings from Pre-trained Language Models
    (EMNLP 2020), whose best network has three levels of three steps and a width of 32.

    A step normalises each number (actnorm), permutes them, and adds to the second half a function of
    the first (additive coupling). After every level but the last, half of the numbers leave, each
    normalised by a mean and a scale that the other half predicts.

    Args:
        width: Size of the sentence vectors, divisible by `2 ** levels`.
        levels: Number of levels.
        depth: Steps of each level.
        hidden: Width of the coupling networks.
        seed: Seed of the permutations and of the initial weights.
    """

    def __init__(
        self, width: int, levels: int = 3, depth: int = 3, hidden: int = 32, seed: int = 0
    ) -> None:
        super().__init__()
        if width % 2**levels:
            raise ValueError(f"vectors of {width} numbers cannot be halved {levels} times")
        self.config = {
            "width": width,
            "levels": levels,
            "depth": depth,
            "hidden": hidden,
            "seed": seed,
        }
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.levels = nn.ModuleList()
            size = width
            for _ in range(levels - 1):
                steps = [_Step(size, hidden, generator) for _ in range(depth)]
                self.levels.append(_Level(steps, _Split(size)))
                size = size // 2
            steps = [_Step(size, hidden, generator) for _ in range(depth)]
            self.levels.append(_Level(steps, None))

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace `sentence_embedding` (n, width) by f of it."""
        vectors = features["sentence_embedding"]
        images, _ = self.image(vectors.float())
        return {**features, "sentence_embedding": images.to(vectors.dtype)}

    def image(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return f of vectors (n, width), and the logarithm of its Jacobian's determinant, (n,)."""
        rest = vectors
        left: list[Tensor] = []
        total = vectors.new_zeros(len(vectors))
        for level in self.levels:
            rest, gone, change = level(rest)
            total = total + change
            if gone is not None:
                left.append(gone)
        return torch.cat([*left, rest], dim=1), total

    def bits(self, vectors: Tensor) -> Tensor:
        """Return the negative log-likelihood of vectors (n, width), in bits per number, a scalar."""
        images, change = self.image(vectors)
        normal = -0.5 * (images.square() + math.log(2 * math.pi)).sum(dim=1)
        return -(normal + change).mean() / (math.log(2) * vectors.shape[1])

    @torch.no_grad()
    def initialise(self, vectors: Tensor) -> None:
        """Set every actnorm so that its outputs for these vectors (n, width) have mean 0 and variance 1."""
        rest = vectors
        for level in self.levels:
            rest = level.initialise(rest)  # type: ignore[operator]

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings."""
        return dict(self.config)

    def get_embedding_dimension(self) -> int:
        """Return the size of the vectors."""
        return int(self.config["width"])

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write settings and weights into a folder, and this file next to it."""
        folder = Path(output_path)
        (folder / _CONFIG).write_text(json.dumps(self.config, indent=2) + "\n", encoding="utf-8")
        weights = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, folder / _WEIGHTS)
        shutil.copyfile(__file__, folder.parent / "flow.py")

    @classmethod
    def load(cls, input_path: str) -> SentenceFlow:
        """Read what `save` wrote."""
        folder = Path(input_path)
        flow = cls(**json.loads((folder / _CONFIG).read_text(encoding="utf-8")))
        flow.load_state_dict(load_file(folder / _WEIGHTS))
        return flow.eval()


class _Level(nn.Module):
    """The steps of one level, and the split after it."""

    def __init__(self, steps: list[_Step], split: _Split | None) -> None:
        super().__init__()
        self.steps = nn.ModuleList(steps)
        self.split = split

    def initialise(self, vectors: Tensor) -> Tensor:
        """Set the actnorms of the steps, and return what stays after this level."""
        rest = vectors
        for step in self.steps:
            step.initialise(rest)  # type: ignore[operator]
            rest, _ = step(rest)
        if self.split is not None:
            rest, _, _ = self.split(rest)
        return rest

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return what stays, what leaves, and the logarithm of the determinant."""
        total = vectors.new_zeros(len(vectors))
        for step in self.steps:
            vectors, change = step(vectors)
            total = total + change
        if self.split is None:
            return vectors, None, total
        rest, gone, change = self.split(vectors)
        return rest, gone, total + change


class _Step(nn.Module):
    """Actnorm, a fixed permutation, and an additive coupling."""

    order: Tensor

    def __init__(self, size: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(size))
        self.log_scale = nn.Parameter(torch.zeros(size))
        self.register_buffer("order", torch.randperm(size, generator=generator))
        half = size // 2
        last = nn.Linear(hidden, size - half)
        # A step starts as no change at all.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.coupling = nn.Sequential(
            nn.Linear(half, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last
        )

    def initialise(self, vectors: Tensor) -> None:
        self.shift.copy_(-vectors.mean(dim=0))
        deviation = vectors.std(dim=0, correction=0).clamp(min=1e-6)
        self.log_scale.copy_(-deviation.log())

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        normal = (vectors + self.shift) * self.log_scale.exp()
        permuted = normal[:, self.order]
        half = permuted.shape[1] // 2
        first = permuted[:, :half]
        second = permuted[:, half:]
        coupled = torch.cat([first, second + self.coupling(first)], dim=1)
        return coupled, self.log_scale.sum().expand(len(vectors))


class _Split(nn.Module):
    """Half of the numbers leave, normalised by a mean and a scale that the other half predicts."""

    def __init__(self, size: int) -> None:
        super().__init__()
        half = size // 2
        self.predict = nn.Linear(half, 2 * (size - half))
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        half = vectors.shape[1] // 2
        rest = vectors[:, :half]
        gone = vectors[:, half:]
        mean, log_deviation = self.predict(rest).chunk(2, dim=1)
        normal = (gone - mean) * (-log_deviation).exp()
        return rest, normal, -log_deviation.sum(dim=1)


def fit_flow(
    vectors: Tensor,
    *,
    epochs: float = 1.0,
    batch_size: int = 32,
    lr: float = 1e-3,
    seed: int = 0,
    **settings: int,
) -> SentenceFlow:
    """Train a flow on the vectors of a corpus.

    Args:
        vectors: Sentence vectors, (n, width), float32.
        epochs: Passes over them.
        batch_size: Vectors of a step.
        lr: Learning rate of Adam.
        seed: Seed of the flow and of the order of the vectors.
        **settings: Sizes of the flow.

    Returns:
        The flow, in evaluation mode.
    """
    flow = SentenceFlow(vectors.shape[1], seed=seed, **settings)
    generator = torch.Generator().manual_seed(seed)
    first = torch.randperm(len(vectors), generator=generator)[: max(batch_size, 1024)]
    flow.initialise(vectors[first])
    optimizer = torch.optim.Adam(flow.parameters(), lr=lr)
    steps = max(1, round(epochs * len(vectors) / batch_size))
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(order) < batch_size:
            order = torch.cat([order, torch.randperm(len(vectors), generator=generator)])
        batch = order[:batch_size]
        order = order[batch_size:]
        loss = flow.bits(vectors[batch])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        optimizer.step()
    return flow.eval()
