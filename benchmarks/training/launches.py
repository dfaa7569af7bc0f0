"""Kernels that a training step launches, and how often it waits for the device, by part of the step.

    python benchmarks/training/launches.py [--layers 12] [--rows 64]

SimCSE on a transformer with the layers of BERT-base, narrow, laid out without padding as on an
accelerator. No accelerator is needed: forward pass, loss and backward pass run on PyTorch's `meta`
device, where an operation that would wait for the device (`.item()`, `nonzero`, a mask as an index)
cannot run at all, so that a step which ends has waited 0 times. Counted are operations that write to
the device; views are free. Attention and dropout, which `meta` computes in many small steps, count as
the kernels of a GPU: attention one, and two in the backward pass; dropout one each. Clipping, the
optimisers and the log are counted on the CPU, with the calls that a GPU gets. Then they run on fake
tensors of a GPU, which cannot be read either. One operation is one launch on a GPU, or a few for a
list of tensors. Writes `benchmarks/results/launches.csv`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoTokenizer, BertConfig, BertModel

from opencse.encoder import load_encoder
from opencse.encoder.names import resolve
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import Frame
from opencse.losses import InfoNCELoss, Objective
from opencse.recipes.rows.token_store import TokenSource, open_token_store
from opencse.text.corpus import Corpus
from opencse.training.batches import Collator, ViewTokens
from opencse.training.checkpoint import TrainingState
from opencse.training.log import MetricsLog
from opencse.training.loss_head import LossHead
from opencse.training.network import Network
from opencse.training.optimizers import TransformersAdamW

RESULT = Path(__file__).parents[1] / "results" / "launches.csv"
META = torch.device("meta")


class Launches(TorchDispatchMode):
    """Counts the operations that write to a device, by name.

    Args:
        device: The device.
        scalars: Count operations on single numbers; those of optimisers are counters on the host.
    """

    def __init__(self, device: torch.device, scalars: bool) -> None:
        super().__init__()
        self.device = device
        self.scalars = scalars
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count an operation."""
        value = func(*args, **(kwargs or {}))
        first = value[0] if isinstance(value, (tuple, list)) and value else value
        tensors = [first, *(args[0] if args and isinstance(args[0], (tuple, list)) else args[:1])]
        on_device = False
        for tensor in tensors:
            if isinstance(tensor, Tensor) and tensor.device == self.device:
                on_device = on_device or self.scalars or tensor.ndim > 0
        name = func.name().removeprefix("aten::")
        if on_device and not func.is_view and name != "_unsafe_view" and "empty" not in name:
            self.counts[name] += 1
        return value


class Attention(torch.autograd.Function):
    """What a GPU's attention launches."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Launch once; the result has the layout of the GPU's, (n, L, H, d)."""
        ctx.save_for_backward(query, key, value)
        rows = query.transpose(1, 2)
        return rows.new_ones(rows.shape).transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        """Launch twice, for three gradients."""
        query, key, value = ctx.saved_tensors
        return torch.ones_like(query), torch.ones_like(key), torch.empty_like(value)


class Dropout(torch.autograd.Function):
    """What a GPU's dropout launches."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        """Launch once."""
        return torch.ones_like(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Launch once."""
        return torch.ones_like(gradients[0])


def attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Stand in for `scaled_dot_product_attention`."""
    return Attention.apply(query, key, value)


def dropout(values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Stand in for `dropout`."""
    return Dropout.apply(values) if training and p else values


def counted(
    action: Callable[[], Any], device: torch.device, scalars: bool = True
) -> tuple[Any, int]:
    """Return what an action returns, and the number of its launches."""
    with Launches(device, scalars) as launches:
        value = action()
    return value, launches.counts.total()


def check_waits_for_nothing(shapes: Sequence[torch.Size]) -> None:
    """Clip, update and log on fake tensors of a GPU, where reading a number raises an exception."""
    with FakeTensorMode():
        parameters = []
        for shape in shapes:
            parameters.append(nn.Parameter(torch.empty(shape, device="cuda")))
        for action in (*actions(parameters).values(), log_of_a_step(torch.device("cuda"))):
            for parameter in parameters:
                parameter.grad = torch.empty_like(parameter)
            action()
            action()


