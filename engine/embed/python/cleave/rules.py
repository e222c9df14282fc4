"""Rule sets, and the functions that they declare.

    rules = cleave.load("soft_argmax.rules")  # beside the shipped rules
    rules.soft_argmax(x, axis=-1)             # numpy to numpy, torch to torch
    rules["aten.add.Tensor"](x, y, alpha=2)   # names with points
    rules.fn.pick(x)                          # a `fn` of the rules
    rules.coverage("softmax")["vjp"]          # {"kind": "derived", "why": ""}
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _native
from .errors import Error, InvalidArgumentError, NotFoundError, error_of
from .functions import Function, Op, Primitive
from .graphs import Builder, Graph
from .types import TensorType, joined_text, type_of

_native.set_error_factory(error_of)

_shipped: Rules | None = None
_numbers = itertools.count(1)


def load(*sources: str | os.PathLike[str]) -> Rules:
    """The shipped rules and those of the sources.

    A source is the path of a file or a folder, or rule text: a str that has
    more than one line, or begins with "language".
    """
    global _shipped
    if _shipped is None:
        _shipped = Rules(_native.shipped())
    return _shipped.load(*sources) if sources else _shipped


def op(rules: Rules, text: str) -> Rules:
    """The rules and the ops that a text declares; `language 1` may be left out.

    rules = cleave.op(rules, "op twice(x: T[S..]) -> T[S..]\\n"
                             "  where T: number\\n  = 2 * x\\n")
    """
    if not text.lstrip().startswith("language"):
        text = "language 1\n\n" + text
    return rules.load(text)


class Rules:
    """A rule set: ops and functions, by their names. It never changes."""

    def __init__(self, handle: _native.Rules,
                 base: Rules | None = None) -> None:
        self._handle = handle
        # The rule sets that this one extends, however many loads ago.
        self._bases: frozenset[int] = frozenset(
            () if base is None else {id(base), *base._bases})
        self._base = base  # keeps the ids
        self._names: dict[str, list[str]] | None = None
        self._kinds: dict[str, dict[str, str] | None] = {}
        self._callables: dict[str, Op | Function] = {}
        self.fn = Functions(self)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(names)} {kind}"
                           for kind, names in self._all_names().items()
                           if kind != "primitive")
        return f"<rules: {counts}>"

    def load(self, *sources: str | os.PathLike[str]) -> Rules:
        """These rules and those of the sources, as `cleave.load` takes them."""
        texts: list[tuple[str, str]] = []
        paths: list[str] = []
        for source in sources:
            if isinstance(source, str) and (
                    "\n" in source or source.lstrip().startswith("language")):
                texts.append((f"<text {next(_numbers)}>", source))
            else:
                paths.append(os.fspath(source))
        if texts and paths:
            # One call, since either kind may use what the other declares.
            for path in paths:
                texts += _read(path)
            paths = []
        if paths:
            return Rules(self._handle.extend_files(paths), self)
        return Rules(self._handle.extend([name for name, _ in texts],
                                         [text for _, text in texts]), self)

    def extends(self, other: Rules) -> bool:
        """Whether these were loaded beside `other`, and so have its ops."""
        return other is self or id(other) in self._bases

    # Declarations.

    def _all_names(self) -> dict[str, list[str]]:
        if self._names is None:
            self._names = json.loads(self._handle.names())
        return self._names

    def names(self, kind: str = "op") -> list[str]:
        """The names of a kind: "op", "fn", "aten", "onnx" or "primitive"."""
        names = self._all_names()
        if kind not in names:
            raise InvalidArgumentError(
                f"{kind!r} is none of {', '.join(names)}", code=3)
        return list(names[kind])

    def describe(self, name: str) -> dict[str, Any]:
        """Documentation, inputs, attributes and results of an op or a fn."""
        return json.loads(self._handle.describe(name))

    def coverage(self, op: str) -> dict[str, Any]:
        """Whether an op has "vmap", "jvp" and "vjp", and why not."""
        return json.loads(self._handle.coverage(op))

    def derive(self, op: str, transform: str) -> str:
        """The rule of "vmap", "jvp" or "vjp" of an op, as rule text."""
        return self._handle.derive(op, transform)

    def attribute_kinds(self, op: str) -> dict[str, str] | None:
        """The types of an op's attributes; None of a primitive."""
        try:
            return self._kinds[op]
        except KeyError:
            pass
        try:
            kinds = {a["name"]: a["type"]
                     for a in self.describe(op).get("attributes", ())}
        except NotFoundError:
            if op not in self._all_names()["primitive"]:
                raise
            kinds = None
        self._kinds[op] = kinds
        return kinds

    # Calling.

    def __getitem__(self, name: str) -> Op | Function:
        """An op, a fn or a primitive, to be called on arrays."""
        found = self._callables.get(name)
        if found is None:
            try:
                info = self.describe(name)
            except NotFoundError:
                if name not in self._all_names()["primitive"]:
                    raise
                found = Primitive(self, name)
            else:
                found = (Function(self, name, info) if info["kind"] == "fn"
                         else Op(self, name, info))
            self._callables[name] = found
        return found

    def __getattr__(self, name: str) -> Op | Function:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = self[name]
        except NotFoundError as error:
            raise AttributeError(str(error), name=name, obj=self) from None
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        names = self._all_names()
        return sorted({*super().__dir__(), *names["op"], *names["primitive"]})

    # Graphs.

    def parse(self, text: str) -> Graph:
        """The graph of a text as `str(graph)` gives it."""
        return Graph(self._handle.parse(text), self)

    def function(self, name: str) -> Graph:
        """The graph of a `fn`."""
        return Graph(self._handle.function(name), self)

    def builder(self) -> Builder:
        return Builder(self)

    def call_graph(self, op: str, types: Sequence[Any],
                   attributes: Mapping[str, Any] | str | None = None) -> Graph:
        """One call of an op as a graph.

        `types` has for each input a type, None where it is absent, or a list of
        them where it is variadic. An input that is `static` is given as its
        value: a number, or a list of numbers and sizes.
        """
        builder = Builder(self)
        callee = self[op]
        if isinstance(callee, Function):
            raise InvalidArgumentError(
                f"`{op}` is a fn: rules.function gives its graph", code=3)
        arguments: list[tuple[str | None, Any]] = []
        static: dict[str, Any] = {}
        for number, given in enumerate(types):
            info = callee.input(number)
            if given is None:
                if not info["static"]:
                    arguments.append((info["label"], None))
            elif info["variadic"] and isinstance(given, (list, tuple)) and \
                    not isinstance(given, TensorType):
                arguments.append((info["label"], [
                    None if entry is None else builder.input(
                        f"{info['name']}.{i}", type_of(entry))
                    for i, entry in enumerate(given)]))
            elif info["static"] and not isinstance(given, (TensorType, str)):
                static[info["name"]] = given
            else:
                arguments.append(
                    (info["label"], builder.input(info["name"],
                                                  type_of(given))))
        text = joined_text(attributes, self.attribute_kinds(op), static)
        values = builder._handle.call(op, arguments, text)
        names = callee.result_names(len(values))
        return builder.finish({name: value for name, value
                               in zip(names, values) if value is not None})

    def check(self, ops: str | None = None, **options: Any) -> Any:
        """`cleave.check` of these rules."""
        from .checking import check
        return check(self, ops, **options)

    def define(self, name: str, function: Callable[..., Any],
               types: Iterable[Any]) -> Rules:
        """`cleave.define` for these rules."""
        from .graph_making import define
        return define(name, function, types, rules=self)


class Functions:
    """The functions of a rule set, as attributes: rules.fn.NAME."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = self[name]
        except Error as error:
            raise AttributeError(str(error), name=name, obj=self) from None
        self.__dict__[name] = found
        return found

    def __getitem__(self, name: str) -> Function:
        rules = self._rules
        info = rules.describe(name)
        if info["kind"] != "fn":
            raise NotFoundError(f"`{name}` is no fn, but of the kind "
                                f"{info['kind']}", code=5)
        return Function(rules, name, info)

    def __dir__(self) -> list[str]:
        return self._rules.names("fn")

    def __repr__(self) -> str:
        return f"<functions: {', '.join(dir(self))}>"


def _read(path: str) -> list[tuple[str, str]]:
    """The rule files of a path, by their names."""
    if not os.path.isdir(path):
        try:
            with open(path, encoding="utf-8") as file:
                return [(path, file.read())]
        except FileNotFoundError:
            raise NotFoundError(f"there is no file {path}", code=5) from None
    found = []
    for folder, _, names in sorted(os.walk(path)):
        for name in sorted(names):
            if name.endswith((".rules", ".json")):
                found += _read(os.path.join(folder, name))
    return found
