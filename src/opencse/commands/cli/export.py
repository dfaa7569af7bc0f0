"""`opencse export`: write a model as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[str, typer.Argument(help="A model folder, a run, a hub id, or `minilm`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for model.onnx, tokenizer.json and encoder.json.")],
    precision: Annotated[
        str, typer.Option(help="Number format of the weights: fp32, fp16 (half the size), int8 (a quarter).")
    ] = "fp32",
    pooling: Annotated[
        str | None, typer.Option(help="Pooling of an encoder that defines none: cls, mean, first_last.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
) -> None:
    """Write a sentence encoder as an ONNX graph from token ids to sentence vectors.

    Pooling and normalisation are part of the graph; batch size and length are dynamic. It runs with onnxruntime and
    tokenizers, without PyTorch. Its vectors are compared with PyTorch's before anything is written: fp32 may differ by
    1e-4 in a coordinate, fp16 must keep a cosine of 0.999, int8 of 0.9. Needs `pip install "opencse[onnx]"`.

    opencse export out/ -o onnx/

    opencse export out/ --precision int8 -o onnx/

    opencse export bert-base-uncased --pooling cls -o onnx/
    """
    from opencse.commands.integrations import export_onnx
    from opencse.commands.integrations.onnx_precision import checked_precision

    result = export_onnx(
        model, out, precision=checked_precision(precision), pooling=pooling or "backbone", overwrite=overwrite
    )
    agreement = (
        f"largest difference from PyTorch's vectors {result.max_difference:.1e}"
        if precision == "fp32"
        else f"least cosine with PyTorch's vectors {result.min_cosine:.4f}"
    )
    typer.echo(f"written to {out}: model.onnx in {precision}, {result.size / 1e6:.1f} MB; {agreement}")
