"""Every op of a rule set as a PyTorch function.

    ns = register()
    y = ns.softmax(x, axis=-1)
    y = torch.ops.cleave.softmax(x, axis=-1)
"""

from __future__ import annotations

import torch

from cleave.torch.call import Op
from cleave.torch.program import Program, needs_function
from cleave.torch.schema import schema_of


class Namespace:
    """The ops of a rule set: `ns.OP(x, attr=..)`, `ns["aten.gelu"](x)`, and its
    declared functions, `ns.fn.NAME(x)`."""

    def __init__(self, rules, mode: str):
        # All are made here: a compiler that meets one takes it as it is.
        self._ops = {}
        for kind in ("op", "aten", "onnx"):
            for name in rules.names(kind):
                function = self._ops[name] = _traced(rules, name, mode)
                if kind == "op":
                    self.__dict__[name] = function
        self._describe = rules.describe
        self.fn = _Functions(rules, mode)

    def __getitem__(self, name: str):
        function = self._ops.get(name)
        if function is None:
            # The rules' own error names the closest op.
            self._describe(name)
            raise KeyError(name)
        return function

    def __getattr__(self, name: str):
        raise AttributeError(f"the rules have no op `{name}`")

    def __dir__(self):
        return sorted([*self.__dict__, "fn"])


class _Functions:
    """The declared functions of a rule set, as attributes."""

    def __init__(self, rules, mode: str):
        for name in rules.names("fn"):
            self.__dict__[name] = _traced_function(rules, name, mode)


def _traced_function(rules, name: str, mode: str):
    program = None

    def function(*tensors):
        nonlocal program
        if program is None:
            program = Program.of(rules.function(name), mode)
        results = program(*tensors)
        return results[0] if len(results) == 1 else tuple(results)

    function.__name__ = name
    return _allow_in_graph(function)


def _traced(rules, name: str, mode: str):
    op = None

    def made() -> Op:
        nonlocal op
        if op is None:
            op = Op(rules, name, mode)
        return op

    def function(*args, **kwargs):
        return made()(*args, **kwargs)

    function.__name__ = name
    function.made = made
    return _allow_in_graph(function)


def _allow_in_graph(function):
    """TorchDynamo takes the function as one node and does not look inside."""
    return torch.compiler.allow_in_graph(function)


_REGISTERED: dict = {}
_LIBRARIES: list = []


def register(rules=None, mode: str = "kernel") -> Namespace:
    """The ops of `rules`, the shipped ones unless given, as functions of
    tensors and as `torch.ops.cleave.OP`.

    `mode` says what computes them: "kernel" is compiled code of the engine, one
    opaque node of a traced program; "inline" is torch calls, which a compiler
    fuses with what stands around them, on any device.

    A second rule set with an op of the same name takes its place in
    torch.ops.cleave, where it has the same arguments.
    """
    if mode not in ("kernel", "inline"):
        raise ValueError(f"mode is \"kernel\" or \"inline\", not {mode!r}")
    import cleave
    if rules is None:
        rules = cleave.load()
    key = (id(rules), mode)
    if key not in _REGISTERED:
        import cleave.torch.opaque  # defines cleave::call
        namespace = Namespace(rules, mode)
        _define_ops(namespace, rules)
        _REGISTERED[key] = namespace
    return _REGISTERED[key]


_DEFINED: dict = {}


def _define_ops(namespace: Namespace, rules) -> None:
    library = torch.library.Library("cleave", "FRAGMENT")
    _LIBRARIES.append(library)
    for name in rules.names("op"):
        schema = schema_of(rules.describe(name))
        if schema is None:
            continue
        known = _DEFINED.get(name)
        if known is None:
            library.define(schema)
            _DEFINED[name] = holder = [schema, namespace]
            library.impl(name, _composite(name, holder),
                         "CompositeImplicitAutograd")
        elif known[0] == schema:
            known[1] = namespace


def _composite(name: str, holder: list):
    """The op in the dispatcher. Below a transform it is printed torch calls,
    which each transform takes apart; else it is the kernel."""
    def function(*args, **kwargs):
        op = holder[1][name].made()
        program, flat = op.prepare(args, kwargs)
        if needs_function(flat):
            results = program.printed()(*flat)
        else:
            results = program.run(flat)
        return op.wrap(results)
    return function
