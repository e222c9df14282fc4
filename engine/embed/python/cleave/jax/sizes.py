"""Sizes of JAX as texts of Cleave, and back.

JAX's symbolic sizes (`jax.export.symbolic_shape`) are polynomials over names;
the sizes of a graph are, too. A size keeps its names on the way:

    size_text(symbolic_size)            # "2*n + m//2"
    evaluate("2*n + 1", {"n": 4})       # 9
    bind(("n", "2*m"), (3, 8), sizes)   # sizes == {"n": 3, "m": 4}
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
import functools
from typing import Any

import jax

# A size is an int or one of JAX's symbolic sizes, which behave as an int does.
Size = Any


def is_number(size: Size) -> bool:
    """Whether a size is known."""
    try:
        size.__index__()
    except (AttributeError, TypeError):
        return False
    return isinstance(size, int) or hasattr(size, "dtype")


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=int(number)):
            return str(number)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"-({_text(operand)})"
        case ast.BinOp(left=left, op=ast.Pow(),
                       right=ast.Constant(value=int(power))) if power > 0:
            return "*".join([f"({_text(left)})"] * power)
        case ast.BinOp(left=left, op=op, right=right):
            signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*",
                     ast.FloorDiv: "//", ast.Mod: "%"}
            if type(op) in signs:
                return f"({_text(left)}) {signs[type(op)]} ({_text(right)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            operands = [_text(arg) for arg in args]
            if name in ("floordiv", "mod") and len(args) == 2:
                sign = "//" if name == "floordiv" else "%"
                return f"(({operands[0]}) {sign} ({operands[1]}))"
            if name in ("max", "min"):
                return f"{name}({', '.join(operands)})"
    raise NotImplementedError(
        f"the size `{ast.unparse(node)}` has no counterpart in Cleave")


def size_text(size: Size) -> str:
    """The text of a size for Cleave, which has the names of JAX's."""
    if is_number(size):
        return str(int(size))
    return _translated(str(size))


@functools.lru_cache(maxsize=4096)
def _translated(text: str) -> str:
    # JAX writes n^2, floordiv(n, 2) and mod(n, 2).
    return _text(ast.parse(text.replace("^", "**"), mode="eval").body)


def size_value(size: Size) -> int | str:
    """A size as an entry of a TensorType's shape."""
    return int(size) if is_number(size) else size_text(size)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[Any, tuple[str, ...]]:
    tree = ast.parse(text, mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return (compile(tree, "<size>", "eval"),
            tuple(sorted(names - {"max", "min"})))


def names(size: int | str) -> tuple[str, ...]:
    """The names in a size of a graph."""
    return () if isinstance(size, int) else _compiled(size)[1]


def _largest(*sizes: Size) -> Size:
    return functools.reduce(jax.core.max_dim, sizes)


def _smallest(*sizes: Size) -> Size:
    return functools.reduce(jax.core.min_dim, sizes)


def evaluate(size: int | str, sizes: dict[str, Size]) -> Size:
    """The size of a graph with sizes of JAX for its names."""
    if isinstance(size, int):
        return size
    code, needed = _compiled(size)
    missing = [name for name in needed if name not in sizes]
    if missing:
        raise NotImplementedError(
            f"no operand has an axis that tells the size `{missing[0]}`")
    return eval(code, {"__builtins__": {}, "max": _largest, "min": _smallest},
                sizes)


def _scope_sizes(sizes: Iterable[Size]) -> dict[str, Size]:
    """The symbolic size of each name that stands in one of `sizes`."""
    found: dict[str, Size] = {}
    for size in sizes:
        if is_number(size):
            continue
        for name in names(size_text(size)):
            if name not in found:
                found[name], = jax.export.symbolic_shape(name,
                                                         scope=size.scope)
    return found


def _solve(pattern: str, size: Size, sizes: dict[str, Size]) -> bool:
    """Solves `pattern == size` for its one unknown name, if it is linear."""
    unknown = [name for name in names(pattern) if name not in sizes]
    if len(unknown) != 1:
        return False
    at = {value: evaluate(pattern, {**sizes, unknown[0]: value})
          for value in (0, 1, 2)}
    slope = at[1] - at[0]
    if not (is_number(slope) and int(slope) != 0 and at[2] - at[1] == slope):
        return False
    difference = size - at[0]
    if is_number(difference) and int(difference) % int(slope):
        return False
    value = difference // int(slope)
    if evaluate(pattern, {**sizes, unknown[0]: value}) != size:
        return False
    sizes[unknown[0]] = value
    return True


def bind(patterns: Sequence[int | str], shape: Sequence[Size],
         sizes: dict[str, Size]) -> list[tuple[str, Size]]:
    """Finds what the names of `patterns` are, and adds it to `sizes`.

    Returns the pairs that need names which are not known yet. Raises a
    ValueError where a size contradicts its pattern.
    """
    later = []
    for pattern, size in zip(patterns, shape, strict=True):
        if isinstance(pattern, str) and pattern.isidentifier():
            if sizes.setdefault(pattern, size) != size:
                raise ValueError(f"the size `{pattern}` is {sizes[pattern]} "
                                 f"in one place and {size} in another")
        else:
            later.append((pattern, size))
    return [pair for pair in later if not _settled(*pair, sizes)]


def _settled(pattern: int | str, size: Size, sizes: dict[str, Size]) -> bool:
    if all(name in sizes for name in names(pattern)):
        value = evaluate(pattern, sizes)
        if value != size:
            raise ValueError(f"the size `{pattern}` is {value}, "
                             f"and the operand has {size}")
        return True
    return _solve(str(pattern), size, sizes)


def bind_shapes(types: Sequence[Sequence[int | str]],
                shapes: Sequence[Sequence[Size]]) -> dict[str, Size]:
    """The sizes of all names in the shapes of a graph's inputs.

    A graph that was built with JAX's names has them in expressions, too, such
    as 2*n: then the name is looked up among JAX's own.
    """
    sizes: dict[str, Size] = {}
    later: list[tuple[int | str, Size]] = []
    for index, (pattern, shape) in enumerate(zip(types, shapes, strict=True)):
        if len(pattern) != len(shape):
            raise ValueError(f"operand {index} has rank {len(shape)}, and the "
                             f"function takes rank {len(pattern)}")
        later += bind(pattern, shape, sizes)
    while later:
        rest = [pair for pair in later if not _settled(*pair, sizes)]
        if len(rest) == len(later):
            break
        later = rest
    if later:
        known = _scope_sizes(size for shape in shapes for size in shape)
        for name, size in known.items():
            sizes.setdefault(name, size)
        later = [pair for pair in later if not _settled(*pair, sizes)]
    if later:
        raise ValueError(
            f"the size `{later[0][0]}` does not tell its names from "
            f"{later[0][1]}")
    return sizes
