"""Transforms of functions of arrays: derivatives, batches, compiled functions.

    f = cleave.jit(cleave.vmap(cleave.grad(loss), in_axes=(None, 0)))
    y, dy = cleave.jvp(f, (x,), (dx,))
    y, pull = cleave.vjp(f, x)
    graph = cleave.make_graph(f)("f32[n, 4]")

A function takes and gives trees of arrays. It may be a Python function, which
is traced, an op of rules, a `fn`, or a graph. Transforms nest to any depth,
within traced functions, too. But for `jit`, each call traces anew, so that what a
function has from outside is seen as it is at the time; graphs of the same text
are derived and compiled once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .calls import (Traced, argument_places, derived, is_array, run,
                    trace_function)
from .errors import InvalidArgumentError, UnimplementedError
from .graphs import Graph
from .rules import load
from .tracing import Tracer
from .trees import Tree, cotangent_leaves, flatten, spread, unflatten
from .types import FLOATS, INEXACT, TensorType, type_of

_Function = Callable[..., Any]


def _wrap(function: _Function, wrapper: _Function) -> _Function:
    try:
        return functools.update_wrapper(wrapper, function)
    except (AttributeError, TypeError):
        return wrapper


def _argnums(argnums: int | Sequence[int], args: tuple[Any, ...]) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise InvalidArgumentError(
                f"argnums {number} is out of range for {len(args)} arguments",
                code=3)
    return [number % len(args) for number in numbers]


def _select(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph with some of its outputs."""
    def make(whole: Graph) -> Graph:
        builder = whole.rules.builder()
        inputs = [builder.input(*entry) for entry in whole.inputs]
        values = builder.inline(whole, inputs)
        every = dict(zip((name for name, _ in whole.outputs), values))
        return builder.finish({name: every[name] for name in names})
    return derived(graph, ("select", *names), make)


def _active(traced: Traced, places: Sequence[int], what: str) -> list[bool]:
    flags = traced.flags(places)
    for flag, (name, kind) in zip(flags, traced.graph.inputs):
        if flag and kind.dtype not in INEXACT:
            raise InvalidArgumentError(
                f"{what} in {name}, which is {kind}: derivatives are of floats",
                code=3)
    return flags


