"""How a function of trees of arrays becomes a graph, and a graph is run.

    traced = trace_function(f, (x,), {})      # f is called with tracers
    results = run(traced.graph, [*traced.arrays, *traced.captured])

Arrays among the arguments are the graph's inputs. What is no array, Python's
numbers among it, is passed to the function as it is. Arrays that the function
has from elsewhere are inputs behind the others, in `captured`.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from . import _native
from .errors import InvalidArgumentError
from .functions import Function, Op
from .graphs import Graph, Kernel
from .promotion import is_number
from .rules import Rules, load
from .tracing import Trace, Tracer, inline
from .trees import Tree, flatten, paths, unflatten
from .types import TensorType, type_of

# Graphs and kernels of functions that were traced, by texts of graphs.
_KEPT = 1024


class Memo:
    """The results of a function of graphs that were asked for last."""

    def __init__(self, size: int = _KEPT) -> None:
        self._size = size
        self._found: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, graph: Graph, key: Any, make: Callable[[], Any]) -> Any:
        full = (id(graph.rules), graph.key, key)
        with self._lock:
            entry = self._found.get(full)
            if entry is not None:
                self._found.move_to_end(full)
                return entry[0]
        made = make()
        with self._lock:
            # The rules are kept, so that their id stays theirs.
            self._found[full] = (made, graph.rules)
            while len(self._found) > self._size:
                self._found.popitem(last=False)
        return made


_memo = Memo()


def derived(graph: Graph, key: Any, make: Callable[[Graph], Any]) -> Any:
    """make(graph), kept for graphs of the same text."""
    return _memo.get(graph, key, lambda: make(graph))


def kernel_of(graph: Graph) -> Kernel:
    """A kernel of the graph, compiled once for graphs of the same text."""
    return derived(graph, "kernel", Graph.compile)


def is_array(value: Any) -> bool:
    """Whether a leaf is an array: numpy's numbers are, Python's are not."""
    if isinstance(value, (Tracer, TensorType)):
        return True
    return hasattr(value, "dtype") and hasattr(value, "shape") and \
        not isinstance(value, type)


def run(graph: Graph, values: Sequence[Any]) -> Sequence[Any]:
    """The outputs for these inputs: arrays, or tracers if one is traced."""
    for value in values:
        if isinstance(value, Tracer):
            return inline(value, graph, values)
    return kernel_of(graph)(*values)


class Traced(NamedTuple):
    """A function as a graph, for arguments of one structure."""

    graph: Graph
    arrays: list[Any]  # the leaves that are the graph's first inputs
    captured: list[Any]  # what its other inputs are
    places: list[int]  # of `arrays`, among all leaves
    tree: Tree  # of (args, kwargs)
    out_tree: Tree

    def flags(self, places: Collection[int]) -> list[bool]:
        """A flag for each input: whether it is the leaf at one of the places.
        """
        return [place in places for place in self.places] + [False] * len(
            self.captured)

    @property
    def inputs(self) -> list[Any]:
        return [*self.arrays, *self.captured]

    @property
    def out_types(self) -> list[TensorType]:
        return [kind for _, kind in self.graph.outputs]


def argument_places(args: tuple[Any, ...], positions: Collection[int],
                    ) -> list[int]:
    """The places of the leaves of some arguments, among all leaves."""
    found: list[int] = []
    start = 0
    for position, argument in enumerate(args):
        count = len(flatten(argument)[0])
        if position in positions:
            found += range(start, start + count)
        start += count
    return found


def trace_function(function: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any], *, forced: Collection[int] = (),
                   static: Collection[int] = (),
                   types: dict[int, TensorType] | None = None,
                   rules: Rules | None = None) -> Traced:
    """Calls the function with tracers in the place of arrays.

    Leaves at `forced` places become inputs also where they are numbers, those
    at `static` places never. `types` has those that differ from the leaf's own.
    """
    leaves, tree = flatten((args, kwargs))
    names = _names(function, args, kwargs)
    if rules is None:
        rules = function.rules if isinstance(
            function, (Op, Function, Graph)) else load()
    trace = Trace(rules)
    given = list(leaves)
    arrays: list[Any] = []
    places: list[int] = []
    taken: set[str] = set()
    for place, leaf in enumerate(leaves):
        if place in static or not (is_array(leaf) or place in forced):
            continue
        kind = (types or {}).get(place) or type_of(leaf if not isinstance(
            leaf, Tracer) else leaf.type)
        name = names[place]
        while name in taken:
            name += "_"
        taken.add(name)
        given[place] = trace.input(name, kind)
        places.append(place)
        arrays.append(_as_array(leaf) if is_number(leaf) else leaf)
    new_args, new_kwargs = unflatten(tree, given)
    result = function(*new_args, **new_kwargs)
    out_leaves, out_tree = flatten(result)
    outputs: dict[str, Tracer] = {}
    labels = paths(out_tree, "y")
    for label, leaf in zip(labels, out_leaves):
        if not (is_array(leaf) or is_number(leaf)):
            raise InvalidArgumentError(
                f"the function gave {leaf!r}, which is no array", code=3)
        name = _name(label)
        while name in outputs:
            name += "_"
        outputs[name] = trace.lift(leaf)
    return Traced(trace.finish(outputs), arrays, trace.captured, places, tree,
                  out_tree)


def _as_array(number: Any) -> Any:
    import numpy
    return numpy.asarray(number)


def _name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.]", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else "x" + name


def _names(function: Any, args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of the arguments, after the parameters."""
    import inspect  # 10 ms, so not with this module
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    labels = []
    for number, argument in enumerate(args):
        label = f"x{number}"
        if number < len(parameters) and parameters[number].kind in (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD):
            label = parameters[number].name
        labels += paths(flatten(argument)[1], label)
    for key in sorted(kwargs):
        labels += paths(flatten(kwargs[key])[1], key)
    return [_name(label) for label in labels]


# Bounds on calls.

_FIELDS = ("deadline_seconds", "tensor_bytes", "loop_steps", "expressions",
           "bodies", "nodes")
_local = threading.local()


class limits:
    """Bounds on what calls in a `with` block may cause, in this thread.

    with cleave.limits(deadline_seconds=10, nodes=100_000, progress=print):
        graph.vjp()

    `progress` is called with an op's name, what is done and the total.
    """

    def __init__(self, *, deadline_seconds: float = 0.0, tensor_bytes: int = 0,
                 loop_steps: int = 0, expressions: int = 0, bodies: int = 0,
                 nodes: int = 0,
                 progress: Callable[[str, int, int], None] | None = None,
                 ) -> None:
        self._new = (deadline_seconds, tensor_bytes, loop_steps, expressions,
                     bodies, nodes, progress)

    def __enter__(self) -> limits:
        self._old = getattr(_local, "limits", (0.0, 0, 0, 0, 0, 0, None))
        _local.limits = self._new
        _native.set_call_options(*self._new)
        return self

    def __exit__(self, *_: Any) -> None:
        _local.limits = self._old
        _native.set_call_options(*self._old)
