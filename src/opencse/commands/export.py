"""`opencse export`: write a model as an ONNX graph."""

from __future__ import annotations

import typer

from opencse.commands.integrations.onnx import export_onnx
from opencse.commands.measuring_options import ExportOptions


def command(options: ExportOptions) -> None:
    """Export, and print the size and how near the vectors are to PyTorch's."""
    result = export_onnx(
        options.model,
        options.out,
        precision=options.precision,
        pooling=options.pooling or "backbone",
        overwrite=options.overwrite,
    )
    agreement = (
        f"largest difference from PyTorch's vectors {result.max_difference:.1e}"
        if options.precision == "fp32"
        else f"least cosine with PyTorch's vectors {result.min_cosine:.4f}"
    )
    size = f"{result.size / 1e6:.1f} MB"
    typer.echo(f"written to {options.out}: model.onnx in {options.precision}, {size}; {agreement}")
