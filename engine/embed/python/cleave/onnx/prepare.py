"""An ONNX model made ready: one opset, no functions, no names in common.

    model = prepare("model.onnx", knows=lambda op: op in RULES)

The steps are those of the `onnx` package: conversion to the opset of the
rules, inlining of the model's functions, then of ops that the rules lack and
ONNX itself defines by others, and inference of types.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import onnx
import onnx.inliner
import onnx.shape_inference
import onnx.version_converter

from ..errors import UnimplementedError

# The rules declare ONNX's ops as of this opset.
OPSET = 28


def read_model(source) -> onnx.ModelProto:
    """A model from a path, the bytes of a file, or a ModelProto."""
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return onnx.load_model_from_string(bytes(source))
    return onnx.load(os.fspath(source))


def opset_of(model: onnx.ModelProto) -> int:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            return entry.version
    return OPSET


def nodes_of(graph: onnx.GraphProto):
    """All nodes, those of bodies included, in order."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)
            for graph_ in attribute.graphs:
                yield from nodes_of(graph_)


def prepare(source, knows: Callable[[str], bool]) -> onnx.ModelProto:
    """The model at opset OPSET, of ops that `knows` accepts as far as
    functions go."""
    model = read_model(source)
    if opset_of(model) < 9 and any(n.op_type == "Scan"
                                   for n in nodes_of(model.graph)):
        # The converter leaves it as it is, though it means something else.
        raise UnimplementedError(
            f"a Scan of opset {opset_of(model)} is not supported: since opset "
            "9 it has no batch")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model, True)
    target = min(OPSET, onnx.defs.onnx_opset_version())
    if opset_of(model) != target:
        model = onnx.version_converter.convert_version(model, target)
    lacking = {n.op_type for n in nodes_of(model.graph)
               if n.domain in ("", "ai.onnx") and not knows(n.op_type)}
    for _ in range(4):
        named = [op for op in sorted(lacking) if _is_function(op)]
        if not named:
            break
        for op in named:
            model = _inlined(model, op)
        left = {n.op_type for n in nodes_of(model.graph)
                if n.domain in ("", "ai.onnx") and not knows(n.op_type)}
        if left == lacking:
            break
        lacking = left
    return model


def _inlined(model: onnx.ModelProto, op: str) -> onnx.ModelProto:
    """The model with ONNX's own definition in the place of an op; the model
    as it is where the inliner fails, so that the op is reported."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    schema = onnx.defs.get_schema(op, opset_of(model), "")
    for node in nodes_of(copy.graph):
        # A definition may read attributes that the node leaves out.
        if node.op_type == op:
            given = {a.name for a in node.attribute}
            node.attribute.extend(
                a.default_value for name, a in schema.attributes.items()
                if name not in given and a.default_value.type)
    try:
        copy = onnx.shape_inference.infer_shapes(copy)
        return onnx.inliner.inline_selected_functions(
            copy, [("", op)], inline_schema_functions=True)
    except (RuntimeError, onnx.shape_inference.InferenceError):
        return model


def _is_function(op: str) -> bool:
    try:
        schema = onnx.defs.get_schema(op, OPSET, "")
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function
