"""Sizes that are not known while a function is traced.

    n = x.shape[0]                 # a SymbolicSize if x is f32[n]
    x.reshape(2 * n, -1)

They are expressions: arithmetic makes new ones, and only equality answers.
"""

from __future__ import annotations

from typing import Any

from .errors import TracingError


class SymbolicSize:
    """A size as the text of an expression."""

    __slots__ = ("text", "trace")

    def __init__(self, text: str, trace: Any = None) -> None:
        self.text = text
        self.trace = trace  # of the array that has it

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.text)

    def _binary(self, sign: str, left: Any, right: Any) -> Any:
        for side in (left, right):
            if isinstance(side, bool) or not isinstance(side,
                                                        (int, SymbolicSize)):
                return NotImplemented
        return SymbolicSize(f"({left}) {sign} ({right})", self.trace)

    def __add__(self, other: Any) -> Any:
        return self if other == 0 else self._binary("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else self._binary("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self if other == 0 else self._binary("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self if other == 1 else self._binary("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self if other == 1 else self._binary("*", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self if other == 1 else self._binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._binary("%", self, other)

    def __neg__(self) -> SymbolicSize:
        return SymbolicSize(f"0 - ({self})", self.trace)

    def _refuse(self, *_: Any) -> Any:
        raise TracingError(
            f"the size {self} is not known while the function is traced: give "
            "the types numbers, or do without the question")

    __bool__ = __int__ = __index__ = __float__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def shape_of(shape: tuple[Any, ...], trace: Any) -> tuple[Any, ...]:
    """A type's shape for a traced function: numbers and symbolic sizes."""
    return tuple(s if isinstance(s, int) else SymbolicSize(s, trace)
                 for s in shape)


def product(sizes: Any) -> Any:
    """The product of sizes."""
    total: Any = 1
    for size in sizes:
        total = total * size
    return total
