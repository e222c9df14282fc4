"""Tracers: what stands for arrays while a function becomes a graph.

    def f(x, y):                    # called once, with tracers
        return (x * y).sum() + x[0]

    graph = cleave.make_graph(f)("f32[n]", "f32[n]")

A tracer has the operators, the indexing and the methods of an array, and
`__array_namespace__`, whose functions are those of cleave.namespace. It has a
type, but no values: what asks for values is an error that says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import InvalidArgumentError, TracingError
from .promotion import is_number, numpy_dtype, promote, weak_dtype
from .sizes import SymbolicSize, product, shape_of
from .types import (INEXACT, TensorType, attribute_text, dtype_name,
                    joined_text, number_text)

if TYPE_CHECKING:
    from .functions import Op
    from .graphs import Graph
    from .rules import Rules


_levels = itertools.count()


class Trace:
    """One function on its way to become a graph.

    `captured` has arrays, and tracers of enclosing traces, that the function
    uses without taking them: they become inputs behind its own.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.builder = rules.builder()
        self.values: list[int] = []  # of the builder, by numbers of tracers
        self.input_types: list[tuple[str, TensorType]] = []
        self.captured: list[Any] = []
        self._captured_tracers: dict[int, Tracer] = {}
        self.open = True
        self.level = next(_levels)

    def _tracer(self, value: int) -> Tracer:
        self.values.append(value)
        return Tracer(self, len(self.values) - 1, self.builder.type(value))

    def input(self, name: str, kind: TensorType) -> Tracer:
        self.input_types.append((name, kind))
        return self._tracer(self.builder.input(name, kind))

    def constant(self, number: Any, dtype: str,
                 shape: Sequence[Any] = ()) -> Tracer:
        """A number in each element."""
        if not is_number(number):
            number = number.item()
        if isinstance(number, complex):
            parts = "f32" if dtype == "c64" else "f64"
            return self.call("complex", [
                self.constant(number.real, parts, shape),
                self.constant(number.imag, parts, shape)])[0]
        if dtype == "bool":
            number = bool(number)
        elif isinstance(number, bool):
            number = int(number)
        kind = TensorType(dtype, tuple(str(s) for s in shape))
        return self._tracer(
            self.builder._handle.constant(number_text(number), str(kind)))

    def lift(self, value: Any, dtype: str | None = None) -> Tracer:
        """A tracer of this trace for a number, an array or another tracer."""
        if isinstance(value, Tracer):
            if value.trace is self:
                return value
            if not value.trace.open:
                raise TracingError(
                    "an array of a function whose tracing is over: it was kept "
                    "outside of the function, and has no values there")
            return self._capture(value, value.type)
        if isinstance(value, SymbolicSize):
            extent, = self.call("extent", [], {"value": value})
            return extent if dtype is None else convert(extent, dtype)
        if is_number(value):
            return self.constant(value, dtype or weak_dtype(value, None))
        if not hasattr(value, "dtype"):
            import numpy
            value = numpy.asarray(value)
            if value.dtype == object:
                # A list with tracers in it.
                raise TracingError("an array of tracers: `stack` makes one")
        kind = TensorType(dtype_name(value.dtype), tuple(value.shape))
        number = _uniform(value, kind)
        if number is not None:
            return self.constant(number, kind.dtype, kind.shape)
        return self._capture(value, kind)

    def _capture(self, value: Any, kind: TensorType) -> Tracer:
        known = self._captured_tracers.get(id(value))
        if known is None:
            known = self.input(f"captured.{len(self.captured)}", kind)
            self.captured.append(value)  # keeps its id, too
            self._captured_tracers[id(value)] = known
        return known

    def call(self, op: str, operands: Sequence[Any],
             attributes: Mapping[str, Any] | None = None) -> list[Tracer]:
        """A call of a primitive."""
        results = self.builder._handle.call(
            op, [(None, self._value(operand)) for operand in operands],
            attribute_text(_plain(attributes or {})))
        return [self._tracer(value) for value in results]

    def _value(self, operand: Any) -> Any:
        if operand is None:
            return None
        if isinstance(operand, (list, tuple)):
            return [self._value(entry) for entry in operand]
        return self.values[self.lift(operand).number]

    def use(self, rules: Rules) -> None:
        """Goes on by `rules` if they extend the present ones."""
        if rules is self.rules or self.rules.extends(rules):
            return
        if not rules.extends(self.rules):
            raise InvalidArgumentError(
                "one function uses two rule sets: load both files into one "
                "by rules.load", code=3)
        if not self.values:
            self.rules, self.builder = rules, rules.builder()
            return
        names = {f"v{i}": value for i, value in enumerate(self.values)}
        graph = self.builder.finish(names).with_rules(rules)
        self.rules, self.builder = rules, rules.builder()
        inputs = [self.builder.input(*entry) for entry in self.input_types]
        self.values[:] = self.builder.inline(graph, inputs)

    def finish(self, outputs: Mapping[str, Tracer]) -> Graph:
        """The graph of the outputs."""
        self.open = False
        return self.builder.finish({name: self.values[tracer.number]
                                    for name, tracer in outputs.items()})


