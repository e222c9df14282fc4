"""Gives PyTorch's own ops the transforms that they lack.

    report = patch_aten()
    torch.func.jvp(lambda x: multi_margin_loss(x, target), (x,), (dx,))
    unpatch()

Two entries of the dispatcher change, per op. Under vmap (the key
FuncTorchBatchedDecomposition) an op without a batching rule becomes the torch
calls that its rule expands to. Under autograd (AutogradCPU) the op stays
PyTorch's own, unless an input carries a forward tangent, or a second derivative
is asked for that PyTorch does not have: then it becomes these calls as well,
and PyTorch differentiates those. The entries under autograd are made when a
program first uses forward mode or differentiates a derivative, so that others
run exactly what they ran before; a few, whose first derivative PyTorch does not
have, are made at once.
"""

from __future__ import annotations

import fnmatch
import pathlib
import threading

import torch
from torch._C import _functorch
from torch.autograd import forward_ad

from cleave.torch.aten_call import AtenCall, AtenGradient
from cleave.torch.targets import TARGETS, Target

RULES = pathlib.Path(__file__).with_name("aten.rules")
_BATCH = "FuncTorchBatchedDecomposition"
_AUTOGRAD = "AutogradCPU"


class Report:
    """What patch_aten did. `given` maps an op to the transforms that it got,
    `refused` an op to the reason why it got none."""

    def __init__(self):
        self.given: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def __str__(self) -> str:
        lines = [f"{len(self.given)} ops of PyTorch have more transforms:"]
        lines += [f"  {name:52} {what}"
                  for name, what in sorted(self.given.items())]
        if self.refused:
            lines.append(f"{len(self.refused)} stay as they are:")
            lines += [f"  {name:52} {why}"
                      for name, why in sorted(self.refused.items())]
        return "\n".join(lines)

    __repr__ = __str__


class _Patch:
    def __init__(self):
        self.library = torch.library.Library("aten", "IMPL")
        self.pending: list = []
        # What the dispatcher calls lives as long as its entries.
        self.kernels: list = []


_lock = threading.RLock()
_active: _Patch | None = None
_enter_dual_level = forward_ad.enter_dual_level
_run_backward = torch.autograd._engine_run_backward


def _has(op, key: str) -> bool:
    name = op._schema.name
    if op._schema.overload_name:
        name += "." + op._schema.overload_name
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def _has_tangent(values) -> bool:
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_floating_point() or value.is_complex():
                if torch._VF._unpack_dual(value, level=0)[1] is not None:
                    return True
        elif isinstance(value, (list, tuple)) and _has_tangent(value):
            return True
    return False


def _any_tensor(values, test) -> bool:
    for value in values:
        if isinstance(value, torch.Tensor):
            if test(value):
                return True
        elif isinstance(value, (list, tuple)) and _any_tensor(value, test):
            return True
    return False


def _is_wrapped(tensor) -> bool:
    return _functorch.is_functorch_wrapped_tensor(tensor)


def _requires_grad(tensor) -> bool:
    return tensor.requires_grad


def _autograd_kernel(original, call, target: Target):
    """PyTorch's own kernel where it has the derivative that is asked for."""
    def kernel(keyset, *args, **kwargs):
        values = (*args, *kwargs.values())
        leave = forward_ad._current_level >= 0 and _has_tangent(values)
        if not leave and target.second and torch.is_grad_enabled():
            leave = _any_tensor(values, _requires_grad)
        if not leave and target.composite:
            leave = _any_tensor(values, _is_wrapped)
        if leave and (target.when is None or target.when(args, kwargs)):
            return call(*args, **kwargs)
        return original.call_boxed(keyset, *args, **kwargs)
    return kernel


def _qualified(op) -> str:
    schema = op._schema
    name = schema.name.partition("::")[2]
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def _overload(target: Target):
    packet, _, overload = target.name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _make_call(rules, op, target: Target):
    if target.own:
        kernel = torch.library.get_kernel(op, _AUTOGRAD)
        return kernel.call_boxed
    if target.gradient is None:
        return AtenCall(rules, op)
    return AtenGradient(rules, op, *target.gradient)


def _install_autograd(patch: _Patch) -> None:
    pending, patch.pending = patch.pending, []
    for op, call, target in pending:
        name = _qualified(op)
        original = torch.library.get_kernel(op, _AUTOGRAD)
        patch.kernels.append(original)
        patch.library.impl(name, _autograd_kernel(original, call, target),
                           _AUTOGRAD, with_keyset=True, allow_override=True)


def _entering(*args, **kwargs):
    with _lock:
        if _active is not None and _active.pending:
            _install_autograd(_active)
    return _enter_dual_level(*args, **kwargs)


def _running_backward(tensors, grads=None, retain_graph=False,
                      create_graph=False, *args, **kwargs):
    if create_graph:
        with _lock:
            if _active is not None and _active.pending:
                _install_autograd(_active)
    return _run_backward(tensors, grads, retain_graph, create_graph, *args,
                         **kwargs)


def patch_aten(ops=None, rules=None) -> Report:
    """Gives aten ops the transforms that PyTorch lacks, by our rules for them.

    `ops` are names or patterns (`"renorm"`, `["huber_loss*"]`); all that are
    known to lack something unless given. `rules` are the shipped ones and those
    of this package unless given. A second call replaces the first. The report
    tells what each op got, and why the others got nothing.
    """
    global _active
    import cleave
    if rules is None:
        rules = cleave.load(RULES)
    patterns = None if ops is None else \
        [ops] if isinstance(ops, str) else list(ops)
    report = Report()
    with _lock:
        unpatch()
        patch = _Patch()
        now = []
        for target in TARGETS:
            if patterns is not None and not any(
                    fnmatch.fnmatch(target.name, p) for p in patterns):
                continue
            try:
                op = _overload(target)
                call = _make_call(rules, op, target)
            except (AttributeError, cleave.NotFoundError) as error:
                report.refused[target.name] = str(error).splitlines()[0]
                continue
            what = []
            if target.batch and not _has(op, "FuncTorchBatched"):
                patch.library.impl(_qualified(op), call, _BATCH,
                                   with_keyset=target.own, allow_override=True)
                what.append("vmap, by PyTorch's own decomposition"
                            if target.own else "vmap")
            if target.own:
                patch.kernels.append(call)
            if target.autograd or target.second or target.composite:
                entry = (op, call, target)
                (now if target.at_once else patch.pending).append(entry)
                what.append(target.what)
            report.given[target.name] = ", ".join(what)
        for name in patterns or ():
            if not any(fnmatch.fnmatch(t.name, name) for t in TARGETS):
                report.refused[name] = "no rule, or nothing that it lacks"
        waiting, patch.pending = patch.pending, now
        _install_autograd(patch)
        patch.pending = waiting
        forward_ad.enter_dual_level = _entering
        torch.autograd._engine_run_backward = _running_backward
        _active = patch
        if forward_ad._current_level >= 0:
            _install_autograd(patch)
    return report


def unpatch() -> None:
    """Gives PyTorch its own entries back."""
    global _active
    with _lock:
        if _active is not None:
            _active.library._destroy()
            _active = None
        forward_ad.enter_dual_level = _enter_dual_level
        torch.autograd._engine_run_backward = _run_backward
