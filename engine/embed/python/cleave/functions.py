"""Ops, functions and primitives of a rule set, as Python functions of arrays.

    rules.softmax(x, axis=-1)      # arrays run a kernel, tracers record a call
    help(rules.softmax)            # the documentation in the rule file

A call of an op with several results gives a named tuple of them; one that the
call does not have is None. Behind the declared results stand the new values of
arguments that the op mutates: arrays stay as they are. An op that declares a
list of results gives a list.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import InvalidArgumentError
from .promotion import weak_array
from .tracing import Tracer, call_op, inline
from .types import TensorType, attribute_text, dtype_name

if TYPE_CHECKING:
    import inspect

    from .graphs import Graph, Kernel
    from .rules import Rules

_NUMBERS = (bool, int, float, complex)


class _Declared(_native.Dispatch):
    """What rules declare under a name, as a callable with its declaration."""

    _kind: str

    def __init__(self, rules: Rules, name: str, info: dict[str, Any]) -> None:
        self.rules = rules
        self.name = name
        self.info = info
        self._result = _result_type(name, [r["name"] for r in info["results"]])
        self._gives_list = info.get("result_list", False)
        self._places = {i["name"]: n for n, i in enumerate(info["inputs"])}
        self.__name__ = self.__qualname__ = name
        self.__doc__ = (info["doc"] + "\n\n" + info["declaration"]).strip()

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature(self.info)

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name}{self.__signature__}>"


class Op(_Declared):
    """An op: inputs by position or name, attributes by name."""

    _kind = "op"

    def __init__(self, rules: Rules, name: str, info: dict[str, Any]) -> None:
        super().__init__(rules, name, info)
        self.inputs: list[dict[str, Any]] = info["inputs"]
        self._attributes = {a["name"]: a for a in info["attributes"]}
        self._positional: list[str] = info.get("positional", list(self._places))
        self._kernels: dict[Any, Kernel] = {}

    def input(self, number: int) -> dict[str, Any]:
        """What is declared of an input; `label` is the name to call it by."""
        if number >= len(self.inputs):
            raise InvalidArgumentError(
                f"`{self.name}` takes {len(self.inputs)} inputs", code=3)
        return {**self.inputs[number], "label": self.inputs[number]["name"]}

    def result_names(self, count: int) -> list[str]:
        """A name for each result; `y` where the rules give none."""
        names = [r["name"] for r in self.info["results"]]
        if count == 1 and len(names) <= 1:
            return [names[0] or "y"] if names else ["y"]
        names += [""] * (count - len(names))
        return [name or f"y.{i}" for i, name in enumerate(names[:count])]

    def bind(self, arguments: Sequence[Any], named: Mapping[str, Any],
             ) -> tuple[list[Any], dict[str, Any]]:
        """The inputs, None where one is absent, and the attributes."""
        if len(arguments) > len(self._positional):
            raise TypeError(
                f"{self.name}() takes {len(self._positional)} arguments by "
                f"position, but {len(arguments)} were given")
        inputs: list[Any] = [None] * len(self.inputs)
        given = set()
        attributes: dict[str, Any] = {}
        pairs = [*zip(self._positional, arguments), *named.items()]
        for name, value in pairs:
            if name in given:
                raise TypeError(f"{self.name}() got {name!r} twice")
            given.add(name)
            if name in self._places:
                inputs[self._places[name]] = value
            elif name in self._attributes:
                attributes[name] = value
            else:
                raise TypeError(
                    f"{self.name}() has no argument {name!r}; it is "
                    f"{self.name}{self.__signature__}")
        for place, info in enumerate(self.inputs):
            if inputs[place] is None and not info["optional"] and \
                    info["name"] not in given:
                raise TypeError(
                    f"{self.name}() lacks the argument {info['name']!r}")
        return inputs, attributes

    def _general(self, arguments: tuple[Any, ...],
                 named: dict[str, Any]) -> Any:
        # Dispatch calls this method where no call before was like this one.
        inputs, attributes = self.bind(arguments, named)
        tracer = _first_tracer(inputs)
        if tracer is not None:
            return self.wrap(call_op(tracer, self, inputs, attributes))
        arrays: list[Any] = []
        key: list[Any] = []
        types: list[Any] = []
        dtype = _common_dtype(inputs)
        for place, value in enumerate(inputs):
            info = self.inputs[place] if place < len(self.inputs) else None
            if value is None:
                types.append(None)
                key.append(None)
            elif info is not None and info["static"]:
                constant = value.tolist() if hasattr(value, "tolist") else value
                types.append(constant)
                key.append(repr(constant))
            elif isinstance(value, (list, tuple)) and (
                    info is None or info["variadic"]):
                key.append(len(value))
                types.append([self._operand(entry, dtype, arrays, key, info)
                              for entry in value])
            else:
                types.append(self._operand(value, dtype, arrays, key, info))
        text = attribute_text(attributes, self.rules.attribute_kinds(self.name))
        key.append(text)
        kernel = self._kernels.get(tuple(key))
        if kernel is None:
            graph = self.rules.call_graph(self.name, types, text)
            # One code for all sizes: eager calls come with many.
            kernel = graph.compile(generalize=True)
            self._kernels[tuple(key)] = kernel
        if len(arrays) == len(arguments) and all(map(_same, arrays, arguments)):
            self.remember(kernel, arguments, named, (),
                          None if self._first_only() else
                          partial(self.wrap_present, kernel), False)
        return self.wrap_present(kernel, kernel(*arrays))

    def _first_only(self) -> bool:
        return self._result is None and not self._gives_list

    @staticmethod
    def _operand(value: Any, dtype: Any, arrays: list[Any], key: list[Any],
                 info: dict[str, Any] | None) -> TensorType | None:
        """Adds an array and its part of the key; gives its type."""
        if value is None:
            key.append(None)
            return None
        if isinstance(value, _NUMBERS) or not hasattr(value, "dtype"):
            value = weak_array(value,
                               None if dtype is None else dtype_name(dtype))
        arrays.append(value)
        shape = tuple(value.shape)
        key.append((value.dtype, shape))
        name = dtype_name(value.dtype)
        if info is not None and info["type"].startswith("key") and \
                name == "u64":
            name = "key"
        return TensorType(name, shape)

    def wrap(self, values: Sequence[Any]) -> Any:
        """The results of a call as its caller gets them."""
        if self._gives_list:
            return list(values)
        if self._result is None or len(values) == 1:
            return values[0]
        return self._result(*values)

    def wrap_present(self, kernel: Kernel, values: tuple[Any, ...]) -> Any:
        """The same, where `values` has no entry for an absent result."""
        if self._gives_list:
            return list(values)
        if self._result is None:
            return values[0]
        if len(values) < len(self._result._fields):
            names = [name for name, _ in kernel.graph.outputs]
            present = dict(zip(names, values))
            every = self.result_names(len(self._result._fields))
            values = tuple(present.get(name) for name in every)
        return self._result(*values)


class Primitive(Op):
    """A primitive: operands by position, attributes by name.

    The operands of pointwise ones are broadcast against each other.
    """

    def __init__(self, rules: Rules, name: str) -> None:
        super().__init__(rules, name, {
            "inputs": [], "attributes": [], "results": [], "positional": [],
            "doc": f"The primitive `{name}`.", "declaration": ""})

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect
        kind = inspect.Parameter
        return inspect.Signature([kind("operands", kind.VAR_POSITIONAL),
                                  kind("attributes", kind.VAR_KEYWORD)])

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def input(self, number: int) -> dict[str, Any]:
        return {"name": f"x{number}", "label": None, "variadic": True,
                "static": False, "optional": False, "type": ""}

    def result_names(self, count: int) -> list[str]:
        return ["y"] if count == 1 else [f"y.{i}" for i in range(count)]

    def bind(self, arguments: Sequence[Any], named: Mapping[str, Any],
             ) -> tuple[list[Any], dict[str, Any]]:
        return list(arguments), dict(named)

    def _first_only(self) -> bool:
        return False

    def wrap(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def wrap_present(self, kernel: Kernel, values: tuple[Any, ...]) -> Any:
        return self.wrap(values)


class Function(_Declared):
    """A `fn` of the rules, of arrays that fit its types."""

    _kind = "fn"

    def __init__(self, rules: Rules, name: str, info: dict[str, Any]) -> None:
        super().__init__(rules, name, info)
        self._graph: Graph | None = None
        self._kernel: Kernel | None = None

    @property
    def graph(self) -> Graph:
        """Its graph, of symbolic sizes where the declaration leaves them open.
        """
        if self._graph is None:
            self._graph = self.rules.function(self.name)
        return self._graph

    def _general(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> Any:
        values = list(arrays)
        plain = not named
        if named:
            places = list(self._places)
            for name in places[len(values):]:
                if name not in named:
                    raise TypeError(
                        f"{self.name}() lacks the argument {name!r}")
                values.append(named.pop(name))
            if named:
                raise TypeError(
                    f"{self.name}() has no argument {next(iter(named))!r}")
        tracer = _first_tracer(values)
        if tracer is not None:
            results = tuple(inline(tracer, self.graph, values))
        else:
            if self._kernel is None:
                self._kernel = self.graph.compile()
            results = self._kernel(*values)
            if plain:
                self.remember(self._kernel, arrays, {}, (),
                              None if len(results) == 1 else self._wrap, True)
        return results[0] if len(results) == 1 else self._wrap(results)

    def _wrap(self, results: tuple[Any, ...]) -> Any:
        return results if self._result is None else self._result(*results)


def _same(a: Any, b: Any) -> bool:
    return a is b


def _first_tracer(values: Sequence[Any]) -> Tracer | None:
    for value in values:
        if isinstance(value, Tracer):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tracer(value)
            if found is not None:
                return found
    return None


def _common_dtype(inputs: Sequence[Any]) -> Any:
    """The dtype of the first array, which numbers beside it take."""
    for value in inputs:
        if isinstance(value, (list, tuple)):
            found = _common_dtype(value)
            if found is not None:
                return found
        elif hasattr(value, "dtype") and hasattr(value, "shape"):
            return value.dtype
    return None


def _result_type(name: str, results: list[str]) -> Any:
    """A named tuple for several results, None for one."""
    if len(results) < 2:
        return None
    return namedtuple(name.replace(".", "_").strip("_") or "results",
                      [result or f"y{i}" for i, result in enumerate(results)],
                      rename=True)


def _signature(info: Mapping[str, Any]) -> inspect.Signature:
    import inspect  # 10 ms, so not with this module
    kind = inspect.Parameter
    parameters = []
    inputs = {i["name"]: i for i in info["inputs"]}
    attributes = {a["name"]: a for a in info["attributes"]}
    positional = info.get("positional", list(inputs))
    for name in [*positional, *(n for n in (*inputs, *attributes)
                                if n not in positional)]:
        place = (kind.POSITIONAL_OR_KEYWORD if name in positional
                 else kind.KEYWORD_ONLY)
        default: Any = kind.empty
        if name in inputs and inputs[name]["optional"]:
            default = None
        if name in attributes and not attributes[name]["required"]:
            default = _Text(attributes[name]["default"] or "None")
        try:
            parameters.append(kind(name, place, default=default))
        except ValueError:  # a keyword of Python
            parameters.append(kind(name + "_", place, default=default))
    return inspect.Signature(parameters, __validate_parameters__=False)


class _Text(str):
    """A default that a signature shows as it is written."""

    def __repr__(self) -> str:
        return str(self)
