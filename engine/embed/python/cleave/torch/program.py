"""A graph as a PyTorch function: Program runs it, differentiates and batches it
by graphs that the engine derives from it.

    program = Program.of(rules.function("pick"))
    y, = program(x)            # under grad, vmap, jvp, .. of any depth

One torch.autograd.Function serves all graphs. Its backward, jvp and vmap apply
it to the derived graph, so it closes under every nesting.
"""

from __future__ import annotations

import threading
from typing import Sequence

import torch
from torch._C import _functorch

from cleave.torch.printer import DTYPES, compile_source, print_graph

_INEXACT = ("f16", "bf16", "f32", "f64", "c64", "c128")


def is_inexact(dtype: str) -> bool:
    """Whether derivatives go through the dtype."""
    return dtype in _INEXACT


def printed(graph, name: str = "graph"):
    """The graph as a Python function of torch calls; its text is `.source`.
    Raises Unprintable for what PyTorch has no ops for."""
    key = graph.key
    function = _PRINTED.get(key)
    if function is None:
        primitives = graph.expand()
        source = print_graph(primitives.json(), name)
        function = _PRINTED[key] = compile_source(source, name)
    return function


_PRINTED: dict = {}


def select_outputs(graph, keep: Sequence[int]):
    """The graph with these of its outputs alone."""
    outputs = graph.outputs
    if list(keep) == list(range(len(outputs))):
        return graph
    builder = graph.rules.builder()
    values = [builder.input(name, type) for name, type in graph.inputs]
    results = builder.inline(graph, values)
    return builder.finish({outputs[i][0]: results[i] for i in keep})


class Program:
    """A graph, what runs it, and the programs derived from it, each made once.

    `mode` is "kernel", compiled code of the engine, or "inline", torch calls.
    """

    _all: dict = {}
    _lock = threading.Lock()

    def __init__(self, graph, mode: str):
        self.graph = graph
        self.mode = mode
        self.input_dtypes = [str(t.dtype) for _, t in graph.inputs]
        self.output_types = [t for _, t in graph.outputs]
        self.output_dtypes = [str(t.dtype) for t in self.output_types]
        self.derived: dict = {}
        self.text: str | None = None
        self.kernel = None  # compiled when it is first run
        self._printed = None
        self._shapes = None

    @classmethod
    def of(cls, graph, mode: str = "kernel") -> "Program":
        """The program of a graph; equal graphs of one rule set share one."""
        key = (id(graph.rules), graph.key, mode)
        program = cls._all.get(key)
        if program is None:
            with cls._lock:
                program = cls._all.setdefault(key, cls(graph, mode))
        return program

    # -- running ------------------------------------------------------------

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple:
        """The outputs, without derivatives."""
        if self.mode == "inline":
            return self.printed()(*tensors)
        for t in tensors:
            if type(t) not in _PLAIN:
                return self.opaque(tensors)
        if _functorch.maybe_current_level() is not None \
                or torch._C._len_torch_dispatch_stack():
            return self.opaque(tensors)
        return self.run_kernel(tensors)

    def opaque(self, tensors) -> tuple:
        """One call of torch.ops.cleave.call, which traces as one node."""
        from cleave.torch.opaque import call
        return call(self, tensors)

    def run_kernel(self, tensors) -> tuple:
        """The compiled kernel on tensors with data."""
        if self.kernel is None:
            self.kernel = self.graph.compile()
        device = tensors[0].device if tensors else None
        if device is not None and device.type != "cpu":
            raise ValueError(
                f"cleave kernels run on the CPU; the input is on {device}: "
                "use mode=\"inline\"")
        return tuple(self.kernel(*[_dense(t, d) for t, d in
                                    zip(tensors, self.input_dtypes)]))

    def printed(self):
        """The graph as torch calls."""
        if self._printed is None:
            self._printed = printed(self.graph)
        return self._printed

    def fake(self, tensors) -> list:
        """Empty tensors of the outputs' types, for tensors without data."""
        if self._shapes is None:
            from cleave.torch.shapes import compile_shapes
            self._shapes = compile_shapes(self.graph)
        shapes = self._shapes(*[t.shape for t in tensors])
        like = tensors[0]
        return [like.new_empty(list(shape), dtype=DTYPES[dtype])
                for shape, dtype in zip(shapes, self.output_dtypes)]

    # -- transforms ---------------------------------------------------------

    def _derive(self, key, make) -> object:
        value = self.derived.get(key)
        if value is None:
            value = self.derived[key] = make()
        return value

    def vmap(self, in_axes: tuple) -> "Program":
        """Over a batch; the outputs have it in front."""
        def make():
            return Program.of(self.graph.vmap(list(in_axes)), self.mode)
        return self._derive(("vmap", in_axes), make)

    def jvp(self, active: tuple) -> tuple["Program", tuple]:
        """Tangents of the outputs alone, and which outputs have one."""
        def make():
            graph, has = self.graph.jvp(list(active))
            count = len(self.output_dtypes)
            graph = select_outputs(graph, range(count, len(graph.outputs)))
            return Program.of(graph, self.mode), tuple(has)
        return self._derive(("jvp", active), make)

    def vjp(self, active: tuple) -> "Program":
        """Cotangents of the active inputs alone."""
        def make():
            graph = self.graph.vjp(list(active))
            count = len(self.output_dtypes)
            graph = select_outputs(graph, range(count, len(graph.outputs)))
            return Program.of(graph, self.mode)
        return self._derive(("vjp", active), make)

    # -- the call -----------------------------------------------------------

    def __call__(self, *tensors) -> tuple:
        if not needs_function(tensors):
            return self.run(tensors)
        return _Apply.apply(self, *tensors)


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def needs_function(tensors) -> bool:
    """Whether a transform or autograd looks on: a functorch level, a dual
    level, or an input that requires a gradient."""
    if _functorch.maybe_current_level() is not None:
        return True
    if torch.autograd.forward_ad._current_level >= 0:
        return True
    if torch.is_grad_enabled():
        for t in tensors:
            if t.requires_grad:
                return True
    return False