def value_and_grad(function: _Function, argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> _Function:
    """The function's value and its gradients in some arguments.

    It gives a float scalar; with `has_aux` a pair of that and of anything,
    which stays beside the value: ((value, aux), gradients).
    """
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _argnums(argnums, args)
        per_argument = [argument_places(args, [n]) for n in numbers]
        places = [place for found in per_argument for place in found]
        traced = trace_function(function, args, kwargs, forced=places)
        _check_scalar(traced, has_aux)
        active = tuple(_active(traced, places, "the gradient"))
        graph = derived(traced.graph, ("value_and_grad", active),
                        lambda g: _value_and_grad(g, active))
        outputs = run(graph, traced.inputs)
        count = traced.out_tree.count
        # The gradients are in the order of inputs.
        order = [p for p in traced.places if p in places]
        gradients = dict(zip(order, outputs[count:]))
        value = unflatten(traced.out_tree, outputs[:count])
        trees = [flatten(args[n])[1] for n in numbers]
        result = tuple(unflatten(tree, [gradients[p] for p in found])
                       for tree, found in zip(trees, per_argument))
        return value, result[0] if isinstance(argnums, int) else result
    return _wrap(function, wrapper)


def _check_scalar(traced: Traced, has_aux: bool) -> None:
    tree = traced.out_tree
    if has_aux and not (tree.kind is tuple and len(tree.children) == 2 and
                        tree.children[0].count == 1):
        raise InvalidArgumentError(
            "with has_aux the function gives a pair (value, aux)", code=3)
    if not has_aux and tree.count != 1:
        raise InvalidArgumentError(
            f"the gradient of a function that gives {tree}: one scalar is "
            "needed", code=3)
    kind = traced.out_types[0]
    if kind.shape or kind.dtype not in FLOATS:
        raise InvalidArgumentError(
            f"the gradient of a function that gives {kind}: a float scalar is "
            "needed, and `jacrev` is of others", code=3)


def _value_and_grad(graph: Graph, active: Sequence[bool]) -> Graph:
    outputs = [name for name, _ in graph.outputs]
    if len(outputs) == 1:
        return graph.grad(active, value=True)
    gradient = _select(graph, outputs[:1]).grad(active)
    builder = graph.rules.builder()
    inputs = [builder.input(*entry) for entry in graph.inputs]
    values = [*builder.inline(graph, inputs),
              *builder.inline(gradient, inputs)]
    names = outputs + [f"{name}_" for name, _ in gradient.outputs]
    return builder.finish(dict(zip(names, values)))


def grad(function: _Function, argnums: int | Sequence[int] = 0,
         has_aux: bool = False) -> _Function:
    """The gradients of a float scalar in some arguments; with `has_aux` a pair
    of them and of what stands beside the scalar."""
    both = value_and_grad(function, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients
    return _wrap(function, wrapper)


def _all_places(args: tuple[Any, ...]) -> list[int]:
    return argument_places(args, range(len(args)))


def jvp(function: _Function, primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> Any:
    """(y, dy): the value, and the derivative in the direction of the tangents.

    `tangents` has the structure of `primals`. With `has_aux` the function gives
    (y, aux), and the result is (y, dy, aux).
    """
    args = tuple(primals)
    leaves, tree = flatten(args)
    given, tangent_tree = flatten(tuple(tangents))
    if tree != tangent_tree:
        raise InvalidArgumentError(
            f"tangents {tangent_tree} of primals {tree}", code=3)
    traced = trace_function(function, args, {}, forced=range(len(leaves)))
    active = [kind.dtype in INEXACT for _, kind in
              traced.graph.inputs[:len(traced.arrays)]]
    flags = tuple(active + [False] * len(traced.captured))
    graph = derived(traced.graph, ("jvp", flags), lambda g: _jvp(g, flags))
    moved = [given[place] for place, flag in zip(traced.places, active) if flag]
    outputs = run(graph, [*traced.inputs, *moved])
    count = traced.out_tree.count
    y = unflatten(traced.out_tree, outputs[:count])
    dy = unflatten(traced.out_tree, outputs[count:])
    return (y[0], dy[0], y[1]) if has_aux else (y, dy)


def _jvp(graph: Graph, flags: Sequence[bool]) -> Graph:
    """Outputs, then a tangent for each: zeros where none is reached."""
    pushed, has_tangent = graph.jvp(flags)
    if all(has_tangent):
        return pushed
    builder = graph.rules.builder()
    inputs = [builder.input(*entry) for entry in pushed.inputs]
    values = builder.inline(pushed, inputs)
    count = len(has_tangent)
    rest = iter(values[count:])
    outputs = {f"y.{i}": value for i, value in enumerate(values[:count])}
    for i, reached in enumerate(has_tangent):
        kind = builder.type(values[i])
        outputs[f"dy.{i}"] = next(rest) if reached else builder.constant(
            "false" if kind.dtype == "bool" else "0", kind)
    return builder.finish(outputs)


def vjp(function: _Function, *primals: Any, has_aux: bool = False) -> Any:
    """(y, pull): the value, and the function from cotangents to cotangents.

    pull(dy) takes the structure of y and gives a tuple with an entry for each
    primal; None stands for leaves of whole numbers. With `has_aux` the function
    gives (y, aux), and the result is (y, pull, aux).
    """
    traced = trace_function(function, primals, {},
                            forced=_all_places(primals))
    tree = traced.out_tree
    count = tree.count
    kept = tree.children[0].count if has_aux else count
    active = tuple(traced.flags(_inexact_places(traced)))
    pair = derived(traced.graph, ("aot", active), lambda g: g.aot(active))
    outputs = run(pair.forward, traced.inputs)
    saved = list(outputs[count:])
    y = unflatten(tree, outputs[:count])
    pull = _Pull(traced, pair.backward, saved, active, outputs[:count], kept,
                 tree.children[0] if has_aux else tree, primals)
    return (y[0], pull, y[1]) if has_aux else (y, pull)


def _inexact_places(traced: Traced) -> list[int]:
    return [place for place, (_, kind) in zip(traced.places,
                                              traced.graph.inputs)
            if kind.dtype in INEXACT]


class _Pull:
    """The reverse mode of a function at a point."""

    def __init__(self, traced: Traced, backward: Graph, saved: list[Any],
                 active: Sequence[bool], outputs: Sequence[Any], kept: int,
                 tree: Tree, primals: tuple[Any, ...]) -> None:
        self.graph = backward
        self._types = traced.out_types
        self._saved = saved
        self._places = [p for p, flag in zip(traced.places, active) if flag]
        self._outputs = outputs[kept:]  # those of aux
        self._kept = kept
        self._tree = tree
        self._primals = flatten(primals)[1]

    def __call__(self, cotangents: Any) -> Any:
        leaves = cotangent_leaves(cotangents, self._tree)
        given = [leaf for leaf, kind in zip(leaves, self._types)
                 if kind.dtype in INEXACT]
        for value, kind in zip(self._outputs, self._types[self._kept:]):
            if kind.dtype in INEXACT:
                given.append(_zeros_like(value))
        found = dict(zip(self._places, run(self.graph,
                                           [*self._saved, *given])))
        return unflatten(self._primals, [found.get(place) for place in
                                         range(self._primals.count)])


def _zeros_like(value: Any) -> Any:
    """Zeros of the shape, dtype and framework of an array."""
    if isinstance(value, Tracer):
        return value.trace.constant(0, value.type.dtype, value.shape)
    kind = type_of(value)
    builder = load().builder()
    builder.input("x", kind)
    zeros = builder.constant("false" if kind.dtype == "bool" else "0", kind)
    return run(builder.finish({"y": zeros}), [value])[0]


def linearize(function: _Function, *primals: Any) -> tuple[Any, _Function]:
    """(y, push): the value, and the derivative at the point as a function.

    push(*tangents) takes the structure of the primals.
    """
    traced = trace_function(function, primals, {},
                            forced=_all_places(primals))
    active = tuple(traced.flags(_inexact_places(traced)))
    primal, linear, _ = derived(traced.graph, ("linearize", active),
                                lambda g: g.linearize(active))
    outputs = run(primal, traced.inputs)
    count = traced.out_tree.count
    residuals = list(outputs[count:])
    inexact = [kind.dtype in INEXACT for kind in traced.out_types]
    wanted = {p for p, flag in zip(traced.places, active) if flag}
    primal_tree = flatten(primals)[1]
    values = list(outputs[:count])

    def push(*tangents: Any) -> Any:
        leaves, tree = flatten(tangents)
        if tree != primal_tree:
            raise InvalidArgumentError(
                f"tangents {tree} of primals {primal_tree}", code=3)
        given = [leaf for place, leaf in enumerate(leaves) if place in wanted]
        found = iter(run(linear, [*given, *residuals]))
        return unflatten(traced.out_tree, [
            next(found) if flag else _zeros_like(value)
            for flag, value in zip(inexact, values)])

    return unflatten(traced.out_tree, values), push


def linear_transpose(function: _Function, *primals: Any) -> _Function:
    """The transpose of a linear function of arrays of these types.

    `primals` are arrays or types. The result takes cotangents of the structure
    that the function gives, and gives a tuple of cotangents of the primals.
    """
    primals = tuple(_types_in(p) for p in primals)
    traced = trace_function(function, primals, {},
                            forced=_all_places(primals))
    flags = tuple(traced.flags(traced.places))
    graph = derived(traced.graph, ("transpose", flags),
                    lambda g: g.transpose(flags))
    tree = flatten(primals)[1]

    def transposed(cotangents: Any) -> Any:
        leaves = cotangent_leaves(cotangents, traced.out_tree)
        return unflatten(tree, run(graph, [*traced.captured, *leaves]))
    return transposed


def _types_in(value: Any) -> Any:
    """The tree with types in the place of arrays and of texts of types."""
    leaves, tree = flatten(value)
    return unflatten(tree, [
        type_of(leaf) if isinstance(leaf, TensorType) or (
            isinstance(leaf, str) and "[" in leaf) or (
            is_array(leaf) and not isinstance(leaf, Tracer)) else leaf
        for leaf in leaves])


# Batches.


def vmap(function: _Function, in_axes: Any = 0, out_axes: Any = 0,
         axis_size: int | None = None) -> _Function:
    """The function for many examples at once.

    `in_axes` is a tree of axes for the arguments: a number, None where all
    examples share the argument, or a tuple with an entry for each; an entry
    counts for all leaves below it. `out_axes` says where the batch is in the
    results. Numbers of Python are shared.
    """
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, _ = flatten((args, kwargs))
        whole = flatten(args)[1]
        axes = spread(tuple(in_axes) if isinstance(in_axes, list) else in_axes,
                      whole, "in_axes")
        axes += [0 if is_array(leaf) else None for leaf in leaves[len(axes):]]
        size = axis_size
        types: dict[int, TensorType] = {}
        for place, (leaf, axis) in enumerate(zip(leaves, axes)):
            if axis is None or not is_array(leaf):
                axes[place] = None
                continue
            kind = leaf.type if isinstance(leaf, Tracer) else type_of(leaf)
            if not -len(kind.shape) <= axis < len(kind.shape):
                raise InvalidArgumentError(
                    f"in_axes {axis} of an array of type {kind}", code=3)
            axes[place] = axis = axis % len(kind.shape)
            if size is None:
                size = kind.shape[axis]
            elif kind.shape[axis] != size:
                raise InvalidArgumentError(
                    f"batches of {size} and of {kind.shape[axis]}", code=3)
            types[place] = TensorType(
                kind.dtype, kind.shape[:axis] + kind.shape[axis + 1:])
        if size is None:
            raise InvalidArgumentError(
                "no array has a batch: in_axes is None for all", code=3)
        traced = trace_function(function, args, kwargs, types=types)
        numbers = tuple(-1 if axes[place] is None else axes[place]
                        for place in traced.places) + (-1,) * len(
            traced.captured)
        places = spread(out_axes, traced.out_tree, "out_axes")
        ends = tuple(_out_axis(axis, kind) for axis, kind in
                     zip(places, traced.out_types))
        graph = derived(traced.graph, ("vmap", numbers, size, ends),
                        lambda g: g.vmap(numbers, size, ends))
        return unflatten(traced.out_tree, run(graph, traced.inputs))
    return _wrap(function, wrapper)


def _out_axis(axis: int | None, kind: TensorType) -> int:
    if axis is None:
        raise UnimplementedError(
            "out_axes None: a result that all examples share is one element of "
            "the batch, y[0]", code=12)
    rank = len(kind.shape) + 1
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"out_axes {axis} of a result of type {kind}", code=3)
    return axis % rank


# Jacobians.


def jacrev(function: _Function, argnums: int | Sequence[int] = 0) -> _Function:
    """The Jacobian by reverse mode: for each output leaf and each leaf of the
    arguments an array with the axes of the output before those of the input.
    """
    return _jacobian(function, argnums, "reverse")


def jacfwd(function: _Function, argnums: int | Sequence[int] = 0) -> _Function:
    """The Jacobian by forward mode; the same values as `jacrev`."""
    return _jacobian(function, argnums, "forward")


def hessian(function: _Function, argnums: int | Sequence[int] = 0) -> _Function:
    """The second derivatives: `jacfwd` of `jacrev`."""
    return jacfwd(jacrev(function, argnums), argnums)


def _jacobian(function: _Function, argnums: int | Sequence[int],
              kind: str) -> _Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _argnums(argnums, args)
        per_argument = [argument_places(args, [n]) for n in numbers]
        places = [place for found in per_argument for place in found]
        traced = trace_function(function, args, kwargs, forced=places)
        _active(traced, places, "the Jacobian")
        for output in traced.out_types:
            if output.dtype not in FLOATS:
                raise InvalidArgumentError(
                    f"the Jacobian of a function that gives {output}: floats "
                    "are needed", code=3)
        columns = {}
        for number, place in enumerate(traced.places):
            if place in places:
                graph = derived(
                    traced.graph, ("jacobian", number, kind),
                    lambda g, number=number: g.jacobian(number, kind))
                columns[place] = run(graph, traced.inputs)
        trees = [flatten(args[n])[1] for n in numbers]

        def row(output: int) -> Any:
            result = tuple(
                unflatten(tree, [columns[p][output] for p in found])
                for tree, found in zip(trees, per_argument))
            return result[0] if isinstance(argnums, int) else result

        return unflatten(traced.out_tree,
                         [row(i) for i in range(traced.out_tree.count)])
    return _wrap(function, wrapper)
