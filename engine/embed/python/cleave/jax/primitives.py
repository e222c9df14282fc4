"""The two primitives of JAX that a graph becomes.

`cleave_call` is a graph on arrays. Its jvp binds `cleave_call` for the values,
and `cleave_linear` for the tangents: the same graph's tangents alone, linear in
its last operands. The transpose of `cleave_linear` binds `cleave_call` on the
graph's reverse mode. The derivatives are graphs themselves, so that all rules
of JAX apply to them again: each transform of a transform is one call.

    cleave_call_p.bind(x, function=Function(graph))    # a list of arrays

A program for XLA has a call per bind, which carries its graph
(`cleave.jax.handler`).
"""

from __future__ import annotations

from collections.abc import Sequence
import functools
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad
from jax.interpreters import batching
from jax.interpreters import mlir
import jax.numpy as jnp

from cleave.jax import function as functions
from cleave.jax import handler
from cleave.jax import sizes

cleave_call_p = Primitive("cleave_call")
cleave_linear_p = Primitive("cleave_linear")


# ---------------------------------------------------------------- Evaluation


@functools.lru_cache(maxsize=4096)
def _jitted(primitive: Primitive, **parameters: Any) -> Any:
    return jax.jit(functools.partial(primitive.bind, **parameters))


def _evaluate(primitive: Primitive, *args: Any, **parameters: Any) -> Any:
    # jit is what runs a program of XLA: without it this would call itself.
    with jax.disable_jit(False):
        return _jitted(primitive, **parameters)(*args)


def _abstract(function: functions.Function, avals: Sequence[Any]) -> list[Any]:
    for index, (aval, dtype) in enumerate(zip(avals, function.input_dtypes,
                                              strict=True)):
        if aval.dtype != dtype:
            raise TypeError(f"operand {index} is {aval.dtype}, and the "
                            f"function takes {dtype}")
    results = function.results([aval.shape for aval in avals])
    return [_result_aval(avals, shape, dtype) for shape, dtype in results]


def varying_axes(aval: Any) -> frozenset[Any]:
    """The axes of a mesh that an array varies over, within shard_map."""
    kind = getattr(aval, "manual_axis_type", None)
    return frozenset() if kind is None else frozenset(kind.varying)


def _result_aval(avals: Sequence[Any], shape: Sequence[Any],
                 dtype: Any) -> Any:
    for aval in avals:
        # All operands vary over the same axes, and so do the results.
        if varying_axes(aval):
            spec = jax.sharding.PartitionSpec(*[None] * len(shape))
            return aval.update(shape=tuple(shape), dtype=dtype,
                               weak_type=False,
                               sharding=aval.sharding.update(spec=spec))
    return jax.core.ShapedArray(shape, dtype)


def _abstract_call(*avals: Any, function: functions.Function) -> list[Any]:
    return _abstract(function, avals)


def _abstract_linear(*avals: Any, linear: functions.Linear) -> list[Any]:
    return _abstract(linear.forward, avals)


# ------------------------------------------------------------------ Batching


