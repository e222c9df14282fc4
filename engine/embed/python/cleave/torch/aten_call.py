"""Calls of aten ops as printed graphs: the arguments of a dispatcher call
become the inputs and attributes of the `aten` rule, its graph becomes torch
calls.

    call = AtenCall(rules, torch.ops.aten.huber_loss.default)
    call(x, target, reduction=1)               # torch ops, no huber_loss
    grad = AtenGradient(rules, torch.ops.aten.huber_loss_backward.default,
                        "huber_loss", ("self",))
    grad(dy, x, target, 1, 1.0)
"""

from __future__ import annotations

import torch

from cleave.torch.call import Op
from cleave.torch.program import Program, is_inexact


def rule_name(op) -> str:
    """`aten.add.Tensor`; a default overload has no name."""
    schema = op._schema
    name = schema.name.replace("::", ".")
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def bind_schema(op, args, kwargs) -> dict:
    """The arguments by the schema's names, defaults included."""
    bound = {}
    for k, argument in enumerate(op._schema.arguments):
        if k < len(args):
            bound[argument.name] = args[k]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            bound[argument.name] = argument.default_value
    return bound


class AtenCall:
    """An aten op by our rule for it, as torch calls. `fixed` are attributes of
    the rule that the op has no argument for."""

    def __init__(self, rules, op, rule: str | None = None, fixed=None):
        self.op = op
        self.fixed = fixed or {}
        self.rule = Op(rules, rule or rule_name(op), "inline")
        self.names = [i["name"] for i in self.rule.inputs]
        self.mutated = [r["name"] for r in self.rule.about["results"]
                        if r.get("mutated")]

    def values(self, bound: dict):
        """The rule's inputs and attributes of bound arguments."""
        values = []
        for about in self.rule.inputs:
            value = bound.get(about["name"])
            values.append(list(value) if about["variadic"] else value)
        attributes = {name: bound[name] for name in self.rule.attributes
                      if bound.get(name) is not None}
        return self.rule.tensors(values), attributes

    def __call__(self, *args, **kwargs):
        bound = {**self.fixed, **bind_schema(self.op, args, kwargs)}
        values, attributes = self.values(bound)
        program = self.rule.program(values, attributes)
        results = list(program.printed()(*_flat(values)))
        # The new values of arguments stand last.
        for name in reversed(self.mutated):
            value = results.pop()
            if bound[name] is not None:
                bound[name].copy_(value)
        if self.rule.gives_list:
            return results
        return results[0] if len(results) == 1 else tuple(results)


def _flat(values) -> list:
    return [t for v in values for t in (v if isinstance(v, list) else (v,))
            if t is not None]


class AtenGradient:
    """A `*_backward` op of PyTorch as the reverse mode of our rule for what it
    is the derivative of.

    `wrt` names the inputs of the forward op whose cotangents the op returns;
    `cotangents` the arguments that are cotangents, None for one that is zero;
    `renamed` the forward op's names of arguments that are called otherwise.
    """

    def __init__(self, rules, op, forward: str, wrt: tuple,
                 cotangents: tuple = ("grad_output",), renamed=None):
        self.op = op
        self.wrt = wrt
        self.cotangents = cotangents
        self.renamed = renamed or {}
        self.rule = Op(rules, f"aten.{forward}", "inline")
        self.programs: dict = {}

    def __call__(self, *args, **kwargs):
        bound = bind_schema(self.op, args, kwargs)
        for theirs, ours in self.renamed.items():
            if theirs in bound:
                bound[ours] = bound[theirs]
        values = self.rule.tensors(
            [bound.get(i["name"]) for i in self.rule.inputs])
        attributes = {name: bound[name] for name in self.rule.attributes
                      if bound.get(name) is not None}
        forward = self.rule.program(values, attributes)
        names = [i["name"] for i, v in zip(self.rule.inputs, values)
                 if v is not None]
        mask = bound.get("output_mask")
        wanted = [w for k, w in enumerate(self.wrt)
                  if mask is None or mask[k]]
        active = tuple(n in wanted for n in names)
        program = forward.vjp(active)
        tensors = [v for v in values if v is not None]
        tensors += self._cotangents(forward, bound, tensors)
        results = dict(zip([n for n, a in zip(names, active) if a],
                           program.printed()(*tensors)))
        answer = tuple(results.get(w) for w in self.wrt)
        return answer[0] if len(answer) == 1 else answer

    def _cotangents(self, forward: Program, bound: dict, tensors) -> list:
        given, shapes = [], None
        for k, dtype in enumerate(forward.output_dtypes):
            if not is_inexact(dtype):
                continue
            name = self.cotangents[k] if k < len(self.cotangents) else None
            if name is not None:
                given.append(bound[name])
                continue
            shapes = shapes or forward.fake(tensors)
            given.append(torch.zeros_like(shapes[k]))
        return given
