"""Functions of traced arrays that move elements, reduce and multiply.

They are numpy's in names, dtypes and values, and the array API's where the two
differ in names. Axes may be negative.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .elementwise import (abs, apply, as_bool, common, floats, like, multiply,
                          public, sqrt, subtract, where)
from .errors import InvalidArgumentError, TracingError
from .promotion import is_integer, is_number, kind_of, promote
from .sizes import SymbolicSize, product
from .tracing import Tracer, convert, innermost
from .types import dtype_name


def one_axis(axis: Any, ndim: int) -> int:
    """The axis as a number from the front."""
    place = axis.__index__()
    if not -ndim <= place < ndim:
        raise InvalidArgumentError(
            f"axis {place} is out of range for {ndim} axes", code=3)
    return place % ndim


def some_axes(axis: Any, ndim: int) -> list[int]:
    """The axes, in order; None is all."""
    if axis is None:
        return list(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [one_axis(a, ndim) for a in given]
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(f"an axis stands twice in {axis}", code=3)
    return sorted(axes)


# Movement.


@public
def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """The elements in another shape; one size may be -1."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    unknown = [i for i, s in enumerate(sizes) if isinstance(s, int) and s == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError("one size may be -1", code=3)
    if unknown:
        rest = product(s for s in sizes if not (isinstance(s, int) and s == -1))
        if isinstance(rest, int) and isinstance(x.size, int):
            if rest == 0 or x.size % rest:
                raise InvalidArgumentError(
                    f"{x.type} has no shape {sizes}", code=3)
        elif isinstance(rest, int) and rest == 0:
            raise InvalidArgumentError(f"{x.type} has no shape {sizes}", code=3)
        sizes[unknown[0]] = x.size // rest
    return x.trace.call("reshape", [x], {"shape": sizes})[0]


@public
def permute_dims(x: Any, /, axes: Sequence[int]) -> Any:
    """Axis d of the result is axis axes[d] of x."""
    order = [one_axis(a, x.ndim) for a in axes]
    return x if order == sorted(order) and len(order) == x.ndim else \
        x.trace.call("transpose", [x], {"axes": order})[0]


@public
def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Any:
    """The axes in another order; reversed unless one is given."""
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None
                        else axes)


@public
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped."""
    return swapaxes(x, -1, -2)


@public
def swapaxes(x: Any, a: int, b: int) -> Any:
    """Two axes swapped."""
    order = list(range(x.ndim))
    i, j = one_axis(a, x.ndim), one_axis(b, x.ndim)
    order[i], order[j] = order[j], order[i]
    return permute_dims(x, order)


@public
def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Axes moved to other places."""
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (
        destination,)
    start = [one_axis(a, x.ndim) for a in sources]
    order = [a for a in range(x.ndim) if a not in start]
    for place, axis in sorted(zip([one_axis(a, x.ndim) for a in targets],
                                  start)):
        order.insert(place, axis)
    return permute_dims(x, order)


@public
def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """New axes of size 1."""
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = x.ndim + len(given)
    places = some_axes(tuple(given), ndim)
    sizes = list(x.shape)
    for place in places:
        sizes.insert(place, 1)
    return reshape(x, sizes)


@public
def squeeze(x: Any, /, axis: Any = None) -> Any:
    """Without axes of size 1."""
    if axis is None:
        axes = [i for i, s in enumerate(x.shape)
                if isinstance(s, int) and s == 1]
    else:
        axes = some_axes(axis, x.ndim)
        for place in axes:
            if isinstance(x.shape[place], int) and x.shape[place] != 1:
                raise InvalidArgumentError(
                    f"axis {place} of {x.type} is not 1", code=3)
    return reshape(x, [s for i, s in enumerate(x.shape) if i not in axes])


@public
def flip(x: Any, /, *, axis: Any = None) -> Any:
    """The elements along axes in reverse."""
    axes = some_axes(axis, x.ndim)
    return x.trace.call("reverse", [x], {"axes": axes})[0] if axes else x


@public
def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """The elements along axes moved on, the last to the front."""
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    for place, step in zip(axes, shifts):
        place = one_axis(place, x.ndim)
        size = x.shape[place]
        if isinstance(size, int):
            step = step % size if size else 0
        if step == 0 and isinstance(step, int):
            continue
        full = (slice(None),) * place
        x = concat([x[full + (slice(-step, None),)],
                    x[full + (slice(None, -step),)]], axis=place)
    return x


