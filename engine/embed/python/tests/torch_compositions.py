"""The 18 ways that PyTorch composes its transforms, for ops of the library:
each against the same composition of PyTorch's own function.

    python -m unittest torch_compositions
"""

from __future__ import annotations

import unittest

from torch_testing import HAVE_TORCH, WHY

if HAVE_TORCH:
    import torch
    import torch.autograd.forward_ad as forward_ad
    from torch.func import hessian, jacfwd, jacrev, jvp, vjp, vmap

    import cleave.torch
    from torch_functions import samples


def _direction(x):
    """A tensor of the shape, other at each element."""
    n = torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)
    return torch.cos(n + 1)


def _floats(outputs):
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return tuple(o for o in outputs if o.is_floating_point())


def _vmap(f):
    return lambda *x: vmap(f)(*[torch.stack([v, 0.9 * v, 1.1 * v])
                                for v in x])


def _jvp(f):
    return lambda *x: jvp(f, x, tuple(_direction(v) for v in x))[1]


def _vjp(f):
    def pulled(*x):
        y, pull = vjp(f, *x)
        return pull(tuple(_direction(v) for v in y))
    return pulled


def _scalar(f):
    return lambda *x: sum(torch.sin(v).sum() for v in f(*x))


def _duals(f):
    def run(*x):
        with forward_ad.dual_level():
            y = f(*[forward_ad.make_dual(v, _direction(v)) for v in x])
            pairs = [forward_ad.unpack_dual(v) for v in y]
            return tuple(p.tangent for p in pairs)
    return run


def _twice_backward(f):
    def run(*x):
        x = [v.clone().requires_grad_() for v in x]
        first = torch.autograd.grad(_scalar(f)(*x), x, create_graph=True)
        total = sum((g * g).sum() for g in first)
        return torch.autograd.grad(total, x, allow_unused=True,
                                   materialize_grads=True)
    return run


def _hessian(f):
    return lambda *x: hessian(_scalar(f))(*x)


ONES = {"vmap": _vmap, "jvp": _jvp, "vjp": _vjp}
COMPOSITIONS = {name: make for name, make in ONES.items()}
for _outer in ONES:
    for _inner in ONES:
        COMPOSITIONS[f"{_outer}({_inner})"] = (
            lambda f, a=ONES[_outer], b=ONES[_inner]: a(b(f)))
COMPOSITIONS.update({
    "jacfwd": lambda f: lambda *x: jacfwd(lambda *v: f(*v)[0])(*x),
    "jacrev": lambda f: lambda *x: jacrev(lambda *v: f(*v)[0])(*x),
    "hessian": lambda f: _hessian(f),
    "vmap(hessian)": lambda f: _vmap(_hessian(f)),
    "dual numbers": _duals,
    "double backward": _twice_backward,
})


@unittest.skipUnless(HAVE_TORCH, WHY)
class Compositions(unittest.TestCase):
    """Each op of torch_functions.py under all of COMPOSITIONS."""

    def check_mode(self, mode: str) -> None:
        self.assertEqual(len(COMPOSITIONS), 18)
        ns = cleave.torch.register(mode=mode)
        for sample in samples(ns):
            point = sample.point()
            active = point[:len(point) - sample.fixed]
            rest = point[len(active):]

            def ours(*x, sample=sample, rest=rest):
                return _floats(sample.ours(*x, *rest))

            def theirs(*x, sample=sample, rest=rest):
                return _floats(sample.theirs(*x, *rest))

            for name, compose in COMPOSITIONS.items():
                with self.subTest(op=sample.name, composition=name):
                    got, want = compose(ours)(*active), \
                        compose(theirs)(*active)
                    torch.testing.assert_close(got, want, rtol=1e-7, atol=1e-8)

    def test_kernels_compose(self):
        self.check_mode("kernel")

    def test_printed_calls_compose(self):
        self.check_mode("inline")


if __name__ == "__main__":
    unittest.main()
