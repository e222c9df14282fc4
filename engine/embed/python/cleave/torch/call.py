"""Calls of ops with tensors and Python values: which of them are inputs, what
types they have, and the program for those types.

    op = Op(rules, "soft_argmax")
    op(x, axis=-1, beta=2.0)
"""

from __future__ import annotations

import torch
from torch._C import _functorch

from cleave.torch.program import Program
from cleave.torch.signature import Sizes, attribute_text


class Op:
    """An op of a rule set as a function of tensors."""

    def __init__(self, rules, name: str, mode: str = "kernel"):
        self.rules = rules
        self.name = name
        self.mode = mode
        self.about = rules.describe(name)
        self.inputs = self.about["inputs"]
        self.attributes = {a["name"]: a for a in self.about["attributes"]}
        self.results = len(self.about["results"])
        self.gives_list = self.about["result_list"]
        self.keys = [str(i.get("type", "")).startswith("key")
                     for i in self.inputs]
        self.programs: dict = {}
        self.kernels: dict = {}
        self.autocast = _autocast_policy(name)
        self.__doc__ = self.about.get("doc")

    # -- arguments ----------------------------------------------------------

    def bind(self, args, kwargs):
        """One entry per declared input (a tensor, None, or a list), and the
        attributes that are given."""
        if len(args) > len(self.inputs):
            # Attributes follow the inputs, as the signature has them.
            names = list(self.attributes)
            extra = args[len(self.inputs):]
            if len(extra) > len(names):
                raise TypeError(f"{self.name} takes at most "
                                f"{len(self.inputs) + len(names)} arguments")
            kwargs = {**dict(zip(names, extra)), **kwargs}
            args = args[:len(self.inputs)]
        given = list(args)
        attributes = {}
        names = {i["name"]: k for k, i in enumerate(self.inputs)}
        values = given + [_MISSING] * (len(self.inputs) - len(given))
        for name, value in kwargs.items():
            if name in names:
                if values[names[name]] is not _MISSING:
                    raise TypeError(f"{self.name}: `{name}` is given twice")
                values[names[name]] = value
            elif name in self.attributes:
                attributes[name] = value
            else:
                raise TypeError(f"{self.name} has no argument `{name}`")
        for k, (value, about) in enumerate(zip(values, self.inputs)):
            if value is _MISSING:
                if not about["optional"] and not about["variadic"]:
                    raise TypeError(f"{self.name} misses `{about['name']}`")
                values[k] = [] if about["variadic"] else None
        return values, attributes

    def tensors(self, values):
        """The inputs with Python numbers as tensors: of the others' dtype, or of
        one that holds the number (2.5 beside integers)."""
        first = next((t for v in values for t in
                      (v if isinstance(v, (list, tuple)) else (v,))
                      if isinstance(t, torch.Tensor)), None)

        def one(value):
            if value is None or isinstance(value, torch.Tensor):
                return value
            if first is None:
                return torch.as_tensor(value)
            return torch.as_tensor(value, dtype=torch.result_type(first, value),
                                   device=first.device)

        return [[one(t) for t in v] if isinstance(v, (list, tuple)) else one(v)
                for v in values]

    # -- programs -----------------------------------------------------------

    def attribute_texts(self, attributes, sizes: Sizes) -> str:
        """The attributes as the text of a graph."""
        return ", ".join(
            f"{name}: "
            f"{attribute_text(v, self.attributes[name]['type'], sizes)}"
            for name, v in attributes.items() if v is not None)

    def graph(self, types, attributes: str):
        """One call as a graph."""
        return self.rules.call_graph(
            self.name, [list(t) if isinstance(t, tuple) else t for t in types],
            attributes)

    def program(self, values, attributes) -> Program:
        """The program for these tensors' types: by variables for the sizes, or,
        where the op asks for numbers, by numbers."""
        sizes = Sizes()
        types = self._types(values, sizes)
        key = (types, self.attribute_texts(attributes, sizes))
        entry = self.programs.get(key)
        if entry is None:
            entry = self.programs[key] = self._make(key, sizes)
        program, holds = entry
        if program is not None and (holds is None or holds(sizes)):
            return program
        sizes = Sizes(numbers=True)
        types = self._types(values, sizes)
        key = (types, self.attribute_texts(attributes, sizes))
        entry = self.programs.get(key)
        if entry is None:
            program = Program.of(self.graph(*key), self.mode)
            entry = self.programs[key] = (program, None)
        return entry[0]

    def _make(self, key, sizes: Sizes):
        """The program for types with variables, and whether its guards hold of
        sizes; no program where the op asks for numbers."""
        import cleave
        try:
            graph = self.graph(*key)
        except cleave.Error:
            if not sizes.variables:
                raise
            return None, None
        program = Program.of(graph, self.mode)
        # Ops that are called within choose branches by sizes, too.
        guards = graph.expand().guards
        return program, guards_hold(guards) if guards else None

    def _types(self, values, sizes: Sizes):
        def one(tensor, is_key):
            return None if tensor is None else \
                sizes.type(tensor, "key" if is_key else None)

        return tuple(tuple(one(t, k) for t in v) if isinstance(v, list)
                     else one(v, k) for v, k in zip(values, self.keys))

    # -- the call -----------------------------------------------------------

    def prepare(self, args, kwargs):
        """The program of a call, and its tensors."""
        values, attributes = self.bind(args, kwargs)
        values = self.tensors(values)
        if self.autocast is not None:
            values = self.autocast(values)
        program = self.program(values, attributes)
        flat = [t for v in values for t in (v if isinstance(v, list) else (v,))
                if t is not None]
        return program, flat

    def __call__(self, *args, **kwargs):
        key = _plain_key(args, kwargs)
        kernel = None if key is None else self.kernels.get(key)
        if kernel is not None:
            results = kernel(*args)
        else:
            program, flat = self.prepare(args, kwargs)
            results = program(*flat)
            if key is not None and self.mode == "kernel" \
                    and not any(self.keys):
                self._keep(key, program)
        return self.wrap(results)

    def wrap(self, results):
        """The results of a program as the op's caller gets them."""
        if self.gives_list:
            return list(results)
        return results[0] if self.results == 1 else tuple(results)

    def _keep(self, key: tuple, program: Program) -> None:
        """Other calls of that key are calls of the program's kernel."""
        if len(self.kernels) >= _MOST_KERNELS:
            self.kernels.clear()
        if program.kernel is not None:
            self.kernels[key] = program.kernel


