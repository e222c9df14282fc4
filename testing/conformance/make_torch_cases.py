"""Makes case suites of what PyTorch computes.

    tools/python --with torch,onnx testing/conformance/make_torch_cases.py \\
        calls.py -o testing/cases/aten

A file of calls has a function `calls()`, which returns
{"aten.NAME.OVERLOAD": [(arguments, keywords), ..]} (the overload `default` has
no name). Each op becomes NAME.json and NAME.safetensors: its results, and for
calls of f64 its derivatives along one direction and the batches of single
calls. A section that PyTorch does not compute is left out, as the last line
says. Options:

    -o DIR        where the suites go; what lies there is kept
    --ops GLOB    only these ops
    --most N      at most so many calls of each op (6)
    --skip OP     not this op; may be repeated
"""

import argparse
import fnmatch
import importlib.util
import json
import math
import pathlib
import sys
import warnings

import torch
from cleave.torch.signature import DTYPE_NAMES
from safetensors.torch import save_file

# The tolerances of results, by dtype: (rtol, atol).
_TOLERANCES = {
    torch.float64: (1e-7, 1e-9), torch.complex128: (1e-7, 1e-9),
    torch.float32: (2e-5, 1e-5), torch.complex64: (2e-5, 1e-5),
    torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 1e-2),
}
_DERIVATIVES = {"rtol": 1e-6, "atol": 1e-8}
# Ops whose arguments are results of one another.
_TOGETHER = {"aten.cumprod_backward", "aten._ctc_loss_backward",
             "aten._ctc_loss_backward.Tensor"}
# The dtypes that derivatives are taken of.
_KINDS = {torch.float64}


def op_of(name):
    """The overload that a name like "aten.add.Scalar" stands for."""
    parts = name.split(".")
    packet = getattr(torch.ops.aten, parts[1])
    return getattr(packet, parts[2] if len(parts) > 2 else "default")


def bound(op, arguments, keywords):
    """The arguments by the names of the op's schema."""
    names = [a.name for a in op._schema.arguments]
    call = dict(zip(names, arguments))
    call.update(keywords)
    return call


def is_tensors(value):
    return isinstance(value, (list, tuple)) and any(
        isinstance(x, torch.Tensor) for x in value)


def flat(result):
    """The tensors of a result, lists of them one by one; None is absent."""
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in flat(part)]
    return [result]


def inexact(result):
    """Whether a result has derivatives."""
    return result is not None and result.dtype in _KINDS


