"""PyTorch's decompositions and derivative formulas against our rules.

    audit = audit_ops(["softplus", "*norm*"])
    print(audit.markdown())

    python -m cleave.torch audit --op softplus --json softplus.json

`torch._decomp` defines ops by others, and so does the dispatcher; autograd has a
formula for each derivative. The checker draws inputs for our op, or for its
exact derivative, and judges what PyTorch gives against it over the reals: in ULP,
with what a movement of the inputs makes of the result, at special values as well.
The calls are those of PyTorch's own tests, on vectors where an op goes element by
element.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Iterable

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cleave.auditing import (DTYPES, OFF, Audit, Comparison, Finding,
                             Progress, Row, add_arguments, finish, fixed,
                             printer)
from cleave.errors import Error, InvalidArgumentError, UnimplementedError
from cleave.torch.aten_call import AtenCall, bind_schema
from cleave.torch.audit_causes import CAUSES
from cleave.torch.audit_process import Crash, run_apart
from cleave.torch.check import aten_op
from cleave.torch.check_all import calls_of_samples, select
from cleave.torch.program import is_inexact, select_outputs
from cleave.torch.signature import Sizes

CALLS = 3
SAMPLES = 8
KERNEL, DECOMPOSITION, VJP, JVP = "kernel", "decomposition", "vjp", "jvp"
SUBJECTS = (KERNEL, DECOMPOSITION, VJP, JVP)
_DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
           "bf16": torch.bfloat16}


# -- arrays -------------------------------------------------------------------

def tensor_of(array) -> torch.Tensor:
    """A tensor of a numpy array, bf16 included."""
    array = np.array(array, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor: torch.Tensor):
    """And back."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _tensors(result) -> list:
    results = result if isinstance(result, (list, tuple)) else [result]
    return [r for r in results if isinstance(r, torch.Tensor)]


# -- what is compared ---------------------------------------------------------

