"""Ops that Python functions compute, and the library that makes code.

    k = g.compile(host_kernels={"magnitude": lambda x: numpy.abs(x)})

A function takes the op's inputs as numpy arrays, the attributes by name, and
gives an array, or a tuple of them. It is called by any thread that runs a
kernel, with the interpreter's lock. A NotImplementedError says that it does not
do such a call: a check leaves that one out. A graph may take the place of a function:
its primitives are interpreted one by one, each rounded in its dtype.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Mapping
from typing import Any

from .errors import InvalidArgumentError
from .types import numpy_name

_prepared = False


def prepare() -> None:
    """Loads Halide from its Python package, where that is installed.

    The loader then has the library that makes code, wherever the package lies.
    """
    global _prepared
    if _prepared:
        return
    _prepared = True
    try:
        found = importlib.util.find_spec("halide")
    except (ImportError, ValueError):
        return
    for folder in (found.submodule_search_locations or []) if found else []:
        for part in ("lib64", "lib", ""):
            path = os.path.join(folder, part, "libHalide.so")
            if os.path.exists(path):
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                return


def read_attributes(text: str) -> dict[str, Any]:
    """Values of a text such as `axis: 1, mode: "same"`; dtypes are str."""
    return _Reader(text).attributes()


class _Reader:
    """Reads the notation of attributes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def attributes(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while self.at < len(self.text):
            end = self.text.index(":", self.at)
            name = self.text[self.at:end].strip()
            self.at = end + 1
            result[name] = self.value()
            self.skip(", \n")
        return result

    def skip(self, letters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in letters:
            self.at += 1

    def value(self) -> Any:
        self.skip(" ")
        first = self.text[self.at]
        if first == "[":
            self.at += 1
            items = []
            self.skip(", ")
            while self.text[self.at] != "]":
                items.append(self.value())
                self.skip(", ")
            self.at += 1
            return items
        if first == '"':
            return self.string()
        end = self.at
        while end < len(self.text) and self.text[end] not in ",]":
            end += 1
        word = self.text[self.at:end].strip()
        self.at = end
        return _word(word)

    def string(self) -> str:
        letters = []
        self.at += 1
        while self.text[self.at] != '"':
            letter = self.text[self.at]
            if letter == "\\":
                self.at += 1
                letter = {"n": "\n", "t": "\t"}.get(self.text[self.at],
                                                    self.text[self.at])
            letters.append(letter)
            self.at += 1
        self.at += 1
        return "".join(letters)


def _word(word: str) -> Any:
    names = {"true": True, "false": False, "none": None}
    if word in names:
        return names[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def wrapped(functions: Mapping[str, Callable[..., Any]] | None,
            ) -> dict[str, Any] | None:
    """What the native module calls for each op, or interprets."""
    from .graphs import Graph
    if not functions:
        return None
    return {name: function.expand()._handle if isinstance(function, Graph)
            else _wrap(function) for name, function in functions.items()}


def numpy_dtype(dtype: str) -> Any:
    """numpy's dtype of a name, or that of ml_dtypes."""
    import numpy
    if dtype == "bf16":
        import ml_dtypes
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(numpy_name(dtype))


def _array(memory: memoryview, dtype: str, shape: tuple[int, ...]) -> Any:
    import numpy
    kind = numpy_dtype(dtype)
    flat = numpy.frombuffer(memory, numpy.uint8) if memory.nbytes else (
        numpy.empty(0, numpy.uint8))
    return flat.view(kind).reshape(shape)


def _wrap(function: Callable[..., Any]) -> Callable[..., None]:
    def call(op: str, attributes: str, inputs: list[Any],
             results: list[Any]) -> None:
        # Copies, since the memory is the library's once the call is over.
        arrays = [_array(*entry).copy() for entry in inputs]
        answer = function(*arrays, **read_attributes(attributes))
        given = answer if isinstance(answer, (tuple, list)) else (answer,)
        if len(given) != len(results):
            raise InvalidArgumentError(
                f"the function of `{op}` gave {len(given)} results, "
                f"not {len(results)}", code=3)
        for number, (value, entry) in enumerate(zip(given, results)):
            _store(op, number, value, entry)
    return call


def _store(op: str, number: int, value: Any, entry: Any) -> None:
    import numpy
    room = _array(*entry)
    value = numpy.asarray(value)
    if value.shape != room.shape:
        raise InvalidArgumentError(
            f"result {number} of the function of `{op}` has shape "
            f"{list(value.shape)}, not {list(room.shape)}", code=3)
    if not numpy.can_cast(value.dtype, room.dtype, "same_kind"):
        raise InvalidArgumentError(
            f"result {number} of the function of `{op}` has dtype "
            f"{value.dtype}, not {room.dtype}", code=3)
    room[...] = value
