"""Gives PyTorch's own ops the transforms that they lack.

    report = patch_aten()
    torch.func.jvp(lambda x: multi_margin_loss(x, target), (x,), (dx,))
    unpatch()

Entries of the dispatcher make an op the torch calls that its rule expands to,
which PyTorch transforms. They stand at keys that a plain call does not have:

- Under vmap (FuncTorchBatchedDecomposition) it is an op without a batching
  rule.
- AutocastIPU, the key of a device that PyTorch no longer has, is one that a
  thread gets while it is in forward mode or differentiates a derivative. Of the
  keys that no tensor has, it alone reaches ops within the transforms of
  torch.func. There it is an op with a tangent, or one that lacks the second
  derivative.
- FuncTorchDynamicLayerFrontMode is where each transform of torch.func begins.
  There it is an op that PyTorch takes apart into some that lack a transform.
- The polynomials alone have one at AutogradCPU: PyTorch takes their derivative
  for zero, and nothing tells their calls from those that need none.
"""

from __future__ import annotations

import fnmatch
import threading

import torch
from torch._C import DispatchKey, _functorch
from torch._functorch import predispatch
from torch.autograd import forward_ad

from cleave.torch.aten_call import AtenCall, AtenGradient
from cleave.torch.targets import TARGETS, Target

_BATCH = "FuncTorchBatchedDecomposition"
_AUTOGRAD = "AutogradCPU"
_FRONT = "FuncTorchDynamicLayerFrontMode"
_DERIVING = "AutocastIPU"
_DERIVING_KEY = torch._C._parse_dispatch_key(_DERIVING)
_BELOW = torch._C._dispatch_keyset_full_after(_DERIVING_KEY)


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
        # Kernels that the dispatcher calls live as long as its entries.
        self.kernels: list = []


_lock = threading.RLock()
_active: _Patch | None = None
_fallback: torch.library.Library | None = None
_enter_dual_level = predispatch._enter_dual_level_impl
_exit_dual_level = predispatch._exit_dual_level_impl
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


def _wrapped_with_gradient(tensor) -> bool:
    return tensor.requires_grad and _is_wrapped(tensor)


def _deriving_kernel(op, call, target: Target):
    def leaves(args, kwargs) -> bool:
        values = (*args, *kwargs.values())
        leave = _has_tangent(values) or (
            target.second and torch.is_grad_enabled()
            and _any_tensor(values, _requires_grad))
        return leave and (target.when is None or target.when(args, kwargs))

    def kernel(keyset, *args, **kwargs):
        # Without the key of autograd, that is off, or belongs to another level.
        # Autocast casts first, and calls the op again.
        if not keyset.has(DispatchKey.AutogradCPU) \
                or keyset.has(DispatchKey.AutocastCPU) \
                or not leaves(args, kwargs):
            return op.redispatch(keyset & _BELOW, *args, **kwargs)
        if not target.updates:
            return call(*args, **kwargs)
        theirs = op.redispatch(keyset & _BELOW, *args, **kwargs)
        ours = call(*args, **kwargs)
        return (*ours, *theirs[len(ours):])
    return kernel


def _front_kernel(original, call, target: Target):
    needs = _is_wrapped if target.composite else _wrapped_with_gradient

    def kernel(keyset, *args, **kwargs):
        if _any_tensor((*args, *kwargs.values()), needs) and \
                (target.when is None or target.when(args, kwargs)):
            return call(*args, **kwargs)
        return original.call_boxed(keyset, *args, **kwargs)
    return kernel


def _autograd_kernel(original, call, target: Target):
    call_boxed, grad_enabled = original.call_boxed, torch.is_grad_enabled

    def kernel(keyset, x, n):
        if x.requires_grad and grad_enabled():
            return call(x, n)
        return call_boxed(keyset, x, n)
    return kernel


def _qualified(op) -> str:
    schema = op._schema
    name = schema.name.partition("::")[2]
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def _overload(target: Target):
    packet, _, overload = target.name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _replacing(twin):
    def call(self, *args, **kwargs):
        return self.copy_(twin(self, *args, **kwargs))
    return call


