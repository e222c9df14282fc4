"""Counts the operators of PyTorch's own database (OpInfo) that lack a
transform, before and after cleave.torch.patch_aten().

    python torch_opinfo.py                         # both, and what remains
    python torch_opinfo.py --ops 'nn.functional.*' --seconds 20
    python torch_opinfo.py --before                # PyTorch alone

An op has a gap if one of these raises an error on its first sample that has
elements, on the CPU in float32 (or, where it takes no floats, in a dtype that
it takes): vmap over the first tensor with PyTorch's slow fallback switched off;
jvp; vjp; and the pairs jvp of vjp, vmap of vjp, vmap of jvp. Derivatives are
taken in the arguments that OpInfo declares differentiable, of ops that it says
to support autograd. `--wrong` also counts a batch that differs from single
calls.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import signal
import sys
import time
import warnings

import torch
from torch.func import jvp, vjp, vmap
from torch.utils._pytree import tree_flatten, tree_unflatten

TRANSFORMS = ("vmap", "jvp", "vjp", "jvp(vjp)", "vmap(vjp)", "vmap(jvp)")
_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64,
           torch.float16, torch.bfloat16, torch.uint8)


class OutOfTime(Exception):
    """An op took longer than it may."""


def _alarm(*_):
    raise OutOfTime("out of time")


class Case:
    """One sample of an op as a function of its tensors."""

    def __init__(self, info, sample):
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [i for i, v in enumerate(leaves)
                       if isinstance(v, torch.Tensor)]
        self.tensors = [leaves[i].detach() for i in self.places]
        self.active = [k for k, i in enumerate(self.places)
                       if leaves[i].requires_grad]
        self._leaves, self._spec, self._op = leaves, spec, info.op
        # Neither tells the same twice.
        self.random = any(word in info.name for word in ("normal", "empty"))

    def __call__(self, *tensors):
        leaves = list(self._leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        first, args, kwargs = tree_unflatten(leaves, self._spec)
        outputs, _ = tree_flatten(self._op(first, *args, **kwargs))
        return tuple(o for o in outputs if isinstance(o, torch.Tensor))

    def of_active(self, *active):
        """The inexact outputs as a function of the differentiable inputs."""
        tensors = list(self.tensors)
        for k, tensor in zip(self.active, active):
            tensors[k] = tensor
        return tuple(o for o in self(*tensors)
                     if o.is_floating_point() or o.is_complex())

    def active_tensors(self):
        """The differentiable inputs."""
        return tuple(self.tensors[k] for k in self.active)


def case_of(info):
    """The first sample with elements, None where there is none."""
    supported = info.supported_dtypes("cpu")
    dtype = next((d for d in _DTYPES if d in supported), None)
    if dtype is None:
        return None
    differentiable = info.supports_autograd and (dtype.is_floating_point
                                                 or dtype.is_complex)
    torch.manual_seed(0)
    for sample in info.sample_inputs("cpu", dtype,
                                     requires_grad=differentiable):
        case = Case(info, sample)
        if case.tensors and all(t.numel() for t in case.tensors):
            return case
    return None


def _ones(tensors):
    return tuple(torch.ones_like(t) for t in tensors)


def _pair(tensor):
    return torch.stack([tensor, tensor])


def _run_vmap(case, compare):
    axes = (0,) + (None,) * (len(case.tensors) - 1)
    first = _pair(case.tensors[0])
    batched = vmap(case, in_dims=axes, randomness="different")(
        first, *case.tensors[1:])
    if compare and not case.random:
        for one, many in zip(case(*case.tensors), batched):
            torch.testing.assert_close(many[0], one, equal_nan=True)


def _run_jvp(case, _):
    x = case.active_tensors()
    jvp(case.of_active, x, _ones(x))


def _run_vjp(case, _):
    y, pull = vjp(case.of_active, *case.active_tensors())
    pull(_ones(y))


def _gradient(case):
    def gradient(*x):
        y, pull = vjp(case.of_active, *x)
        return tuple(g for g in pull(_ones(y)))
    return gradient


def _run_jvp_vjp(case, _):
    x = case.active_tensors()
    jvp(_gradient(case), x, _ones(x))


def _run_vmap_vjp(case, _):
    x = case.active_tensors()
    vmap(_gradient(case), in_dims=(0,) + (None,) * (len(x) - 1),
         randomness="different")(_pair(x[0]), *x[1:])


def _run_vmap_jvp(case, _):
    x = case.active_tensors()

    def tangent(*x):
        return jvp(case.of_active, x, _ones(x))

    vmap(tangent, in_dims=(0,) + (None,) * (len(x) - 1),
         randomness="different")(_pair(x[0]), *x[1:])


RUNS = dict(zip(TRANSFORMS, (_run_vmap, _run_jvp, _run_vjp, _run_jvp_vjp,
                             _run_vmap_vjp, _run_vmap_jvp)))


def probe(info, seconds: int, compare: bool = False) -> dict | None:
    """{transform: "" or why it fails} of an op, None where it has no sample."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(seconds)
    try:
        case = case_of(info)
        if case is None:
            return None
        result = {}
        for name, run in RUNS.items():
            if name != "vmap" and not case.active:
                continue
            try:
                run(case, compare)
                result[name] = ""
            except OutOfTime:
                raise
            except Exception as error:  # noqa: BLE001  any failure is a gap
                lines = str(error).strip().splitlines() or [""]
                result[name] = f"{type(error).__name__}: {lines[0][:160]}"
        return result
    except OutOfTime:
        return {"vmap": "out of time"}
    except Exception as error:  # noqa: BLE001  no sample on this machine
        print(f"no sample of {name_of(info)}: {error!s:.100}", file=sys.stderr)
        return None
    finally:
        signal.alarm(0)


