"""`precision = "auto"` of constructors that run a model: settled before a build begins, and written to its header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.views.constructor import ConstructorSpec


def settle_precision(specs: Mapping[str, ConstructorSpec], begun: Mapping[str, Any]) -> dict[str, ConstructorSpec]:
    """Replace `auto` by the precision in which each constructor's model runs faster here.

    All workers, on whatever machine, then use the same one, and the header says which.

    Args:
        specs: Constructors by column name.
        begun: Their parameters in the build that is resumed, by the same names: it keeps its precision.
    """
    return {
        name: replace(spec, precision=_settled(spec, begun.get(name, {})))  # type: ignore[call-arg]
        if getattr(spec, "precision", None) == "auto"
        else spec
        for name, spec in specs.items()
    }


def _settled(spec: Any, begun: Mapping[str, Any]) -> str:
    from opencse.encoder import backbone_config
    from opencse.encoder.device import choose_device
    from opencse.encoder.precision_choice import choose_precision

    if begun.get("kind") == spec.kind and begun.get("precision") in ("bf16", "fp32"):
        return str(begun["precision"])
    return choose_precision(backbone_config(spec.model), getattr(spec, "device", "") or choose_device()).precision


def begun_columns(folder: Path) -> dict[str, Any]:
    """The parameters of the columns in a folder of views, complete or not; empty where there are none."""
    from opencse.views.storage import read_header

    parts = sorted(folder.glob("part-*-of-*.parquet"))
    return dict(read_header(parts[0])["columns"]) if parts else {}
