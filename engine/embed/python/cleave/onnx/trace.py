"""An ONNX graph while it is read: statements of a rule body.

    body = Body(names)
    y = body.emit("y", "f32", x.shape, "max({0}, {1})", x, z)

A `Value` is a result of a node: the text that stands for it in rules, its dtype
and its shape, whose sizes may have variables. Where its elements are known
before anything runs, `static` has them; elements of integers may be sizes.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from .size import Size, product

# onnx.TensorProto.DataType -> dtypes of rules.
DTYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64",
          9: "bool", 10: "f16", 11: "f64", 12: "u32", 13: "u64", 14: "c64",
          15: "c128", 16: "bf16"}
NUMPY = {"f32": "float32", "u8": "uint8", "i8": "int8", "u16": "uint16",
         "i16": "int16", "i32": "int32", "i64": "int64", "bool": "bool",
         "f16": "float16", "f64": "float64", "u32": "uint32", "u64": "uint64",
         "c64": "complex64", "c128": "complex128"}
FROM_NUMPY = {np.dtype(name): dtype for dtype, name in NUMPY.items()}


class Unsupported(Exception):
    """One node cannot be imported, and why."""


class Unknown(Exception):
    """A part of a node was not imported, which is reported there."""


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor: `text` is None until what is static needs a place in rules."""

    dtype: str
    shape: tuple
    text: str | None = None
    static: np.ndarray | None = None
    name: str = "value"

    @property
    def type(self) -> str:
        return f"{self.dtype}[{', '.join(size_text(s) for s in self.shape)}]"

    @property
    def is_float(self) -> bool:
        return self.dtype in ("f16", "bf16", "f32", "f64")

    @property
    def is_int(self) -> bool:
        return self.dtype[0] in "iu" and self.dtype[1:].isdigit()


def size_text(size) -> str:
    return str(size)


def sizes_text(sizes) -> str:
    return "[" + ", ".join(str(s) for s in sizes) + "]"


def filled(template: str, texts) -> str:
    """The template with texts in its places, `{0}`, `{1}`, .."""
    return re.sub(r"\{(\d+)\}", lambda m: texts[int(m[1])], template)


def words(texts) -> set[str]:
    """The names in texts."""
    return {word for text in texts for word in re.findall(r"\w+", text)}


@dataclasses.dataclass(eq=False)
class Statement:
    """`let NAME HEAD = TEMPLATE`, with operands in the template's places.

    A statement with regions stands for itself `alone`: its template is text.
    `place` is the node that it comes from.
    """

    name: str
    template: str
    operands: tuple[str, ...] = ()
    head: str = ""
    place: str = ""
    alone: bool = False

    def lines(self, indent: str) -> list[str]:
        text = (self.template if self.alone
                else filled(self.template, self.operands))
        first, *rest = f"let {self.name}{self.head} = {text}".split("\n")
        return [indent + first] + [indent + line for line in rest]


def number_text(value, dtype: str) -> str:
    """A number as rules write it; as short as its dtype allows."""
    if isinstance(value, Size):
        return str(value)
    if dtype == "bool":
        return "true" if value else "false"
    if dtype[0] in "iu":
        return str(int(value))
    number = float(value)
    if np.isnan(number):
        return "nan"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    with np.errstate(over="ignore"):
        if dtype == "f32":
            text = np.format_float_positional(np.float32(value), trim="0")
            if len(text) > 24:
                text = np.format_float_scientific(np.float32(value), trim="0")
        else:
            text = repr(number)
    mantissa, e, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + (f"e{int(exponent)}" if e else "")