# Per op. A program whose shapes never repeat would keep them all.
_MOST_KERNELS = 1024
_REAL = frozenset((torch.float32, torch.float64, torch.float16, torch.bfloat16,
                   torch.int64, torch.int32, torch.int16, torch.int8,
                   torch.uint8, torch.bool))
_EXACT = (int, str, bool)


def _plain_key(args, kwargs) -> tuple | None:
    """What tells such calls apart, of a call that nothing looks on: no
    transform, gradient, mode or autocast, tensors with data on the CPU, and
    attributes that are single. None for other calls."""
    if _functorch.maybe_current_level() is not None \
            or torch.autograd.forward_ad._current_level >= 0 \
            or torch._C._len_torch_dispatch_stack() \
            or torch._C._is_any_autocast_enabled():
        return None
    with_gradients = torch.is_grad_enabled()
    key = []
    for t in args:
        if type(t) is not torch.Tensor or not t.is_cpu \
                or with_gradients and t.requires_grad:
            return None
        dtype = t.dtype
        if dtype not in _REAL or t.is_neg():
            return None
        key.append(dtype)
        key.append(t.shape)
    for name, value in kwargs.items():
        kind = type(value)
        if kind not in _EXACT:
            return None
        # True and 1 are one key, and two attributes.
        key.append((name, kind, value))
    return tuple(key)


_MISSING = object()


def guards_hold(guards):
    """A function of Sizes: whether the conditions hold of numbers; not where
    one divides by 0. What is symbolic is checked where the program runs."""
    texts = [g.partition(": \"")[0] for g in guards]
    compiled = [compile(t, "<guard>", "eval") for t in texts]

    def holds(sizes: Sizes) -> bool:
        names = {name: extent for extent, name in sizes.variables.items()}
        if any(isinstance(extent, str) for extent in names.values()):
            return True
        names.update(min=min, max=max)
        try:
            return all(eval(c, {"__builtins__": {}}, names)  # noqa: S307
                       for c in compiled)
        except ZeroDivisionError:
            return False

    return holds


# Ops whose autocast is PyTorch's for what they stand for: contractions run in
# the narrow dtype, what sums or exponentiates in f32.
_NARROW_OPS = ("matmul", "linear", "bilinear", "convolution", "einsum",
               "scaled_dot_product_attention", "lstm", "lstm_cell")
_WIDE_OPS = ("softmax", "log_softmax", "layer_norm", "rms_norm", "group_norm",
             "batch_norm", "cumsum", "cumprod", "logcumsumexp", "logsumexp",
             "sum", "prod", "mean", "var_mean", "std", "vector_norm", "cdist",
             "cosine_similarity", "lp_normalize", "local_response_norm",
             "quantile", "grid_sampler_2d")


def _cast(values, dtype):
    def one(t):
        floats = (torch.float16, torch.bfloat16, torch.float32)
        return t.to(dtype) if t is not None and t.dtype in floats else t
    return [[one(t) for t in v] if isinstance(v, list) else one(v)
            for v in values]


def _autocast_policy(name: str):
    """What autocast makes of an op's inputs: a function of them."""
    short = name.partition(".")[2] or name

    def device_of(values):
        for v in values:
            for t in v if isinstance(v, list) else (v,):
                if t is not None:
                    return t.device.type
        return "cpu"

    def cast(values):
        if not torch._C._is_any_autocast_enabled():
            return values
        device = device_of(values)
        if not torch.is_autocast_enabled(device):
            return values
        if short in _NARROW_OPS:
            return _cast(values, torch.get_autocast_dtype(device))
        if short in _WIDE_OPS or short.endswith("_loss") \
                or "cross_entropy" in short:
            return _cast(values, torch.float32)
        floats = {t.dtype for v in values
                  for t in (v if isinstance(v, list) else (v,))
                  if t is not None and t.dtype.is_floating_point}
        if len(floats) > 1:
            return _cast(values, torch.float32)
        return values

    return cast