def actions(parameters: list[nn.Parameter]) -> dict[str, Callable[[], Any]]:
    """Return what happens to the parameters after a backward pass, by its name in the table."""

    def clip() -> None:
        nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

    loop = torch.optim.AdamW(parameters, foreach=False)
    fused = torch.optim.AdamW(parameters, fused=True)
    return {
        "clipping": clip,
        "AdamW of a loop over parameters": loop.step,
        "AdamW, fused (`adamw`)": fused.step,
        "AdamW of transformers 4 (`adamw_transformers`)": TransformersAdamW(
            parameters, lr=1e-3
        ).step,
    }


def log_of_a_step(device: torch.device) -> Callable[[], None]:
    """Return what adds the values of a step of SimCSE to their running sums."""
    run: Any = SimpleNamespace(
        state=TrainingState(), session=SimpleNamespace(device=device), step=1, steps=100
    )
    run.recipe = SimpleNamespace(training=SimpleNamespace(log_every=25))
    values = {name: torch.zeros((), device=device) for name in ("loss", "info_nce", "grad_norm")}
    return lambda: MetricsLog().on_step_end(run, values)


@contextlib.contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Leave out autocast, which `meta` does not have, and let attention and dropout be kernels."""
    with (
        mock.patch.object(F, "scaled_dot_product_attention", attention),
        mock.patch.object(F, "dropout", dropout),
        mock.patch.object(torch, "autocast", return_value=contextlib.nullcontext()),
        mock.patch.object(torch, "is_autocast_enabled", return_value=False),
        mock.patch.object(torch, "get_autocast_dtype", return_value=torch.float32),
    ):
        yield


def build(folder: Path, layers: int, rows: int) -> tuple[Network, Collator]:
    """Return the network of SimCSE on a narrow transformer, and what makes its batches."""
    tokenizer = AutoTokenizer.from_pretrained(resolve("mini-mlm"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=96,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    corpus = folder / "corpus.txt"
    lines = [f"The band played {i} songs in the garden{' again' * (i % 9)}." for i in range(rows)]
    corpus.write_text("\n".join(lines), encoding="utf-8")

    encoder = load_encoder(folder / "model", pooling="cls", dropout=0.1)
    assert prepare_for_training(encoder)
    store = open_token_store(
        Corpus(corpus), [TokenSource("text")], encoder.tokenizer, 32, progress=False
    )
    view = ViewTokens(0, Frame((2,), (3,)), 30, None)
    collator = Collator(store, {"anchor": view, "twin": view}, 0, packed=True)
    network = Network(encoder, LossHead(nn.Identity(), Objective([InfoNCELoss()]), {})).train()
    return network, collator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rows", type=int, default=64)
    options = parser.parse_args()

    table: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        network, collator = build(Path(folder), options.layers, options.rows)
        batch = collator(range(options.rows))
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        cpu = torch.device("cpu")
        for name, action in actions(parameters).items():
            action()  # the state of an optimiser is there afterwards
            _, table[name] = counted(action, cpu, scalars=name == "clipping")
        log = log_of_a_step(cpu)
        log()
        _, table["log"] = counted(log, cpu)
        check_waits_for_nothing([parameter.shape for parameter in parameters])

        network.zero_grad(set_to_none=True)  # as after every step, so that nothing is added up
        network = network.to(META)
        on_device = batch.to(META)
        with as_on_a_gpu():
            output, table["forward pass and loss"] = counted(lambda: network(on_device, 0), META)
        _, table["backward pass"] = counted(output[0].backward, META)

    order = ["forward pass and loss", "backward pass"]
    order += [name for name in table if name not in order]
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part of a step", "launches", "waits for the device"])
        for name in order:
            writer.writerow([name, table[name], 0])
            print(name, table[name], sep="\t")
    print(f"{len(parameters)} parameters in {options.layers} layers")


if __name__ == "__main__":
    main()
