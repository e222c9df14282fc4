"""Prints a graph of primitives as a Python function of torch calls.

    source = print_graph(graph.expand().json(), "pick")
    function = compile_source(source, "pick")
    y, = function(x)

The text stands by itself: sizes come from the shapes of the inputs, guards are
`torch._check`, each primitive is one line, or a call of a function of
helpers.py that says it in torch ops. A primitive that PyTorch cannot say raises
Unprintable here, with its name, and never while the function runs.
"""

from __future__ import annotations

import linecache
import math
import re

import torch

from cleave.torch import helpers, sequence_helpers
from cleave.torch.graph_text import (Type, number, parse_attribute, parse_type,
                                     python_name, python_size, size_variables)
from cleave.torch.print_structured import StructuredPrinter

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "u16": torch.uint16,
    "u32": torch.uint32, "u64": torch.uint64, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128,
    # The bits of a key; torch.uint64 has hardly any ops.
    "key": torch.int64,
}

_UNARY = {name: f"torch.{name}({{0}})" for name in (
    "abs", "sign", "ceil", "floor", "exp", "expm1", "log", "log1p", "sqrt",
    "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv",
    "lgamma", "isnan", "isinf")}
_UNARY.update({
    "neg": "-{0}",
    "round_nearest_even": "torch.round({0})",
    "cbrt": "helpers.cbrt({0})",
    "not": "~{0}",
    "nograd": "{0}.detach()",
    "real": "{0}.real",
    "imag": "{0}.imag",
})
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==",
              "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
              "and": "&", "or": "|", "xor": "^"}
_BINARY = {
    "floor_div": 'torch.div({0}, {1}, rounding_mode="floor")',
    "floor_mod": "torch.remainder({0}, {1})",
    "rem": "torch.fmod({0}, {1})",
    "pow": "torch.pow({0}, {1})",
    "atan2": "torch.atan2({0}, {1})",
    "copysign": "torch.copysign({0}, {1})",
    "nextafter": "torch.nextafter({0}.detach(), {1}.detach())",
    "shift_left": "helpers.shift_left({0}, {1})",
    "shift_right": "helpers.shift_right({0}, {1})",
    "ldexp": "helpers.ldexp({0}, {1})",
    "complex": "torch.complex({0}, {1})",
}
_TIES = {("max", "even"): "torch.maximum({0}, {1})",
         ("min", "even"): "torch.minimum({0}, {1})",
         ("max", "first"): "helpers.first_max({0}, {1})",
         ("min", "first"): "helpers.first_min({0}, {1})",
         ("max", "second"): "helpers.first_max({1}, {0})",
         ("min", "second"): "helpers.first_min({1}, {0})"}
# The result of one of these may share its memory with an operand.
_VIEWS = ("input", "broadcast_in_dim", "reshape", "transpose", "slice", "real",
          "imag", "nograd", "result", "pad_general", "reduce_max", "reduce_min",
          "dot_general")
_SCALAR_RIGHT = ("pow",)
# PyTorch has these integers, and next to no arithmetic of them.
_UNUSABLE = ("u16", "u32", "u64")


class Unprintable(NotImplementedError):
    """A primitive that PyTorch has no ops for."""


class _Value:
    """A node's value: a name of a tensor, or the text of a number that stands
    for a tensor of equal elements."""

    def __init__(self, type: Type, text: str, is_number: bool = False):
        self.type = type
        self.text = text
        self.is_number = is_number


