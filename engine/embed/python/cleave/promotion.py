"""Which dtype operands of several dtypes have in common: numpy's table.

Python's numbers are weak: beside an array they take its dtype, or the default
of their kind where the array's kind is lower (f64 of 0.5 beside integers).
bf16, which numpy lacks, gives f32 beside f16, and itself beside integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .errors import InvalidArgumentError
from .types import numpy_name

SCALARS = (bool, int, float, complex)
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def is_number(value: Any) -> bool:
    """Whether it is a number of Python's own; numpy's float64 is none."""
    return type(value) in SCALARS


def kind_of(dtype: str) -> str:
    """One of b, u, i, f, c; k of a key."""
    return "b" if dtype == "bool" else "f" if dtype == "bf16" else dtype[0]


def is_integer(dtype: str) -> bool:
    return kind_of(dtype) in "ui"


def is_float(dtype: str) -> bool:
    return kind_of(dtype) == "f"


@lru_cache(maxsize=None)
def _pair(a: str, b: str) -> str:
    if a == b:
        return a
    if "key" in (a, b):
        raise InvalidArgumentError("a key does not mix with numbers", code=3)
    if "bf16" in (a, b):
        other = b if a == "bf16" else a
        if kind_of(other) in "bui":
            return "bf16"
        return "f32" if other == "f16" else other
    import numpy
    from .types import dtype_name
    return dtype_name(numpy.promote_types(numpy_name(a), numpy_name(b)))


def weak_dtype(number: Any, beside: str | None) -> str:
    """The dtype of Python's number beside arrays of a dtype."""
    kind = {bool: 0, int: 1, float: 2, complex: 3}[
        next(t for t in SCALARS if isinstance(number, t))]
    if beside is not None and _KINDS[kind_of(beside)] >= kind:
        return beside
    if kind == 3:
        return "c64" if beside in ("f32", "f16", "bf16") else "c128"
    return ("bool", "i64", "f64")[kind]


_NUMBER_OF_KIND = {"b": False, "u": 0, "i": 0, "f": 0.0, "c": 0j}


def weak_array(value: Any, beside: str | None) -> Any:
    """An array of Python's number, or of a list of them, beside arrays of a
    dtype: 2.5 stays 2.5 beside integers."""
    import numpy
    array = numpy.asarray(value)
    if beside is None:
        return array
    number = _NUMBER_OF_KIND[array.dtype.kind]
    return numpy.asarray(value, numpy_dtype(weak_dtype(number, beside)))


def promote(dtypes: Sequence[Any]) -> str:
    """The common dtype of names of dtypes and of Python's numbers."""
    found: str | None = None
    for entry in dtypes:
        if isinstance(entry, str):
            found = entry if found is None else _pair(found, entry)
    for entry in dtypes:
        if not isinstance(entry, str):
            found = weak_dtype(entry, found)
    if found is None:
        raise InvalidArgumentError("no operands", code=3)
    return found


def float_dtype(dtype: str) -> str:
    """The dtype of a function of reals on this dtype: integers become f64."""
    return dtype if kind_of(dtype) in "fc" else "f64"


@lru_cache(maxsize=None)
def numpy_dtype(dtype: str) -> Any:
    """numpy's dtype object; of bf16 the one of ml_dtypes, or its name."""
    import numpy
    if dtype == "bf16":
        try:
            import ml_dtypes
        except ImportError:
            return "bf16"
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(numpy_name(dtype))