class Body:
    """The statements of one body or region, as they are made.

    Regions share the function's names and parameters.
    """

    def __init__(self, function: "Function"):
        self.function = function
        self.statements: list[Statement] = []

    def emit(self, name: str, dtype: str, shape, template: str, *operands,
             head: str = "") -> Value:
        """A new statement. Operands are values, which stand at the places, or
        texts, which become part of the template."""
        slots, names = [], []
        for operand in operands:
            text = operand if isinstance(operand, str) else self.text(operand)
            if not isinstance(operand, str) and re.fullmatch(r"\w+", text):
                if text not in names:
                    names.append(text)
                text = f"{{{names.index(text)}}}"
            slots.append(text)
        made = self.function.names.new(name)
        self.statements.append(
            Statement(made, filled(template, slots), tuple(names), head,
                      self.function.place))
        return Value(dtype, tuple(shape), made, name=name)

    def text(self, value: Value) -> str:
        """The text of a value; of a static one, where it has none yet."""
        if value.text is None:
            value.text = self._materialize(value)
        return value.text

    def _materialize(self, value: Value) -> str:
        elements = value.static
        flat = elements.reshape(-1)
        sizes = [e for e in flat if isinstance(e, Size)]
        if not sizes and flat.size > 1 or value.dtype in ("c64", "c128"):
            return self.function.parameter(value.name, np.asarray(
                elements, dtype=NUMPY[value.dtype]), value.dtype)
        scalars = [f"convert({_atom(e, value.dtype)}, dtype: {value.dtype})"
                   for e in flat]
        if not value.shape:
            return scalars[0]
        if flat.size == 1:
            return f"broadcast_to({scalars[0]}, " \
                   f"shape: {sizes_text(value.shape)})"
        if flat.size == 0:
            return f"zeros(shape: {sizes_text(value.shape)}, " \
                   f"dtype: {value.dtype})"
        parts = ", ".join(f"broadcast_to({s}, shape: [1])" for s in scalars)
        joined = f"concatenate([{parts}], axis: 0)"
        if len(value.shape) == 1:
            return joined
        return f"reshape({joined}, shape: {sizes_text(value.shape)})"

    def literal(self, value: Value) -> str:
        """The text where another operand tells the dtype: a number may stand
        bare, and an extent 1 is left to broadcasting."""
        static = value.static
        if (static is not None and static.size == 1
                and value.dtype not in ("c64", "c128")):
            return _atom(static.reshape(-1)[0], value.dtype)
        return self.text(value)

    def prune(self, results: list[str]) -> None:
        """Drops what neither the results nor other statements read: the
        language takes it for a mistake."""
        used = words(results)
        kept = []
        for s in reversed(self.statements):
            if s.name in used:
                kept.append(s)
                used |= words(s.operands)
                if s.alone:
                    used |= words([s.template])
        self.statements = kept[::-1]

    def render(self, indent: str = "  ") -> list[str]:
        return [line for s in self.statements for line in s.lines(indent)]


def _atom(value, dtype: str) -> str:
    text = number_text(value, dtype)
    return f"({text})" if text.startswith("-") or " " in text else text


class Function:
    """A function under construction, whose bodies share names."""

    def __init__(self, rules: Any, names):
        self.rules = rules
        self.names = names
        self.parameters: dict[str, np.ndarray] = {}
        self.parameter_dtypes: dict[str, str] = {}
        self.original_names: dict[str, str] = {}
        self.place = ""
        self._of_original: dict[str, str] = {}

    def parameter(self, original: str, array: np.ndarray, dtype: str) -> str:
        """The name of an input that holds the array; one for each original."""
        if original in self._of_original:
            return self._of_original[original]
        name = self.names.new(original)
        self._of_original[original] = name
        self.parameters[name] = array
        self.parameter_dtypes[name] = dtype
        self.original_names[name] = original
        return name


def static_value(array, name: str, dtype: str | None = None) -> Value:
    """A value whose elements are known; an object array may hold sizes."""
    array = np.asarray(array)
    if dtype is None:
        if array.dtype != object and array.dtype not in FROM_NUMPY:
            raise Unsupported(f"elements of {array.dtype}")
        dtype = "i64" if array.dtype == object else FROM_NUMPY[array.dtype]
    return Value(dtype, tuple(array.shape), None, array, name)


def known_list(value: Value, what: str) -> list:
    """The elements of a value that must be known before anything runs."""
    if value.static is None:
        raise Unsupported(f"{what} is computed from data: its value must be "
                          "known before anything runs")
    return [e if isinstance(e, Size) else e.item() if hasattr(e, "item") else e
            for e in value.static.reshape(-1)]


def element_count(value: Value):
    return product(value.shape)