class GraphPrinter(StructuredPrinter):
    """Prints one graph, or a region of one. `emit` takes lines."""

    def __init__(self, graph: dict, sizes: dict[str, str], prefix: str,
                 indent: str):
        self.graph = graph
        self.sizes = sizes
        self.prefix = prefix
        self.indent = indent
        self.lines: list[str] = []
        self.values: dict[int, _Value] = {}
        self.results: dict[int, list[_Value]] = {}
        self.tensors: dict[tuple, str] = {}
        self.used_names: set[str] = set()
        self.device_used = False
        # Products that only a `select` with 0 for the others reads: each factor
        # is chosen by itself there. A derivative by PyTorch would be 0 times
        # what the factor is where nobody reads it, and that may be NaN.
        self.masked = _masked_products(graph)
        self.factors: dict[int, tuple[_Value, _Value]] = {}

    # -- texts --------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def size(self, text: str) -> str:
        return python_size(str(text), self.sizes)

    def size_list(self, texts) -> str:
        return "[" + ", ".join(self.size(t) for t in texts) + "]"

    def device(self) -> str:
        self.device_used = True
        return "device"

    def dtype(self, name: str) -> str:
        return str(DTYPES[name])

    def fail(self, node: dict, why: str) -> Unprintable:
        where = f" ({node['rule']})" if "rule" in node else ""
        return Unprintable(f"`{node['op']}`{where}: {why}")

    def tensor(self, value: _Value, whole: bool = False) -> str:
        """The value as a tensor: a number becomes a 0-d one, or one of its
        shape with `whole`."""
        if not value.is_number:
            return value.text
        shape = self.size_list(value.type.shape) if whole else "[]"
        key = (value.text, value.type.dtype, shape)
        if key not in self.tensors:
            name = f"{self.prefix}c{len(self.tensors)}"
            self.emit(f"{name} = torch.full({shape}, {value.text}, "
                      f"dtype={self.dtype(value.type.dtype)}, "
                      f"device={self.device()})")
            self.tensors[key] = name
        return self.tensors[key]

    def operand(self, node: dict, k: int) -> _Value:
        return self.values[node["operands"][k]]

    def operands(self, node: dict) -> list[str]:
        """All operands as tensors of their shapes."""
        return [self.tensor(self.values[i], True) for i in node["operands"]]

    def attribute(self, node: dict, name: str, default=None):
        if name not in node["attributes"]:
            return default
        return parse_attribute(node["attributes"][name])

    def axes(self, node: dict, name: str = "axes") -> list[int]:
        return [int(a) for a in self.attribute(node, name)]

    # -- nodes --------------------------------------------------------------

    def print_nodes(self) -> None:
        for node in self.graph["nodes"]:
            types = [parse_type(t) for t in node["types"]]
            for type in types:
                # Bits may be seen as such numbers, in a view.
                if (type.dtype in _UNUSABLE
                        and node["op"] != "bitcast_convert"):
                    raise self.fail(node, f"PyTorch computes nothing in "
                                          f"{type.dtype}")
            text = self._print_node(node, types)
            if text is None:
                continue
            name = f"{self.prefix}v{node['node']}"
            rule = f"  # {node['rule']}" if "rule" in node else ""
            self.emit(f"{name} = {text}{rule}")
            self.values[node["node"]] = _Value(types[0], name)

    def _print_node(self, node: dict, types: list[Type]) -> str | None:
        """The expression of a node; None where a method stored its values."""
        op = node["op"]
        if node["node"] in self.masked:
            self.factors[node["node"]] = self._pair(node)
            return None
        if op in _UNARY:
            return _UNARY[op].format(self.tensor(self.operand(node, 0), True))
        if op in _OPERATORS:
            return self._print_operator(node)
        if op in _BINARY:
            return self._print_binary(node)
        method = getattr(self, "print_" + op, None)
        if method is None:
            raise self.fail(node, "PyTorch has no ops for this primitive")
        return method(node, types)

    def _pair(self, node: dict) -> tuple[_Value, _Value]:
        return self.operand(node, 0), self.operand(node, 1)

    def _print_operator(self, node: dict) -> str:
        a, b = self._pair(node)
        if a.is_number and b.is_number or a.type.rank == 0:
            # A tangent of a 0-d tensor times a Python number is f64 in PyTorch.
            left, right = self.tensor(a, True), self.tensor(b)
        elif a.is_number and node["op"] == "div" and a.text != "1.0":
            # The quotient of a number is a product with the reciprocal there.
            left, right = self.tensor(a), b.text
        else:
            left, right = self._in_parentheses(a), self._in_parentheses(b)
        return f"{left} {_OPERATORS[node['op']]} {right}"

    @staticmethod
    def _in_parentheses(value: _Value) -> str:
        plain = re.fullmatch(r"[\w.]+", value.text)
        return value.text if plain else f"({value.text})"

    def _print_binary(self, node: dict) -> str:
        a, b = self._pair(node)
        left = self.tensor(a, a.is_number and b.is_number)
        if b.is_number and node["op"] in _SCALAR_RIGHT and not a.is_number:
            right = b.text
        else:
            right = self.tensor(b)
        return _BINARY[node["op"]].format(left, right)

    def print_max(self, node, types):
        a, b = self._pair(node)
        tie = self.attribute(node, "tie", "even")
        left = self.tensor(a, a.is_number and b.is_number)
        return _TIES[node["op"], tie].format(left, self.tensor(b))

    print_min = print_max

    def print_polygamma(self, node, types):
        order = self.operand(node, 0)
        if not order.is_number or float(order.text) < 0:
            raise self.fail(node, "its order must be a constant")
        x = self.tensor(self.operand(node, 1), True)
        return f"torch.polygamma({int(float(order.text))}, {x})"

    def print_select(self, node, types):
        condition = self.tensor(self.operand(node, 0))
        factors = self.factors.get(node["operands"][1])
        if factors is not None:
            return " * ".join(
                f.text if f.is_number else
                f"torch.where({condition}, {f.text}, 0.0)" for f in factors)
        a, b = self.operand(node, 1), self.operand(node, 2)
        if a.is_number and b.is_number or self.operand(node, 0).is_number:
            texts = [self.tensor(v, True) for v in (a, b)]
        else:
            texts = [a.text, b.text]
        return f"torch.where({condition}, {texts[0]}, {texts[1]})"

    def print_fma(self, node, types):
        texts = [self.tensor(self.operand(node, k)) for k in range(3)]
        if all(self.operand(node, k).is_number for k in range(3)):
            texts[0] = self.tensor(self.operand(node, 0), True)
        return "helpers.fma({}, {}, {})".format(*texts)

    def print_convert(self, node, types):
        x, to = self.operand(node, 0), types[0].dtype
        source = x.type.dtype
        if source == to:
            self.values[node["node"]] = x
            return None
        if x.is_number:
            text = self._converted_number(x.text, source, to)
            if text is not None:
                self.values[node["node"]] = _Value(types[0], text, True)
                return None
        text = self.tensor(x, True)
        if to == "bool":
            return f"{text} != 0"
        if source[0] in "fb" and source != "bool" and to[0] in "iu":
            return f"helpers.to_integer({text}, {self.dtype(to)})"
        return f"{text}.to({self.dtype(to)})"

    @staticmethod
    def _converted_number(text: str, source: str, to: str) -> str | None:
        """A number in another dtype, where that is no question of rounding."""
        if to[0] in "fb" and to != "bool":
            if source[0] in "iu":
                try:
                    return _number_text(number(text, to))
                except ValueError:
                    return f"torch.sym_float({text})" if to in ("f32", "f64") \
                        else None
        return None

    def print_bitcast_convert(self, node, types):
        return f"helpers.bitcast({self.operands(node)[0]}, " \
               f"{self.dtype(types[0].dtype)})"

    # -- leaves -------------------------------------------------------------

    def print_constant(self, node, types):
        value = number(node["attributes"]["value"], types[0].dtype)
        self.values[node["node"]] = _Value(types[0], _number_text(value), True)

    def print_extent(self, node, types):
        text = self.size(self.attribute(node, "value"))
        self.values[node["node"]] = _Value(types[0], text, True)

    def print_iota(self, node, types):
        size = self.size(self.attribute(node, "size"))
        return f"torch.arange({size}, device={self.device()})"

    def print_result(self, node, types):
        index = int(self.attribute(node, "index"))
        self.values[node["node"]] = self.results[node["operands"][0]][index]

    # -- regions ------------------------------------------------------------

    def print_region(self, region: dict, name: str) -> None:
        """A nested function, which sees the sizes of the graph around it."""
        inner = GraphPrinter(region, self.sizes, name + "_",
                             self.indent + "    ")
        texts = inner.name_inputs()
        self.emit(f"def {name}({', '.join(texts)}):")
        inner.print_nodes()
        outputs = inner.output_texts()
        if inner.device_used:
            self.device_used = True
        self.lines += inner.lines
        self.emit(f"    return {outputs}")

    def name_inputs(self) -> list[str]:
        texts = []
        for value in self.graph["inputs"]:
            name = self.prefix + python_name(value["name"])
            while name in self.used_names:
                name += "_"
            self.used_names.add(name)
            self.values[value["node"]] = _Value(parse_type(value["type"]), name)
            texts.append(name)
        return texts

    def output_texts(self, own: bool = False) -> str:
        """The outputs as a tuple. With `own` none shares memory with an input,
        with another one, or among its elements."""
        ops = {n["node"]: n["op"] for n in self.graph["nodes"]}
        texts, seen = [], set()
        for output in self.graph["outputs"]:
            text = self.tensor(self.values[output["node"]], True)
            view = ops.get(output["node"], "input") in _VIEWS or text in seen
            seen.add(text)
            texts.append(text + ".clone()" if own and view else text)
        return "(" + "".join(t + ", " for t in texts).rstrip() + ")" \
            if texts else "()"