class Suite:
    """The cases of one op, and their tensors."""

    def __init__(self, name):
        self.name = name
        self.op = op_of(name)
        self.cases = []
        self.tensors = {}
        self.missing = []

    def keep(self, key, tensor):
        if tensor is None:
            return None
        if tensor.is_complex():
            raise TypeError("suites have no complex numbers")
        self.tensors[key] = tensor.detach().resolve_conj().resolve_neg() \
            .contiguous().clone()
        return {"tensor": key}

    def value(self, key, x):
        """An argument as a value of the format."""
        if isinstance(x, torch.Tensor):
            return self.keep(key, x)
        if x is None:
            return {"none": True}
        if isinstance(x, bool):
            return {"bool": x}
        if isinstance(x, int):
            return {"int": x}
        if isinstance(x, float):
            finite = math.isfinite(x)
            return {"float": x if finite else str(x)}
        if isinstance(x, str):
            return {"str": x}
        if isinstance(x, torch.dtype):
            return {"dtype": DTYPE_NAMES[x]}
        if isinstance(x, (list, tuple)):
            return {"list": [self.value(f"{key}.{i}", e)
                             for i, e in enumerate(x)]}
        raise TypeError(f"{self.name}: no value of the format: {x!r}")

    def run(self, call):
        return flat(self.op(**call))

    def add(self, arguments, keywords):
        """Adds the case of a call, or why there is none."""
        before = dict(self.tensors)
        try:
            self._add(arguments, keywords)
        except TypeError as error:
            self.tensors = before
            self.missing.append(f"{self.name}: {error}")

    def _add(self, arguments, keywords):
        number = len(self.cases)
        call = bound(self.op, arguments, keywords)
        results = self.run(call)
        tolerances = [_TOLERANCES.get(r.dtype, (0.0, 0.0)) for r in results
                      if r is not None]
        case = {
            "id": f"{self.name.removeprefix('aten.')}#{number}",
            "args": {n: self.value(f"{number}.{n}", x)
                     for n, x in call.items()},
            "outputs": [self.keep(f"{number}.out{i}", r)
                        for i, r in enumerate(results)],
            "rtol": max([t[0] for t in tolerances], default=0.0),
            "atol": max([t[1] for t in tolerances], default=0.0),
        }
        for section, make in (("jvp", self.jvp), ("vjp", self.vjp),
                              ("vmap", self.vmap)):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = make(number, call, results)
            except Exception as error:  # noqa: BLE001  PyTorch has none
                self.missing.append(f"{case['id']} {section}: "
                                    f"{str(error).splitlines()[0]}")
                continue
            if made is not None:
                case[section] = made
        if ("jvp" in case or "vjp" in case) and \
                not self._differentiates(number, call, results, case):
            case.pop("jvp", None)
            case.pop("vjp", None)
            self.missing.append(f"{case['id']} derivatives: PyTorch's are not "
                                "those of what it computes there")
        self.cases.append(case)

    def _differentiates(self, number, call, results, case):
        """Whether tangents are differences of results, and cotangents go with
        them: <Jv, w> = <v, J^T w>. At kinks and poles they are conventions."""
        active = self._active(call)
        if "jvp" in case:
            directions = {n: self._given(f"{number}.jvp.t.{n}", x)
                          for n, x in active.items()}
        else:
            directions = self._directions(active)

        def moved(step):
            return self.run({**call, **{
                n: x + step * directions[n] if isinstance(x, torch.Tensor)
                else [e + step * d for e, d in zip(x, directions[n])]
                for n, x in active.items()}})
        step = 1e-5
        slopes = [(high - low) / (2 * step) if inexact(r) else None
                  for r, high, low in zip(results, moved(step), moved(-step))]

        def near(a, b, size):
            return torch.all((a - b).abs() <= 1e-4 * (1 + size)).item()
        if "jvp" in case:
            for slope, kept in zip(slopes, case["jvp"]["outputs"]):
                if slope is None:
                    continue
                tangent = self.tensors[kept["tensor"]]
                if not near(tangent, slope, tangent.abs()):
                    return False
        if "vjp" in case:
            terms = [slope * self.tensors[kept["tensor"]]
                     for slope, kept in zip(slopes, case["vjp"]["cotangents"])
                     if slope is not None]
            for n, direction in directions.items():
                grads = self._given(f"{number}.vjp.g.{n}", active[n])
                terms += [-d * g for d, g in zip(flat(direction), flat(grads))]
            total = sum(t.sum() for t in terms)
            return near(total, torch.zeros(()), sum(t.abs().sum()
                                                    for t in terms))
        return True

    def _given(self, key, like):
        """The kept tensor, or the list of them, in the place of `like`."""
        if isinstance(like, torch.Tensor):
            return self.tensors[key]
        return [self.tensors[f"{key}.{i}"] for i in range(len(like))]

    def _active(self, call):
        """The arguments that derivatives are taken by."""
        active = {}
        for name, x in call.items():
            if isinstance(x, torch.Tensor) and x.dtype in _KINDS:
                active[name] = x
            elif is_tensors(x) and all(
                    isinstance(e, torch.Tensor) and e.dtype in _KINDS
                    for e in x):
                active[name] = x
        return active

    def _directions(self, active):
        """Tensors like those of `active`, drawn anew."""
        def draw(x):
            return torch.randn(x.shape, dtype=x.dtype)
        return {n: draw(x) if isinstance(x, torch.Tensor)
                else [draw(e) for e in x] for n, x in active.items()}

    def _lists(self, key, values):
        return {n: self.value(f"{key}.{n}", x) for n, x in values.items()}

    def jvp(self, number, call, results):
        active = self._active(call)
        if not active or not any(inexact(r) for r in results):
            return None
        tangents = self._directions(active)
        _, out = torch.func.jvp(
            lambda a: [r for r in self.run({**call, **a})
                       if inexact(r)],
            (active,), (tangents,))
        if not all(torch.isfinite(t).all() for t in out):
            return None
        kept = iter(out)
        return {
            "tangents": self._lists(f"{number}.jvp.t", tangents),
            "outputs": [self.keep(f"{number}.jvp.out{i}", next(kept))
                        if inexact(r) else None
                        for i, r in enumerate(results)],
            **_DERIVATIVES,
        }

    def vjp(self, number, call, results):
        active = self._active(call)
        if not active or not any(inexact(r) for r in results):
            return None
        cotangents = [torch.randn(r.shape, dtype=r.dtype)
                      if inexact(r) else None for r in results]
        _, pull = torch.func.vjp(
            lambda a: [r for r in self.run({**call, **a})
                       if inexact(r)], active)
        grads = pull([c for c in cotangents if c is not None])[0]
        if not all(torch.isfinite(g).all()
                   for g in flat(list(grads.values()))):
            return None
        return {
            "cotangents": [None if c is None
                           else self.keep(f"{number}.vjp.ct{i}", c)
                           for i, c in enumerate(cotangents)],
            "grads": self._lists(f"{number}.vjp.g", grads),
            **_DERIVATIVES,
        }

    def vmap(self, number, call, results):
        """Each tensor argument batched alone: three calls that differ."""
        made = []
        if self.name in _TOGETHER:
            return None
        for name, x in call.items():
            if not isinstance(x, torch.Tensor) or x.dim() == 0 \
                    or x.numel() == 0:
                continue
            # Both keep what an order, a domain or an index allows.
            if x.is_floating_point():
                examples = [x, x * 0.5, x * 0.75]
            else:
                examples = [x, x.flip(0), x.flip(x.dim() - 1)]
            outputs = [self.run({**call, name: e}) for e in examples]
            if any(a is None or a.shape != b.shape for o in outputs
                   for a, b in zip(o, outputs[0])):
                continue
            axis = x.dim() % 2
            batch = torch.stack(examples, dim=axis)
            key = f"{number}.vmap{len(made)}"
            made.append({
                "in_axes": {n: axis if n == name else None
                            for n, v in call.items()
                            if isinstance(v, torch.Tensor)},
                "args": {name: self.keep(f"{key}.{name}", batch)},
                "outputs": [self.keep(f"{key}.out{i}", torch.stack(parts))
                            for i, parts in enumerate(zip(*outputs))],
            })
        return made or None

    def write(self, folder):
        document = {"format": "cleave-cases/1", "op": self.name,
                    "source": f"torch {torch.__version__.split('+')[0]}",
                    "cases": self.cases}
        (folder / f"{self.name}.json").write_text(
            json.dumps(document, separators=(",", ":")) + "\n")
        save_file(self.tensors, folder / f"{self.name}.safetensors")


