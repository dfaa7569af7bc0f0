"""The state of the random generators that training draws from: the CPU's, and the device's if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from accelerate import Accelerator


def random_state(device: torch.device) -> Tensor:
    """Return the state of the CPU's generator, followed by that of the device, as bytes (n,)."""
    state = torch.get_rng_state()
    if device.type == "cuda":
        return torch.cat([state, torch.cuda.get_rng_state(device)])
    if device.type == "mps":
        return torch.cat([state, torch.mps.get_rng_state()])
    return state


def all_random_states(accelerator: Accelerator) -> list[Tensor]:
    """Return the `random_state` of every process; all of them must call this."""
    own = random_state(accelerator.device)
    if accelerator.num_processes == 1:
        return [own]
    return [state.cpu() for state in accelerator.gather(own.to(accelerator.device)[None]).unbind()]


def set_random_state(state: Tensor, device: torch.device) -> None:
    """Set the generators to a state that `random_state` returned for the same kind of device."""
    size = torch.get_rng_state().numel()
    torch.set_rng_state(state[:size])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[size:], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state[size:])