def _masked_products(graph: dict) -> set[int]:
    """The nodes `p * q` of `select(c, p * q, 0)` that have no other use and are
    no product of numbers alone."""
    nodes = {n["node"]: n for n in graph["nodes"]}
    uses: dict[int, int] = {v["node"]: 2 for v in graph["outputs"]}
    for node in graph["nodes"]:
        for operand in node["operands"]:
            uses[operand] = uses.get(operand, 0) + 1

    def constant(k: int) -> str | None:
        node = nodes.get(k)
        while node is not None and node["op"] == "broadcast_in_dim":
            node = nodes.get(node["operands"][0])
        return node["attributes"]["value"] \
            if node is not None and node["op"] == "constant" else None

    found = set()
    for node in graph["nodes"]:
        if node["op"] != "select" or constant(node["operands"][2]) != "0.0":
            continue
        product = nodes.get(node["operands"][1])
        if product is None or product["op"] != "mul" \
                or uses[product["node"]] != 1 \
                or parse_type(product["types"][0]).dtype[0] not in "fb":
            continue
        if all(constant(k) is None for k in product["operands"]):
            found.add(product["node"])
    return found


def _number_text(value) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return {True: "nan"}.get(math.isnan(value),
                                 "inf" if value > 0 else "-inf")
    return repr(value)


