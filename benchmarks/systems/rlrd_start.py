"""Measure how RLRD's policies start: those of the public code (`policy = "code"`), and the sound one.

For each seed, the policies are created, read one batch of 128 rows, and their first weights are drawn many
times. A seed counts as saturated if both numbers of its Beta distribution are at their floor of 50, where the
policy has next to no gradient. Vectors and lists are random, in the geometry of a trained encoder; the list
losses, which dominate what a policy reads, are those of ListMLE over 128 rows.

    python benchmarks/systems/rlrd_start.py --seeds 300
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
import torch.nn.functional as F

from opencse.losses.rlrd_code_policy import CodePolicyWeights, PolicyState
from opencse.losses.rlrd_policy import PolicyWeights

ROWS = 128
WIDTH = 768
DRAWS = 1000
# ListMLE against a first and a second teacher, per row. A student that knows nothing has about
# log(128!) = 496; one that has learned has less.
LIST_LOSSES = ((430.0, 445.0), (496.0, 496.0), (300.0, 330.0))
FLOOR = 50
NEARLY = 0.5


def main() -> None:
    """Print one line for each pair of list losses, and one for the sound policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    seeds = parser.parse_args().seeds
    for losses in LIST_LOSSES:
        spreads = []
        deviations = []
        means = []
        saturated = []
        for seed in range(seeds):
            state = random_state(seed, losses)
            numbers = CodePolicyWeights(WIDTH, ROWS, seed, horizon=2).distributions(state).numpy()
            random = np.random.default_rng(seed)
            first = random.beta(*numbers[0], DRAWS)
            second = random.beta(*numbers[1], DRAWS)
            weights = first / (first + second)
            spreads.append(weights.std())
            deviations.append(np.median(np.abs(weights - 0.5)))
            means.append(weights.mean())
            saturated.append((numbers < FLOOR + NEARLY).all())
        print(
            f"list losses {losses}: median standard deviation {np.median(spreads):.3f}, from "
            f"{min(spreads):.3f} to {max(spreads):.3f}; median deviation from 0.5 "
            f"{np.median(deviations):.3f}; means {min(means):.3f} to {max(means):.3f}; "
            f"saturated {np.mean(saturated):.1%}"
        )
    spread, mean = sound_start()
    print(f"sound policy: mean {mean:.3f}, standard deviation {spread:.3f}")


def random_state(seed: int, losses: tuple[float, float]) -> PolicyState:
    """Return a state of random vectors and of the lists of two teachers that agree in part."""
    generator = torch.Generator().manual_seed(seed)
    meaning = torch.randn(ROWS, WIDTH, generator=generator)
    views = []
    for _ in range(2):
        noise = torch.randn(ROWS, WIDTH, generator=generator)
        views.append((meaning + 0.3 * noise).tanh())
    lists = []
    for amount in (0.3, 1.0):
        noise = torch.randn(ROWS, WIDTH, generator=generator)
        # A common direction gives unrelated sentences a positive cosine.
        vectors = F.normalize(meaning + amount * noise + 0.8, dim=1)
        lists.append(vectors @ vectors.T / 0.05)
    return PolicyState(torch.stack(views), torch.stack(lists), torch.tensor(losses))


def sound_start() -> tuple[float, float]:
    """Return the standard deviation and the mean of the sound policy's first weight."""
    policy = PolicyWeights(2)
    features = torch.tensor([[1.02, 0.5], [0.98, 0.4]])
    weights = torch.stack([policy.choose(features)[0] for _ in range(DRAWS)])
    return weights.std().item(), weights.mean().item()


if __name__ == "__main__":
    main()
