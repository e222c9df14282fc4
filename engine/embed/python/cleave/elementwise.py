"""Functions of traced arrays, element by element; also the operators.

They are numpy's in names, dtypes and values. Where no operand is traced, numpy
itself computes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .errors import InvalidArgumentError
from .promotion import (float_dtype, is_float, is_integer, is_number, kind_of,
                        promote)
from .sizes import SymbolicSize
from .tracing import (Tracer, as_dtype, convert, innermost, lifted, operands,
                      pointwise)


def traced(values: Any) -> bool:
    """Whether there is a tracer among values, or in lists of them."""
    for value in values:
        if isinstance(value, Tracer):
            return True
        if isinstance(value, (list, tuple)) and traced(value):
            return True
    return False


def public(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for traced arrays, and numpy's for others."""
    name = function.__name__

    @functools.wraps(function)
    def chosen(*arguments: Any, **named: Any) -> Any:
        if traced(arguments) or traced(named.values()):
            return function(*arguments, **named)
        import numpy
        return getattr(numpy, name)(*arguments, **named)

    return chosen


def common(*values: Any) -> list[Tracer]:
    """Tracers of the common dtype."""
    return operands(*values)


def floats(*values: Any) -> list[Tracer]:
    """Tracers of the common dtype, or f64 where that is of integers."""
    trace, found, dtype = lifted(values)
    return [as_dtype(trace, value, float_dtype(dtype)) for value in found]


def apply(op: str, *values: Tracer) -> Tracer:
    return values[0].trace.call(op, values)[0]


def like(x: Tracer, number: Any) -> Tracer:
    """A number without axes, in the dtype of x."""
    return x.trace.constant(number, x.type.dtype)


