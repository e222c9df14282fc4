"""Graphs as parameters of JAX's primitives.

Parameters of primitives are hashable, and equal where they mean the same. A
`Function` is a graph that is; what is derived from one is remembered.

    square = Function(rules.function("square"))
    square.results([(3,)])          # [((3,), dtype("float32"))]
    vmapped(square, (0,), 8)        # the Function over a batch of 8
    tangent(square, (True,))        # its tangents alone, linear in the last
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from cleave.graphs import Builder, Graph
from cleave.jax import sizes
from cleave.types import INEXACT, TensorType

# Derived graphs that one process remembers, of each kind.
_REMEMBERED = 4096

_DTYPES = {
    "bool": jnp.bool_, "u8": jnp.uint8, "u16": jnp.uint16, "u32": jnp.uint32,
    "u64": jnp.uint64, "i8": jnp.int8, "i16": jnp.int16, "i32": jnp.int32,
    "i64": jnp.int64, "f16": jnp.float16, "bf16": jnp.bfloat16,
    "f32": jnp.float32, "f64": jnp.float64, "c64": jnp.complex64,
    "c128": jnp.complex128, "key": jnp.uint64,
}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()
          if name != "key"}


def jax_dtype(name: str) -> np.dtype:
    """JAX's dtype for one of Cleave's: float32 for "f32"."""
    return np.dtype(_DTYPES[name])


def dtype_name(dtype: Any) -> str:
    """Cleave's name of a dtype: "f32" of float32."""
    try:
        return _NAMES[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise NotImplementedError(
            f"Cleave has no dtype for JAX's {dtype}") from None


class Function:
    """A graph, hashable by its rules and its text."""

    __slots__ = ("graph", "inputs", "outputs", "_key", "_hash")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inputs = graph.inputs
        self.outputs = graph.outputs
        self._key = (graph.rules, graph.key)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        def types(values: Sequence[tuple[str, Any]]) -> str:
            return ", ".join(f"{name}: {type_}" for name, type_ in values)
        return f"({types(self.inputs)}) -> ({types(self.outputs)})"

    def bind(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The sizes of the graph's names, for operands of these shapes."""
        inputs = self.inputs
        if len(inputs) != len(shapes):
            raise TypeError(f"the function takes {len(inputs)} arrays, and is "
                            f"given {len(shapes)}")
        return sizes.bind_shapes([type_.shape for _, type_ in inputs], shapes)

    def results(self, shapes: Sequence[Sequence[Any]]) -> list[
            tuple[tuple[Any, ...], np.dtype]]:
        """Shape and dtype of each result, for operands of these shapes."""
        bound = self.bind(shapes)
        return [(tuple(sizes.evaluate(size, bound) for size in type_.shape),
                 jax_dtype(type_.dtype))
                for _, type_ in self.outputs]

    @property
    def input_dtypes(self) -> list[np.dtype]:
        return [jax_dtype(type_.dtype) for _, type_ in self.inputs]


def _select(graph: Graph, wanted: Sequence[int]) -> Graph:
    """The graph with some of its outputs."""
    builder = graph.rules.builder()
    arguments = [builder.input(name, type_) for name, type_ in graph.inputs]
    results = builder.inline(graph, arguments)
    return builder.finish({graph.outputs[index][0]: results[index]
                           for index in wanted})


_NARROW = {"i64": "i32", "u64": "u32", "f64": "f32", "c128": "c64"}


def _converted(builder: Builder, value: int, from_: str, to: str) -> int:
    if from_ == to:
        return value
    return builder.call("convert", [value], {"dtype": to})[0]


def fit_dtypes(graph: Graph, given: Sequence[str] | None,
               wide: bool) -> Graph:
    """The graph for operands of the dtypes `given`, None for its own.

    Integers of other widths than the graph takes are converted within it. So
    are 64-bit results where JAX has no 64-bit arrays, as its own functions do.
    """
    taken = [type_.dtype for _, type_ in graph.inputs]
    made = [type_.dtype for _, type_ in graph.outputs]
    given = taken if given is None else list(given)
    kept = made if wide else [_NARROW.get(name, name) for name in made]
    if given == taken and kept == made:
        return graph
    builder = graph.rules.builder()
    arguments = []
    for (name, type_), dtype in zip(graph.inputs, given, strict=True):
        value = builder.input(name, TensorType(dtype, type_.shape))
        arguments.append(_converted(builder, value, dtype, type_.dtype))
    results = builder.inline(graph, arguments)
    return builder.finish({
        name: _converted(builder, value, type_.dtype, dtype)
        for (name, type_), value, dtype in zip(graph.outputs, results, kept,
                                               strict=True)})


@functools.lru_cache(maxsize=_REMEMBERED)
def vmapped(function: Function, in_axes: tuple[int | None, ...],
            batch: int | str) -> Function:
    """The function over a batch, which is in front of all results."""
    return Function(function.graph.vmap(in_axes, batch=batch))


@functools.lru_cache(maxsize=_REMEMBERED)
def tangent(function: Function, active: tuple[bool, ...]) -> tuple[
        Function | None, tuple[bool, ...]]:
    """The tangents of the results alone, and which results have one.

    It takes the function's operands, then a tangent for each active one.
    """
    graph, has_tangent = function.graph.jvp(active)
    has_tangent = tuple(bool(flag) for flag in has_tangent)
    if not any(has_tangent):
        return None, has_tangent
    first = len(function.outputs)
    return (Function(_select(graph, range(first, len(graph.outputs)))),
            has_tangent)


@functools.lru_cache(maxsize=_REMEMBERED)
def cotangent(function: Function, active: tuple[bool, ...],
              given: tuple[bool, ...]) -> Function:
    """The cotangents of the active operands.

    It takes the operands, then a cotangent for each result that is `given`;
    those of the other results are zero.
    """
    graph = function.graph.vjp(active)
    builder = graph.rules.builder()
    first = len(function.inputs)
    arguments = [builder.input(name, type_)
                 for name, type_ in graph.inputs[:first]]
    cotangents = iter(graph.inputs[first:])
    for index, (_, type_) in enumerate(function.outputs):
        if type_.dtype not in INEXACT:
            continue
        name, cotangent_type = next(cotangents)
        if given[index]:
            arguments.append(builder.input(name, cotangent_type))
        else:
            arguments.append(builder.constant("0", cotangent_type))
    results = builder.inline(graph, arguments)
    # In front of the cotangents are the function's own results.
    own = len(function.outputs)
    return Function(builder.finish(
        {name: value for (name, _), value in zip(graph.outputs[own:],
                                                 results[own:], strict=True)}))


@functools.lru_cache(maxsize=_REMEMBERED)
def transposed(function: Function, linear: tuple[bool, ...]) -> Function:
    """The transpose of a function that is linear in the operands marked."""
    return Function(function.graph.transpose(linear))


def reached(function: Function, linear: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which results the linear operands reach: their cotangents it takes."""
    return tangent(function, linear)[1]


@functools.lru_cache(maxsize=_REMEMBERED)
def primitives_text(function: Function) -> str:
    """The graph as primitives, which mean the same under any rules."""
    return str(function.graph.expand().simplify())


@dataclasses.dataclass(frozen=True)
class Linear:
    """The tangents of a function at a point: linear in its last operands.

    Reverse mode does not transpose this graph. It takes the reverse mode of
    the function that it is the tangent of, for which the rules may have a
    better way, over the same batches.
    """

    forward: Function
    origin: Function
    active: tuple[bool, ...]
    given: tuple[bool, ...]
    # in_axes of the operands that are not tangents, and the size, innermost
    # batch first. Tangents have their batch in front.
    batches: tuple[tuple[tuple[int | None, ...], int | str], ...] = ()

    def __repr__(self) -> str:
        return f"{self.forward!r}, linear in the last {self.tangents}"

    @property
    def tangents(self) -> int:
        """How many of the last operands are tangents."""
        return sum(self.active)

    def over_batch(self, in_axes: tuple[int | None, ...],
                   batch: int | str) -> Linear:
        """The same over a batch of points and tangents."""
        axes = in_axes + (0,) * self.tangents
        return dataclasses.replace(
            self, forward=vmapped(self.forward, axes, batch),
            batches=self.batches + ((in_axes, batch),))

    def reverse(self) -> Function:
        """From the point and the results' cotangents to the tangents'."""
        result = cotangent(self.origin, self.active, self.given)
        cotangents = sum(self.given)
        for in_axes, batch in self.batches:
            result = vmapped(result, in_axes + (0,) * cotangents, batch)
        return result
