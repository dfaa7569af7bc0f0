from __future__ import annotations

import torch

from opencse.foundation.tensors import move, true_cells
from opencse.losses import Context

META = torch.device("meta")  # its tensors have no values: whatever reads one fails


def test_rows_come_from_the_host() -> None:
    present = {"a": torch.tensor([True, True, False, True]), "b": torch.tensor([True, False, True, True])}
    assert Context().rows(present, "a", "b").tolist() == [0, 3]
    rows = Context(device=META).rows(present, "a")
    assert (rows.device, len(rows)) == (META, 3)


def test_the_true_cells_of_a_mask() -> None:
    assert true_cells(torch.tensor([[False, True], [True, True]]), torch.device("cpu")).tolist() == [1, 2, 3]
    assert move(torch.zeros(2), META).device == META


def test_a_copy_to_a_gpu_comes_from_pinned_memory(monkeypatch):
    done: list[object] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: (done.append("pinned"), self)[1])
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device, **how: (done.append((device, how)), self)[1])
    for name in ("cuda", "cpu"):
        move(torch.zeros(1), torch.device(name))
    assert done == [
        "pinned",
        (torch.device("cuda"), {"non_blocking": True}),
        (torch.device("cpu"), {"non_blocking": True}),
    ]
