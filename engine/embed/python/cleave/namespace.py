"""The array namespace of traced functions: `x.__array_namespace__()`.

    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(xp.exp(x), axis=-1)

It has those functions of the Python array API that the primitives give, and
some more by numpy's names. They follow numpy in dtypes, broadcasting and
values. Where none of the arguments is traced, numpy computes; so a function
that uses this namespace also runs on numpy's arrays.
"""

from __future__ import annotations

from typing import Any

from .elementwise import (abs, acos, acosh, add, asin, asinh, astype, atan,
                          atan2, atanh, bitwise_and, bitwise_invert,
                          bitwise_left_shift, bitwise_or, bitwise_right_shift,
                          bitwise_xor, cbrt, ceil, clip, conj, copysign, cos,
                          cosh, divide, equal, erf, erfc, erfinv, exp, expm1,
                          floor, floor_divide, greater, greater_equal, hypot,
                          imag, isfinite, isinf, isnan, less, less_equal,
                          lgamma, log, log1p, log2, log10, logaddexp,
                          logical_and, logical_not, logical_or, logical_xor,
                          maximum, minimum, multiply, negative, nextafter,
                          not_equal, positive, pow, power, real, reciprocal,
                          remainder, rint, round, rsqrt, sigmoid, sign,
                          signbit, sin, sinh, sqrt, square, subtract, tan,
                          tanh, traced, trunc, where)
from .shaping import (all, any, argmax, argmin, argsort, broadcast_arrays,
                      broadcast_shapes, broadcast_to, common_dtype, concat,
                      concatenate, count_nonzero, cumprod, cumsum,
                      cumulative_prod, cumulative_sum, dot, expand_dims, flip,
                      matmul, matrix_transpose, max, mean, min, moveaxis,
                      outer, permute_dims, prod, repeat, reshape, roll, sort,
                      squeeze, stack, std, sum, swapaxes, take,
                      take_along_axis, tensordot, tile, transpose, tril, triu,
                      unstack, var, vecdot)
from .sizes import SymbolicSize
from .tracing import Tracer, convert
from .types import dtype_name

__array_api_version__ = "2024.12"

newaxis = None
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
e = 2.718281828459045

# numpy's own, looked up when they are used: numpy is not imported with cleave.
_OF_NUMPY = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64", "complex64", "complex128",
    "finfo", "iinfo", "isdtype", "eye", "linspace", "empty"))


def __getattr__(name: str) -> Any:
    if name not in _OF_NUMPY:
        raise AttributeError(
            f"traced arrays have no function {name!r}: the primitives and "
            "operators of rules have more, as rules.NAME", name=name)
    import numpy
    return getattr(numpy, name)


def result_type(*values: Any) -> Any:
    """The dtype that arrays, numbers and dtypes have together."""
    from .promotion import numpy_dtype
    return numpy_dtype(common_dtype(*values))


def can_cast(source: Any, target: Any, /) -> bool:
    """Whether promotion leads from one dtype to the other."""
    name = dtype_name(target)
    return common_dtype(source, name) == name


def _full(shape: Any, number: Any, dtype: Any) -> Any:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    for size in sizes:
        if isinstance(size, SymbolicSize):
            name = common_dtype(number) if dtype is None else dtype_name(dtype)
            return size.trace.constant(number, name, sizes)
    import numpy
    return numpy.full(tuple(sizes), number, dtype)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros, f64 unless a dtype is given."""
    return _full(shape, 0.0, dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones, f64 unless a dtype is given."""
    return _full(shape, 1.0, dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None,
         device: Any = None) -> Any:
    """One number in each element."""
    if isinstance(fill_value, Tracer):
        y = fill_value if dtype is None else convert(fill_value,
                                                     dtype_name(dtype))
        return broadcast_to(y, shape)
    return _full(shape, fill_value, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None,
              device: Any = None) -> Any:
    """One number in the shape and dtype of x."""
    if not traced((x, fill_value)):
        import numpy
        return numpy.full_like(x, fill_value, dtype=dtype)
    name = common_dtype(x) if dtype is None else dtype_name(dtype)
    if isinstance(fill_value, Tracer):
        return broadcast_to(convert(fill_value, name), x.shape)
    return x.trace.constant(fill_value, name, x.shape)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros in the shape and dtype of x."""
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones in the shape and dtype of x."""
    return full_like(x, 1, dtype=dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *,
           dtype: Any = None, device: Any = None) -> Any:
    """Numbers in steps; the bounds are known."""
    import numpy
    return numpy.arange(*((start,) if stop is None else (start, stop, step)),
                        dtype=dtype)


def asarray(value: Any, /, *, dtype: Any = None, device: Any = None,
            copy: Any = None) -> Any:
    """An array of a number, a list or an array; lists may hold tracers."""
    if isinstance(value, Tracer):
        return value if dtype is None else convert(value, dtype_name(dtype))
    if isinstance(value, (list, tuple)) and traced(value):
        y = stack([asarray(entry) for entry in value])
        return y if dtype is None else convert(y, dtype_name(dtype))
    import numpy
    return numpy.asarray(value, dtype=dtype)


def _install() -> None:
    """Gives tracers numpy's methods, and `@`."""
    for function in (sum, prod, max, min, mean, var, std, all, any, argmax,
                     argmin, squeeze, cumsum, cumprod, swapaxes, clip, round,
                     conj, dot, take, repeat, argsort):
        setattr(Tracer, function.__name__, _method(function))
    Tracer.__matmul__ = lambda a, b: matmul(a, b)  # type: ignore[attr-defined]
    Tracer.__rmatmul__ = lambda a, b: matmul(b, a)  # type: ignore[attr-defined]


def _method(function: Any) -> Any:
    # numpy's methods take the axis by position, the array API's functions by
    # name alone.
    by_axis = function.__name__ in ("sum", "prod", "max", "min", "mean", "var",
                                    "std", "all", "any", "argmax", "argmin",
                                    "squeeze")

    def method(self: Tracer, *arguments: Any, **named: Any) -> Any:
        if "ddof" in named:
            named["correction"] = named.pop("ddof")
        if by_axis and arguments:
            named["axis"], *rest = arguments
            arguments = tuple(rest)
        return function(self, *arguments, **named)

    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method


_install()
