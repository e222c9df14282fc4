"""Graphs, kernels and builders.

    g = cleave.load().parse("graph (%x: f32[n]) -> (y: f32[n]) {..}")
    dg = g.vjp([True])                  # a graph
    k = dg.compile()                    # machine code
    y, dx = k(x, dy)                    # arrays, of the framework of the first

A graph is a function of arrays: typed inputs, nodes, outputs, and guards on its
sizes. None of these objects ever changes, but for builders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .errors import InvalidArgumentError
from .types import (INEXACT, Size, TensorType, as_size, attribute_text,
                    number_text)

if TYPE_CHECKING:
    from .rules import Rules

NOT_MAPPED = -1
SPLIT = -2
Flags = Iterable[bool | int | str] | None
_JACOBIAN_KINDS = {"forward": 0, "reverse": 1, "hessian": 2}


class Aot(NamedTuple):
    """A forward and a backward graph, and what both were cut from."""

    forward: Graph
    backward: Graph
    joint: Graph
    info: dict[str, Any]


class Graph:
    """A function of arrays, as the library has it."""

    __slots__ = ("_handle", "rules", "_text", "_signature", "_kernel",
                 "__weakref__")

    def __init__(self, handle: _native.Graph, rules: Rules) -> None:
        self._handle = handle
        self.rules = rules
        self._text: str | None = None
        self._signature: dict[str, Any] | None = None
        self._kernel: Kernel | None = None

    # Text, identity and signature.

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._handle.print(0)
        return self._text

    __repr__ = __str__

    @property
    def key(self) -> str:
        """Its text, which is the same for equal graphs."""
        return str(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.rules is other.rules and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def json(self) -> dict[str, Any]:
        """Inputs, nodes, guards and outputs."""
        return json.loads(self._handle.print(1))

    def dot(self) -> str:
        """The text of a drawing, for Graphviz."""
        return self._handle.print(2)

    def explain(self) -> str:
        """Its text, with the rule and line that each node comes from."""
        return self._handle.print(3)

    def signature(self) -> dict[str, Any]:
        """Inputs, outputs, guards, variables and the number of nodes."""
        if self._signature is None:
            self._signature = json.loads(self._handle.signature())
        return self._signature

    def _types(self, which: str) -> list[tuple[str, TensorType]]:
        return [(v["name"], TensorType(v["dtype"],
                                       tuple(as_size(s) for s in v["shape"])))
                for v in self.signature()[which]]

    @property
    def inputs(self) -> list[tuple[str, TensorType]]:
        return self._types("inputs")

    @property
    def outputs(self) -> list[tuple[str, TensorType]]:
        return self._types("outputs")

    @property
    def guards(self) -> list[str]:
        return list(self.signature()["guards"])

    @property
    def variables(self) -> list[str]:
        return list(self.signature()["variables"])

    # Transforms.

    def _new(self, handle: _native.Graph) -> Graph:
        return Graph(handle, self.rules)

    def _flags(self, active: Flags) -> bytes:
        """An entry for each input; None marks all that have derivatives."""
        inputs = self.inputs
        if active is None:
            return bytes(kind.dtype in INEXACT for _, kind in inputs)
        entries = list(active)
        if entries and all(isinstance(entry, str) for entry in entries):
            unknown = set(entries) - {name for name, _ in inputs}
            if unknown:
                raise InvalidArgumentError(
                    f"the graph has no input {sorted(unknown)[0]}", code=3)
            return bytes(name in entries for name, _ in inputs)
        if any(entry not in (0, 1) for entry in entries):
            raise InvalidArgumentError(
                f"{entries} are no flags: each input has one, True or False",
                code=3)
        return bytes(bool(entry) for entry in entries)

    def vmap(self, in_axes: Iterable[int | str | None] | int = 0,
             batch: Size | None = None,
             out_axes: Iterable[int] | int | None = None) -> Graph:
        """Many examples at once.

        `in_axes` has an axis for each input: None where all examples share it,
        "split" of a key of which each gets one of its own. `batch` is their
        number; None is a new variable.
        """
        count = len(self.signature()["inputs"])
        axes = [in_axes] * count if isinstance(in_axes, int) else in_axes
        named: dict[Any, int] = {None: NOT_MAPPED, "split": SPLIT}
        if isinstance(out_axes, int):
            out_axes = [out_axes] * len(self.signature()["outputs"])
        return self._new(self._handle.vmap(
            [named.get(axis, axis) for axis in axes],
            None if batch is None else str(batch), out_axes))

    def jvp(self, active: Flags = None) -> tuple[Graph, list[bool]]:
        """Forward mode: tangents behind the inputs and behind the outputs.

        The second result says which outputs have a tangent.
        """
        handle, has_tangent = self._handle.jvp(self._flags(active))
        return self._new(handle), [bool(flag) for flag in has_tangent]

    def vjp(self, active: Flags = None) -> Graph:
        """Reverse mode: a cotangent behind the inputs for each inexact output,
        and one behind the outputs for each active input."""
        return self._new(self._handle.vjp(self._flags(active)))

    def grad(self, active: Flags = None, value: bool = False) -> Graph:
        """The gradients of a float scalar, with `value` behind the scalar."""
        return self._new(self._handle.grad(self._flags(active), value))

    def jacobian(self, i: int = 0, kind: str = "reverse") -> Graph:
        """The derivatives of all float outputs in input `i`; `kind` is
        "forward", "reverse" or "hessian"."""
        if kind not in _JACOBIAN_KINDS:
            raise InvalidArgumentError(
                f"{kind!r} is none of {', '.join(_JACOBIAN_KINDS)}", code=3)
        return self._new(self._handle.jacobian(i, _JACOBIAN_KINDS[kind]))

    def linearize(self, active: Flags = None) -> tuple[Graph, Graph, int]:
        """The function and its derivative at a point: (primal, linear, n).

        `primal` gives n residuals behind its outputs, and `linear` takes them
        behind the tangents.
        """
        primal, linear, count = self._handle.linearize(self._flags(active))
        return self._new(primal), self._new(linear), count

    def transpose(self, linear: Flags) -> Graph:
        """The transpose of a function that is linear in the inputs marked."""
        return self._new(self._handle.transpose(self._flags(linear)))

    def expand(self, preserve: Iterable[str] = (),
               only: Iterable[str] = ()) -> Graph:
        """Calls become primitives, but for the ops in `preserve`; where `only`
        has names, those of these ops alone."""
        return self._new(self._handle.expand(list(preserve), list(only)))

    def simplify(self, approx: bool = False) -> Graph:
        """The rules' rewrites applied; `approx` adds those that hold over the
        real numbers alone."""
        return self._new(self._handle.simplify(approx))

    def substitute(self, sizes: Mapping[str, Size]) -> Graph:
        """The graph with sizes for variables."""
        return self._new(self._handle.substitute(
            list(sizes), [str(size) for size in sizes.values()]))

    def with_rules(self, rules: Rules) -> Graph:
        """The same function by other rules."""
        return Graph(self._handle.with_rules(rules._handle), rules)

    def to_rule(self, name: str) -> str:
        """A rule file with one op of that name."""
        return self._handle.to_rule(name)

    def aot(self, active: Flags = None, *, partition: str | None = None,
            budget: float = 0.0, policy: str | None = None,
            names: Iterable[str] = (), decompose: Iterable[str] = (),
            preserve: Iterable[str] = (), expand: bool = False,
            parameters: int = 0) -> Aot:
        """The function and its reverse mode as two graphs.

        `partition` is "default" or "min-cut", and `budget`, `policy` and
        `names` say what the latter saves. `decompose` has ops, or "core-aten";
        `parameters` is how many leading inputs live on anyway.
        """
        forward, backward, joint, info = self._handle.aot(
            self._flags(active), partition, budget, policy, list(names),
            list(decompose), list(preserve), expand, parameters)
        return Aot(self._new(forward), self._new(backward), self._new(joint),
                   json.loads(info))

    # Running.

    def compile(self, *, device: str | None = None, level: str | None = None,
                generalize: bool = False, approx: bool = False,
                host_kernels: Mapping[str, Callable[..., Any]] | None = None,
                ) -> Kernel:
        """Machine code for all sizes that the graph's variables can have.

        `host_kernels` has Python functions that compute ops, by their names:
        each takes the inputs as numpy arrays and the attributes by name.
        """
        from .hosts import prepare, wrapped
        prepare()
        kernel = _native.Kernel.__new__(
            Kernel, self._handle, device, level, generalize, approx,
            wrapped(host_kernels), [kind.dtype for _, kind in self.inputs],
            "while(" in str(self) or bool(host_kernels))
        kernel.graph = self
        return kernel

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Runs the graph; it is compiled on the first call."""
        if self._kernel is None:
            self._kernel = self.compile()
        return self._kernel(*arrays)

    def compile_library(self, name: str, folder: Any,
                        levels: Iterable[str] | None = None) -> list[str]:
        """A static library with a C header; gives the paths of its files."""
        from .hosts import prepare
        prepare()
        joined = None if levels is None else ",".join(levels)
        folder = os.fspath(folder)
        names = self._handle.compile_library(name, folder, joined)
        return [os.path.join(folder, file) for file in json.loads(names)]

    def __getattr__(self, name: str) -> Any:
        # A notebook shows a drawing where Graphviz is installed.
        if name == "_repr_svg_":
            import shutil
            if shutil.which("dot"):
                return self._draw
        raise AttributeError(name)

    def _draw(self) -> str:
        import subprocess
        return subprocess.run(["dot", "-Tsvg"], input=self.dot(), text=True,
                              capture_output=True, check=True).stdout


