"""Integrations: sentence-transformers' trainer, mteb, and ONNX graphs that run without PyTorch."""

from opencse.integrations.onnx import OnnxExport, export_onnx
from opencse.integrations.onnx_encoder import OnnxEncoder

__all__ = ["OnnxEncoder", "OnnxExport", "export_onnx"]
