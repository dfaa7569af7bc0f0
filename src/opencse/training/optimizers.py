"""The optimiser of a run: AdamW, or any other of PyTorch's by its name, and one that it lacks."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from opencse.foundation.errors import OpencseError
from opencse.recipes.settings import Optimizer
from opencse.training.network import Network


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
            parameters: list[torch.Tensor] = []
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameters.append(parameter)
            if parameters:
                self._update(parameters, group)
        return loss

    def _update(self, parameters: list[torch.Tensor], group: dict[str, Any]) -> None:
        """Update all parameters of a group at once: one launch for each operation, not for each parameter."""
        beta1, beta2 = group["betas"]
        gradients = []
        means = []
        mean_squares = []
        sizes = []
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                # A tensor, because a checkpoint stores tensors; on the host, so that no step waits
                # for the device.
                state["step"] = torch.tensor(0.0)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            state["step"] += 1
            step = int(state["step"])
            correction = math.sqrt(1 - beta2**step) / (1 - beta1**step)
            assert parameter.grad is not None
            gradients.append(parameter.grad)
            means.append(state["exp_avg"])
            mean_squares.append(state["exp_avg_sq"])
            sizes.append(-group["lr"] * correction)

        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, gradients, alpha=1 - beta1)
        torch._foreach_mul_(mean_squares, beta2)
        torch._foreach_addcmul_(mean_squares, gradients, gradients, value=1 - beta2)
        denominators = torch._foreach_sqrt(mean_squares)
        torch._foreach_add_(denominators, group["eps"])
        torch._foreach_addcdiv_(parameters, means, denominators, scalars=sizes)
        if group["weight_decay"] > 0:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])


_CLASSES: dict[str, type[torch.optim.Optimizer]] = {
    "adamw": torch.optim.AdamW,
    "adamw_transformers": TransformersAdamW,
    "adadelta": torch.optim.Adadelta,
    "adafactor": torch.optim.Adafactor,
    "adagrad": torch.optim.Adagrad,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


def build_optimizer(
    network: Network, settings: Optimizer, groups: Iterable[dict[str, Any]] = ()
) -> torch.optim.Optimizer:
    """Return the optimiser of a network; each of its groups has its rate at the peak as `peak`.

    Args:
        network: Only its parameters that are trained are in the optimiser.
        settings: Name, peak learning rate and further settings.
        groups: Parameters with their own rate, from callbacks.

    Raises:
        OpencseError: The optimiser does not take one of the settings.
    """
    kind = _CLASSES[settings.name]
    accepted = inspect.signature(kind).parameters
    given: dict[str, Any] = {}
    for name in ("lr", "betas", "eps"):
        if name in accepted:
            given[name] = getattr(settings, name)
    if kind is torch.optim.AdamW:
        given["fused"] = True
    if kind is torch.optim.Adafactor:
        # Adafactor's is a pair of other quantities.
        del given["eps"]
    given |= settings.options
    try:
        return kind(_decay_groups(network, settings, groups), **given)
    except (TypeError, ValueError) as error:
        raise OpencseError(
            f"optimizer.name {settings.name!r}: {error}", "Correct [optimizer] in the recipe."
        ) from error


def _decay_groups(
    network: Network, settings: Optimizer, groups: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the trained parameters, grouped by peak learning rate and weight decay."""
    own_rate: dict[int, float] = {}
    for module in network.head.modules_by_loss.values():
        if module.learning_rate is not None:
            for parameter in module.parameters():
                own_rate[id(parameter)] = module.learning_rate
    for group in groups:
        for parameter in group["params"]:
            own_rate[id(parameter)] = group["lr"]

    members: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for parameter in network.parameters():
        if not parameter.requires_grad:
            continue
        rate = own_rate.get(id(parameter), settings.lr)
        # Only matrices decay: there is no reason to pull biases and LayerNorm gains towards zero.
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        members.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": parameters, "peak": rate, "weight_decay": decay}
        for (rate, decay), parameters in members.items()
    ]
