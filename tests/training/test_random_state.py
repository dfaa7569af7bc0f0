"""Random generators go on where they were."""

from __future__ import annotations

import torch

from opencse.training.random_state import random_state, set_random_state


def test_the_generators_go_on_from_a_state() -> None:
    cpu = torch.device("cpu")
    with torch.random.fork_rng(devices=[]):
        state = random_state(cpu)
        first = torch.rand(5)
        assert not torch.equal(torch.rand(5), first)
        set_random_state(state, cpu)
        assert torch.equal(torch.rand(5), first)
