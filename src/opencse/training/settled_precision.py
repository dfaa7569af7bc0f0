"""The precision of a training run: chosen once, and kept when the run is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.encoder.precision_choice import resolve_precision
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import read_json
from opencse.recipes.optimization import Training

if TYPE_CHECKING:
    from accelerate import Accelerator


def settle_training_precision(
    training: Training, config: Any, accelerator: Accelerator, resumed: Path | None
) -> Training:
    """Return the settings with `bf16` or `fp32` in place of `auto`, the same in every process; fp16 needs a GPU.

    Args:
        training: Settings of the loop.
        config: Configuration of the model, for the shapes of the matrices that are timed.
        accelerator: Devices and processes.
        resumed: Folder of the run to resume, whose precision is kept; None for a new run.
    """
    if training.precision == "fp16" and accelerator.device.type == "cpu":
        return replace(training, precision="fp32")
    if training.precision != "auto":
        return training
    found: list[Any] = [None if resumed is None else begun_precision(resumed)]
    if found[0] is None and accelerator.is_main_process:
        found = [resolve_precision("auto", config, accelerator.device)]
    if accelerator.num_processes > 1:
        from accelerate.utils import broadcast_object_list

        broadcast_object_list(found)
    return replace(training, precision=found[0])


def begun_precision(folder: Path) -> Any:
    """Return the precision of the run in a folder; None if there is no run."""
    try:
        found = read_json(folder / "run.json").get("precision")
    except OpencseError:
        return None
    return found if found in ("bf16", "fp16", "fp32") else None
