from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from opencse.training import saving
from opencse.training.saving import StopVote


class Copied:
    """The end of a copy to the host, which is awaited."""

    def __init__(self) -> None:
        self.awaited = False

    def synchronize(self) -> None:
        self.awaited = True


def run_of_two(device: Any, others: list[bool]) -> Any:
    """A run of two processes, of which the other one received a signal at these steps."""
    votes = iter(others)

    def reduce(flag: torch.Tensor, _: str) -> torch.Tensor:
        return flag + float(next(votes))

    accelerator = SimpleNamespace(num_processes=2, device=device, reduce=reduce)
    return SimpleNamespace(
        session=SimpleNamespace(accelerator=accelerator),
        interrupted=SimpleNamespace(received=False),
    )


def test_on_a_cpu_the_signal_of_another_process_counts_at_once() -> None:
    run = run_of_two(torch.device("cpu"), [False, True])
    vote = StopVote()
    assert [vote(run), vote(run)] == [False, True]


def test_on_an_accelerator_a_vote_is_read_after_the_next_step(monkeypatch) -> None:
    copies: list[Copied] = []

    def to_host(value: torch.Tensor) -> tuple[torch.Tensor, Copied]:
        copies.append(Copied())
        return value, copies[-1]

    monkeypatch.setattr(saving, "_to_host", to_host)
    monkeypatch.setattr(saving, "move", lambda tensor, device: tensor)
    run = run_of_two(SimpleNamespace(type="cuda"), [False, True, True])
    vote = StopVote()
    assert [vote(run), vote(run), vote(run)] == [False, False, True]
    assert [copy.awaited for copy in copies] == [True, True, False]