@public
def broadcast_to(x: Any, /, shape: Any) -> Any:
    """x for all entries of the axes that it lacks."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    lead = len(sizes) - x.ndim
    if lead < 0:
        raise InvalidArgumentError(f"{x.type} has more axes than {sizes}",
                                   code=3)
    if tuple(sizes) == x.shape:
        return x
    kept = [i for i in range(x.ndim)
            if not (x.shape[i] == 1 and sizes[lead + i] != 1)]
    if len(kept) < x.ndim:
        x = reshape(x, [x.shape[i] for i in kept])
    return x.trace.call("broadcast_in_dim", [x], {
        "axes": [lead + i for i in kept], "shape": sizes})[0]


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape that arrays of these shapes have together."""
    ndim = builtins.max((len(shape) for shape in shapes), default=0)
    sizes: list[Any] = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, ndim - len(shape)):
            if sizes[axis] == 1 and isinstance(sizes[axis], int):
                sizes[axis] = size
            elif size != sizes[axis] and size != 1:
                raise InvalidArgumentError(
                    f"shapes {shapes} do not broadcast", code=3)
    return tuple(sizes)


@public
def broadcast_arrays(*arrays: Any) -> Any:
    """All in the shape that they have together."""
    trace = innermost(next(a for a in arrays if isinstance(a, Tracer)), arrays)
    lifted = [trace.lift(a) for a in arrays]
    shape = broadcast_shapes(*[a.shape for a in lifted])
    return [broadcast_to(a, shape) for a in lifted]


@public
def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Arrays behind each other along an axis; None flattens them."""
    lifted = common(*arrays)
    if axis is None:
        lifted, axis = [reshape(a, (-1,)) for a in lifted], 0
    place = one_axis(axis, lifted[0].ndim)
    return lifted[0].trace.call("concatenate", [lifted], {"axis": place})[0]


def concatenate(arrays: Any, /, axis: int | None = 0) -> Any:
    """`concat`, by numpy's name."""
    return concat(arrays, axis=axis)


@public
def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Arrays of one shape along a new axis."""
    lifted = common(*arrays)
    place = one_axis(axis, lifted[0].ndim + 1)
    return concat([expand_dims(a, axis=place) for a in lifted], axis=place)


@public
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """A tuple of the parts along an axis."""
    return tuple(moveaxis(x, axis, 0))


@public
def tile(x: Any, repetitions: Any, /) -> Any:
    """x several times along each axis."""
    counts = list(repetitions) if isinstance(repetitions, (tuple, list)) else [
        repetitions]
    ndim = builtins.max(len(counts), x.ndim)
    counts = [1] * (ndim - len(counts)) + counts
    sizes = [1] * (ndim - x.ndim) + list(x.shape)
    wide = [s for pair in zip(counts, sizes) for s in pair]
    x = reshape(x, [s for size in sizes for s in (1, size)])
    return reshape(broadcast_to(x, wide),
                   [count * size for count, size in zip(counts, sizes)])


@public
def repeat(x: Any, repeats: int, /, *, axis: int | None = None) -> Any:
    """Each element several times."""
    if not isinstance(repeats, int):
        raise TracingError("repeat takes one whole number")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    place = one_axis(axis, x.ndim)
    sizes = list(x.shape)
    wide = sizes[:place + 1] + [repeats] + sizes[place + 1:]
    return reshape(broadcast_to(expand_dims(x, axis=place + 1), wide),
                   sizes[:place] + [sizes[place] * repeats] + sizes[place + 1:])


def _triangle(x: Tracer, k: int, upper: bool) -> Tracer:
    rows, columns = x.shape[-2:]
    trace = x.trace
    i = trace.call("iota", [], {"size": rows})[0]
    j = trace.call("iota", [], {"size": columns})[0]
    gap = subtract(expand_dims(j, axis=0), expand_dims(i, axis=1))
    keep = gap >= k if upper else gap <= k
    return where(keep, x, trace.constant(0, x.type.dtype))


@public
def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangle; 0 above."""
    return _triangle(x, k, False)


