"""Optimisers that PyTorch does not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch


class TransformersAdamW(torch.optim.Optimizer):
    r"""AdamW as transformers 4 computed it: ε is added before the bias correction of v.

    With the moving averages m and v of the gradient and of its square, and t steps so far,

    .. math:: θ \leftarrow θ - η \frac{\sqrt{1 - β_2^t}}{1 - β_1^t} \cdot \frac{m}{\sqrt{v} + ε}

    `torch.optim.AdamW` divides v by :math:`1 - β_2^t` first and adds ε afterwards, so its ε is
    smaller by :math:`\sqrt{1 - β_2^t}`: 32 times at step 1, 2.9 times at step 125, 1.26 times at
    step 1,000. Weights with gradients near ε move less here. Weight decay comes after the step,
    where PyTorch's comes before it.

    Source: transformers 4.2.1, `optimization.py`, the class AdamW with `correct_bias`, which its
    Trainer uses.

    Args:
        params: Parameters, or groups of them.
        lr: Learning rate η.
        betas: β₁ and β₂.
        eps: ε.
        weight_decay: Decoupled weight decay.

    Example:
        >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
        >>> weight.grad = torch.tensor([1e-8])
        >>> TransformersAdamW([weight], lr=0.1).step()
        >>> f"{weight.item():.4f}"  # torch.optim.AdamW would give 0.95
        '0.9969'
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update the parameters that have a gradient.

        Args:
            closure: Computes the loss again, as for every PyTorch optimiser.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            # A tensor, because a checkpoint stores tensors; on the host, so that no step waits for
            # the device.
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        step = int(state["step"])
        beta1, beta2 = group["betas"]
        gradient = parameter.grad
        assert gradient is not None

        mean = state["exp_avg"]
        mean.mul_(beta1).add_(gradient, alpha=1 - beta1)
        mean_square = state["exp_avg_sq"]
        mean_square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

        denominator = mean_square.sqrt().add_(group["eps"])
        correction = math.sqrt(1 - beta2**step) / (1 - beta1**step)
        parameter.addcdiv_(mean, denominator, value=-group["lr"] * correction)
        if group["weight_decay"] > 0:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
