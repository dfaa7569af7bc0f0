"""Losses that compute on their own rows: four processes get the value and gradients of one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch.overrides import TorchFunctionMode

from opencse.debias.meaning_loss import MeaningLoss
from opencse.losses import (
    AlternatingNormalizationLoss,
    AngularInfoNCELoss,
    Context,
    DCLRLoss,
    FalseNegatives,
    InfoNCELoss,
    ListMLELoss,
    ListNetLoss,
    Loss,
    MarginInfoNCELoss,
    MutualInformationLoss,
    NoiseNegatives,
    NTXentLoss,
    PeerContrastiveLoss,
    Processes,
    RankingConsistencyLoss,
    SelfGuidedLoss,
    TokenOutputs,
)
from opencse.losses.rlrd_policy import PolicyWeights
from opencse.training.processes import (
    all_rows,
    gather_rows,
    gathered,
    mean,
    own_rows,
    sharing,
    total,
)
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
    "dclr code": DCLRLoss(
        form="code",
        complementary="a",
        false_negatives=FalseNegatives(teacher="a", threshold=0.3),
        noise=NoiseNegatives(),
    ),
    "list_net": ListNetLoss(teachers=("a", "b"), teacher_weights=(0.3, 0.7)),
    "list_mle": ListMLELoss(teachers=("a", "b"), weighting="rlrd", temperature=0.5),
    "consistency": RankingConsistencyLoss(temperature=0.5),
    "entropy": RankingConsistencyLoss(temperature=0.5, form="entropy"),
    "debcse": AlternatingNormalizationLoss(
        positives=("twin",), negatives=("negative",), temperature=0.5, min_rows=8
    ),
    "published debcse": AlternatingNormalizationLoss(
        positives=("twin", "negative"), temperature=0.5, decoupled=True, min_rows=2
    ),
    "self_guided": SelfGuidedLoss(temperature=0.5),
    "peer": PeerContrastiveLoss(positives=("twin", "negative"), temperature=0.5),
    "meaning": MeaningLoss(same=("anchor", "twin"), opposed=(("negative",),)),
}


class Layers(torch.nn.Module):
    """In place of the frozen copy of an encoder: the layers of the rows that the ids name."""

    def __init__(self, rows: torch.Tensor, head: torch.nn.Module) -> None:
        super().__init__()
        self.rows = rows
        self.head = head

    def layers(self, ids: torch.Tensor, mask: torch.Tensor, context: Context) -> torch.Tensor:
        """Return two layers of each row."""
        rows = self.rows[ids[:, 0]]
        return torch.stack([rows[:, 0].sin(), rows[:, 1].cos()], dim=1)


class Peer(torch.nn.Module):
    """In place of the second encoder."""

    def __init__(self, vectors: torch.Tensor, head: torch.nn.Module) -> None:
        super().__init__()
        self.vectors = vectors
        self.head = head

    def rows(self, ids: torch.Tensor, mask: torch.Tensor, context: Context) -> torch.Tensor:
        """Return a vector of each row; 0 if it lacks the view."""
        vectors = self.head(self.vectors[ids[:, 0], ids[:, 1]] + 0.3)
        return vectors * mask.any(dim=1, keepdim=True)


class Similar(torch.nn.Module):
    """In place of the model that finds false negatives."""

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = rows

    def unit_vectors(
        self, anchor: str, positive: str, context: Context
    ) -> tuple[torch.Tensor, ...]:
        """Return vectors of all rows."""
        return tuple(F.normalize(self.rows[:, place] + 0.5, dim=-1) for place in (0, 1))


def module_of(name: str, rows: torch.Tensor) -> torch.nn.Module | None:
    """Return the module of a loss, with the same weights in every process."""
    torch.manual_seed(0)
    head = torch.nn.Linear(6, 6, dtype=torch.float64)
    modules = {
        "self_guided": Layers(rows, head),
        "peer": Peer(rows, head),
        "dclr code": Similar(rows),
        "list_mle": PolicyWeights(2, 0, horizon=4),
    }
    return modules.get(name)


def result(name: str, shares: list[int], rank: int, world: int) -> dict[str, torch.Tensor]:
    """Return the value, the reports and the gradient with respect to the rows of all processes."""
    draw = torch.Generator().manual_seed(3)
    rows = torch.randn(12, len(VIEWS), 6, dtype=torch.float64, generator=draw)
    present = torch.ones(12, len(VIEWS), dtype=torch.bool)
    present[6:10] = False  # all rows of one process
    present[0, 2] = False
    start = sum(shares[:rank])
    stop = start + shares[rank] if world > 1 else 12
    teachers = {}
    for teacher, shift in {"a": 0.5, "b": -0.5}.items():
        teachers[teacher] = {view: rows[:, place] + shift for place, view in enumerate(VIEWS)}
    module = module_of(name, rows)
    numbers = torch.arange(start, stop)[:, None]
    tokens = {}
    for place, view in enumerate(VIEWS):
        there = present[start:stop, place, None].long()
        ids = torch.cat([numbers, torch.full_like(numbers, place)], dim=1)
        tokens[view] = (ids, there.expand(-1, 2))

    own = rows[start:stop].clone().requires_grad_()
    # One layer whose gradient is averaged over the processes, as DistributedDataParallel does.
    layer = torch.eye(6, dtype=torch.float64).requires_grad_()
    with sharing(shares if world > 1 else []):
        embeddings = gather_rows(own @ layer).unbind(dim=1)
        # The other views stand for two tokens of each sentence.
        has = present[start:stop, 0]
        outputs = TokenOutputs(
            vectors=(own @ layer)[has, 1:].flatten(0, 1),
            rows=torch.arange(stop - start)[has].repeat_interleave(2),
        )
        processes = Processes(
            own_rows=own_rows,
            all_rows=all_rows,
            gather=gathered if world > 1 else lambda part: part,
            gather_trained=gather_rows,
            mean=mean,
            total=total,
        )
        loss = LOSSES[name]
        output = loss(
            dict(zip(VIEWS, embeddings, strict=True)),
            present=dict(zip(VIEWS, present.unbind(dim=1), strict=True)),
            context=Context(
                teachers=teachers,
                tokens=tokens,
                modules={loss.name: module},
                processes=processes,
                token_outputs={"anchor": outputs},
            ),
        )
        output.value.backward()
        layer_gradient = layer.grad
        rows_gradient = own.grad
        module_gradient = torch.zeros(1, dtype=torch.float64)
        if isinstance(module, Layers | Peer):
            module_gradient = module.head.weight.grad
            if world > 1:
                dist.all_reduce(module_gradient)
        if world > 1:
            dist.all_reduce(layer_gradient)
            rows_gradient = gathered(rows_gradient)
    found = {
        "value": output.value.detach(),
        # An average over processes, as that of DistributedDataParallel.
        "layer": layer_gradient / world,
        "rows": rows_gradient / world,
        "module": module_gradient / world,
    }
    return found | dict(output.reports)


class Largest(TorchFunctionMode):
    """Remembers the shape of the largest product of two matrices with a row for each text."""

    def __init__(self) -> None:
        super().__init__()
        self.shape = [0, 0]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Look at the result."""
        value = func(*args, **(kwargs or {}))
        if func in (torch.Tensor.matmul, torch.Tensor.__matmul__, torch.matmul, torch.einsum):
            rows, columns = value.shape[:2]
            if columns >= 8 and rows * columns > self.shape[0] * self.shape[1]:
                self.shape = [rows, columns]
        return value


# Texts of a row that are compared with those of all rows; 1 for the others.
POINTS = {"pairs": 4, "nt_xent": 2, "meaning": 3, "mutual_information": 12}


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD
    )
    for case, shares in SHARES.items():
        for name in LOSSES:
            with Largest() as largest:
                found = result(name, shares, rank, WORLD)
            found["largest"] = torch.tensor(largest.shape)
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
        largest = found.pop("largest").tolist()
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            torch.testing.assert_close(
                found[key], value, rtol=1e-10, atol=1e-12, msg=lambda m, k=key: f"{k}: {m}"
            )
        # A process has the similarities of its own anchors only.
        points = POINTS.get(name, 1)
        assert largest[0] <= points * SHARES[case][rank], largest
