"""Losses that compute on their own rows: four processes get the value and gradients of one."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from opencse.losses import (
    AngularInfoNCELoss,
    Context,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    Loss,
    MarginInfoNCELoss,
    MutualInformationLoss,
    NoiseNegatives,
    NTXentLoss,
    Processes,
    TokenOutputs,
)
from opencse.training.processes import all_rows, gather_rows, gathered, mean, own_rows, sharing
from tests.trials.processes import free_port

VIEWS = ("anchor", "twin", "negative")
WORLD = 4
SHARES = {"even": [3, 3, 3, 3], "uneven": [5, 4, 2, 1], "one without": [6, 0, 4, 2]}
LOSSES: dict[str, Loss] = {
    "info_nce": InfoNCELoss(),
    "hard": InfoNCELoss(negatives=("negative",), negative_temperature=0.1),
    "both sides": InfoNCELoss(negatives=("negative",), both_sides=True),
    "angular": AngularInfoNCELoss(degrees=10.0, negatives=("negative",)),
    "margin": MarginInfoNCELoss(signs="p-n+", size="dynamic", detach=False),
    "dclr": DCLRLoss(
        false_negatives=FalseNegatives(teacher="a", threshold=0.3, center=True),
        noise=NoiseNegatives(),
    ),
    "mutual_information": MutualInformationLoss(),
    "nt_xent": NTXentLoss(),
    "pairs": NTXentLoss(pairs=(("anchor", "twin", "negative"), ("twin", "negative"))),
}


def result(name: str, shares: list[int], rank: int, world: int) -> dict[str, torch.Tensor]:
    """Return the value, the reports and the gradient with respect to the rows of all processes."""
    draw = torch.Generator().manual_seed(3)
    rows = torch.randn(12, len(VIEWS), 6, dtype=torch.float64, generator=draw)
    present = torch.ones(12, len(VIEWS), dtype=torch.bool)
    present[6:10] = False  # all rows of one process
    present[0, 2] = False
    start = sum(shares[:rank])
    stop = start + shares[rank] if world > 1 else 12
    teachers = {"a": {view: rows[:, place] + 0.5 for place, view in enumerate(VIEWS)}}

    own = rows[start:stop].clone().requires_grad_()
    # One layer whose gradient is averaged over the processes, as DistributedDataParallel does.
    layer = torch.eye(6, dtype=torch.float64).requires_grad_()
    with sharing(shares if world > 1 else []):
        embeddings = gather_rows(own @ layer).unbind(dim=1)
        # The other views stand for two tokens of each sentence.
        has = present[start:stop, 0]
        tokens = TokenOutputs(
            vectors=(own @ layer)[has, 1:].flatten(0, 1),
            rows=torch.arange(stop - start)[has].repeat_interleave(2),
        )
        processes = Processes(own_rows=own_rows, all_rows=all_rows, gather=gathered, mean=mean)
        output = LOSSES[name](
            dict(zip(VIEWS, embeddings, strict=True)),
            present=dict(zip(VIEWS, present.unbind(dim=1), strict=True)),
            context=Context(
                teachers=teachers, processes=processes, token_outputs={"anchor": tokens}
            ),
        )
        output.value.backward()
        layer_gradient = layer.grad
        rows_gradient = own.grad
        if world > 1:
            dist.all_reduce(layer_gradient)
            rows_gradient = gathered(rows_gradient)
    found = {
        "value": output.value.detach(),
        # An average over processes, as that of DistributedDataParallel.
        "layer": layer_gradient / world,
        "rows": rows_gradient / world,
    }
    return found | dict(output.reports)


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD
    )
    for case, shares in SHARES.items():
        for name in LOSSES:
            with mock.patch.object(F, "cross_entropy", side_effect=F.cross_entropy) as entropy:
                found = result(name, shares, rank, WORLD)
            shapes = [call.args[0].shape for call in entropy.call_args_list]
            found["shapes"] = torch.tensor(shapes).view(-1, 2)
            path = folder / f"{case} {name} {rank}.safetensors"
            save_file({key: value.contiguous() for key, value in found.items()}, path)
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def four_processes(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("four")
    mp.spawn(worker, (folder, free_port()), nprocs=WORLD)
    return folder


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("case", SHARES)
def test_four_processes_get_the_gradient_of_one(four_processes, case, name) -> None:
    expected = result(name, [], 0, 1)
    assert expected["rows"].abs().max() > 1e-3
    for rank in range(WORLD):
        found = load_file(four_processes / f"{case} {name} {rank}.safetensors")
        shapes = found.pop("shapes")
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            torch.testing.assert_close(
                found[key], value, rtol=1e-10, atol=1e-12, msg=lambda m, k=key: f"{k}: {m}"
            )
        # A process has the logits of its own anchors only: at most two points for each pair.
        points = 4 if name == "pairs" else 2 if name == "nt_xent" else 1
        assert (shapes[:, 0] <= points * SHARES[case][rank]).all()