def name_of(info) -> str:
    """`nn.functional.glu`, with the variant behind the name."""
    return info.name + (f".{info.variant_test_name}"
                        if info.variant_test_name else "")


def survey(pattern: str, seconds: int, compare: bool = False) -> dict:
    """The results of all ops whose names match."""
    from torch.testing._internal.common_methods_invocations import op_db
    torch._C._functorch._set_vmap_fallback_enabled(False)
    results = {}
    try:
        for info in op_db:
            name = name_of(info)
            # Jiterator compiles for GPUs alone.
            if not name.startswith("jiterator") and any(
                    fnmatch.fnmatch(name, p) for p in pattern.split(",")):
                result = probe(info, seconds, compare)
                if result is not None:
                    results[name] = result
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)
    return results


def summary(results: dict) -> str:
    """The counts, as one line per transform."""
    fails = collections.Counter()
    ran = collections.Counter()
    for result in results.values():
        for name, why in result.items():
            ran[name] += 1
            fails[name] += bool(why)
    gaps = sum(any(r.values()) for r in results.values())
    lines = [f"{gaps} of {len(results)} ops have a gap"]
    lines += [f"  {name:10} {fails[name]:4} of {ran[name]} fail"
              for name in TRANSFORMS]
    return "\n".join(lines)


def main() -> int:
    """Prints the counts; the status is 1 where a transform was lost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--ops", default="*", help="names, with * and ?")
    parser.add_argument("--seconds", type=int, default=30, help="of one op")
    parser.add_argument("--before", action="store_true",
                        help="PyTorch alone, without the patch")
    parser.add_argument("--wrong", action="store_true",
                        help="compare batches with single calls")
    parser.add_argument("--json", help="a file for all results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start = time.time()
    before = survey(options.ops, options.seconds, options.wrong)
    print("before:", summary(before))
    after = before
    if not options.before:
        import cleave.torch
        report = cleave.torch.patch_aten()
        after = survey(options.ops, options.seconds, options.wrong)
        cleave.torch.unpatch()
        print("after:", summary(after))
        print(report)
    print(f"{time.time() - start:.0f} s; what remains:")
    lost = 0
    for name, result in after.items():
        for transform, why in result.items():
            if why:
                print(f"  {name}  {transform}  {why}")
            if why and not before.get(name, {}).get(transform):
                if not options.before:
                    lost += 1
                    print(f"  LOST {name} {transform}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"before": before, "after": after}, file, indent=1)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