def _make_call(rules, op, target: Target):
    if target.own:
        kernel = torch.library.get_kernel(op, _AUTOGRAD)
        return kernel.call_boxed
    if target.twin is not None:
        return _replacing(getattr(torch.ops.aten, target.twin))
    if target.gradient is None:
        return AtenCall(rules, op, target.rule, target.fixed)
    return AtenGradient(rules, op, *target.gradient)


def _install(patch: _Patch, op, call, target: Target) -> None:
    """The entries where derivatives are made."""
    def entry(make, key: str) -> None:
        original = torch.library.get_kernel(op, key)
        patch.kernels.append(original)
        patch.library.impl(_qualified(op), make(original, call, target), key,
                           with_keyset=True, allow_override=True)

    patch.library.impl(_qualified(op), _deriving_kernel(op, call, target),
                       _DERIVING, with_keyset=True)
    if target.plain:
        entry(_autograd_kernel, _AUTOGRAD)
    elif target.composite or target.second:
        entry(_front_kernel, _FRONT)


class _Depth(threading.local):
    """How many forward levels and derivatives of derivatives a thread is in."""

    depth = 0

    def change(self, by: int) -> None:
        """Gives the thread the key, or takes it."""
        self.depth = max(self.depth + by, 0)
        on = self.depth > 0
        torch._C._dispatch_tls_set_dispatch_key_excluded(_DERIVING_KEY, not on)
        torch._C._dispatch_tls_set_dispatch_key_included(_DERIVING_KEY, on)


_deriving = _Depth()


def _entering():
    level = _enter_dual_level()
    _deriving.change(1)
    return level


def _exiting(*, level):
    _exit_dual_level(level=level)
    _deriving.change(-1)


def _running_backward(tensors, grads=None, retain_graph=False,
                      create_graph=False, *args, **kwargs):
    arguments = (tensors, grads, retain_graph, create_graph, *args)
    if not create_graph:
        return _run_backward(*arguments, **kwargs)
    _deriving.change(1)
    try:
        return _run_backward(*arguments, **kwargs)
    finally:
        _deriving.change(-1)


def _hook(on: bool) -> None:
    """Threads get the key, or do not, where they enter and leave."""
    global _fallback
    if on and _fallback is None:
        # Ops without an entry are not to meet the key. This stays.
        _fallback = torch.library.Library("_", "IMPL")
        _fallback.fallback(torch.library.fallthrough_kernel, _DERIVING)
    predispatch._enter_dual_level_impl = _entering if on else _enter_dual_level
    predispatch._exit_dual_level_impl = _exiting if on else _exit_dual_level
    torch.autograd._engine_run_backward = \
        _running_backward if on else _run_backward
    inside = on and forward_ad._current_level >= 0
    _deriving.change(int(inside) - _deriving.depth)


def patch_aten(ops=None, rules=None) -> Report:
    """Gives aten ops the transforms that PyTorch lacks, by our rules for them.

    `ops` are names or patterns (`"renorm"`, `["huber_loss*"]`); all that are
    known to lack something unless given. `rules` are the shipped ones unless
    given. A second call replaces the first. The report
    tells what each op got, and why the others got nothing.
    """
    global _active
    import cleave
    if rules is None:
        rules = cleave.load()
    patterns = None if ops is None else \
        [ops] if isinstance(ops, str) else list(ops)
    report = Report()
    with _lock:
        unpatch()
        patch = _Patch()
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
                _install(patch, op, call, target)
                what.append(target.what)
            report.given[target.name] = ", ".join(what)
        for name in patterns or ():
            if not any(fnmatch.fnmatch(t.name, name) for t in TARGETS):
                report.refused[name] = "no rule, or nothing that it lacks"
        _active = patch
        _hook(True)
    return report


def unpatch() -> None:
    """Gives PyTorch its own entries back."""
    global _active
    with _lock:
        if _active is not None:
            _active.library._destroy()
            _active = None
        _hook(False)
