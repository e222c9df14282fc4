"""An ONNX graph as the text of a rule file.

    source = import_text(rules, "model.onnx", name="classifier")
    source.text         # a rule file with one fn, a def per repeated block
    source.parameters   # {"dense_kernel": array, ..}: inputs behind the model's

Each node becomes statements of the function's body. All nodes are tried before
anything is said: what cannot be imported is listed in one error.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from ..errors import UnimplementedError
from . import constants, control, movement, operators
from .blocks import fold_blocks
from .names import Names, field_name, identifier
from .operators import RuleCalls, expression
from .prepare import nodes_of, opset_of, prepare
from .size import Size
from .trace import (DTYPES, Body, Function, Unknown, Unsupported, Value,
                    static_value, words)

_UNKNOWN = object()
_COUNTED = "how many results there are depends on data"
_RANDOM = "ONNX gives no key: what it draws cannot be told"
# Why some ops will not be there; the others lack a rule.
REASONS = {
    "NonZero": _COUNTED, "Unique": _COUNTED, "Compress": _COUNTED,
    "NonMaxSuppression": _COUNTED, "RandomNormal": _RANDOM,
    "RandomUniform": _RANDOM, "RandomNormalLike": _RANDOM,
    "RandomUniformLike": _RANDOM, "Bernoulli": _RANDOM,
    "Multinomial": _RANDOM,
    **dict.fromkeys(("SequenceAt", "SequenceConstruct", "SequenceEmpty",
                     "SequenceErase", "SequenceInsert", "SequenceLength",
                     "SequenceMap", "SplitToSequence", "ConcatFromSequence"),
                    "there are no sequences of tensors"),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"),
                    "there are no optional values"),
    **dict.fromkeys(("StringConcat", "StringNormalizer", "StringSplit",
                     "RegexFullMatch", "TfIdfVectorizer"),
                    "there are no tensors of texts"),
    "ImageDecoder": "it decodes files",
}


@dataclasses.dataclass
class Source:
    """A model as rules: the text, and what its function takes and gives."""

    text: str
    name: str
    inputs: list[tuple[str, str, tuple]]
    outputs: list[tuple[str, str, tuple]]
    parameters: dict[str, np.ndarray]
    original_names: dict[str, str]
    op_types: dict[str, int]


class Importer:
    """Walks the graphs of one model."""

    def __init__(self, rules, names: Names):
        self.rules = rules
        self.calls = RuleCalls(rules)
        self.function = Function(rules, names)
        self.problems: list[tuple[str, str, str]] = []
        self.opset = 0

    def knows(self, op: str) -> bool:
        """Whether nodes of this type may be imported."""
        # A rule may say what a model cannot.
        return op not in REASONS and (
            op in movement.HANDLERS or op in control.HANDLERS
            or op in operators.EXPRESSIONS or self.calls.has(op))

    def graph(self, graph: onnx.GraphProto, body: Body, scope: Mapping,
              given: dict[str, Value]) -> list:
        """The values of a graph's outputs; None where one is not known."""
        inner = ChainMap({}, scope)
        inner.update(given)
        for tensor in graph.initializer:
            if tensor.name not in given:
                inner[tensor.name] = self._initializer(body, tensor)
        for node in graph.node:
            self._node(node, body, inner)
        return [None if inner[o.name] is _UNKNOWN else inner[o.name]
                for o in graph.output]

    def _initializer(self, body: Body, tensor: onnx.TensorProto):
        try:
            array = numpy_helper.to_array(tensor)
            value = movement.initializer(body, tensor.name, array)
            if value.is_float and array.ndim and array.size == 1:
                # One that could be trained stays a parameter.
                value.text = self.function.parameter(tensor.name, array,
                                                     value.dtype)
            return value
        except Unsupported as error:
            self.problems.append((tensor.name, "an initializer", str(error)))
            return _UNKNOWN

    def _node(self, node: onnx.NodeProto, body: Body, scope) -> None:
        inputs = [scope[name] if name else None for name in node.input]
        results: list = [_UNKNOWN] * len(node.output)
        label = node.name or next((o for o in node.output if o), "")
        outer, self.function.place = self.function.place, label
        try:
            if not any(v is _UNKNOWN for v in inputs):
                results = self._lower(node, inputs, body, scope)
        except Unknown:
            pass
        except (Unsupported, ValueError) as error:
            self.problems.append((label, node.op_type, str(error)))
        finally:
            self.function.place = outer
        for at, output in enumerate(node.output):
            if output:
                value = results[at] if at < len(results) else None
                scope[output] = _UNKNOWN if value is None else value

    def _lower(self, node, inputs, body, scope) -> list:
        op = node.op_type
        if node.domain not in ("", "ai.onnx") and not (
                node.domain.startswith("ai.onnx.") and self.calls.has(op)):
            raise Unsupported(f"ops of the domain {node.domain} have no rules")
        if op in control.HANDLERS:
            return control.HANDLERS[op](self, body, node, inputs, scope)
        if not any(v is not None and v.is_float and v.text for v in inputs):
            folded = constants.fold(node, inputs, self.opset)
            if folded is not None:
                return folded
        if op in movement.HANDLERS:
            results = movement.HANDLERS[op](body, node, inputs)
            if results is not None:
                return results
        results = expression(body, node, inputs)
        if results is not None:
            return results
        if op not in REASONS and self.calls.has(op):
            return self.calls.call(body, node, inputs)
        raise Unsupported(REASONS.get(op, "no rule says what it means"))