class _ByTable(TorchDispatchMode):
    """Computes the ops that have a decomposition by it."""

    def __init__(self):
        super().__init__()
        self.used: set = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        entry = torch._decomp.decomposition_table.get(func)
        if entry is not None:
            self.used.add(func)
            return entry(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def decomposition_of(op):
    """A function that computes the op by PyTorch's decomposition of it, or, of
    an op that the dispatcher takes apart, by those of its parts."""
    entry = torch._decomp.decomposition_table.get(op)
    if entry is not None:
        return entry

    def by_parts(*args, **kwargs):
        mode = _ByTable()
        with mode:
            result = op(*args, **kwargs)
        if not mode.used:
            raise UnimplementedError("PyTorch has no decomposition of it",
                                     code=12)
        return result
    return by_parts


class Call:
    """A call of an aten op, as a graph of our rule and as a function of arrays
    in the order of the graph's inputs."""

    def __init__(self, call: AtenCall, bound: dict, numbers: bool = False):
        self.call = call
        self.numbers = numbers
        self.op = call.op
        self.bound = bound
        self.values, self.attributes = call.values(bound)
        graph = self._graph()
        # Running statistics are results of the rule, and written by the op.
        args, kwargs = self.arguments([t.clone() for t in self.tensors()])
        given = _tensors(call.op(*args, **kwargs))
        self.graph = select_outputs(graph, range(min(len(given),
                                                     len(graph.outputs))))
        self.text = ", ".join(
            [str(kind) for _, kind in self.graph.inputs]
            + [f"{k}={v}" for k, v in self.attributes.items()])

    def _graph(self):
        """Sizes are variables where the rule does not ask for numbers."""
        rule, problem = self.call.rule, None
        for numbers in (False, True)[self.numbers:]:
            sizes = Sizes(numbers)
            try:
                graph = rule.graph(rule._types(self.values, sizes),
                                   rule.attribute_texts(self.attributes, sizes))
                if numbers or not graph.guards:
                    return graph
            except Error as error:
                problem = error
        raise problem  # type: ignore[misc]

    def with_numbers(self) -> "Call":
        """The same with numbers for all sizes."""
        return Call(self.call, self.bound, numbers=True)

    def key(self) -> tuple:
        """What tells calls apart that an audit would not compare twice."""
        return (tuple((str(k.dtype), len(k.shape))
                      for _, k in self.graph.inputs),
                tuple(sorted((k, str(v)) for k, v in self.attributes.items())))

    def arguments(self, tensors: list) -> tuple[list, dict]:
        """The arguments of the op with these tensors."""
        bound, left = dict(self.bound), iter(tensors)
        for about, value in zip(self.call.rule.inputs, self.values):
            if isinstance(value, list):
                bound[about["name"]] = [None if v is None else next(left)
                                        for v in value]
            elif value is not None:
                bound[about["name"]] = next(left)
        schema = self.op._schema.arguments
        args = [bound.pop(a.name) for a in schema
                if not a.kwarg_only and a.name in bound]
        return args, {a.name: bound[a.name] for a in schema
                      if a.kwarg_only and a.name in bound}

    def run(self, callee, tensors: list) -> list:
        """The tensors that a callee gives, as many as the graph has."""
        args, kwargs = self.arguments(tensors)
        return _tensors(callee(*args, **kwargs))[:len(self.graph.outputs)]

    @property
    def inexact(self) -> list[bool]:
        """Of each input whether derivatives go through it."""
        return [is_inexact(k.dtype) for _, k in self.graph.inputs]

    def tensors(self) -> list:
        """The sample's own tensors."""
        return [t for v in self.values
                for t in (v if isinstance(v, list) else [v]) if t is not None]


_note = None  # what a process of its own writes down before each call


def _guarded(function):
    """What PyTorch's kernel refuses is no sample."""
    def call(*arrays, **_):
        try:
            if _note is not None:
                _note(", ".join(_brief(a) for a in arrays))
            return [array_of(t) for t in function(*map(tensor_of, arrays))]
        except (Error, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001  anything may be raised
            raise UnimplementedError(_line(error), code=12) from error
    return call


def _brief(array) -> str:
    shape = f"{array.dtype}{list(array.shape)}"
    return f"{shape} {array.ravel().tolist()}" if 0 < array.size <= 8 else shape


def _line(error: BaseException) -> str:
    lines = [s for s in str(error).splitlines() if s.strip()]
    return lines[0][:100] if lines else type(error).__name__


def _kernel(call: Call) -> Comparison:
    return Comparison(call.graph, _guarded(
        lambda *x: call.run(call.op, list(x))), call.text)


def _decomposition(call: Call) -> Comparison:
    callee = decomposition_of(call.op)
    try:
        call.run(callee, [t.clone() for t in call.tensors()])
    except UnimplementedError:
        raise
    except Exception:  # noqa: BLE001  samples will show it
        pass

    def function(*tensors):
        try:
            return call.run(callee, [t.clone() for t in tensors])
        except Error:
            raise
        except Exception as error:  # noqa: BLE001  anything may be raised
            # Where the kernel takes it the decomposition is to do so, too.
            call.run(call.op, [t.clone() for t in tensors])
            raise InvalidArgumentError(
                f"{type(error).__name__}: {_line(error)}", code=3) from error
    return Comparison(call.graph, _guarded(function), call.text)


def _active(call: Call) -> list[bool]:
    """The inputs that PyTorch differentiates in."""
    flags = []
    for k, inexact in enumerate(call.inexact):
        works = False
        if inexact:
            tensors = [t.detach().clone() for t in call.tensors()]
            tensors[k].requires_grad_()
            try:
                outputs = [o for o in call.run(call.op, tensors)
                           if o.requires_grad]
                works = bool(outputs) and torch.autograd.grad(
                    outputs, tensors[k], [torch.ones_like(o) for o in outputs],
                    allow_unused=True)[0] is not None
            except Exception:  # noqa: BLE001  there is no such derivative
                works = False
        flags.append(works)
    return flags


def _floats(outputs) -> list:
    return [o for o in outputs if o.is_floating_point() or o.is_complex()]


# No node of an op that goes element by element has a name that begins so.
_STRUCTURED = ("reduce", "argm", "reshape", "transpose", "slice", "reverse",
               "pad", "concatenate", "windows", "dot", "conv", "linear_scan",
               "cumulative", "gather", "scatter", "sort", "nonzero", "random",
               "iota", "scan", "cond", "while")


def _is_pointwise(call: Call) -> bool:
    """Whether the op goes element by element on vectors."""
    shapes = {k.shape for _, k in [*call.graph.inputs, *call.graph.outputs]}
    return len(shapes) == 1 and len(next(iter(shapes))) == 1 and not any(
        node["op"].startswith(_STRUCTURED)
        for node in call.graph.expand().json()["nodes"])


def _given_ones(graph, first: int):
    """The graph with ones in the place of the inputs from `first` on."""
    for at in reversed(range(first, len(graph.inputs))):
        graph = fixed(graph, at)
    return graph


def _finite(tensors) -> None:
    """Refuses infinities and NaN: what an op that is no pointwise one makes of
    0 times infinity in its derivative depends on the order of its sums."""
    for t in tensors:
        if t.is_floating_point() and not t.isfinite().all():
            raise UnimplementedError("an infinity or NaN", code=12)


def _differentiable(call: Call) -> list[bool]:
    active = _active(call)
    if not any(active):
        raise UnimplementedError("PyTorch differentiates it in no input",
                                 code=12)
    return active


def _vjp(call: Call) -> Comparison:
    active = _differentiable(call)
    count, first = len(active), len(call.graph.outputs)
    pulled = call.graph.vjp(active)
    ours = select_outputs(pulled, range(first, len(pulled.outputs)))
    ones = _is_pointwise(call)
    if ones:
        ours = _given_ones(ours, count)

    def function(*given):
        if not ones:
            _finite(given)
        tensors = [t.requires_grad_(a) for t, a in zip(given, active)]
        outputs = _floats(call.run(call.op, tensors))
        cotangents = [torch.ones_like(o) for o in outputs] if ones \
            else given[count:]
        pairs = [(o, c) for o, c in zip(outputs, cotangents)
                 if o.requires_grad]
        wanted = [t for t, a in zip(tensors, active) if a]
        grads = torch.autograd.grad([o for o, _ in pairs], wanted,
                                    [c for _, c in pairs], allow_unused=True)
        return [torch.zeros_like(t) if g is None else g
                for t, g in zip(wanted, grads)]
    return Comparison(ours, _guarded(function), f"vjp of {call.text}")


def _jvp(call: Call) -> Comparison:
    active = _differentiable(call)
    count, first = len(active), len(call.graph.outputs)
    pushed, has_tangent = call.graph.jvp(active)
    ours = select_outputs(pushed, range(first, len(pushed.outputs)))
    ones = _is_pointwise(call)
    if ones:
        ours = _given_ones(ours, count)

    def function(*given):
        if not ones:
            _finite(given)
        tangents = iter([torch.ones_like(t) for t, a in zip(given, active)
                         if a] if ones else given[count:])
        with torch.autograd.forward_ad.dual_level():
            make = torch.autograd.forward_ad.make_dual
            tensors = [make(t, next(tangents)) if a else t
                       for t, a in zip(given, active)]
            outputs = call.run(call.op, tensors)
            parts = [torch.autograd.forward_ad.unpack_dual(o)
                     for o, has in zip(outputs, has_tangent) if has]
            return [torch.zeros_like(p.primal) if p.tangent is None
                    else p.tangent for p in parts]
    try:
        tensors = call.tensors()
        function(*tensors, *[torch.ones_like(t) for t, a
                             in zip(tensors, active) if a and not ones])
    except UnimplementedError:
        pass
    except NotImplementedError as error:
        raise UnimplementedError(f"PyTorch: {_line(error)}",
                                 code=12) from error
    return Comparison(ours, _guarded(function), f"jvp of {call.text}")


_MAKERS = {KERNEL: _kernel, DECOMPOSITION: _decomposition, VJP: _vjp,
           JVP: _jvp}


# -- calls --------------------------------------------------------------------

def _map(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [_map(v, function) for v in value]
    return value


def _flat(bound: dict) -> dict | None:
    """The arguments on vectors, where all tensors have one shape; tensors
    without axes stay as they are."""
    shapes: set = set()
    for value in bound.values():
        _map(value, lambda t: shapes.add(tuple(t.shape)))
    shapes.discard(())
    if len(shapes) != 1 or 0 in next(iter(shapes)) or \
            len(next(iter(shapes))) < 2:
        return None
    return {k: _map(v, lambda t: t.reshape(-1) if t.ndim else t)
            for k, v in bound.items()}


def _chosen(rule: AtenCall, calls: list, dtype: torch.dtype,
            most: int) -> tuple[list[Call], list[str]]:
    """Calls that differ, those on vectors first, and why others are not."""
    found: dict[tuple, Call] = {}
    problems = []
    plain: list[dict] = []
    flat: list[dict] = []
    for args, kwargs in calls:
        bound = {k: _map(v, lambda t: t.to(dtype)
                         if t.dtype == torch.float32 else t)
                 for k, v in bind_schema(rule.op, args, kwargs).items()}
        bound = {k: dtype if v is torch.float32 else v
                 for k, v in bound.items()}
        vectors = _flat(bound)
        if vectors is not None:
            flat.append(vectors)
        plain.append(bound)
    for bound in flat + plain:
        if len(found) >= most:
            break
        try:
            call = Call(rule, bound)
        except (Error, NotImplementedError, RuntimeError, IndexError,
                TypeError, ValueError) as error:
            problems.append(_line(error))
            continue
        found.setdefault(call.key(), call)
    return list(found.values()), list(dict.fromkeys(problems))


# -- the audit ----------------------------------------------------------------

class _Work:
    """The rows of one op, in a process of its own: one for each dtype and
    subject."""

    def __init__(self, rules, samples: dict, dtypes, subjects, audit: Audit,
                 most: int):
        self.rules = rules
        self.samples = samples
        self.turns = [(d, s) for d in dtypes for s in subjects]
        self.audit = audit
        self.most = most

    def __call__(self, name: str, skip: int, note, refused: list[str]):
        global _note  # noqa: PLW0603  the process has one task

        def checked(text: str) -> None:
            if text in refused:
                raise UnimplementedError("the process ended there", code=12)
            note(text)

        _note = checked
        warnings.simplefilter("ignore")
        rule = AtenCall(self.rules, aten_op(name))
        chosen: dict = {}
        for dtype, subject in self.turns[skip:]:
            if dtype not in chosen:
                chosen[dtype] = _chosen(rule, self.samples[name],
                                        _DTYPES[dtype], self.most)
            yield self._row(name, subject, dtype, *chosen[dtype])

    def _row(self, name: str, subject: str, dtype: str, calls: list[Call],
             problems: list[str]) -> Row:
        comparisons, why = [], [] if calls else problems[:1]
        for call in calls:
            try:
                make = _MAKERS[subject]
                ways = [make(call)]
                # A derivative may have no use for what sizes are read from.
                if subject in (VJP, JVP) and not call.numbers:
                    ways.append(make(call.with_numbers()))
                comparisons.append(ways)
            except (Error, NotImplementedError) as error:
                why.append(_line(error))
        short = name.removeprefix("aten.")
        why = list(dict.fromkeys(why))
        if not comparisons:
            return Row(short, subject, dtype, why="; ".join(why))
        return self.audit.row(short, subject, dtype, comparisons, why)

    def result(self, name: str, message, crashes: list[Crash]) -> Row | None:
        """The row of a message, with the crashes on the way to it. None where
        that is one more."""
        if isinstance(message, Row):
            row = message
        elif not message.last:
            crashes.append(message)
            return None
        else:
            dtype, subject = self.turns[message.done]
            row = Row(name.removeprefix("aten."), subject, dtype)
        for crash in crashes:
            if crash.how.startswith("SIG"):
                row.verdict = OFF
                row.samples += 1
                row.findings.insert(0, Finding(
                    "crash", 1, math.inf, "a call that ends the process",
                    crash.note, "a result", crash.how))
            else:
                row.why = f"{crash.how} at {crash.note}"
        crashes.clear()
        return row


def audit_ops(ops: str | Iterable[str] | None = None,
              dtypes: Iterable[str] = DTYPES,
              subjects: Iterable[str] = SUBJECTS, *, rules=None,
              calls: int = CALLS, seed: int = 1, jobs: int = 0,
              seconds: float = 60.0, on_row=None) -> Audit:
    """Compares the aten ops whose names fit one of the patterns, all unless
    given, in `dtypes`: the kernel, the decomposition, and the derivatives in
    reverse and forward, `jobs` ops at a time (one for each core unless given).
    `on_row` is called with each row. Ctrl-C ends it with what was found until
    then."""
    import cleave
    rules = rules or cleave.load()
    patterns = [ops] if isinstance(ops, str) else list(ops or ()) or None
    # Each op has a process; its check is one thread of that.
    audit = Audit(CAUSES, seed, 1, seconds, on_row)
    audit.title = f"torch {torch.__version__}"
    progress = Progress()
    dtypes, subjects = list(dtypes), list(subjects)
    rows: dict[str, list[Row]] = {}
    crashes: dict[str, list[Crash]] = {}
    chosen: dict = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            skipped: dict[str, str] = {}
            chosen = select(rules, patterns, skipped)
            for name, why in skipped.items():
                audit.skip(name.removeprefix("aten."), "", why)
            samples = calls_of_samples(chosen, SAMPLES, progress)
            torch.set_num_threads(1)
            for name in list(chosen):
                if not samples[name]:
                    audit.skip(name.removeprefix("aten."), "",
                               "no sample of PyTorch calls it")
                    del chosen[name]
            work = _Work(rules, samples, dtypes, subjects, audit, calls)
            # More than the checks of a row may take together.
            limit = 4 * calls * (seconds + 30)
            for name, message in run_apart(
                    list(chosen), work, jobs or len(os.sched_getaffinity(0)),
                    limit):
                if message is None:
                    continue
                row = work.result(name, message,
                                  crashes.setdefault(name, []))
                if row is None:
                    continue
                rows.setdefault(name, []).append(row)
                progress(f"{len(rows)} of {len(chosen)} ops, {name}")
                if on_row is not None:
                    on_row(row)
    except KeyboardInterrupt:
        audit.interrupted = f"interrupted after {len(rows)} of " \
                            f"{len(chosen)} ops"
    finally:
        progress.done()
    for name in chosen:
        audit.rows += rows.get(name, [])
    return audit


def main(arguments: list[str] | None = None) -> int:
    """The command `python -m cleave.torch audit`."""
    parser = argparse.ArgumentParser(
        prog="cleave audit-torch", description=__doc__.split("\n\n")[0])
    add_arguments(parser)
    parser.add_argument("--of", action="append", default=[], choices=SUBJECTS,
                        help="what is compared; all four unless given")
    parser.add_argument("--calls", type=int, default=CALLS,
                        help="of each op, from PyTorch's tests (%(default)s)")
    options = parser.parse_args(arguments)
    audit = audit_ops(options.op, options.dtype or DTYPES,
                      options.of or SUBJECTS, calls=options.calls,
                      seed=options.seed, jobs=options.threads,
                      seconds=options.seconds, on_row=printer(options))
    if not audit.rows and not audit.interrupted:
        parser.error(f"no op with a rule fits {' '.join(options.op)}")
    return finish(audit, options)
