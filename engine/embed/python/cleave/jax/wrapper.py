"""`wrap`: an op, a declared function or a graph as a function of JAX arrays.

    softmax = wrap(cleave.load().softmax)
    softmax(x, axis=0)                      # attributes by name
    clamp = wrap(cleave.load().clamp)
    clamp(x, None, 1.0)                     # an optional input that is absent
    pick = wrap(rules.fn.pick)              # sizes are those of the operands
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cleave.functions import Function, Op
from cleave.graphs import Graph
from cleave.jax import function as functions
from cleave.jax import primitives
from cleave.jax import sizes


def wrap(target: Op | Function | Graph) -> Callable[..., Any]:
    """A function of JAX arrays that computes an op, a fn or a graph.

    An op takes its inputs and attributes as `rules.OP` does. The result is an
    array, or a tuple where the op has several results, with None for one that
    the call does not have. jit, vmap, jvp, vjp, linear_transpose, scan,
    checkpoint and export apply.

    Raises:
        TypeError: The call does not fit the declaration.
        cleave.Error: The rules refuse the call, or a derivative of it.
    """
    if isinstance(target, Graph):
        return _wrap_graph(target, tuple)
    if isinstance(target, Function):
        wrapped = _wrap_graph(target.graph, _plain)
    else:
        wrapped = _wrap_op(target)
    wrapped.__name__ = wrapped.__qualname__ = target.name
    wrapped.__doc__ = target.__doc__
    wrapped.__signature__ = target.__signature__
    return wrapped


def _plain(results: Any) -> Any:
    """An array, or a plain tuple: named ones of two rule sets would be two
    types, and the branches of a cond would differ."""
    if isinstance(results, (list, tuple)):
        return results[0] if len(results) == 1 else tuple(results)
    return results


def _call(function: functions.Function, arrays: Sequence[Any]) -> list[Any]:
    return primitives.cleave_call_p.bind(*_alike(arrays), function=function)


def _alike(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, varying over the same axes of a mesh within shard_map."""
    axes = [primitives.varying_axes(jax.typeof(array)) for array in arrays]
    union = frozenset().union(*axes)
    return [array if own == union else
            jax.lax.pcast(array, tuple(sorted(union - own)), to="varying")
            for array, own in zip(arrays, axes)]


# --------------------------------------------------------------------- Graphs


