"""Choose the precision of each model with `precision = "auto"` before a build begins; the header records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.text.views.constructor import ConstructorSpec


def settle_view_precision(specs: Mapping[str, ConstructorSpec], begun: Mapping[str, Any]) -> dict[str, ConstructorSpec]:
    """Return the specifications with `auto` replaced by the faster precision for each model on this machine.

    All workers, on any machine, then use the same precision.

    Args:
        specs: Specifications by name.
        begun: Options of the columns in the build to resume, by name; these columns keep their precision.
    """
    return {
        name: replace(spec, precision=_settled(spec, begun.get(name, {})))  # type: ignore[call-arg]
        if getattr(spec, "precision", None) == "auto"
        else spec
        for name, spec in specs.items()
    }


def _settled(spec: Any, begun: Mapping[str, Any]) -> str:
    """Return "bf16" or "fp32" for one specification."""
    from opencse.encoder import backbone_config
    from opencse.encoder.device import choose_device
    from opencse.encoder.precision import choose_precision

    if begun.get("kind") == spec.kind and begun.get("precision") in ("bf16", "fp32"):
        return str(begun["precision"])
    return choose_precision(backbone_config(spec.model), getattr(spec, "device", "") or choose_device()).precision


def begun_columns(folder: Path) -> dict[str, Any]:
    """Return the options of each column in a folder of views, complete or not; empty if there are no files."""
    from opencse.text.views.storage import read_header

    parts = sorted(folder.glob("part-*-of-*.parquet"))
    return dict(read_header(parts[0])["columns"]) if parts else {}
