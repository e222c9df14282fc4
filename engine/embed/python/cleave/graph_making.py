"""Functions as graphs and as rules, and functions that are compiled once.

    graph = cleave.make_graph(f)("f32[n, 4]")
    rules = cleave.define("my_op", f, ["f32[n]"])
    step = cleave.jit(f)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _native
from .calls import (Traced, argument_places, is_array, kernel_of, run,
                    trace_function)
from .errors import InvalidArgumentError, TracingError
from .functions import Function
from .graphs import Graph
from .rules import Rules
from .tracing import Tracer
from .transforms import _types_in
from .trees import flatten, unflatten
from .types import TensorType, number_text, type_of

# Arrays that a function has from outside become constants of its graph up to
# this many elements.
_CONSTANTS = 256


def make_graph(function: Callable[..., Any],
               rules: Rules | None = None) -> Callable[..., Graph]:
    """The function as a graph, for arguments of given types.

    graph = cleave.make_graph(f)("f32[n]", ShapeDtype(("n", 4), "f32"))

    Types are texts, `ShapeDtype`s or arrays, in trees as the function takes
    them; what is neither is passed to the function as it is.
    """
    def make(*types: Any, **named: Any) -> Graph:
        if isinstance(function, Function) and not types and not named:
            return function.graph
        args = tuple(_types_in(entry) for entry in types)
        kwargs = {name: _types_in(entry) for name, entry in named.items()}
        traced = trace_function(function, args, kwargs, rules=rules)
        return _closed(traced)
    return make


def _closed(traced: Traced) -> Graph:
    """The graph with constants for what the function has from outside."""
    if not traced.captured:
        return traced.graph
    builder = traced.graph.rules.builder()
    count = len(traced.arrays)
    values = [builder.input(*entry) for entry in traced.graph.inputs[:count]]
    for array in traced.captured:
        values.append(_constant(builder, array))
    outputs = [name for name, _ in traced.graph.outputs]
    return builder.finish(dict(zip(outputs,
                                   builder.inline(traced.graph, values))))


def _constant(builder: Any, array: Any) -> int:
    if isinstance(array, Tracer):
        raise TracingError("a graph of a function that uses a traced array "
                           "without taking it: pass it as an argument")
    import numpy
    kind = type_of(array)
    known = numpy.asarray(array)
    if known.size > _CONSTANTS or known.dtype.kind == "c":
        raise InvalidArgumentError(
            f"the function has an array {kind} from outside: pass it as an "
            "argument", code=3)
    one = TensorType(kind.dtype, (1,))
    parts = [builder.constant(number_text(value), one)
             for value in known.ravel().tolist()]
    if not parts:
        return builder.constant("0", kind)
    flat = parts[0] if len(parts) == 1 else builder.call(
        "concatenate", [parts], {"axis": 0})[0]
    return builder.call("reshape", [flat], {"shape": list(kind.shape)})[0]


def define(name: str, function: Callable[..., Any], types: Iterable[Any],
           rules: Rules | None = None) -> Rules:
    """The rules with one op more: the function for arguments of these types.

    rules = cleave.define("swish2", lambda x: x * x * 2, ["f32[n]"])
    rules.swish2(x)
    """
    graph = make_graph(function, rules)(*types)
    return graph.rules.load(graph.to_rule(name))


def checkpoint_name(x: Any, name: str) -> Any:
    """x, under a name by which `aot` chooses what is saved."""
    if not isinstance(x, Tracer):
        return x
    return x.trace.rules.checkpoint_name(x, name=name)


class Jitted(_native.Dispatch):
    """A function that is traced and compiled once for each kind of arguments.

    `graphs` has what was made.
    """

    def __init__(self, function: Callable[..., Any],
                 static_argnums: Sequence[int],
                 static_argnames: Sequence[str],
                 options: dict[str, Any]) -> None:
        self._function = function
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._options = options
        self._found: dict[Any, Callable[..., Any]] = {}
        self.graphs: list[Graph] = []
        try:
            functools.update_wrapper(self, function)
        except (AttributeError, TypeError):
            pass

    def __repr__(self) -> str:
        return f"<compiled {self._function!r}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Dispatch calls this method where no call before was like this one.
        leaves, tree = flatten((args, kwargs))
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return self._function(*args, **kwargs)
        static = self._static_places(args, kwargs)
        key_parts: list[Any] = [tree]
        arrays = []
        for place, leaf in enumerate(leaves):
            if place in static or not is_array(leaf):
                # 1, 1.0 and True are equal, and so are 0.0 and -0.0.
                key_parts.append((type(leaf), leaf, str(leaf)))
            else:
                arrays.append(leaf)
                key_parts.append((leaf.dtype, tuple(leaf.shape)))
        key = tuple(key_parts)
        try:
            found = self._found.get(key)
        except TypeError:
            raise InvalidArgumentError(
                "an argument that is no array has no hash: arguments are trees "
                "of arrays and of values with hashes", code=3) from None
        if found is not None:
            return found(arrays)
        traced = trace_function(self._function, args, kwargs, static=static)
        self.graphs.append(traced.graph)
        if any(isinstance(array, Tracer) for array in traced.captured):
            # The function belongs to another trace: nothing is kept.
            return unflatten(traced.out_tree,
                             run(traced.graph, [*arrays, *traced.captured]))
        kernel = (traced.graph.compile(**self._options) if self._options
                  else kernel_of(traced.graph))

        captured = tuple(map(_copy, traced.captured))

        def found(values: Sequence[Any]) -> Any:
            return unflatten(traced.out_tree, kernel(*values, *captured))

        self._found[key] = found
        if not static and len(arrays) == len(args) and all(
                map(is_array, args)):
            self.remember(kernel, args, kwargs, captured,
                          None if traced.out_tree.kind is None else
                          functools.partial(unflatten, traced.out_tree), False)
        return found(arrays)

    def _static_places(self, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> frozenset[int]:
        places = set(argument_places(
            args, [n % len(args) for n in self._static_argnums
                   if -len(args) <= n < len(args)]))
        start = flatten(args)[1].count
        for name in sorted(kwargs):
            count = flatten(kwargs[name])[1].count
            if name in self._static_argnames:
                places.update(range(start, start + count))
            start += count
        return frozenset(places)

    def clear(self) -> None:
        """Forgets what was compiled."""
        self.forget()
        self._found.clear()
        self.graphs.clear()


def _copy(array: Any) -> Any:
    """An array that stays as it is."""
    if hasattr(array, "detach"):
        return array.detach().clone()
    return array.copy()


def jit(function: Callable[..., Any] | None = None, *,
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Sequence[str] = (),
        device: str | None = None, level: str | None = None,
        generalize: bool = False, approx: bool = False,
        host_kernels: Any = None) -> Any:
    """The function, traced and compiled once for each structure, dtypes and
    shapes of its arguments.

    What is no array, Python's numbers among it, is part of that: the function
    is traced anew for other values. Arrays that it has from outside stay as
    they were at the first call. Later arguments are those of `Graph.compile`.
    """
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames,
            device=device, level=level, generalize=generalize, approx=approx,
            host_kernels=host_kernels)
    options = {name: value for name, value in (
        ("device", device), ("level", level), ("generalize", generalize),
        ("approx", approx), ("host_kernels", host_kernels)) if value}
    return Jitted(
        function,
        (static_argnums,) if isinstance(static_argnums, int)
        else tuple(static_argnums),
        (static_argnames,) if isinstance(static_argnames, str)
        else tuple(static_argnames), options)
