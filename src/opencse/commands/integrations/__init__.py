"""Integrations: sentence-transformers' trainer, mteb, and ONNX graphs that run without PyTorch."""

from opencse.commands.integrations.onnx import OnnxExport, export_onnx
from opencse.commands.integrations.onnx_encoder import OnnxEncoder

__all__ = ["OnnxEncoder", "OnnxExport", "export_onnx"]
