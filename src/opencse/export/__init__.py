"""A trained encoder in formats that run without PyTorch."""

from opencse.export.onnx import OnnxExport, export_onnx
from opencse.export.onnx_encoder import OnnxEncoder

__all__ = ["OnnxEncoder", "OnnxExport", "export_onnx"]