def call_op(tracer: Tracer, op: Op, inputs: Sequence[Any],
            attributes: Mapping[str, Any]) -> list[Tracer | None]:
    """Records a call of an op; a result that it does not have is None."""
    trace = innermost(tracer, inputs)
    trace.use(op.rules)
    dtype = tracer.type.dtype
    pairs: list[tuple[str | None, Any]] = []
    static: dict[str, Any] = {}
    for place, value in enumerate(inputs):
        info = op.input(place)
        if info["static"]:
            if isinstance(value, Tracer):
                raise TracingError(
                    f"the input `{info['name']}` of `{op.name}` is static: it "
                    "is a number, or a list of them, when the call is made")
            if value is not None:
                static[info["name"]] = value
            continue
        entries = value if isinstance(value, (list, tuple)) else [value]
        values = [None if entry is None else trace.values[
            trace.lift(entry, dtype if is_number(entry) else None
                       ).number] for entry in entries]
        pairs.append((info["label"], values if isinstance(value, (list, tuple))
                      else values[0]))
    text = joined_text(_plain(attributes),
                       trace.rules.attribute_kinds(op.name), _plain(static))
    results = trace.builder._handle.call(op.name, pairs, text)
    return [None if value is None else trace._tracer(value)
            for value in results]


def inline(tracer: Tracer, graph: Graph,
           values: Sequence[Any]) -> list[Tracer]:
    """The nodes of a graph, with values for its inputs."""
    trace = innermost(tracer, values)
    trace.use(graph.rules)
    if graph.rules is not trace.rules:
        graph = graph.with_rules(trace.rules)
    kinds = [kind for _, kind in graph.inputs]
    if len(kinds) != len(values):
        raise InvalidArgumentError(
            f"the graph takes {len(kinds)} arrays, not {len(values)}", code=3)
    given = [trace.lift(value, kind.dtype if is_number(value) else None)
             for value, kind in zip(values, kinds)]
    sizes: dict[str, Any] = {}
    for tracer, kind in zip(given, kinds):
        # Sizes that a name stands for are those of the arrays.
        sizes.update((name, size) for name, size in
                     zip(kind.shape, tracer.type.shape)
                     if isinstance(name, str) and name.isidentifier()
                     and name != size)
    if sizes:
        graph = graph.substitute(sizes)
    numbers = [trace.values[tracer.number] for tracer in given]
    return [trace._tracer(value)
            for value in trace.builder.inline(graph, numbers)]


def innermost(tracer: Tracer, values: Any) -> Trace:
    """The trace that was begun last, of those of the tracers."""
    trace = tracer.trace
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(value, Tracer):
            found = value.trace
        elif isinstance(value, (list, tuple)):
            found = innermost(tracer, value)
        else:
            continue
        if found.level > trace.level:
            trace = found
    return trace