class Kernel(_native.Kernel):
    """Machine code of a graph: a function of arrays that gives a tuple.

    The results are arrays of the framework that the first array has.
    """

    graph: Graph

    def __repr__(self) -> str:
        return f"<kernel of {str(self.graph).splitlines()[0].rstrip(' {')}>"

    def lowered_graph(self) -> Graph:
        """The graph of primitives that it computes."""
        return Graph(self.lowered(), self.graph.rules)

    def report(self, *arrays: Any) -> dict[str, Any]:
        """Runs it, and tells each step's time, bytes and ops."""
        return json.loads(self.run_with_report(arrays)[1])


class Builder:
    """A graph in the making; its values are numbers.

    b = rules.builder()
    x = b.input("x", "f32[n]")
    y, = b.call("softmax", [x], {"axis": 0})
    g = b.finish({"y": y})
    """

    __slots__ = ("_handle", "rules", "_kinds")

    def __init__(self, rules: Rules) -> None:
        self._handle = _native.Builder(rules._handle)
        self.rules = rules

    def input(self, name: str, type: TensorType | str) -> int:
        return self._handle.input(name, str(type))

    def constant(self, number: float | int | bool | str,
                 type: TensorType | str) -> int:
        """A number in each element."""
        text = number if isinstance(number, str) else number_text(number)
        return self._handle.constant(text, str(type))

    def call(self, op: str, arguments: Sequence[Any] | Mapping[str, Any],
             attributes: Mapping[str, Any] | str | None = None,
             ) -> list[int | None]:
        """A call of an op or a primitive.

        An argument is a value, None where it is absent, or a list of them; a
        dict gives them by name. A result that is absent is None.
        """
        if isinstance(arguments, Mapping):
            pairs = list(arguments.items())
        else:
            pairs = [(None, argument) for argument in arguments]
        text = attribute_text(attributes, self.rules.attribute_kinds(op))
        return self._handle.call(op, pairs, text)

    def inline(self, graph: Graph, arguments: Sequence[int]) -> list[int]:
        """The nodes of a graph of the same rules."""
        return self._handle.inline(graph._handle, arguments)

    def type(self, value: int) -> TensorType:
        return TensorType.parse(self._handle.type(value))

    def finish(self, outputs: Mapping[str, int]) -> Graph:
        """The graph with these outputs; the builder begins anew."""
        handle = self._handle.finish(list(outputs), list(outputs.values()))
        return Graph(handle, self.rules)