def _wrap_graph(graph: Graph,
                results: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    general = functions.Function(graph)

    def wrapped(*arrays: Any) -> Any:
        if len(arrays) != len(general.inputs):
            raise TypeError(f"the function takes {len(general.inputs)} arrays, "
                            f"and is given {len(arrays)}")
        given = [_array(array, dtype)
                 for array, dtype in zip(arrays, general.input_dtypes)]
        bound = tuple(sorted(
            (name, sizes.size_value(size)) for name, size
            in general.bind([array.shape for array in given]).items()))
        dtypes = tuple(_given_dtype(array, type_.dtype)
                       for array, (_, type_) in zip(given, general.inputs))
        return results(_call(
            _specialized(general, bound, dtypes, jax.config.jax_enable_x64),
            given))
    return wrapped


@functools.lru_cache(maxsize=4096)
def _specialized(function: functions.Function,
                 bound: tuple[tuple[str, int | str], ...],
                 dtypes: tuple[str, ...], wide: bool) -> functions.Function:
    """The function for these sizes of its names, and these operands."""
    graph = function.graph
    if bound:
        graph = graph.substitute(dict(bound))
    return functions.Function(functions.fit_dtypes(graph, dtypes, wide))


def _given_dtype(array: Any, taken: str) -> str:
    """The dtype of an operand for an input of the dtype `taken`."""
    given = functions.dtype_name(array.dtype)
    if taken == "key":
        if given != "u64":
            raise TypeError("a key is a uint64 array, which JAX has where "
                            f"jax_enable_x64 is set; this one is {given}")
        return "key"
    if given == taken or (given[0] in "iu" and taken in ("i64", "u64")):
        return given
    raise TypeError(f"an operand is {given}, and the function takes {taken}")


# ------------------------------------------------------------------------ Ops


def _wrap_op(op: Op) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        inputs, attributes = op.bind(args, kwargs)
        like = _dtype_of_numbers(inputs)
        arrays: list[Any] = []
        types: list[Any] = []
        for place, value in enumerate(inputs):
            entry = op.input(place)
            if value is None:
                types.append(None)
            elif entry["variadic"] and isinstance(value, (list, tuple)):
                given = [_array(item, like) for item in value]
                arrays += given
                types.append(tuple(_type(entry, item) for item in given))
            elif entry["static"] and not isinstance(value, jax.core.Tracer):
                types.append(_Constant(_hashable(op.name, entry["name"],
                                                 value)))
            else:
                array = _array(value, like)
                arrays.append(array)
                types.append(_type(entry, array))
        function = _op_function(
            op, tuple(types), tuple(sorted(
                (key, _hashable(op.name, key, value))
                for key, value in attributes.items())),
            jax.config.jax_enable_x64)
        return _plain(op.wrap_present(function,
                                      tuple(_call(function, arrays))))
    return wrapped


@dataclasses.dataclass(frozen=True)
class _Constant:
    """The value of a `static` input."""

    value: Any


def _hashable(name: str, key: str, value: Any) -> Any:
    """An attribute as Cleave takes it, hashable."""
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(name, key, item) for item in value)
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"`{key}` of {name} is an attribute: it has to be "
                        "known as the program is traced")
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    if isinstance(value, np.generic) or (
            hasattr(value, "ndim") and value.ndim == 0):
        return value.item()
    if hasattr(value, "ndim") and value.ndim == 1:
        return tuple(value.tolist())
    if jax.core.is_dim(value):
        return sizes.size_value(value)
    return functions.dtype_name(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _dtype_of_numbers(operands: Sequence[Any]) -> Any:
    """The dtype of the first array: Python's numbers take it."""
    for operand in operands:
        for value in operand if isinstance(operand, (list, tuple)) else (
                operand,):
            if value is not None and not _is_number(value):
                return jnp.asarray(value).dtype
    return None


def _array(value: Any, like: Any) -> Any:
    if _is_number(value) and like is not None:
        if isinstance(value, (bool, int)) or jnp.issubdtype(like, jnp.inexact):
            return jnp.asarray(value, like)
    return jnp.asarray(value)


# The dtype of an operand, the one that the op takes, and the shape.
_Type = tuple[str, str, tuple[int | str, ...]]
_FIXED = ("i64", "u64", "key")


def _type(entry: dict[str, Any], array: Any) -> _Type:
    given = functions.dtype_name(array.dtype)
    taken = entry["type"].partition("[")[0]
    if taken in _FIXED:
        given = _given_dtype(array, taken)
    else:
        taken = given
    return given, taken, tuple(sizes.size_value(size) for size in array.shape)


def _taken(type_: _Type | tuple[_Type, ...] | None) -> Any:
    if type_ is None:
        return None
    if isinstance(type_, _Constant):
        return type_.value
    if not type_ or isinstance(type_[0], tuple):
        return [_taken(item) for item in type_]
    _, taken, shape = type_
    return f"{taken}[{', '.join(map(str, shape))}]"


def _given(types: Sequence[_Type | tuple[_Type, ...] | None]) -> list[str]:
    dtypes: list[str] = []
    for type_ in types:
        if type_ is None or isinstance(type_, _Constant):
            continue
        if not type_ or isinstance(type_[0], tuple):
            dtypes += _given(type_)
        else:
            dtypes.append(type_[0])
    return dtypes


@functools.lru_cache(maxsize=4096)
def _op_function(op: Op, types: tuple[Any, ...],
                 attributes: tuple[tuple[str, Any], ...],
                 wide: bool) -> functions.Function:
    """One call of an op as a function."""
    graph = op.rules.call_graph(op.name, [_taken(type_) for type_ in types],
                                dict(attributes))
    return functions.Function(functions.fit_dtypes(graph, _given(types), wide))