def _unary(name: str, op: str | None = None) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        return apply(op or name, *floats(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op or name}` of each element."
    return public(function)


def _comparison(name: str, op: str) -> Callable[..., Any]:
    def function(a: Any, b: Any, /) -> Any:
        return pointwise(op, a, b)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op}` of each pair of elements, as bools."
    return public(function)


exp, expm1, log, log1p = map(_unary, ("exp", "expm1", "log", "log1p"))
sqrt, sin, cos, tan = map(_unary, ("sqrt", "sin", "cos", "tan"))
sinh, cosh, tanh, cbrt = map(_unary, ("sinh", "cosh", "tanh", "cbrt"))
asin, acos, atan = map(_unary, ("asin", "acos", "atan"))
asinh, acosh, atanh = map(_unary, ("asinh", "acosh", "atanh"))
equal = _comparison("equal", "eq")
not_equal = _comparison("not_equal", "ne")
less = _comparison("less", "lt")
less_equal = _comparison("less_equal", "le")
greater = _comparison("greater", "gt")
greater_equal = _comparison("greater_equal", "ge")


def _only_traced(name: str) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        if not isinstance(x, Tracer):
            raise InvalidArgumentError(
                f"{name} takes traced arrays: rules.{name} takes others",
                code=3)
        return apply(name, *floats(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of each element."
    return function


# Functions that numpy lacks.
erf, erfc, erfinv, lgamma, sigmoid, rsqrt = map(
    _only_traced, ("erf", "erfc", "erfinv", "lgamma", "sigmoid", "rsqrt"))


def _sum_or_bool(op: str, on_bools: str | None, a: Any, b: Any) -> Any:
    """Arithmetic; bools have `or` for a sum and `and` for a product."""
    x, y = common(a, b)
    if x.type.dtype == "bool":
        if on_bools is None:
            raise InvalidArgumentError(
                f"`{op}` of bools: convert them, or use logical_xor", code=3)
        return apply(on_bools, x, y)
    return apply(op, x, y)


@public
def add(a: Any, b: Any, /) -> Any:
    """a + b."""
    return _sum_or_bool("add", "or", a, b)


@public
def subtract(a: Any, b: Any, /) -> Any:
    """a - b."""
    return _sum_or_bool("sub", None, a, b)


@public
def multiply(a: Any, b: Any, /) -> Any:
    """a b."""
    return _sum_or_bool("mul", "and", a, b)


@public
def divide(a: Any, b: Any, /) -> Any:
    """a / b; integers become f64."""
    return apply("div", *floats(a, b))


@public
def floor_divide(a: Any, b: Any, /) -> Any:
    """The quotient, rounded down."""
    x, y = common(a, b)
    if is_integer(x.type.dtype):
        return apply("floor_div", x, y)
    # By the remainder, as numpy does it: the quotient may round up to a whole
    # number that it does not reach.
    return apply("round_nearest_even",
                 apply("div", apply("sub", x, remainder(x, y)), y))


@public
def remainder(a: Any, b: Any, /) -> Any:
    """What remains of a, with the sign of b."""
    x, y = common(a, b)
    if is_integer(x.type.dtype):
        return apply("floor_mod", x, y)
    rest = apply("rem", x, y)
    zero = like(rest, 0.0)
    other = apply("xor", apply("lt", rest, zero), apply("lt", y, zero))
    wrong = apply("and", other, apply("ne", rest, zero))
    moved = apply("select", wrong, apply("add", rest, y), rest)
    # A remainder of zero has the sign of b, too.
    return apply("select", apply("eq", moved, zero),
                 apply("copysign", zero, y), moved)


@public
def pow(a: Any, b: Any, /) -> Any:
    """a to the power b. Small whole exponents multiply."""
    if is_number(b) and isinstance(a, Tracer) and b in (0, 1, 2, 3, 0.5, -1):
        dtype = promote([a.type.dtype, b])
        x = convert(a, dtype)
        if b == 0.5:
            return apply("sqrt", x)
        if b == 0:
            return ones_like(x)
        if b == -1:
            if is_integer(dtype):
                raise InvalidArgumentError(
                    "integers to negative powers are no integers", code=3)
            return apply("div", like(x, 1), x)
        if dtype != "bool":
            square = x if b == 1 else apply("mul", x, x)
            return apply("mul", square, x) if b == 3 else square
    x, y = common(a, b)
    if x.type.dtype == "bool":
        x, y = convert(x, "i8"), convert(y, "i8")
    return apply("pow", x, y)


power = pow


def ones_like(x: Tracer) -> Tracer:
    return x.trace.constant(1, x.type.dtype, x.shape)


@public
def atan2(a: Any, b: Any, /) -> Any:
    """The angle of (b, a)."""
    return apply("atan2", *floats(a, b))


@public
def copysign(a: Any, b: Any, /) -> Any:
    """a with the sign of b."""
    return apply("copysign", *floats(a, b))


@public
def nextafter(a: Any, b: Any, /) -> Any:
    """The number next to a, towards b."""
    return apply("nextafter", *floats(a, b))


@public
def maximum(a: Any, b: Any, /) -> Any:
    """The larger of two; NaN wins, and ties share their derivative."""
    return _extremum("max", "or", a, b)


@public
def minimum(a: Any, b: Any, /) -> Any:
    """The smaller of two; NaN wins, and ties share their derivative."""
    return _extremum("min", "and", a, b)


def _extremum(op: str, on_bools: str, a: Any, b: Any) -> Any:
    x, y = common(a, b)
    return apply(on_bools if x.type.dtype == "bool" else op, x, y)


@public
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x within bounds; None is no bound."""
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


@public
def hypot(a: Any, b: Any, /) -> Any:
    """sqrt(a^2 + b^2), without overflow."""
    x, y = (apply("abs", v) for v in floats(a, b))
    large, small = apply("max", x, y), apply("min", x, y)
    trivial = apply("or", apply("eq", large, like(x, 0.0)),
                    apply("isinf", large))
    ratio = apply("div", small, apply("select", trivial, like(x, 1.0), large))
    length = apply("sqrt", apply("add", like(x, 1.0),
                                 apply("mul", ratio, ratio)))
    return apply("select", trivial, large, apply("mul", large, length))


@public
def logaddexp(a: Any, b: Any, /) -> Any:
    """log(exp(a) + exp(b)), without overflow."""
    x, y = floats(a, b)
    top = apply("max", x, y)
    same = apply("eq", x, y)
    gap = apply("select", same, like(x, 0.0),
                apply("neg", apply("abs", apply("sub", x, y))))
    return apply("add", top, apply("log1p", apply("exp", gap)))


def _log(x: Any, base: float) -> Any:
    import math
    y, = floats(x)
    return apply("div", apply("log", y), like(y, math.log(base)))


@public
def log2(x: Any, /) -> Any:
    """The logarithm to the base 2."""
    return _log(x, 2.0)


@public
def log10(x: Any, /) -> Any:
    """The logarithm to the base 10."""
    return _log(x, 10.0)


@public
def reciprocal(x: Any, /) -> Any:
    """1 / x."""
    y, = floats(x)
    return apply("div", like(y, 1.0), y)


@public
def square(x: Any, /) -> Any:
    """x x."""
    return multiply(x, x)


@public
def abs(x: Any, /) -> Any:
    """The distance from 0."""
    return x if x.type.dtype == "bool" or kind_of(x.type.dtype) == "u" \
        else apply("abs", x)


@public
def negative(x: Any, /) -> Any:
    """-x."""
    if x.type.dtype == "bool":
        raise InvalidArgumentError("-x of bools: use logical_not", code=3)
    return apply("neg", x)


@public
def positive(x: Any, /) -> Any:
    """x."""
    return x


@public
def sign(x: Any, /) -> Any:
    """-1, 0 or 1."""
    return apply("sign", x)


def _rounding(name: str, op: str) -> Callable[..., Any]:
    def function(x: Any, /) -> Any:
        return apply(op, x) if is_float(x.type.dtype) else x
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op}`; integers stay."
    return public(function)


ceil, floor = _rounding("ceil", "ceil"), _rounding("floor", "floor")
round = _rounding("round", "round_nearest_even")
rint = _rounding("rint", "round_nearest_even")


@public
def trunc(x: Any, /) -> Any:
    """Rounded towards 0."""
    if not is_float(x.type.dtype):
        return x
    return apply("copysign", apply("floor", apply("abs", x)), x)


@public
def signbit(x: Any, /) -> Any:
    """Whether the sign is set, also of -0 and NaN."""
    y, = floats(x)
    return apply("lt", apply("copysign", like(y, 1.0), y), like(y, 0.0))


@public
def isnan(x: Any, /) -> Any:
    """Whether it is NaN."""
    return apply("isnan", x)


@public
def isinf(x: Any, /) -> Any:
    """Whether it is infinite."""
    return apply("isinf", x)


@public
def isfinite(x: Any, /) -> Any:
    """Whether it is neither NaN nor infinite."""
    return apply("not", apply("or", apply("isnan", x), apply("isinf", x)))


@public
def real(x: Any, /) -> Any:
    """The real part."""
    return apply("real", x) if kind_of(x.type.dtype) == "c" else x


@public
def imag(x: Any, /) -> Any:
    """The imaginary part."""
    if kind_of(x.type.dtype) == "c":
        return apply("imag", x)
    return x.trace.constant(0, x.type.dtype, x.shape)


@public
def conj(x: Any, /) -> Any:
    """The complex conjugate."""
    if kind_of(x.type.dtype) != "c":
        return x
    return apply("complex", apply("real", x), apply("neg", apply("imag", x)))


def as_bool(x: Tracer) -> Tracer:
    """Whether each element is not 0."""
    return x if x.type.dtype == "bool" else apply("ne", x, like(x, 0))


def _logical(name: str, op: str) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        tracer = next(v for v in values if isinstance(v, Tracer))
        trace = innermost(tracer, values)
        return apply(op, *[as_bool(trace.lift(v)) for v in values])
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op}` of what is not 0."
    return public(function)


def _bitwise(name: str, op: str) -> Callable[..., Any]:
    def function(*values: Any) -> Any:
        return pointwise(op, *values)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{op}` of bools, or of the bits of integers."
    return public(function)


logical_and, logical_or = _logical("logical_and", "and"), _logical(
    "logical_or", "or")
logical_xor, logical_not = _logical("logical_xor", "xor"), _logical(
    "logical_not", "not")
bitwise_and, bitwise_or = _bitwise("bitwise_and", "and"), _bitwise(
    "bitwise_or", "or")
bitwise_xor, bitwise_invert = _bitwise("bitwise_xor", "xor"), _bitwise(
    "bitwise_invert", "not")
bitwise_left_shift = _bitwise("bitwise_left_shift", "shift_left")
bitwise_right_shift = _bitwise("bitwise_right_shift", "shift_right")


@public
def where(condition: Any, a: Any, b: Any, /) -> Any:
    """a where the condition holds, else b."""
    tracer = next(v for v in (condition, a, b) if isinstance(v, Tracer))
    trace = innermost(tracer, (condition, a, b))
    values = [v if is_number(v) or isinstance(v, SymbolicSize)
              else trace.lift(v) for v in (a, b)]
    dtype = promote([v.type.dtype if isinstance(v, Tracer) else
                     v if is_number(v) else 0 for v in values])
    x, y = (as_dtype(trace, v, dtype) for v in values)
    return trace.call("select", [as_bool(trace.lift(condition)), x, y])[0]


@public
def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """x in another dtype; floats become integers by truncation."""
    return x.astype(dtype)


def _install() -> None:
    """Gives tracers their operators."""
    binary = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide,
              "floordiv": floor_divide, "mod": remainder, "pow": pow,
              "and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor,
              "lshift": bitwise_left_shift, "rshift": bitwise_right_shift}
    compared = {"eq": equal, "ne": not_equal, "lt": less, "le": less_equal,
                "gt": greater, "ge": greater_equal}
    for name, function in {**binary, **compared}.items():
        setattr(Tracer, f"__{name}__", _operator(function))
        if name in binary:
            setattr(Tracer, f"__r{name}__", _reflected(function))
    for name, function in {"neg": negative, "pos": positive, "abs": abs,
                           "invert": bitwise_invert}.items():
        setattr(Tracer, f"__{name}__", lambda x, f=function: f(x))


def _is_operand(value: Any) -> bool:
    return isinstance(value, Tracer) or is_number(value) or (
        hasattr(value, "dtype") or hasattr(value, "text"))


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(a, b) if _is_operand(b) else NotImplemented


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(b, a) if _is_operand(b) else NotImplemented


_install()