def _batch_size(args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    return next(jnp.shape(arg)[dim] for arg, dim in zip(args, dims)
                if dim is not None)


def _batch_call(args: Sequence[Any], dims: Sequence[int | None], *,
                function: functions.Function) -> tuple[list[Any], list[int]]:
    batch = sizes.size_value(_batch_size(args, dims))
    results = cleave_call_p.bind(
        *args, function=functions.vmapped(function, tuple(dims), batch))
    return results, [0] * len(results)


def _in_front(arg: Any, dim: int | None, batch: Any) -> Any:
    if dim is None:
        return jnp.broadcast_to(arg, (batch, *jnp.shape(arg)))
    return jnp.moveaxis(arg, dim, 0)


def _batch_linear(args: Sequence[Any], dims: Sequence[int | None], *,
                  linear: functions.Linear) -> tuple[list[Any], list[int]]:
    batch = _batch_size(args, dims)
    first = len(args) - linear.tangents
    # A tangent that all examples share is repeated: its cotangent is then the
    # sum that the transpose of the repetition makes.
    tangents = [_in_front(arg, dim, batch)
                for arg, dim in zip(args[first:], dims[first:])]
    results = cleave_linear_p.bind(
        *args[:first], *tangents,
        linear=linear.over_batch(tuple(dims[:first]),
                                 sizes.size_value(batch)))
    return results, [0] * len(results)


# ------------------------------------------------------------ Differentiation


def _is_zero(value: Any) -> bool:
    return isinstance(value, ad.Zero)


def _zero_tangent(value: Any) -> ad.Zero:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _tangents(function: functions.Function, primals: Sequence[Any],
              tangents: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The tangents of `function`'s results, of which `results` are the values.
    """
    active = tuple(not _is_zero(tangent) for tangent in tangents)
    zeros = [_zero_tangent(result) for result in results]
    if not any(active):
        return zeros
    forward, given = functions.tangent(function, active)
    if forward is None:
        return zeros
    linear = functions.Linear(forward, function, active, given)
    live = [tangent for tangent in tangents if not _is_zero(tangent)]
    found = iter(cleave_linear_p.bind(*primals, *live, linear=linear))
    return [next(found) if has else zero for has, zero in zip(given, zeros)]


def _jvp_call(primals: Sequence[Any], tangents: Sequence[Any], *,
              function: functions.Function) -> tuple[list[Any], list[Any]]:
    results = cleave_call_p.bind(*primals, function=function)
    return results, _tangents(function, primals, tangents, results)


def _jvp_linear(primals: Sequence[Any], tangents: Sequence[Any], *,
                linear: functions.Linear) -> tuple[list[Any], list[Any]]:
    results = cleave_linear_p.bind(*primals, linear=linear)
    first = len(primals) - linear.tangents
    if any(not _is_zero(tangent) for tangent in tangents[:first]):
        return results, _tangents(linear.forward, primals, tangents, results)
    if all(_is_zero(tangent) for tangent in tangents):
        return results, [_zero_tangent(result) for result in results]
    # The point stays: the tangent of a linear function is the function.
    moved = [ad.instantiate_zeros(tangent) for tangent in tangents[first:]]
    return results, cleave_linear_p.bind(*primals[:first], *moved,
                                         linear=linear)


def _transpose_linear(cotangents: Sequence[Any], *args: Any,
                      linear: functions.Linear) -> list[Any]:
    first = len(args) - linear.tangents
    if any(ad.is_undefined_primal(arg) for arg in args[:first]):
        raise NotImplementedError("a tangent of Cleave is linear in tangents, "
                                  "and was transposed in its point")
    wanted = [ad.is_undefined_primal(arg) for arg in args[first:]]
    if all(_is_zero(cotangent) for cotangent in cotangents):
        return [None] * len(args)
    found = cleave_call_p.bind(
        *args[:first], *map(ad.instantiate_zeros, cotangents),
        function=linear.reverse())
    return [None] * first + [value if want else None
                             for value, want in zip(found, wanted,
                                                    strict=True)]


def _transpose_call(cotangents: Sequence[Any], *args: Any,
                    function: functions.Function) -> list[Any]:
    linear = tuple(ad.is_undefined_primal(arg) for arg in args)
    if all(_is_zero(cotangent) for cotangent in cotangents):
        return [None] * len(args)
    transpose = functions.transposed(function, linear)
    known = [arg for arg in args if not ad.is_undefined_primal(arg)]
    reached = functions.reached(function, linear)
    given = [ad.instantiate_zeros(cotangent)
             for cotangent, reaches in zip(cotangents, reached) if reaches]
    found = iter(cleave_call_p.bind(*known, *given, function=transpose))
    return [next(found) if is_linear else None for is_linear in linear]


# ------------------------------------------------------------------- Lowering


def _lower(ctx: Any, function: functions.Function,
           operands: Sequence[Any]) -> Any:
    text = functions.primitives_text(function)
    return jax.ffi.ffi_lowering(handler.TARGET)(ctx, *operands, graph=text)


def _lower_call(ctx: Any, *operands: Any, function: functions.Function) -> Any:
    return _lower(ctx, function, operands)


def _lower_linear(ctx: Any, *operands: Any, linear: functions.Linear) -> Any:
    return _lower(ctx, linear.forward, operands)


def _define(primitive: Primitive, abstract: Any, batch: Any, jvp: Any,
            transpose: Any, lower: Any) -> None:
    primitive.multiple_results = True
    primitive.def_impl(functools.partial(_evaluate, primitive))
    primitive.def_abstract_eval(abstract)
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    mlir.register_lowering(primitive, lower, platform="cpu")


_define(cleave_call_p, _abstract_call, _batch_call, _jvp_call,
        _transpose_call, _lower_call)
_define(cleave_linear_p, _abstract_linear, _batch_linear, _jvp_linear,
        _transpose_linear, _lower_linear)
