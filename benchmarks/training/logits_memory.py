"""Memory of the losses' similarities by number of processes, next to the size of one matrix.

    python benchmarks/training/logits_memory.py [--rows 8192] [--processes 1 2 4]

Each process computes a loss and its gradient on its part of a batch of `--rows` short vectors (16
numbers), so that nearly all memory is that of the similarities. Measured is the peak of what the
process holds above the vectors, by the kernel (VmHWM), and the largest of all processes counts. A
matrix has 4 bytes x rows² / processes; a loss keeps several for its gradient. Writes
`benchmarks/results/logits-memory.csv`.
"""

from __future__ import annotations

import argparse
import csv
import socket
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from opencse.debias.meaning_loss import MeaningLoss
from opencse.losses import (
    AlternatingNormalizationLoss,
    Context,
    InfoNCELoss,
    ListMLELoss,
    ListNetLoss,
    Loss,
    NTXentLoss,
    Processes,
    RankingConsistencyLoss,
)
from opencse.training.processes import all_rows, gather_rows, gathered, mean, own_rows, total

sys.path.append(str(Path(__file__).parents[1]))
from peak_memory import memory

RESULT = Path(__file__).parents[1] / "results" / "logits-memory.csv"
LOSSES: dict[str, Loss] = {
    "info_nce": InfoNCELoss(),
    "nt_xent": NTXentLoss(),
    "alternating_normalization": AlternatingNormalizationLoss(positives=("twin",)),
    "list_net": ListNetLoss(),
    "list_mle": ListMLELoss(),
    "ranking_consistency": RankingConsistencyLoss(),
    "meaning": MeaningLoss(same=("anchor", "twin"), opposed=()),
}
WIDTH = 16


def step(loss: Loss, rows: int, world: int, rank: int) -> None:
    """Compute a loss and its gradient on the part of a process."""
    share = rows // world
    generator = torch.Generator().manual_seed(rank)
    vectors = torch.randn(share, 2, WIDTH, generator=generator).requires_grad_()
    if world > 1:
        gathered_vectors = gather_rows(vectors)
        processes = Processes(
            own_rows=own_rows,
            all_rows=all_rows,
            gather=gathered,
            gather_trained=gather_rows,
            mean=mean,
            total=total,
        )
    else:
        gathered_vectors = vectors
        processes = Processes()
    anchor, twin = gathered_vectors.unbind(dim=1)
    teachers = {"a": {"anchor": anchor.detach(), "twin": twin.detach()}}
    context = Context(teachers=teachers, processes=processes)
    loss(anchor, twin, context=context).value.backward()


def worker(rank: int, world: int, port: int, rows: int, results: dict) -> None:
    torch.set_num_threads(1)
    if world > 1:
        address = f"tcp://127.0.0.1:{port}"
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world)
    for name, loss in LOSSES.items():
        step(loss, 16 * world, world, rank)  # libraries and buffers are there afterwards
        before = memory("self", "VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # resets the peak
        step(loss, rows, world, rank)
        results[name, rank] = memory("self", "VmHWM") - before
    if world > 1:
        dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def column(world: int) -> str:
    """Return the head of the column of a number of processes."""
    if world == 1:
        return "1 process (MiB)"
    return f"{world} processes (MiB)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()

    peaks: dict[tuple[str, int], float] = {}
    with mp.Manager() as manager:
        for world in options.processes:
            results = manager.dict()
            mp.spawn(worker, (world, free_port(), options.rows, results), nprocs=world)
            for name in LOSSES:
                peaks[name, world] = max(results[name, rank] for rank in range(world))
                print(name, world, f"{peaks[name, world]:.0f} MiB", flush=True)

    table: list[dict[str, object]] = []
    matrix: dict[str, object] = {"loss": "one matrix, by the formula"}
    for world in options.processes:
        matrix[column(world)] = f"{4 * options.rows**2 / world / 2**20:.0f}"
    table.append(matrix)
    for name in LOSSES:
        line: dict[str, object] = {"loss": f"`{name}`"}
        for world in options.processes:
            line[column(world)] = f"{peaks[name, world]:.0f}"
        table.append(line)
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