def _uniform(value: Any, kind: TensorType) -> Any:
    """The number that all elements of an array of numpy have, or None."""
    if type(value).__module__ != "numpy" or value.size == 0 or \
            kind.dtype in ("bf16", "c64", "c128"):
        return None
    import numpy
    flat = numpy.asarray(value).ravel()
    first = flat[0]
    if not (flat == first).all():
        return None
    if flat.dtype.kind == "f" and first == 0 and numpy.signbit(flat).any():
        return None
    return first.item()


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with symbolic sizes as texts."""
    def plain(value: Any) -> Any:
        if isinstance(value, SymbolicSize):
            return str(value)
        if isinstance(value, (list, tuple)):
            return [plain(entry) for entry in value]
        return value
    return {name: plain(value) for name, value in attributes.items()}


def convert(x: Tracer, dtype: str) -> Tracer:
    """x in another dtype."""
    if x.type.dtype == dtype:
        return x
    return x.trace.call("convert", [x], {"dtype": dtype})[0]


def lifted(values: Sequence[Any]) -> tuple[Trace, list[Any], str]:
    """The values with arrays as tracers of one trace, and their dtype.

    Python's numbers, and sizes, take the dtype of the arrays beside them.
    """
    tracer = next(v for v in values if isinstance(v, Tracer))
    trace = innermost(tracer, values)
    found = [v if is_number(v) or isinstance(v, SymbolicSize)
             else trace.lift(v) for v in values]
    dtype = promote([v.type.dtype if isinstance(v, Tracer) else
                     v if is_number(v) else 0 for v in found])
    return trace, found, dtype


def as_dtype(trace: Trace, value: Any, dtype: str) -> Tracer:
    """A lifted value in a dtype."""
    if isinstance(value, Tracer):
        return convert(value, dtype)
    return trace.lift(value, dtype)


def operands(*values: Any, dtype: str | None = None) -> list[Tracer]:
    """The values as tracers of one trace and one dtype, by numpy's rules."""
    trace, found, common = lifted(values)
    return [as_dtype(trace, value, dtype or common) for value in found]


def pointwise(op: str, *values: Any, dtype: str | None = None) -> Tracer:
    """A pointwise primitive of values of one dtype, broadcast."""
    found = operands(*values, dtype=dtype)
    return found[0].trace.call(op, found)[0]


class Tracer:
    """An array of a traced function: a type without values."""

    __slots__ = ("trace", "number", "type")
    # numpy's arrays leave operators with a tracer to the tracer.
    __array_ufunc__ = None
    __array_priority__ = 1000
    # The native module takes a tracer for no array.
    __cleave_tracer__ = True

    def __init__(self, trace: Trace, number: int, kind: TensorType) -> None:
        self.trace = trace
        self.number = number
        self.type = kind

    @property
    def shape(self) -> tuple[Any, ...]:
        return shape_of(self.type.shape, self.trace)

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> Any:
        return product(self.shape)

    @property
    def dtype(self) -> Any:
        """numpy's dtype."""
        return numpy_dtype(self.type.dtype)

    @property
    def device(self) -> str:
        return "cpu"

    def __repr__(self) -> str:
        return f"<traced {self.type}>"

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from . import namespace
        return namespace

    # Operations that need values.

    def _refuse(self, what: str) -> Any:
        raise TracingError(
            f"{what} of a traced {self.type}: the function is recorded as a "
            "graph before there are values. `where` chooses by values; rules "
            "have `scan`, `while` and `cond`")

    def __bool__(self) -> bool:
        return self._refuse("the truth value")

    def __int__(self) -> int:
        return self._refuse("the int")

    def __float__(self) -> float:
        return self._refuse("the float")

    def __complex__(self) -> complex:
        return self._refuse("the complex number")

    def __index__(self) -> int:
        return self._refuse("the index")

    def item(self) -> Any:
        return self._refuse("the value")

    def tolist(self) -> Any:
        return self._refuse("the list")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._refuse("the numpy array")

    def __dlpack__(self, **_: Any) -> Any:
        return self._refuse("the memory")

    def __contains__(self, value: Any) -> bool:
        return self._refuse("the membership")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TracingError("arrays of a traced function do not change: `where` "
                           "and `concat` make new ones")

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0].__index__()

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, key: Any) -> Tracer:
        from .indexing import take_key
        return take_key(self, key)

    # Methods of numpy's arrays.

    def astype(self, dtype: Any, copy: bool = True) -> Tracer:
        return convert(self, dtype_name(dtype))

    @property
    def T(self) -> Tracer:
        return self._named("permute_dims")(
            self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tracer:
        return self._named("matrix_transpose")(self)

    @property
    def real(self) -> Tracer:
        return self._named("real")(self)

    @property
    def imag(self) -> Tracer:
        return self._named("imag")(self)

    @staticmethod
    def _named(name: str) -> Any:
        from . import namespace
        return getattr(namespace, name)

    def reshape(self, *shape: Any) -> Tracer:
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        return self._named("reshape")(self, shape)

    def transpose(self, *axes: Any) -> Tracer:
        if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
            axes = tuple(axes[0])
        order = axes or tuple(reversed(range(self.ndim)))
        return self._named("permute_dims")(self, order)

    def flatten(self) -> Tracer:
        return self._named("reshape")(self, (-1,))

    ravel = flatten


def is_inexact(x: Tracer) -> bool:
    """Whether x has floats or complex numbers."""
    return x.type.dtype in INEXACT
