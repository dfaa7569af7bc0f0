"""Weights, gradients and moments divided among the processes: PyTorch's FSDP2 (`fully_shard`).

The network that callbacks see stays complete, in the main process: it is scored, saved and exported
like that of any other run. A copy of it is trained, of which each process has a part. `gather` gives
the complete network the current weights.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from opencse.encoder.device import world_size
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe
from opencse.training.network import Network


class ShardedNetwork:
    """A network whose trained copy is divided among the processes.

    Args:
        network: The complete network, on its device; the parameters that are not trained are frozen.
        device: The device of the training steps.
        main: Whether this is the main process, which keeps the complete network on the device.

    Attributes:
        trained: The copy.
    """

    def __init__(self, network: Network, device: torch.device, main: bool) -> None:
        self._complete = network
        self._main = main
        self.trained = copy.deepcopy(network)
        mesh = init_device_mesh(device.type, (world_size(),))
        # Each layer is gathered when it is computed, and divided again afterwards.
        for module in list(self.trained.encoder.modules()):
            if isinstance(module, nn.ModuleList):
                for layer in module:
                    fully_shard(layer, mesh=mesh)
        fully_shard(self.trained, mesh=mesh)
        if not main:
            network.to("cpu")

    @torch.no_grad()
    def gather(self) -> None:
        """Give the complete network of the main process the current weights; every process must call this."""
        complete = dict(self._complete.named_parameters())
        for name, parameter in self.trained.named_parameters():
            current = complete_tensor(parameter)
            if self._main:
                complete[name].copy_(current)
        buffers = dict(self._complete.named_buffers())
        for name, buffer in self.trained.named_buffers():
            buffers[name].copy_(buffer)

    @torch.no_grad()
    def scatter(self) -> None:
        """Give the trained copy the weights of the complete network, which every process has read."""
        complete = dict(self._complete.named_parameters())
        for name, parameter in self.trained.named_parameters():
            parameter.copy_(like(complete[name].detach(), parameter))
        buffers = dict(self._complete.named_buffers())
        for name, buffer in self.trained.named_buffers():
            buffer.copy_(buffers[name])


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a network by name; parameters with two names are there once."""
    weights = {}
    for name, tensor in (*network.named_parameters(), *network.named_buffers()):
        weights[name] = tensor.detach()
    return weights


def write_shards(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Write one safetensors file for each process, with its part of each tensor; every process must call this.

    A tensor that is complete in every process is written by one of them.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
    from torch.distributed.checkpoint.state_dict_saver import save

    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    with _first_failure():
        save(dict(tensors), storage_writer=writer)


def read_shards(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Fill tensors with what `write_shards` wrote; every process must call this.

    The number of processes may be another one than that which wrote them.

    Raises:
        ValueError: A tensor is missing, or has another shape.
    """
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.state_dict_loader import load

    sizes = shard_sizes(folder)
    for name, tensor in tensors.items():
        if sizes.get(name) != tensor.shape:
            raise ValueError(f"{name} is {sizes.get(name)}, not {tensor.shape}")
    with _first_failure(), warnings.catch_warnings():
        # A run that continues in one process is warned about it.
        warnings.filterwarnings("ignore", "torch.distributed is disabled", UserWarning)
        load(
            dict(tensors),
            storage_reader=HuggingFaceStorageReader(str(folder)),
            no_dist=world_size() == 1,
        )


def shard_sizes(folder: Path) -> dict[str, torch.Size]:
    """Return the complete shape of each tensor that `write_shards` wrote, by name."""
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    sizes = {}
    with _first_failure():
        metadata = HuggingFaceStorageReader(str(folder)).read_metadata()
    for name, value in metadata.state_dict_metadata.items():
        if isinstance(value, TensorStorageMetadata):
            sizes[name] = value.size
    return sizes


@contextlib.contextmanager
def _first_failure() -> Iterator[None]:
    """Raise the error of the process that failed, which PyTorch wraps in one that is no `Exception`."""
    from torch.distributed.checkpoint.api import CheckpointException

    try:
        yield
    except CheckpointException as error:
        failure, _ = next(iter(error.failures.values()))
        raise failure from error


def complete_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor of which each process may have a part; every process must call this."""
    if isinstance(tensor, DTensor):
        whole: Tensor = tensor.full_tensor()
        return whole
    return tensor


def like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Return a complete tensor, divided among the processes as a parameter is; every process must call this."""
    tensor = tensor.to(parameter.device)
    if isinstance(parameter, DTensor):
        return distribute_tensor(tensor, parameter.device_mesh, parameter.placements)
    return tensor


@contextlib.contextmanager
def without_averaging(network: FSDPModule) -> Iterator[None]:
    """Keep the gradients of a backward pass in this process."""
    network.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        network.set_requires_gradient_sync(True)


def check_shardable(network: Network, recipe: Recipe) -> None:
    """Check that the weights of a run can be divided among the processes.

    Raises:
        OpencseError: A loss or the encoder keeps a network that refers to the complete weights.
    """
    reason = ""
    for name in network.head.modules_by_loss:
        reason = f"the loss '{name}' has a network or memory of its own"
    if recipe.block is not None:
        reason = "the recipe trains a meaning block only"
    if recipe.encoder.denoising != "none":
        reason = "template denoising reads the transformer outside a training step"
    if recipe.training.precision == "fp16":
        reason = "fp16 scales its gradients"
    if reason:
        raise OpencseError(
            f"training.shard_weights: {reason}",
            "Leave it out; training.gradient_checkpointing and training.micro_batch save memory, too.",
        )