def _dense(tensor, dtype: str):
    tensor = tensor.detach()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if dtype == "key":
        return tensor.view(torch.uint64)
    return tensor


class _Apply(torch.autograd.Function):
    """Applies a program. What it derives is another program, applied by it."""

    @staticmethod
    def forward(program, *tensors):
        return program.run(tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        program, *tensors = inputs
        ctx.program = program
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        discrete = [t for t, d in zip(output, program.output_dtypes)
                    if not is_inexact(d)]
        if discrete:
            ctx.mark_non_differentiable(*discrete)

    @staticmethod
    def backward(ctx, *cotangents):
        program, tensors = ctx.program, ctx.saved_tensors
        active = tuple(bool(need) and is_inexact(d) for need, d in
                       zip(ctx.needs_input_grad[1:], program.input_dtypes))
        if not any(active) or all(c is None for c in cotangents):
            return (None,) * (1 + len(tensors))
        given = []
        shapes = None
        for k, (c, dtype) in enumerate(zip(cotangents, program.output_dtypes)):
            if not is_inexact(dtype):
                continue
            if c is None:
                shapes = shapes or program.fake(tensors)
                c = torch.zeros_like(shapes[k])
            given.append(c)
        results = iter(program.vjp(active)(*tensors, *given))
        return (None, *(next(results) if a else None for a in active))

    @staticmethod
    def jvp(ctx, _, *tangents):
        program, tensors = ctx.program, ctx.saved_tensors
        active = tuple(t is not None and is_inexact(d) for t, d in
                       zip(tangents, program.input_dtypes))
        if not any(active):
            return (None,) * len(program.output_dtypes)
        derived, has = program.jvp(active)
        given = [t for t, a in zip(tangents, active) if a]
        results = iter(derived(*tensors, *given) if any(has) else ())
        empty = None
        answer = []
        for k, (h, dtype) in enumerate(zip(has, program.output_dtypes)):
            if h:
                answer.append(next(results))
            elif is_inexact(dtype):
                empty = empty or program.fake(tensors)
                answer.append(torch.zeros_like(empty[k]))
            else:
                answer.append(None)
        return tuple(answer)

    @staticmethod
    def vmap(info, in_dims, program, *tensors):
        in_axes = tuple(in_dims[1:])
        if not any(a is not None for a in in_axes):
            return _Apply.apply(program, *tensors), \
                (None,) * len(program.output_dtypes)
        batched = program.vmap(in_axes)
        return batched(*tensors), (0,) * len(program.output_dtypes)
