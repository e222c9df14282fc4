"""Functions with their reverse mode, compiled ahead of time.

    run = cleave.aot(loss, partition_fn="min-cut")
    value, backward = run(params, batch)
    d_params, d_batch = backward(numpy.float32(1))

The function is traced and differentiated; the joint graph is cut in a forward
and a backward half, and compilers make callables of both. What the one saves
for the other stands in `run.traces`.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .calls import Traced, argument_places, is_array, run, trace_function
from .errors import (Error, FailedPreconditionError, InvalidArgumentError,
                     TracingError, UnimplementedError)
from .graphs import Graph
from .promotion import is_number
from .tracing import Tracer
from .trees import cotangent_leaves, flatten, unflatten
from .types import INEXACT, TensorType, evaluate_size, type_of

Compiler = Callable[[Graph, Sequence[TensorType]], Callable[..., Any]]
PartitionFunction = Callable[[Graph, int], tuple[Graph, Graph]]


def compile_graph(graph: Graph, types: Sequence[TensorType],
                  ) -> Callable[..., Any]:
    """The compiler that is used unless another one is given: a kernel."""
    return graph.compile()


class Partition(NamedTuple):
    """How the joint graph is cut: the arguments of `Graph.aot`."""

    partition: str = "default"
    budget: float = 0.0
    policy: str | None = None
    names: tuple[str, ...] = ()


def min_cut_partition(budget: float = 0.0, policy: str | None = None,
                      names: Iterable[str] = ()) -> Partition:
    """What moves the least memory is saved, the rest is computed again.

    `budget` is the share of the memory to save; `policy` is "everything",
    "nothing" or "dots"; `names` are those of `checkpoint_name` that are saved.
    """
    return Partition("min-cut", budget, policy, tuple(names))


class AotResult(NamedTuple):
    """A call: its value, and its reverse mode at that point.

    backward(cotangents) takes the structure of the value, and gives a tuple
    with an entry for each argument; None stands where there is no gradient.
    """

    value: Any
    backward: Callable[[Any], Any]


class AotTrace:
    """What was made for arguments of one kind."""

    def __init__(self, traced: Traced, halves: Any, active: tuple[bool, ...],
                 run_forward: Callable[..., Any],
                 run_backward: Callable[..., Any]) -> None:
        self.traced = traced
        self.forward: Graph
        self.backward: Graph
        self.joint: Graph
        self.info: dict[str, Any]
        self.forward, self.backward, self.joint, self.info = halves
        self.active = active
        self.run_forward = run_forward
        self.run_backward = run_backward
        self.run_inference: Callable[..., Any] | None = None


def aot(function: Callable[..., Any], fw_compiler: Compiler = compile_graph,
        bw_compiler: Compiler | None = None,
        partition_fn: str | Partition | PartitionFunction = "default",
        decompositions: Iterable[str] | Mapping[str, str | None] = (),
        num_params_buffers: int = 0,
        keep_inference_input_mutations: bool = False,
        inference_compiler: Compiler | None = None, dynamic: bool = False, *,
        argnums: int | Sequence[int] | None = None,
        preserve: Iterable[str] = (), expand: bool = False,
        max_specializations: int = 128) -> Aotted:
    """The function with its reverse mode, compiled for each kind of arguments.

    fw_compiler, bw_compiler
        Callables from a graph and the types of its inputs to a callable that
        takes arrays and gives a sequence of them. The backward half has the
        forward compiler unless given.
    partition_fn
        "default", "min-cut", `min_cut_partition(..)`, or a callable that takes
        the joint graph and the number of its outputs that are the function's,
        and gives a forward and a backward graph.
    decompositions
        Names of ops that become their bodies, or "core-aten"; or a dict, in
        which a text is an override that is loaded first.
    num_params_buffers
        How many leading arrays live on anyway: saving them costs nothing.
        With `dynamic` their sizes are fixed.
    keep_inference_input_mutations
        Traced functions do not write to their arguments, so that there is
        nothing to keep or to undo.
    inference_compiler
        Makes what `run.infer(..)` calls; the forward compiler unless given.
    dynamic
        Sizes other than 1 become variables, equal ones the same. A function
        that needs a number, or a guard that does not hold, is traced for it.
    argnums
        The arguments that have gradients; None: all arrays of floats.
    preserve, expand
        Ops that stay calls; whether all others become primitives.
    """
    return Aotted(function, fw_compiler, bw_compiler or fw_compiler,
                  partition_fn, decompositions, num_params_buffers,
                  inference_compiler or fw_compiler, dynamic, argnums,
                  tuple(preserve), expand, max_specializations)


class Aotted:
    """A function that was compiled ahead of time; `aot` says how.

    `traces` has what was made, the last used at the end.
    """

    def __init__(self, function: Callable[..., Any], fw_compiler: Compiler,
                 bw_compiler: Compiler, partition_fn: Any, decompositions: Any,
                 parameters: int, inference_compiler: Compiler, dynamic: bool,
                 argnums: Any, preserve: tuple[str, ...], expand: bool,
                 limit: int) -> None:
        self._function = function
        self._fw_compiler = fw_compiler
        self._bw_compiler = bw_compiler
        self._partition = partition_fn
        self._decompositions = decompositions
        self._parameters = parameters
        self._inference_compiler = inference_compiler
        self._dynamic = dynamic
        self._argnums = argnums
        self._preserve = preserve
        self._expand = expand
        self._limit = limit
        self._found: OrderedDict[Any, AotTrace] = OrderedDict()
        try:
            functools.update_wrapper(self, function)
        except (AttributeError, TypeError):
            pass

    @property
    def traces(self) -> list[AotTrace]:
        return list(self._found.values())

    def __call__(self, *args: Any) -> AotResult:
        trace, inputs = self._trace(args)
        traced = trace.traced
        symbolic = any(isinstance(value, Tracer) for value in inputs)
        outputs = (run(trace.forward, inputs) if symbolic
                   else trace.run_forward(*inputs))
        count = traced.out_tree.count
        saved = list(outputs[count:])
        tree = flatten(args)[1]
        places = [p for p, flag in zip(traced.places, trace.active) if flag]
        kinds = traced.out_types

        def backward(cotangents: Any) -> Any:
            leaves = cotangent_leaves(cotangents, traced.out_tree)
            needed = [leaf for leaf, kind in zip(leaves, kinds)
                      if kind.dtype in INEXACT]
            values = [*saved, *needed]
            if symbolic or any(isinstance(v, Tracer) for v in values):
                results = run(trace.backward, values)
            else:
                results = trace.run_backward(*values)
            found = dict(zip(places, results))
            return unflatten(tree, [found.get(p) for p in range(tree.count)])

        return AotResult(unflatten(traced.out_tree, outputs[:count]), backward)

    def infer(self, *args: Any) -> Any:
        """The value alone, by what the inference compiler made."""
        trace, inputs = self._trace(args)
        traced = trace.traced
        if any(isinstance(value, Tracer) for value in inputs):
            outputs = run(traced.graph, inputs)
        else:
            if trace.run_inference is None:
                trace.run_inference = self._inference_compiler(
                    traced.graph, [kind for _, kind in traced.graph.inputs])
            outputs = trace.run_inference(*inputs)
        return unflatten(traced.out_tree, outputs)

    # Finding a trace.

    def _trace(self, args: tuple[Any, ...]) -> tuple[AotTrace, list[Any]]:
        leaves, tree = flatten(args)
        arrays = [leaf for leaf in leaves if is_array(leaf) or is_number(leaf)]
        types = [leaf.type if isinstance(leaf, Tracer) else type_of(leaf)
                 for leaf in arrays]
        fixed = tuple(leaf for leaf in leaves
                      if not (is_array(leaf) or is_number(leaf)))
        key: Any = (tree, tuple(types), fixed)
        if self._dynamic:
            patterns = self._patterns(types)
            general = (tree, tuple(patterns), fixed)
            found = self._found.get(general)
            if found is None and key not in self._found:
                try:
                    found = self._add(general, args, patterns)
                except (TracingError, FailedPreconditionError,
                        InvalidArgumentError):
                    # It needs numbers; what is wrong with those, too, raises.
                    found = None
            if found is not None and _holds(found, patterns, types):
                key = general
        trace = self._found.get(key) or self._add(key, args, types)
        self._found.move_to_end(key)
        return trace, [*arrays, *trace.traced.captured]

    def _patterns(self, types: Sequence[TensorType]) -> list[TensorType]:
        """The types with a variable for each size other than 1."""
        names: dict[int, str] = {}
        patterns = []
        for number, kind in enumerate(types):
            shape = tuple(
                size if size == 1 or number < self._parameters or
                not isinstance(size, int)
                else names.setdefault(size, f"s{len(names)}")
                for size in kind.shape)
            patterns.append(TensorType(kind.dtype, shape))
        return patterns

    def _add(self, key: Any, args: tuple[Any, ...],
             types: Sequence[TensorType]) -> AotTrace:
        leaves, _ = flatten(args)
        places = [place for place, leaf in enumerate(leaves)
                  if is_array(leaf) or is_number(leaf)]
        traced = trace_function(self._function, args, {}, forced=places,
                                types=dict(zip(places, types)))
        graph = traced.graph
        texts, decompose = self._decomposed()
        if texts:
            graph = graph.with_rules(graph.rules.load(*texts))
        wanted = places if self._argnums is None else argument_places(
            args, {n % len(args) for n in (
                [self._argnums] if isinstance(self._argnums, int)
                else self._argnums)})
        active = tuple(
            flag and kind.dtype in INEXACT for flag, (_, kind) in
            zip(traced.flags(wanted), graph.inputs))
        halves = self._cut(graph, active, traced.out_tree.count, decompose)
        trace = AotTrace(
            traced, halves, active,
            self._fw_compiler(halves[0], [kind for _, kind in
                                          halves[0].inputs]),
            self._bw_compiler(halves[1], [kind for _, kind in
                                          halves[1].inputs]))
        self._found[key] = trace
        while len(self._found) > self._limit:
            self._found.popitem(last=False)
        return trace

    def _decomposed(self) -> tuple[list[str], list[str]]:
        """Rule texts to load, and ops that become their bodies."""
        given = self._decompositions
        if isinstance(given, str):
            return [], [given]
        if not isinstance(given, Mapping):
            return [], list(given)
        texts = []
        for op, text in given.items():
            if text is None:
                continue
            if not isinstance(text, str) or "\n" not in text:
                raise UnimplementedError(
                    f"the decomposition of `{op}` is None, for its own body, "
                    "or the text of an override", code=12)
            texts.append(text if text.lstrip().startswith("language")
                         else "language 1\n\n" + text)
        return texts, list(given)

    def _cut(self, graph: Graph, active: Sequence[bool], outputs: int,
             decompose: list[str]) -> Any:
        partition = self._partition
        if isinstance(partition, str):
            partition = Partition(partition)
        options = {"decompose": decompose, "preserve": self._preserve,
                   "expand": self._expand, "parameters": self._parameters}
        if isinstance(partition, Partition):
            return graph.aot(active, partition=partition.partition,
                             budget=partition.budget, policy=partition.policy,
                             names=partition.names, **options)
        halves = graph.aot(active, **options)
        forward, backward = partition(halves.joint, outputs)
        _check_halves(halves, forward, backward, outputs)
        return forward, backward, halves.joint, {
            "saved": len(forward.outputs) - outputs}


def _check_halves(halves: Any, forward: Graph, backward: Graph,
                  outputs: int) -> None:
    """The halves of a user's partition do what the joint graph does."""
    kinds = [kind for _, kind in forward.outputs]
    expected = [kind for _, kind in halves.forward.outputs[:outputs]]
    cotangents = [kind for _, kind in halves.backward.outputs]
    given = [kind for _, kind in backward.inputs]
    saved = len(halves.forward.outputs) - outputs
    tail = [kind for _, kind in halves.backward.inputs[saved:]]
    if [kind for _, kind in forward.inputs] != [
            kind for _, kind in halves.forward.inputs]:
        raise InvalidArgumentError(
            "the forward half takes other inputs than the function", code=3)
    if kinds[:outputs] != expected:
        raise InvalidArgumentError(
            "the forward half gives other outputs than the function", code=3)
    if given != kinds[outputs:] + tail:
        raise InvalidArgumentError(
            "the backward half takes what the forward half saves, then the "
            "cotangents", code=3)
    if [kind for _, kind in backward.outputs] != cotangents:
        raise InvalidArgumentError(
            "the backward half gives other gradients than the joint graph",
            code=3)


def _holds(trace: AotTrace, patterns: Sequence[TensorType],
           types: Sequence[TensorType]) -> bool:
    """Whether the guards of a trace hold for these sizes."""
    sizes: dict[str, int] = {}
    for pattern, kind in zip(patterns, types):
        for name, size in zip(pattern.shape, kind.shape):
            if isinstance(name, str) and isinstance(size, int):
                sizes[name] = size
    for graph in (trace.forward, trace.backward):
        for guard in graph.guards:
            condition = guard.split(": ")[0]
            try:
                if not evaluate_size(condition, sizes):
                    return False
            except (Error, NameError, SyntaxError):
                return False
    return True
