"""Who is wrong, where PyTorch and a rule differ: judged by PyTorch's kernel in
f64, and by differences of it.

    derivative("first", f, point, theirs, ours)     # "PyTorch"
"""

from __future__ import annotations

import torch

_CLOSE = 1e-4
NEITHER = "both, or there is no derivative"


def _distance(a, b) -> float:
    """The largest difference, relative to the larger of 1 and the values."""
    worst = 0.0
    for x, y in zip(a, b):
        if x.shape != y.shape:
            return float("inf")
        if x.numel() == 0:
            continue
        x, y = x.detach().double(), y.detach().double()
        size = max(1.0, float(torch.nan_to_num(y, 0, 0, 0).abs().max()))
        same = (x == y) | (x.isnan() & y.isnan())
        error = torch.where(same, 0.0, (x - y).abs() / size)
        worst = max(worst, float(torch.nan_to_num(error, nan=float("inf"))
                                 .max()))
    return worst


class Values:
    """A call whose value in f64 two have computed: PyTorch's kernel, `function`
    at `point`, and the rule, `want`."""

    def __init__(self, function, point, want):
        self.function = function
        self.point = point
        self.want = want
        self._kernel = None

    def _agree(self) -> bool:
        if self._kernel is None:
            self._kernel = self.function(*self.point)
        return len(self._kernel) == len(self.want) \
            and _distance(self.want, self._kernel) < 1e-7

    def of_kernel(self) -> str:
        """Whether the difference of f32 from the rule's f64 is PyTorch's."""
        return "PyTorch, in f32" if self._agree() else "the meaning differs"

    def of_rule(self, mine, theirs) -> str:
        """Of two values in f32 the one that is farther from f64."""
        if not self._agree():
            return "the meaning differs"
        floats = [[o for o in outputs if o.is_floating_point()]
                  for outputs in (mine, theirs)]
        ours, kernels = (_distance(f, self.want) for f in floats)
        return "the rule" if ours > kernels else "PyTorch, in f32"


def _line(function, point, h: float):
    """The function's values at multiples of h along the direction of ones."""
    return lambda k: function(*[p + k * h for p in point])


def _differences(kind: str, function, point, h: float):
    at = _line(function, point, h)
    if kind == "second":
        return [(a - 2 * b + c) / h**2 for a, b, c in zip(at(1), at(0), at(-1))]
    return [(a - b) / (2 * h) for a, b in zip(at(1), at(-1))]


def derivative(kind: str, function, point, theirs, ours) -> str:
    """Which of two derivatives is that of the function, in f64: "first" and
    "second" forward ones in the direction of ones, "reverse" cotangents of
    ones."""
    steps = (1e-3, 5e-4) if kind == "second" else (1e-5, 5e-6)
    try:
        wide, close = (_differences(kind, function, point, h) for h in steps)
    except Exception as error:  # noqa: BLE001  beside the point it has no value
        return f"not judged: {str(error).splitlines()[0][:40]}"
    if not _distance(wide, close) < _CLOSE:
        return NEITHER
    if kind == "reverse":
        # The directional derivative that the cotangents have.
        close = [sum(d.sum() for d in close)]
        theirs, ours = ([sum(g.sum() for g in gs if g is not None)]
                        for gs in (theirs, ours))
    right = {name: _distance(values, close) < _CLOSE
             for name, values in (("PyTorch", theirs), ("the rule", ours))}
    if all(right.values()):
        return "neither in the sum" if kind == "reverse" else "neither"
    if not any(right.values()):
        return NEITHER
    return "PyTorch" if right["the rule"] else "the rule"