def some_of(calls, most):
    """At most so many, from all over the list."""
    if len(calls) <= most:
        return calls
    return [calls[i * len(calls) // most] for i in range(most)]


def calls_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    return module.calls()


def suite_of(name, calls, folder):
    """Writes the suite of an op. Whether there is one, what PyTorch does not
    compute, and the calls that it refuses."""
    suite, wrong = Suite(name), []
    torch.manual_seed(len(name))
    for arguments, keywords in calls:
        try:
            suite.add(arguments, keywords)
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{name}: {error}")
    if suite.cases:
        suite.write(folder)
    return bool(suite.cases), suite.missing, wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", dest="folder", type=pathlib.Path, required=True)
    parser.add_argument("--ops", default="*")
    parser.add_argument("--most", type=int, default=6)
    parser.add_argument("--skip", action="append", default=[])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    made, missing, wrong = 0, [], []
    for path in given.calls:
        for name, calls in calls_of(path).items():
            if any(a.alias_info is not None and a.alias_info.is_write
                   for a in op_of(name)._schema.arguments):
                missing.append(f"{name}: it writes to its arguments")
                continue
            if not fnmatch.fnmatch(name, given.ops) or name in given.skip \
                    or (given.folder / f"{name}.json").exists():
                continue
            # Where PyTorch crashes, the last name is the op to skip.
            print(name, file=sys.stderr)
            made_one, missed, failed = suite_of(
                name, some_of(calls, given.most), given.folder)
            made += made_one
            missing += missed
            wrong += failed
    for line in missing:
        print("no", line, file=sys.stderr)
    for line in wrong:
        print("error", line, file=sys.stderr)
    print(f"{made} suites, {len(missing)} sections that PyTorch does not "
          f"compute, {len(wrong)} calls that it refuses")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