def print_sizes(printer: GraphPrinter, graph: dict, names: list[str],
                place: str = "{name}.shape[{axis}]") -> None:
    """Variables are read from axes that show them alone, then from those that
    are linear in one that is not yet known; all other axes are checked."""
    axes = []
    for value, name in zip(graph["inputs"], names):
        for d, text in enumerate(parse_type(value["type"]).shape):
            axes.append((text, place.format(name=name, axis=d)))
    known: set[str] = set()
    taken = {"torch", "helpers", "device", "inf", "nan", *names}

    def bind(variable: str, text: str) -> None:
        identifier = python_name(variable)
        while identifier in taken:
            identifier += "_"
        taken.add(identifier)
        printer.sizes[variable] = identifier
        printer.emit(f"{identifier} = {text}")
        known.add(variable)

    checks = []
    for text, where in axes:
        variables = size_variables(text)
        if variables == [text] and text not in known:
            bind(text, where)
        else:
            checks.append((text, where))
    for text, where in sorted(checks, key=lambda c: len(size_variables(c[0]))):
        unknown = [v for v in size_variables(text) if v not in known]
        if len(unknown) == 1:
            solved = _solve(text, unknown[0], where)
            if solved is not None:
                bind(unknown[0], solved)
    for text, where in checks:
        for variable in size_variables(text):
            if variable not in known:
                raise Unprintable(f"no input shows the size `{variable}`")
        printer.emit(f"torch._check({where} == {printer.size(text)}, "
                     f"lambda: \"{where} is not {text}\")")
    for guard in graph["guards"]:
        condition, _, why = guard.partition(": \"")
        variables = size_variables(condition)
        if all(v in known for v in variables):
            message = why.rstrip('"').replace("\\", "").replace('"', "'")
            printer.emit(f"torch._check({printer.size(condition)}, "
                         f"lambda: \"{message}\")")


def _solve(text: str, variable: str, place: str) -> str | None:
    """The variable of a size that is linear in it."""
    def at(value: int) -> str:
        pattern = r"(?<![\w.])" + re.escape(variable) + r"(?![\w.])"
        return f"({re.sub(pattern, str(value), text)})"

    if not all(v == variable for v in size_variables(text)):
        return None
    values = [eval(at(k), {"min": min, "max": max})  # noqa: S307
              for k in range(5)]
    slope = values[1] - values[0]
    if slope == 0 or values != [values[0] + k * slope for k in range(5)]:
        return None
    return f"({place} - {values[0]}) // {slope}"


def print_graph(graph: dict, name: str = "graph") -> str:
    """The graph, as its JSON, as the text of a function that takes tensors and
    returns a tuple of them."""
    printer = GraphPrinter(graph, {}, "", "    ")
    names = printer.name_inputs()
    print_sizes(printer, graph, names)
    body = len(printer.lines)
    printer.print_nodes()
    outputs = printer.output_texts(own=True)
    if printer.device_used:
        where = f"{names[0]}.device" if names else 'torch.device("cpu")'
        printer.lines.insert(body, f"    device = {where}")
    lines = [f"def {name}({', '.join(names)}):", *printer.lines,
             f"    return {outputs}"]
    return "\n".join(lines) + "\n"


class _Helpers:
    """The functions of both modules of helpers under one name."""


for _module in (helpers, sequence_helpers):
    for _name, _function in vars(_module).items():
        if callable(_function) and not _name.startswith("_"):
            setattr(_Helpers, _name, staticmethod(_function))


def compile_source(source: str, name: str = "graph"):
    """The function of a printed text; tracebacks show its lines."""
    filename = f"<cleave {name} {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None,
                                 source.splitlines(True), filename)
    namespace = {"torch": torch, "helpers": _Helpers, "inf": math.inf,
                 "nan": math.nan, "sym_min": helpers.sym_min,
                 "sym_max": helpers.sym_max}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102
    function = namespace[name]
    function.source = source
    return function
