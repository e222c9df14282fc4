"""Types for tensors: sizes become variables, as far as one graph serves all of
them.

    signature([x, y])      # of shapes [4, 5] and [5, 1]: ("f32[s0, s1]",
                           #                               "f32[s1, 1]")

Axes of equal extent share a variable, and the extents 0 and 1 stay numbers, so
that what an op asks of its sizes is decided when the graph is made. A symbolic
size is a variable of its own.
"""

from __future__ import annotations

from typing import Sequence

import torch

DTYPE_NAMES = {
    torch.bool: "bool", torch.uint8: "u8", torch.uint16: "u16",
    torch.uint32: "u32", torch.uint64: "u64", torch.int8: "i8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
    torch.float64: "f64", torch.complex64: "c64", torch.complex128: "c128",
}


class Sizes:
    """The variable of each extent that was met. With `numbers` extents stay
    numbers."""

    def __init__(self, numbers: bool = False):
        self.numbers = numbers
        self.variables: dict = {}

    def text(self, extent) -> str:
        """The size that stands for an extent in a type."""
        if isinstance(extent, torch.SymInt):
            known = extent.node.maybe_as_int()
            if known is None:
                return self._variable(str(extent.node.expr))
            extent = known
        extent = int(extent)
        if self.numbers or extent <= 1:
            return str(extent)
        return self._variable(extent)

    def _variable(self, key) -> str:
        variables = self.variables
        if key not in variables:
            variables[key] = f"s{len(variables)}"
        return variables[key]

    def type(self, tensor: torch.Tensor, dtype: str | None = None) -> str:
        """`f32[s0, 1]`."""
        name = dtype or DTYPE_NAMES.get(tensor.dtype)
        if name is None:
            raise TypeError(f"cleave has no dtype for {tensor.dtype}")
        return f"{name}[{', '.join([self.text(n) for n in tensor.shape])}]"


def signature(tensors: Sequence[torch.Tensor | None],
              numbers: bool = False) -> tuple[str | None, ...]:
    """A type text for each tensor, None for those that are absent."""
    sizes = Sizes(numbers)
    return tuple(None if t is None else sizes.type(t) for t in tensors)


def attribute_text(value, kind: str = "", sizes: Sizes | None = None) -> str:
    """A Python value as graphs write attributes: `[1, 2]`, `"none"`, `0.5`.
    `kind` is the declared type, which tells a dtype from a string; `sizes` has
    the variables of symbolic sizes."""
    if value is None:
        return "none"
    if isinstance(value, bool) and kind in ("real", "float"):
        return str(int(value))
    if isinstance(value, (bool, torch.SymBool)):
        return "true" if value else "false"
    if isinstance(value, torch.dtype):
        return DTYPE_NAMES[value]
    if isinstance(value, (torch.layout, torch.memory_format)):
        return f'"{str(value).removeprefix("torch.")}"'  # "strided"
    if isinstance(value, torch.device):
        return f'"{value}"'
    if isinstance(value, (list, tuple, torch.Size)):
        inner = kind.partition("[")[0]
        return "[" + ", ".join(attribute_text(v, inner, sizes)
                               for v in value) + "]"
    if isinstance(value, torch.SymInt) and sizes is not None:
        return sizes.text(value)
    if isinstance(value, str):
        return value if kind.startswith(("dtype", "ScalarType")) \
            else f'"{value}"'
    if isinstance(value, (float, torch.SymFloat)):
        return float_text(float(value))
    if hasattr(value, "__index__"):
        return str(value.__index__())
    raise TypeError(f"{value!r} is no attribute of a rule")


def float_text(value: float) -> str:
    """A number with a point or an exponent, which tells it from a size."""
    text = repr(value)
    if text in ("inf", "-inf", "nan") or any(c in text for c in ".e"):
        return text
    return text + ".0"
