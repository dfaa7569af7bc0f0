"""Conversion of an exported ONNX graph to fp16 or int8, with the tools that come with onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from opencse.foundation.errors import OpencseError

OnnxPrecision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[OnnxPrecision, ...] = get_args(OnnxPrecision)
BYTES = {"fp32": 4, "fp16": 2, "int8": 1}
"""Bytes of a weight."""


def checked_precision(precision: str) -> OnnxPrecision:
    """Return the precision, or raise if there is no such precision."""
    for known in PRECISIONS:
        if precision == known:
            return known
    raise OpencseError(f"there is no precision {precision!r} for ONNX", f"Choose one of {', '.join(PRECISIONS)}.")


def convert_graph(source: Path, target: Path, precision: OnnxPrecision, *, external_data: bool) -> None:
    """Write an fp32 graph in another precision; inputs and outputs keep their types.

    fp16 stores every weight in half precision. int8 stores the matrices as 8-bit integers with a scale for each output
    channel, and quantises activations while it runs (dynamic quantisation). Weights use 7 of the 8 bits, because 8
    overflow on processors without VNNI instructions.

    Args:
        source: The fp32 graph.
        target: The file to write, not `source`.
        precision: `fp16` or `int8`.
        external_data: Write the weights beside the graph, as `target` with the suffix `.data`.
    """
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(
            source,
            target,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=external_data,
        )
        return
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    converted = convert_float_to_float16(onnx.load(source), keep_io_types=True)
    onnx.save_model(converted, target, save_as_external_data=external_data, location=f"{target.name}.data")