@public
def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangle; 0 below."""
    return _triangle(x, k, True)


# Reductions.


def _reduce(x: Tracer, op: str, axis: Any, keepdims: bool) -> Tracer:
    axes = some_axes(axis, x.ndim)
    if op in ("argmax", "argmin") or axes:
        y = x.trace.call(op, [x], {"axes": axes})[0]
    else:
        y = x
    if keepdims:
        y = reshape(y, [1 if i in axes else s for i, s in enumerate(x.shape)])
    return y


def _counted(x: Tracer, dtype: Any) -> Tracer:
    """What sums and products of small integers are computed in."""
    if dtype is not None:
        return convert(x, dtype_name(dtype))
    kind = kind_of(x.type.dtype)
    if kind in "bi":
        return convert(x, "i64")
    return convert(x, "u64") if kind == "u" else x


@public
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None,
        keepdims: bool = False) -> Any:
    """The sum over axes; integers are summed in 64 bits."""
    return _reduce(_counted(x, dtype), "reduce_sum", axis, keepdims)


@public
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None,
         keepdims: bool = False) -> Any:
    """The product over axes."""
    return _reduce(_counted(x, dtype), "reduce_prod", axis, keepdims)


@public
def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest; ties share the derivative."""
    op = "reduce_any" if x.type.dtype == "bool" else "reduce_max"
    return _reduce(x, op, axis, keepdims)


@public
def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest; ties share the derivative."""
    op = "reduce_all" if x.type.dtype == "bool" else "reduce_min"
    return _reduce(x, op, axis, keepdims)


@public
def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all are not 0."""
    return _reduce(as_bool(x), "reduce_all", axis, keepdims)


@public
def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether one is not 0."""
    return _reduce(as_bool(x), "reduce_any", axis, keepdims)


@public
def count_nonzero(x: Any, /, *, axis: Any = None,
                  keepdims: bool = False) -> Any:
    """How many are not 0."""
    return sum(as_bool(x), axis=axis, keepdims=keepdims)


@public
def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean over axes; integers become f64."""
    y, = floats(x)
    count = product(y.shape[a] for a in some_axes(axis, y.ndim))
    total = _reduce(y, "reduce_sum", axis, keepdims)
    number = y.trace.lift(count, y.type.dtype) if isinstance(
        count, SymbolicSize) else like(y, count)
    return apply("div", total, number)


@public
def var(x: Any, /, *, axis: Any = None, correction: float = 0.0,
        keepdims: bool = False) -> Any:
    """The variance over axes."""
    y, = floats(x)
    gap = subtract(y, mean(y, axis=axis, keepdims=True))
    if kind_of(gap.type.dtype) == "c":
        gap = abs(gap)
    total = sum(multiply(gap, gap), axis=axis, keepdims=keepdims)
    count = product(y.shape[a] for a in some_axes(axis, y.ndim))
    number = total.trace.lift(count, total.type.dtype) if isinstance(
        count, SymbolicSize) else like(total, count)
    if correction:
        number = subtract(number, correction)
    return apply("div", total, number)


