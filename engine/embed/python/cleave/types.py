"""Types of arrays, and attributes, as the texts that the library reads.

    TensorType.parse("f32[n, 4]")            # dtype "f32", shape ("n", 4)
    ShapeDtype(("n", 4), "float32")          # the same
    attribute_text({"axis": 1, "mode": "same"})   # 'axis: 1, mode: "same"'

A size is a number, or an expression in variables that Python can evaluate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .errors import InvalidArgumentError

Size = int | str

DTYPES = ("bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16",
          "bf16", "f32", "f64", "c64", "c128", "key")
FLOATS = ("f16", "bf16", "f32", "f64")
INEXACT = FLOATS + ("c64", "c128")

_NUMPY_NAMES = {
    "bool": "bool", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "float16": "f16", "half": "f16", "bfloat16": "bf16",
    "float32": "f32", "float": "f32", "float64": "f64", "double": "f64",
    "complex64": "c64", "complex128": "c128", "bool_": "bool", "long": "i64",
    "int": "i32", "short": "i16", "cfloat": "c64", "cdouble": "c128",
}
_LONG_NAMES = {short: long for long, short in reversed(_NUMPY_NAMES.items())}
_LONG_NAMES.update(bool="bool", f32="float32", i32="int32", f64="float64",
                   key="uint64")
_PYTHON_TYPES = {bool: "bool", int: "i64", float: "f64", complex: "c128"}
# Dtypes seen before, by the object that named them.
_names: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """The name of a dtype: "f32" of "f32", "float32", numpy's or torch's."""
    try:
        return _names[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, str) and dtype in DTYPES:
        name = dtype
    elif isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        name = _PYTHON_TYPES[dtype]
    else:
        text = getattr(dtype, "name", None) or getattr(
            dtype, "__name__", None) or str(dtype)
        name = _NUMPY_NAMES.get(str(text).rsplit(".", 1)[-1], "")
    if not name:
        raise InvalidArgumentError(f"{dtype!r} is no dtype of Cleave: they are "
                                   + " ".join(DTYPES), code=3)
    if dtype.__hash__ is not None:
        _names[dtype] = name
    return name


def numpy_name(dtype: str) -> str:
    """numpy's name of a dtype: "float32" of "f32"; a key is a number."""
    return _LONG_NAMES[dtype]


class TensorType(NamedTuple):
    """The dtype and the shape of an array: `f32[n, 4]`."""

    dtype: str
    shape: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @staticmethod
    def parse(text: str) -> TensorType:
        """The type that a text names."""
        name, bracket, rest = text.strip().partition("[")
        if not bracket or not rest.endswith("]"):
            raise InvalidArgumentError(
                f"`{text}` is no type: f32[n, 4] is one", code=3)
        sizes = [as_size(part) for part in _split(rest[:-1])]
        return TensorType(dtype_name(name.strip()), tuple(sizes))


def ShapeDtype(shape: Iterable[Size], dtype: Any) -> TensorType:
    """The type of an array, in the order of `jax.ShapeDtypeStruct`."""
    return TensorType(dtype_name(dtype), tuple(as_size(s) for s in shape))


def type_of(value: Any) -> TensorType:
    """The type of an array, a number, a text or a type."""
    if isinstance(value, TensorType):
        return value
    if isinstance(value, str):
        return TensorType.parse(value)
    if type(value) in _PYTHON_TYPES:
        # A number is as exact as numpy's default of its kind.
        return TensorType(_PYTHON_TYPES[type(value)], ())
    dtype = getattr(value, "dtype", None)
    shape = getattr(value, "shape", None)
    if dtype is None or shape is None:
        import numpy
        array = numpy.asarray(value)
        return TensorType(dtype_name(array.dtype), array.shape)
    return TensorType(dtype_name(dtype), tuple(shape))


def as_size(size: Any) -> Size:
    """A number where it is one, else the text of an expression."""
    if isinstance(size, str):
        text = size.strip()
        return int(text) if re.fullmatch(r"-?\d+", text) else text
    return int(size)


def _split(text: str) -> list[str]:
    """Parts between commas that stand in no brackets."""
    parts: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if text.strip():
        parts.append(text[start:])
    return parts


def evaluate_size(size: Size, sizes: Mapping[str, int]) -> int:
    """The number that a size is where its variables are these numbers."""
    if isinstance(size, int):
        return size
    # Names of variables may have points in them, which Python's have not.
    names = {name.replace(".", "_"): value for name, value in sizes.items()}
    text = re.sub(r"(?<=[A-Za-z0-9_])\.(?=[A-Za-z0-9_])", "_", size)
    return int(eval(text, {"__builtins__": {}, "min": min, "max": max}, names))


# Attributes of primitives that are strings; others are numbers and sizes.
_PRIMITIVE_STRINGS = ("mode", "tie")


def value_text(value: Any, kind: str = "") -> str:
    """The notation of an attribute's value.

    `kind` is the type that is declared: strings are quoted but for `dtype`s and
    sizes.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if kind.startswith(("dtype", "ScalarType", "dim", "size")):
            return dtype_name(value) if kind[:2] in ("dt", "Sc") else value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + escaped.replace("\n", "\\n") + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(v, kind) for v in value) + "]"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if kind.startswith(("dtype", "ScalarType")):
        return dtype_name(value)
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return value_text(value.tolist(), kind)
    if hasattr(value, "__index__"):
        return str(value.__index__())
    try:
        return dtype_name(value)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"{value!r} is no value of an attribute", code=3) from None


def number_text(value: float | int | bool) -> str:
    """An exact number: "0.1", "1e-05", "inf"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    return repr(value)


def attribute_text(attributes: Mapping[str, Any] | str | None,
                   kinds: Mapping[str, str] | None = None) -> str:
    """Attributes in the notation of graphs.

    A text is taken as it is. None for an attribute leaves it out. `kinds` has
    the declared types; without it the attributes are a primitive's.
    """
    if attributes is None:
        return ""
    if isinstance(attributes, str):
        return attributes
    parts = []
    for name, value in attributes.items():
        if value is None:
            continue
        if kinds is not None:
            kind = kinds.get(name, "")
        elif name == "dtype":
            kind = "dtype"
        else:
            kind = "str" if name in _PRIMITIVE_STRINGS else "dim"
        parts.append(f"{name}: {value_text(value, kind)}")
    return ", ".join(parts)


def joined_text(attributes: Mapping[str, Any] | str | None,
                kinds: Mapping[str, str] | None,
                static: Mapping[str, Any]) -> str:
    """The attributes of a call, and the values of its `static` inputs."""
    parts = [attribute_text(attributes, kinds)]
    parts += [f"{name}: {value_text(value, 'dim')}"
              for name, value in static.items()]
    return ", ".join(part for part in parts if part)
