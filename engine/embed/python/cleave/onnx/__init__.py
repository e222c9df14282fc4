"""ONNX models in and out.

    model = cleave.import_onnx("model.onnx")       # a function of arrays
    model = cleave.import_onnx("model.onnx", "folder")
    cleave.onnx.export_onnx(graph, "graph.onnx")   # a graph as a model

    python -m cleave.onnx MODEL.onnx -o DIR [--name NAME] [--size N=4]

It needs the package `onnx`, version 1.20 or newer. onnx.md says which ops are
supported, and why others are not.
"""

from __future__ import annotations

try:
    __import__("onnx")
except ImportError as error:
    raise ImportError("cleave.onnx needs the package onnx: "
                      "pip install onnx") from error

from .export import export_onnx, to_onnx
from .model import ImportedModel, import_onnx

__all__ = ["ImportedModel", "export_onnx", "import_onnx", "to_onnx"]
