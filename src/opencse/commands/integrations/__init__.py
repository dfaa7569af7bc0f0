"""Integrations: sentence-transformers' trainer, and ONNX graphs that run without PyTorch."""

from opencse.commands.integrations.onnx import OnnxEncoder, export_onnx

__all__ = ["OnnxEncoder", "export_onnx"]