def _input_shape(info, names: Names, sizes: Mapping[str, int],
                 known: dict[str, str]) -> tuple:
    if not info.type.tensor_type.HasField("shape"):
        raise Unsupported("its number of axes is not known")
    shape = []
    for at, dim in enumerate(info.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            shape.append(dim.dim_value)
            continue
        label = dim.dim_param or f"{info.name}_{at}"
        if label in sizes:
            shape.append(sizes[label])
            continue
        if label not in known:
            known[label] = names.new(label)
        shape.append(sizes.get(known[label], Size.variable(known[label])))
    return tuple(shape)


def import_text(rules, source, name: str = "model",
                sizes: Mapping[str, int] | None = None,
                values: Mapping | None = None) -> Source:
    """The model as rules. Raises UnimplementedError with a line for each node
    that is not supported."""
    names = Names(_reserved(rules))
    importer = Importer(rules, names)
    model = prepare(source, importer.knows)
    importer.opset = opset_of(model)
    graph = model.graph
    names.learn(_texts(graph))
    function_name = names.new(name)
    body = Body(importer.function)
    given: dict[str, Value] = {}
    inputs = []
    known: dict[str, str] = {}
    initialized = {t.name for t in graph.initializer}
    for info in graph.input:
        if info.name in initialized and info.name not in (values or {}):
            continue
        try:
            if info.name in (values or {}):
                given[info.name] = static_value(
                    np.asarray(values[info.name]), info.name)
                continue
            value = _input(info, names, sizes or {}, known)
        except Unsupported as error:
            importer.problems.append((info.name, "an input", str(error)))
            given[info.name] = _UNKNOWN
            continue
        given[info.name] = value
        inputs.append((value.text, value.dtype, value.shape))
    results = importer.graph(graph, body, {}, given)
    _raise_problems(importer)
    outputs: list[tuple[str, str, tuple]] = []
    fields = []
    for info, value in zip(graph.output, results):
        field = field_name(info.name)
        while field in [o[0] for o in outputs]:
            field += "_"
        outputs.append((field, value.dtype, value.shape))
        fields.append(body.text(value))
    text = _render(function_name, body, inputs, outputs, fields, importer,
                   model)
    counts: dict[str, int] = {}
    for node in nodes_of(graph):
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return Source(text, function_name, inputs, outputs,
                  importer.function.parameters,
                  importer.function.original_names, counts)


def _input(info, names: Names, sizes, known) -> Value:
    if not info.type.HasField("tensor_type"):
        raise Unsupported("it is no tensor")
    element = info.type.tensor_type.elem_type
    if element not in DTYPES:
        raise Unsupported(f"element type {element}")
    shape = _input_shape(info, names, sizes, known)
    return Value(DTYPES[element], shape, names.new(info.name), name=info.name)


def _texts(graph: onnx.GraphProto) -> list[str]:
    texts = [t.name for t in graph.initializer]
    texts += [i.name for i in graph.input]
    for node in nodes_of(graph):
        texts += [o for o in node.output if o]
        if node.name:
            texts.append(node.name)
    return texts


def _reserved(rules) -> set[str]:
    """Names that mean something in rules."""
    found: set[str] = set()
    for kind in ("op", "fn", "primitive"):
        found |= set(rules.names(kind))
    return found | {"reshape", "transpose", "broadcast_to", "concatenate",
                    "reverse", "zeros", "iota", "conv", "sort", "nonzero",
                    "size", "len", "shape", "dtype", "drop", "keep",
                    "broadcast", "argmax", "argmin", "convert", "padded",
                    "onnx"}


def _raise_problems(importer: Importer) -> None:
    problems = list(dict.fromkeys(importer.problems))
    if not problems:
        return
    lines = [f"  {name}: {op}: {why}" for name, op, why in problems]
    raise UnimplementedError(
        f"the model has {len(problems)} "
        + ("part that is" if len(problems) == 1 else "parts that are")
        + " not supported:\n" + "\n".join(lines))


def _typed(name: str, dtype: str, shape) -> str:
    return f"{name}: {dtype}[{', '.join(str(s) for s in shape)}]"


def _listed(opening: str, items: list[str], closing: str) -> list[str]:
    line = opening + ", ".join(items) + closing
    if len(line) <= 98:
        return [line]
    lines = [opening.rstrip()]
    for at, item in enumerate(items):
        last = at == len(items) - 1
        lines.append(f"    {item}{'' if last else ','}")
    lines[-1] += closing
    return lines


def _render(name, body: Body, inputs, outputs, fields, importer, model) -> str:
    function = importer.function
    body.prune(fields)
    used = words(fields + [t for s in body.statements for t in s.operands]
                 + [s.template for s in body.statements if s.alone])
    for made in [p for p in function.parameters if p not in used]:
        del function.parameters[made], function.original_names[made]
    lines = ["language 1", "",
             f"// {model.graph.name or 'A model'}, imported from ONNX"
             + (f" ({model.producer_name})." if model.producer_name else "."),
             ""]
    lines += fold_blocks(body, function.names, fields)
    renamed = [f"/// `{made}` is `{original}`." for made, original
               in function.original_names.items()
               if identifier(original) != made and "\n" not in original]
    typed = [_typed(*i) for i in inputs] + [
        _typed(made, function.parameter_dtypes[made], array.shape)
        for made, array in function.parameters.items()]
    lines += renamed
    opening = _listed(f"fn {name}(", typed, ")")
    opening[-1] += " -> (" + ", ".join(_typed(*o) for o in outputs) + ")"
    result = "(" + ", ".join(f"{o[0]} = {f}"
                             for o, f in zip(outputs, fields)) + ")"
    lines += opening + ["{"] + body.render() + [f"  {result}", "}", ""]
    return "\n".join(lines)
