"""A graph as an ONNX model, which other runtimes run.

    cleave.onnx.export_onnx(rules.function("layer"), "layer.onnx")

Ops become primitives first, primitives become ONNX ops of opset OPSET. Sizes
with variables become named dimensions, and what is computed from them becomes
nodes. A primitive that ONNX cannot say raises UnimplementedError with its name.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..errors import InvalidArgumentError, UnimplementedError
from .size import Size, parse
from .trace import DTYPES, NUMPY

OPSET = 20
IR_VERSION = 10
ELEMENTS = {dtype: number for number, dtype in DTYPES.items()}
# Outputs of a node that the next one takes.
Names = list[str]


def split_list(text: str) -> list[str]:
    """The elements of "[a, max(b, c), [d]]", as texts."""
    parts, depth, start = [], 0, 0
    inner = text.strip()[1:-1]
    for at, letter in enumerate(inner):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            parts.append(inner[start:at].strip())
            start = at + 1
    if inner[start:].strip():
        parts.append(inner[start:].strip())
    return parts


def type_of_text(text: str) -> tuple[str, list]:
    """"f32[n, 4]" as a dtype and sizes."""
    dtype, _, rest = text.partition("[")
    return dtype, [parse(s) for s in split_list("[" + rest)]


class Attributes:
    """The attributes of a node, read from the texts of graphs."""

    def __init__(self, op: str, texts: dict):
        self.op = op
        self._texts = texts

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def text(self, name: str, default: str = "") -> str:
        return json.loads(self._texts[name]) if self._texts.get(
            name, "").startswith('"') else self._texts.get(name, default)

    def integer(self, name: str, default: int = 0) -> int:
        return int(self._texts.get(name, default))

    def flag(self, name: str) -> bool:
        return self._texts.get(name, "false") == "true"

    def sizes(self, name: str) -> list:
        return [parse(s) for s in split_list(self._texts[name])]

    def integers(self, name: str) -> list[int]:
        sizes = self.sizes(name)
        if not all(isinstance(s, int) for s in sizes):
            raise UnimplementedError(f"`{self.op}` with `{name}` "
                                     f"{self._texts[name]} has no ONNX op")
        return sizes

    def size(self, name: str):
        return parse(self._texts[name])

    def region(self, name: str) -> dict:
        return self._texts[name]


class Writer:
    """The nodes of one ONNX graph, as they are made."""

    def __init__(self, prefix: str = "", outer: "Writer | None" = None):
        self.nodes: list[onnx.NodeProto] = []
        self.prefix = prefix
        self.outer = outer
        self._count = 0
        self._constants: dict = {}
        self._sizes: dict[str, str] = {}
        # Where a variable size is found: an input, and its axis.
        self.variables: dict[str, tuple[str, int]] = (
            dict(outer.variables) if outer else {})

    def name(self, hint: str) -> str:
        self._count += 1
        return f"{self.prefix}{hint}_{self._count}"

    def add(self, op: str, inputs: Names, count: int = 1, **attributes):
        """A node; its output, or a list of several."""
        outputs = [self.name(op) for _ in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs,
                                           name=outputs[0], **attributes))
        return outputs[0] if count == 1 else outputs

    def constant(self, array) -> str:
        array = np.asarray(array)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = self.name("constant")
            self.nodes.append(helper.make_node(
                "Constant", [], [name], name=name,
                value=numpy_helper.from_array(array, name)))
            self._constants[key] = name
        return self._constants[key]

    def integers(self, values) -> str:
        return self.constant(np.array(list(values), np.int64))

    def number(self, value, dtype: str) -> str:
        if dtype not in NUMPY:
            raise UnimplementedError(f"a constant of {dtype} has no ONNX op")
        return self.constant(np.array(value, NUMPY[dtype]))

    def sizes(self, sizes) -> str:
        """A list of sizes as a tensor; computed where one has variables."""
        if all(isinstance(s, int) for s in sizes):
            return self.integers(sizes)
        parts = [self.add("Reshape", [self.size(s), self.integers([1])])
                 if isinstance(s, Size) else self.integers([s])
                 for s in sizes]
        return parts[0] if len(parts) == 1 else self.add("Concat", parts,
                                                         axis=0)

    def size(self, size) -> str:
        """A size as a scalar."""
        if isinstance(size, int):
            return self.constant(np.array(size, np.int64))
        text = str(size)
        if text not in self._sizes:
            self._sizes[text] = self._computed(ast.parse(text, mode="eval")
                                               .body)
        return self._sizes[text]

    def _computed(self, tree: ast.expr) -> str:
        if isinstance(tree, ast.Constant):
            return self.constant(np.array(tree.value, np.int64))
        if isinstance(tree, ast.Name):
            if tree.id not in self.variables:
                raise UnimplementedError(f"the size `{tree.id}` is that of no "
                                         "input's axis: ONNX cannot find it")
            tensor, axis = self.variables[tree.id]
            shape = self.add("Shape", [tensor], start=axis, end=axis + 1)
            return self.add("Reshape", [shape, self.integers([])])
        if isinstance(tree, ast.UnaryOp):
            return self.add("Neg", [self._computed(tree.operand)])
        if isinstance(tree, ast.Call):
            op = {"max": "Max", "min": "Min"}[tree.func.id]
            return self.add(op, [self._computed(a) for a in tree.args])
        a, b = self._computed(tree.left), self._computed(tree.right)
        if isinstance(tree.op, ast.FloorDiv):
            rest = self.add("Mod", [a, b])
            return self.add("Div", [self.add("Sub", [a, rest]), b])
        op = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul",
              ast.Mod: "Mod"}[type(tree.op)]
        return self.add(op, [a, b])

    def shaped(self, name: str, sizes) -> str:
        """The tensor in a shape."""
        return self.add("Reshape", [name, self.sizes(sizes)], allowzero=1)

    def cast(self, name: str, dtype: str) -> str:
        return self.add("Cast", [name], to=ELEMENTS[dtype])


def write_nodes(writer: Writer, graph: dict, values: dict[int, Names]) -> None:
    """Adds the nodes of a graph, whose inputs `values` has by number."""
    from .export_ops import PRIMITIVES
    types = {i["node"]: [i["type"]] for i in graph["inputs"]}
    for node in graph["nodes"]:
        op = node["op"]
        types[node["node"]] = node["types"]
        operands = [values[o][0] for o in node["operands"]]
        if op == "result":
            index = int(node["attributes"]["index"])
            results = [operands[0]]
            if len(node["operands"]) == 1:
                results = [values[node["operands"][0]][index]]
            values[node["node"]] = results
            continue
        function: Callable | None = PRIMITIVES.get(op)
        if function is None:
            raise UnimplementedError(f"`{op}` has no ONNX op")
        given = [type_of_text(types[o][0]) for o in node["operands"]]
        gives = [type_of_text(t) for t in node["types"]]
        for dtype, _ in given + gives:
            if dtype not in ELEMENTS:
                raise UnimplementedError(f"`{op}` of {dtype} has no ONNX op")
        made = function(writer, Attributes(op, node["attributes"]), operands,
                        given, gives)
        values[node["node"]] = [made] if isinstance(made, str) else made


def note_variables(writer: Writer, name: str, sizes) -> None:
    """Remembers where variables can be read that are an axis of a tensor."""
    for axis, size in enumerate(sizes):
        if isinstance(size, Size) and str(size).isidentifier():
            writer.variables.setdefault(str(size), (name, axis))


def value_info(name: str, text: str) -> onnx.ValueInfoProto:
    dtype, sizes = type_of_text(text)
    if dtype not in ELEMENTS:
        raise UnimplementedError(f"`{name}` is {dtype}, which ONNX lacks")
    return helper.make_tensor_value_info(
        name, ELEMENTS[dtype],
        [s if isinstance(s, int) else str(s) for s in sizes])


def region_values(writer: Writer, region: dict,
                  given: list[str]) -> list[str]:
    """The outputs of a region whose nodes stand here, for these inputs."""
    values = {i["node"]: [name] for i, name in zip(region["inputs"], given)}
    write_nodes(writer, region, values)
    return [values[output["node"]][0] for output in region["outputs"]]


def subgraph(outer: Writer, name: str, inputs: list[tuple[str, str]],
             build: Callable[[Writer], list[tuple[str, str]]]):
    """The body of an ONNX node. `inputs` has names and types, as texts;
    `build` adds the nodes and gives names and types of the outputs."""
    writer = Writer(outer.name(name) + "_", outer)
    outputs = []
    for made, text in build(writer):
        outputs.append(value_info(writer.add("Identity", [made]), text))
    return helper.make_graph(
        writer.nodes, name, [value_info(n, t) for n, t in inputs], outputs)


def to_onnx(graph, name: str = "cleave") -> onnx.ModelProto:
    """The graph as a model, checked by ONNX's own checker."""
    graph = graph.expand()
    described = graph.json()
    writer = Writer()
    values: dict[int, Names] = {}
    inputs = []
    taken = set()
    for entry in described["inputs"]:
        inputs.append(value_info(entry["name"], entry["type"]))
        values[entry["node"]] = [entry["name"]]
        taken.add(entry["name"])
        note_variables(writer, entry["name"], type_of_text(entry["type"])[1])
    write_nodes(writer, described, values)
    outputs = []
    for entry in described["outputs"]:
        label = entry["name"]
        if label in taken:
            raise InvalidArgumentError(
                f"`{label}` is an input and an output; ONNX needs two names",
                code=3)
        taken.add(label)
        writer.nodes.append(helper.make_node(
            "Identity", values[entry["node"]], [label], name=f"out_{label}"))
        outputs.append(value_info(label, entry["type"]))
    model = helper.make_model(
        helper.make_graph(writer.nodes, name, inputs, outputs),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION, producer_name="cleave")
    onnx.checker.check_model(model, full_check=True)
    return model


def export_onnx(graph, path, name: str = "cleave") -> None:
    """Writes a graph as an ONNX model.

    Raises UnimplementedError where a primitive of it has no ONNX op.
    """
    onnx.save(to_onnx(graph, name), os.fspath(path))