@public
def std(x: Any, /, *, axis: Any = None, correction: float = 0.0,
        keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _place(op: str) -> Callable[..., Any]:
    def function(x: Any, /, *, axis: int | None = None,
                 keepdims: bool = False) -> Any:
        return _reduce(x, op, axis, keepdims)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = "The place of the first extremum; of all in row order."
    return public(function)


argmax, argmin = _place("argmax"), _place("argmin")


def _scan(x: Tracer, axis: int | None, dtype: Any, product_: bool) -> Tracer:
    if axis is None:
        if x.ndim != 1:
            raise InvalidArgumentError("an axis is needed for more than one",
                                       code=3)
        axis = 0
    place = one_axis(axis, x.ndim)
    x = _counted(x, dtype)
    ones, zeros = (x.trace.constant(n, x.type.dtype, x.shape) for n in (1, 0))
    shape = x.shape[:place] + x.shape[place + 1:]
    start = x.trace.constant(1 if product_ else 0, x.type.dtype, shape)
    a, b = (x, zeros) if product_ else (ones, x)
    return x.trace.call("linear_scan", [a, b, start],
                        {"axis": place, "reverse": False})[0]


def _cumulative(name: str, product_: bool) -> Callable[..., Any]:
    def function(x: Any, /, *, axis: int | None = None, dtype: Any = None,
                 include_initial: bool = False) -> Any:
        if include_initial:
            raise InvalidArgumentError("include_initial is not supported",
                                       code=12)
        return _scan(x, axis, dtype, product_)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Running sums or products along an axis."
    return public(function)


cumulative_sum = _cumulative("cumulative_sum", False)
cumulative_prod = _cumulative("cumulative_prod", True)


@public
def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """`cumulative_sum`, by numpy's name; without an axis of all elements."""
    return _scan(x if axis is not None else reshape(x, (-1,)), axis, dtype,
                 False)


@public
def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """`cumulative_prod`, by numpy's name; without an axis of all elements."""
    return _scan(x if axis is not None else reshape(x, (-1,)), axis, dtype,
                 True)


@public
def sort(x: Any, /, *, axis: int = -1, descending: bool = False,
         stable: bool = True) -> Any:
    """The elements along an axis in order; NaN is the largest."""
    return x.trace.call("sort", [x], {"axis": one_axis(axis, x.ndim),
                                      "descending": descending})[0]


@public
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> Any:
    """The places of the elements in order."""
    return x.trace.call("sort", [x], {"axis": one_axis(axis, x.ndim),
                                      "descending": descending})[1]


# Products.


def _dot(a: Tracer, b: Tracer, batch: Any, contract: Any) -> Tracer:
    return a.trace.call("dot_general", [a, b], {
        "batch_a": batch[0], "batch_b": batch[1], "contract_a": contract[0],
        "contract_b": contract[1]})[0]


def _numbers(a: Any, b: Any) -> list[Tracer]:
    x, y = common(a, b)
    if x.type.dtype == "bool":
        raise InvalidArgumentError("a product of matrices of bools", code=12)
    return [x, y]


@public
def matmul(a: Any, b: Any, /) -> Any:
    """The product of matrices, or of stacks of them."""
    x, y = _numbers(a, b)
    if x.ndim == 0 or y.ndim == 0:
        raise InvalidArgumentError("matmul takes arrays with axes", code=3)
    if y.ndim == 1:
        return _dot(x, y, ([], []), ([x.ndim - 1], [0]))
    if x.ndim == 1:
        return _dot(x, y, ([], []), ([0], [y.ndim - 2]))
    if y.ndim == 2:
        return _dot(x, y, ([], []), ([x.ndim - 1], [0]))
    lead = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = broadcast_to(x, lead + x.shape[-2:])
    y = broadcast_to(y, lead + y.shape[-2:])
    batch = list(range(len(lead)))
    return _dot(x, y, (batch, batch), ([x.ndim - 1], [y.ndim - 2]))


@public
def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along an axis; a is conjugated."""
    from .elementwise import conj
    x, y = _numbers(a, b)
    return sum(multiply(conj(x), y), axis=axis)


@public
def dot(a: Any, b: Any, /) -> Any:
    """numpy's dot: a sum over the last axis of a and the last but one of b."""
    x, y = _numbers(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    at = y.ndim - 2 if y.ndim > 1 else 0
    return _dot(x, y, ([], []), ([x.ndim - 1], [at]))


@public
def outer(a: Any, b: Any, /) -> Any:
    """All products of elements of a with elements of b."""
    x, y = common(a, b)
    return multiply(reshape(x, (-1, 1)), reshape(y, (1, -1)))


@public
def tensordot(a: Any, b: Any, /, *, axes: Any = 2) -> Any:
    """The sum over pairs of axes."""
    x, y = _numbers(a, b)
    if isinstance(axes, int):
        first = list(range(x.ndim - axes, x.ndim))
        second = list(range(axes))
    else:
        pair = [p if isinstance(p, (list, tuple)) else [p] for p in axes]
        first = [one_axis(p, x.ndim) for p in pair[0]]
        second = [one_axis(p, y.ndim) for p in pair[1]]
    return _dot(x, y, ([], []), (first, second))


# Places.


@public
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """The parts at places along an axis."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if not isinstance(x, Tracer):
        x = indices.trace.lift(x)
    if is_number(indices):
        indices = indices.__index__()
    return x[(slice(None),) * one_axis(axis, x.ndim) + (indices,)]


@public
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """For each place of `indices` the element along the axis that it names."""
    trace = innermost(x if isinstance(x, Tracer) else indices, (x, indices))
    x, indices = trace.lift(x), trace.lift(indices)
    place = one_axis(axis, x.ndim)
    key: list[Any] = []
    for other, size in enumerate(indices.shape):
        if other == place:
            key.append(indices)
            continue
        line = trace.call("iota", [], {"size": size})[0]
        if x.shape[other] == 1 and isinstance(x.shape[other], int):
            line = multiply(line, 0)
        sizes = [1] * x.ndim
        sizes[other] = size
        key.append(reshape(line, sizes))
    return x[tuple(key)]


def common_dtype(*values: Any) -> str:
    """The dtype that numpy gives these arrays, numbers or dtypes together."""
    return promote([v if is_number(v) else
                    v.type.dtype if isinstance(v, Tracer) else
                    dtype_name(getattr(v, "dtype", v)) for v in values])


def whole(x: Tracer) -> bool:
    """Whether x has integers."""
    return is_integer(x.type.dtype)
