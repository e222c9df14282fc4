"""Compares an aten op in PyTorch with our rule for it.

    print(check("aten.layer_norm"))

PyTorch's kernel is the oracle of our rule; the rule, computed in f64, is that
of PyTorch's kernel in f32, of its decomposition (torch._decomp) and of its
derivatives. The samples are those of PyTorch's own tests, or yours.
"""

from __future__ import annotations

import dataclasses
import itertools

import torch
from torch.func import jvp, vjp
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from cleave.torch import judge
from cleave.torch.aten_call import AtenCall, bind_schema

_ULP = {torch.float32: 2.0**-23, torch.float64: 2.0**-52}
# Beyond both of these a row is off.
_MOST_ULP = 1024.0
_RELATIVE = {torch.float32: 1e-4, torch.float64: 1e-7}


@dataclasses.dataclass
class Row:
    """One comparison: the largest error over all samples."""

    subject: str
    quantity: str
    samples: int = 0
    ulp: float = 0.0
    off: bool = False
    why: str = ""
    where: str = ""
    # The wrong side of a row that is off: "PyTorch", "the rule", or why nobody
    # can say.
    judged: str = ""


class CheckTable:
    """The rows of one op. `off` has those that differ."""

    def __init__(self, op: str):
        self.op = op
        self.rows: list[Row] = []
        self.refused: dict[str, int] = {}

    @property
    def off(self) -> list[Row]:
        """What is not as our rule has it."""
        return [r for r in self.rows if r.off]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and nothing is off."""
        return any(r.samples for r in self.rows) and not self.off

    def __str__(self) -> str:
        cells = [["", "of", "samples", "worst ulp", "verdict", "at"]]
        for r in self.rows:
            verdict = r.why or ("OFF" if r.off else
                                "agrees" if r.samples else "not compared")
            if r.off and r.judged:
                verdict += f", wrong: {r.judged}"
            cells.append([r.subject, r.quantity, str(r.samples),
                          f"{r.ulp:.3g}", verdict, r.where if r.off else ""])
        widths = [max(len(row[k]) for row in cells) for k in range(5)]
        lines = [self.op] + ["  " + "  ".join(
            [c.ljust(w) for c, w in zip(row, widths)] + row[5:]).rstrip()
            for row in cells]
        lines += [f"  {count} samples: {why}"
                  for why, count in self.refused.items()]
        return "\n".join(lines)

    __repr__ = __str__


class _Capture(TorchDispatchMode):
    """Keeps the arguments of the calls of one op."""

    def __init__(self, op):
        super().__init__()
        self.op = op
        self.calls: list = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is self.op:
            self.calls.append((args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def aten_op(name: str):
    """`aten.sum.dim_IntList` as an object of PyTorch."""
    name = name.removeprefix("aten.")
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


class _CaptureFunctions(TorchFunctionMode):
    """Keeps the arguments of functions of PyTorch by the op's name: an op that
    PyTorch takes apart at once is only seen there."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self.calls: list = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == self.name:
            self.calls.append((args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def _calls_of_sample(op, packet: str, info, sample) -> list:
    def run():
        return info.op(sample.input, *sample.args, **sample.kwargs)

    with _Capture(op) as capture:
        result = run()
        outputs = [o for o in _outputs(result) if o.requires_grad]
        if packet.endswith("backward") and outputs:
            torch.autograd.backward(
                outputs, [torch.cos(torch.ones_like(o)) for o in outputs])
    if capture.calls or packet.endswith("backward"):
        return capture.calls
    with _CaptureFunctions(packet) as functions:
        run()
    kwargs = dict(sample.kwargs)
    if isinstance(kwargs.get("reduction"), str):
        # The number that it is below the Python function.
        kwargs["reduction"] = ("none", "mean", "sum").index(kwargs["reduction"])
    for args, kwargs in [*functions.calls,
                         ((sample.input, *sample.args), kwargs)]:
        try:
            op(*args, **kwargs)
        except Exception:  # noqa: BLE001  it is another overload's
            continue
        return [(args, kwargs)]
    return []


def opinfo_calls(op, limit: int = 32, dtype=torch.float32):
    """Calls of the aten op in PyTorch's samples of operators of its name; those
    of a `*_backward` in the derivatives of them."""
    from torch.testing._internal.common_methods_invocations import op_db
    packet = op._schema.name.partition("::")[2]
    found = []
    for info in op_db:
        name = info.name.rpartition(".")[2]
        if name not in packet and packet not in name \
                or dtype not in info.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        backward = packet.endswith("backward") and info.supports_autograd
        try:
            samples = list(itertools.islice(info.sample_inputs(
                "cpu", dtype, requires_grad=backward), limit))
        except Exception:  # noqa: BLE001  it needs what is not installed
            continue
        for sample in samples:
            try:
                found += _calls_of_sample(op, packet, info, sample)
            except Exception:  # noqa: BLE001  a sample of another kind
                continue
    return [(_map_tensors(torch.Tensor.detach, a),
             {k: _map_tensors(torch.Tensor.detach, v) for k, v in kw.items()})
            for a, kw in found]


def detached(value):
    """The arguments without their history, containers included."""
    if isinstance(value, dict):
        return {k: detached(v) for k, v in value.items()}
    return _map_tensors(lambda t: t.detach().clone(), value)


def _map_tensors(function, value):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(function, v) for v in value)
    return value


def _wide(value):
    """The argument in f64: tensors, lists of them, and dtypes."""
    if value is torch.float32:
        return torch.float64
    return _map_tensors(
        lambda t: t.double() if t.dtype == torch.float32 else t, value)


def _outputs(result) -> list:
    results = result if isinstance(result, (list, tuple)) else [result]
    return [r for r in results if isinstance(r, torch.Tensor)]


class _Function:
    """A call as a function of its float tensors, by any callee."""

    def __init__(self, op, args, kwargs):
        self.bound = bind_schema(op, args, kwargs)
        self.positional = [a.name for a in op._schema.arguments
                           if not a.kwarg_only and a.name in self.bound]
        self.names = [n for n, v in self.bound.items()
                      if isinstance(v, torch.Tensor) and v.is_floating_point()]
        self.point = tuple(self.bound[n].detach() for n in self.names)

    def of(self, callee, floats: bool = True):
        """The callee as a function of the float tensors; with `floats` only the
        results that have derivatives."""
        def function(*tensors):
            bound = {**self.bound, **dict(zip(self.names, tensors))}
            args = [bound.pop(n) for n in self.positional]
            return tuple(o for o in _outputs(callee(*args, **bound))
                         if o.is_floating_point() or not floats)
        return function


def _compare(row: Row, got, want, dtype, where: str, verdict=None) -> None:
    """Takes the error of one sample into the row. The first that is off is
    judged."""
    before = row.off
    _take(row, got, want, dtype, where)
    if row.off and not before and verdict is not None:
        row.judged = verdict()


def _take(row: Row, got, want, dtype, where: str) -> None:
    row.samples += 1
    if len(got) != len(want):
        row.off, row.why, row.where = True, "OFF: the number of results", where
        return
    for g, w in zip(got, want):
        if g.shape != w.shape:
            row.off, row.where = True, where
            row.why = f"OFF: {list(g.shape)} for {list(w.shape)}"
            return
        if g.numel() == 0:
            continue
        if w.is_complex():
            g, w = (torch.view_as_real(t.resolve_conj()) for t in (g, w))
        elif not w.is_floating_point():
            if not torch.equal(g.to(w.dtype), w):
                row.off, row.where = True, where
                row.why = "OFF: other integers"
            continue
        g, w = g.detach().double(), w.detach().double()
        same = (g == w) | (g.isnan() & w.isnan())
        error = torch.where(same, 0.0, (g - w).abs())
        error = torch.where(error.isnan(), torch.inf, error)
        finite = w[w.isfinite()].abs()
        largest = float(finite.max()) if finite.numel() else 1.0
        size = max(1.0, largest)
        # Next to a large result, one near zero has no ulp of its own.
        scale = w.abs().clamp(min=max(largest / 1024, torch.finfo(dtype).tiny))
        ulp = error / (torch.exp2(torch.floor(torch.log2(scale))) * _ULP[dtype])
        worst = float(ulp.max())
        off = worst > _MOST_ULP and float(error.max()) > _RELATIVE[dtype] * size
        if worst > row.ulp or off and not row.off:
            row.ulp = max(row.ulp, worst)
            row.where = where
        row.off = row.off or off


def _rounded(values) -> str:
    if isinstance(values, list):
        return "[" + ", ".join(_rounded(v) for v in values) + "]"
    return f"{values:.4g}" if isinstance(values, float) else str(values)


def _where(op, args, kwargs) -> str:
    def one(value):
        if isinstance(value, torch.Tensor):
            if value.numel() <= 6:
                return _rounded(value.tolist())
            return f"{str(value.dtype)[6:]}{list(value.shape)}"
        return str(value)
    return ", ".join([one(a) for a in args]
                     + [f"{k}={one(v)}" for k, v in kwargs.items()])[:100]


def _first(function, point):
    return jvp(function, point, tuple(torch.ones_like(p) for p in point))[1]


def _second(function, point):
    return _first(lambda *x: _first(function, x), point)


def _reverse(function, point):
    y, pull = vjp(function, *point)
    return pull(tuple(torch.ones_like(v) for v in y))


def check(op: str, rules=None, calls=None) -> CheckTable:
    """A table of what is off between PyTorch and our rule for `op`, a name such
    as "aten.layer_norm". `calls` are lists of arguments; PyTorch's samples
    unless given."""
    import cleave
    rules = rules or cleave.load()
    aten = aten_op(op)
    rule = AtenCall(rules, aten)
    name = "aten." + op.removeprefix("aten.")
    table = CheckTable(name)
    decompositions = torch._decomp.decomposition_table
    decomposition = decompositions.get(aten)
    rows = {key: Row(*key) for key in (
        ("our rule, f32", "PyTorch's kernel in f32"),
        ("PyTorch's kernel, f32", "our rule in f64"),
        ("PyTorch's decomposition, f32", "our rule in f64"),
        ("PyTorch's jvp, f64", "our rule's"),
        ("PyTorch's jvp of jvp, f64", "our rule's"),
        ("PyTorch's vjp, f64", "our rule's"))}
    table.rows = list(rows.values())
    ours, kernel, decomposed, first, second, reverse = table.rows
    if decomposition is None:
        decomposed.why = "there is none"
    for args, *rest in calls if calls is not None else opinfo_calls(aten):
        kwargs = rest[0] if rest else {}
        where = _where(aten, args, kwargs)
        narrow = _Function(aten, args, kwargs)
        wide = _Function(aten, tuple(_wide(a) for a in args),
                         {k: _wide(v) for k, v in kwargs.items()})
        try:
            want = wide.of(rule)(*wide.point)
            mine = narrow.of(rule, floats=False)(*narrow.point)
        except (cleave.Error, NotImplementedError) as error:
            why = str(error).splitlines()[0]
            table.refused[why] = table.refused.get(why, 0) + 1
            continue
        theirs = narrow.of(aten, floats=False)(*narrow.point)
        exact = judge.Values(wide.of(aten), wide.point, want)
        _compare(ours, mine, theirs, torch.float32, where,
                 lambda: exact.of_rule(mine, theirs))
        if not narrow.names:
            continue
        theirs = narrow.of(aten)(*narrow.point)
        _compare(kernel, theirs, want, torch.float32, where,
                 exact.of_kernel)
        if decomposition is not None:
            _try(decomposed, narrow.of(decomposition), narrow.point, want,
                 torch.float32, where, lambda f, x: f(*x),
                 lambda got: exact.of_kernel())
        for row, how in ((first, _first), (second, _second),
                         (reverse, _reverse)):
            try:
                expected = how(wide.of(rule), wide.point)
            except (NotImplementedError, RuntimeError) as error:
                row.why = f"ours: {str(error).splitlines()[0][:60]}"
                continue
            _try(row, wide.of(aten), wide.point, expected, torch.float64, where,
                 how, lambda got, kind=how.__name__[1:], e=expected:
                 judge.derivative(kind, wide.of(aten), wide.point, got, e))
    return table


def _try(row, function, point, want, dtype, where, how, verdict=None) -> None:
    try:
        got = how(function, point)
    except Exception as error:  # noqa: BLE001  what PyTorch does not have
        lines = str(error).splitlines() or [type(error).__name__]
        row.why = row.why or f"PyTorch: {lines[0][:60]}"
        return
    _compare(row, got, want, dtype, where,
             verdict and (lambda: verdict(got)))
